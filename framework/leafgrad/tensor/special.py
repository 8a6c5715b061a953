"""Special functions that ``torch`` has in ``torch.special`` alone."""

from __future__ import annotations

import math

from leafgrad.ops import special as ops
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.pointwise import both_tensors, erfc
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(name="special.entr", out="cast")
def entr(input: Tensor) -> Tensor:
    """-x log(x): 0 at 0, -inf below. (...) -> (...)"""
    return ops.entr(expect_tensor(input, "input", "special.entr"))


@public(name="special.ndtr", out="cast")
def ndtr(input: Tensor) -> Tensor:
    """The probability that a standard normal number is below x. (...) -> (...)"""
    return erfc(expect_tensor(input, "input", "special.ndtr") * -math.sqrt(0.5)) * 0.5


@public(name="special.xlog1py", out="cast")
def xlog1py(input: Tensor | float, other: Tensor | float) -> Tensor:
    """x log(1 + y), and 0 where x is 0 unless y is nan; one may be a number. (...), (...) -> (...)"""
    return ops.xlog1py(*both_tensors(input, other, "special.xlog1py"))
