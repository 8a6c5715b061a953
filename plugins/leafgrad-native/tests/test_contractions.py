"""Products whose rows lie along several dimensions, summed over the points of a chunk or whole."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.autograd import grad
from leafgrad.ops.matmul import contract
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

WIDTHS = 1, 4, 17, 20
TOLERANCE = {leafgrad.float32: 2e-5, leafgrad.float64: 1e-12}


def compared(function, *args, chunked=True):
    """The compiled function gives what it gives uncompiled, as one phase of C."""
    compiled = leafgrad.compile(function, executor="native")
    expected = function(*args)
    for _ in range(3):
        found = compiled(*args)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert not a.numel() or (a - b).abs().max() <= TOLERANCE[a.dtype] * b.abs().max()
    text = compiled.explain()
    assert "NumPy:" not in text
    assert ("loop over" in text) == chunked


@pytest.mark.parametrize(("lead", "dtype"), [((130, 2, 1, 3), leafgrad.float32), ((2, 130), leafgrad.float64)])
def test_weights_of_all_widths(lead, dtype, threads):
    threads(2)
    leafgrad.manual_seed(0)
    x = leafgrad.randn(*lead, 5, dtype=dtype)
    y = leafgrad.randn(lead[-1], 1, dtype=dtype)
    weights = [leafgrad.randn(5, n, dtype=dtype).requires_grad_() for n in WIDTHS]
    inner = [leafgrad.randn(n, 3, dtype=dtype).requires_grad_() for n in WIDTHS]
    bias = leafgrad.randn(3, dtype=dtype).requires_grad_()

    def run(x):
        total = sum((leafgrad.tanh(x @ w) * y @ v + bias).square().sum() for w, v in zip(weights, inner, strict=True))
        return grad(total, [*weights, *inner, bias])

    compared(run, x)


def test_whole_arrays_and_points_as_columns():
    leafgrad.manual_seed(0)
    x, z = leafgrad.randn(3, 5, 4), leafgrad.randn(100, 3, 2)
    w, c = leafgrad.randn(4, 6).requires_grad_(), leafgrad.randn(3, 2, 6)

    def whole(x):
        turned = x.transpose(0, 1)
        h = leafgrad.tanh(turned @ w) * turned[..., :1] + (x.flip(0) @ w).transpose(0, 1).sin().square()
        return grad((h.square() * h.tanh()).sum(), [w])

    def columns(z):
        h = z.sin().square().permute(1, 2, 0)
        return contract(h, c) * contract(h.exp(), c), contract(c, h.tanh()).tanh() - contract(c * 2, h)

    compared(whole, x, chunked=False)
    compared(columns, z)
