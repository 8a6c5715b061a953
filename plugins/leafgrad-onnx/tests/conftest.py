"""What onnxruntime computes of what is exported, beside what leafgrad does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leafgrad
from leafgrad_onnx import export
from leafgrad_onnx.module import from_proto


def results(model: Any, inputs: list[Any]) -> list[Any]:
    """The outputs of a model, by onnxruntime."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not to be had on this platform")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {i.name: x.detach().numpy() for i, x in zip(model.graph.input, inputs, strict=True)}
    found: list[Any] = session.run(None, given)
    return found


def flat(value: Any) -> list[Any]:
    """The tensors of a result; complex ones as pairs of real ones, which they are in a file."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    if not isinstance(value, leafgrad.Tensor):
        return []
    return [leafgrad.view_as_real(value.detach()) if value.is_complex() else value]


def same(got: Any, want: Any, tolerance: float, where: str) -> None:
    """An AssertionError unless two arrays are the same but for rounding."""
    assert got.shape == want.shape, f"{where}: {got.shape} for {want.shape}"
    assert got.dtype == want.dtype, f"{where}: {got.dtype} for {want.dtype}"
    scale = np.max(np.abs(want), initial=1, where=np.isfinite(want)) if want.dtype.kind == "f" else 1
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=where)


def agrees(model: Any, *args: Any, tolerance: float = 1e-5, proto: Any = None, **options: Any) -> Any:
    """Export, and compare onnxruntime, and the file loaded again, with leafgrad; returns the model."""
    proto = proto or export(model, args, **options)
    inputs = flat(list(args))
    if isinstance(model, leafgrad.nn.Module):
        model.eval()
    expected = [t.detach().numpy() for t in flat(model(*args))]
    for got, want in zip(results(proto, inputs), expected, strict=True):
        same(got, want, tolerance, "onnxruntime")
    found = from_proto(proto)(*[x.detach() for x in inputs])
    for tensor, want in zip(flat(found), expected, strict=True):
        same(tensor.detach().numpy(), want, tolerance, "loaded")
    return proto


@pytest.fixture(name="agrees")
def _agrees() -> Any:
    """``agrees(model, *args)``: export, and compare onnxruntime, and the file loaded again, with leafgrad."""
    return agrees
