"""Affine maps."""

from __future__ import annotations

from leafgrad.ops import matmul as ops
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.tensor import Tensor

__all__ = ["bilinear", "linear"]


_linear = ops.linear.function


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input weight^T + bias. (..., in), (out, in), (out,) -> (..., out); (..., in), (in,), () -> (...)"""
    if isinstance(weight, Tensor) and len(weight._data.shape) == 1:
        if bias is None:
            return input @ weight
        if expect_tensor(bias, "bias", "linear")._data.shape:
            raise RuntimeError(f"linear: bias: expected a 0-d tensor beside a 1-d weight, got size {list(bias.shape)}")
        return input @ weight + bias
    try:
        return _linear(input, weight, bias)
    except TypeError:
        expect_tensor(input, "input", "linear")
        raise


@autocast("given")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 weight[k] input2^T + bias[k] for each k. (..., n), (..., m), (out, n, m), (out,) -> (..., out)

    Raises:
        RuntimeError: the shapes do not fit; nothing broadcasts.
    """
    _check_bilinear(input1, input2, weight, bias)
    terms = (input1.unsqueeze(-2).unsqueeze(-2) @ weight).squeeze(-2) * input2.unsqueeze(-2)
    product = terms.sum(-1, dtype=terms.dtype)
    return product if bias is None else product + bias


def _check_bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for name, given in (("input1", input1), ("input2", input2), ("weight", weight)):
        expect_tensor(given, name, "bilinear")
    x, y, w = input1._data.shape, input2._data.shape, weight._data.shape
    if len(w) != 3:
        raise RuntimeError(f"bilinear: weight: expected size (out, n, m), got {list(w)}")
    if x[:-1] != y[:-1]:
        raise RuntimeError(
            f"bilinear: expected input1 and input2 to differ in the last size alone, got {list(x)} and {list(y)}"
        )
    for name, sizes, n in (("input1", x, w[1]), ("input2", y, w[2])):
        if sizes[-1:] != (n,):
            raise RuntimeError(
                f"bilinear: {name}: expected a last size of {n}, as weight {list(w)} has it, got {list(sizes)}"
            )
    if bias is not None and expect_tensor(bias, "bias", "bilinear")._data.shape != w[:1]:
        raise RuntimeError(f"bilinear: bias: expected size {list(w[:1])}, got {list(bias.shape)}")
