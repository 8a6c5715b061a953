"""Files that PyTorch wrote give PyTorch's numbers here."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leafgrad
from leafgrad_onnx import load

torch = pytest.importorskip("torch")


class Recurrent(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(3, 4, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0]


def images():
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.AvgPool2d(2), nn.ConvTranspose2d(8, 4, 3, 2, 1, 1),
        nn.GroupNorm(2, 4), nn.PReLU(), nn.Hardswish(), nn.ReflectionPad2d(1), nn.PixelShuffle(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 2), nn.Softmax(1),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.LayerNorm(8), torch.nn.GELU()), (4, 3)),
        (images, (2, 3, 16, 16)),
        (lambda: Recurrent(torch.nn.LSTM), (2, 5, 3)),
        (lambda: Recurrent(torch.nn.GRU), (2, 5, 3)),
        (lambda: Recurrent(torch.nn.RNN), (2, 5, 3)),
    ],
)
def test_a_file_of_pytorch_loads(make, shape, opset, tmp_path):
    torch.manual_seed(0)
    model, x, file = make().eval(), torch.randn(*shape), str(tmp_path / "a.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (x,), file, opset_version=opset, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}}
        )
    loaded = load(file)
    for batch in (shape[0], 5):
        x = torch.randn(batch, *shape[1:])
        found = loaded(leafgrad.from_numpy(x.numpy()))
        np.testing.assert_allclose(found.detach().numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-5)
