"""Powers of two: numbers times them, and their sums."""

from __future__ import annotations

import math

from leafgrad import dtypes
from leafgrad.ops import exponential, promotion
from leafgrad.tensor.arguments import cast, expect_floating, expect_tensor
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(out="cast")
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2^input + 2^other), without overflow. (...), (...) -> (...)"""
    kind = promotion.result_type(
        (expect_tensor(input, "input", "logaddexp2"), expect_tensor(other, "other", "logaddexp2"))
    )
    if not kind.is_floating_point:
        expect_floating(input, "logaddexp2", NotImplementedError)
    return exponential.logaddexp(cast(input, kind) * math.log(2), cast(other, kind) * math.log(2)) / math.log(2)


@public(out="cast", inplace=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2**other``, of ``input``'s floating dtype where ``other`` is whole. (...), (...) -> (...)

    Numbers below the least normal one of the dtype may have been rounded twice.
    """
    x, power = expect_tensor(input, "input", "ldexp"), expect_tensor(other, "other", "ldexp")
    if power.dtype.is_differentiable:
        return x * 2.0**power
    kind = x.dtype if x.dtype.is_differentiable else dtypes.get_default_dtype()
    # In three steps, each of which is a number of this dtype where only their product, or that with x, is one.
    most = math.frexp(dtypes.finfo(kind).max)[1] - 2
    power = cast(power, dtypes.int64).clamp(-3 * most, 3 * most)
    first, last = (2.0 ** cast(n, kind.to_real()) for n in (power // 3, power - power // 3 * 2))
    return cast(x, kind) * first * first * last
