"""Whether tensors are equal, or nearly so."""

from __future__ import annotations

from leafgrad.ops import compare, reduce
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``abs(input - other) <= atol + rtol * abs(other)``. (...), (...) -> (...) bool

    Raises:
        RuntimeError: the dtypes differ, or a tolerance is negative.
    """
    if expect_tensor(input, "input", "isclose").dtype is not expect_tensor(other, "other", "isclose").dtype:
        raise RuntimeError(f"isclose: {input.dtype} did not match {other.dtype}; convert one with .to(dtype)")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"isclose: {name}: expected a tolerance of at least 0, got {tolerance}")
    return compare.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@public
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether ``isclose`` holds for all elements, as a Python bool."""
    return _holds(isclose(input, other, rtol, atol, equal_nan))


def _holds(condition: Tensor) -> bool:
    return bool(reduce.all(condition, dim=tuple(range(condition.ndim))))


@public
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same size and elements, as a Python bool. nan is not equal to nan."""
    if expect_tensor(input, "input", "equal").shape != expect_tensor(other, "other", "equal").shape:
        return False
    return _holds(compare.eq(input, other))
