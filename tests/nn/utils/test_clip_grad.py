"""Gradient clipping, and parameters as a vector."""

from __future__ import annotations

import pytest

import leafgrad as lg
from leafgrad import nn

TESTS = "nn.utils.convert_parameters"


@pytest.fixture(autouse=True)
def _seeded():
    lg.manual_seed(0)


def with_gradients(device, *gradients):
    params = [nn.Parameter(lg.zeros(len(g), device=device)) for g in gradients]
    for p, g in zip(params, gradients, strict=True):
        p.grad = lg.tensor(g, device=device)
    return [*params, nn.Parameter(lg.zeros(1, device=device))]


def test_clip_grad_norm(device):
    params = with_gradients(device, [3.0, 0.0], [4.0])
    assert nn.utils.clip_grad_norm_(params, 1.0).item() == 5
    assert params[0].grad.tolist() == pytest.approx([0.6, 0])
    assert params[1].grad.tolist() == pytest.approx([0.8])
    assert nn.utils.clip_grad_norm_(iter(params), 9.0).item() == pytest.approx(1)
    assert params[1].grad.tolist() == pytest.approx([0.8])
    assert nn.utils.clip_grad_norm_(params, 1.0, norm_type=float("inf")).item() == pytest.approx(0.8)
    assert nn.utils.clip_grad_norm_(params[2], 1.0).item() == 0
    params[0].grad.fill_(float("nan"))
    assert nn.utils.clip_grad_norm_(params, 1.0).isnan().item()
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_clip_grad_value(device):
    params = with_gradients(device, [3.0, -0.5, -9.0])
    nn.utils.clip_grad_value_(params, 1)
    assert params[0].grad.tolist() == [1, -0.5, -1]


def test_parameters_as_a_vector(device):
    net = nn.Linear(2, 3, device=device)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,)
    assert vector.requires_grad
    numbers = lg.arange(9, device=device).float()
    nn.utils.vector_to_parameters(numbers, net.parameters())
    numbers[1] = 10  # they share its memory
    assert net.weight.tolist() == [[0, 10], [2, 3], [4, 5]]
    assert net.bias.tolist() == [6, 7, 8]
    assert net.weight.requires_grad
    with pytest.raises(RuntimeError, match="expected at least 9 elements, got 8"):
        nn.utils.vector_to_parameters(lg.ones(8, device=device), net.parameters())
    with pytest.raises(TypeError, match="vec: expected a Tensor, got list"):
        nn.utils.vector_to_parameters([1.0], net.parameters())
