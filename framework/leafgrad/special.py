"""Special functions, as ``torch.special``. Those of Bessel and of gamma are in the plugin leafgrad-special."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from leafgrad.lazy import attach
from leafgrad.ops import special as ops
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.derived import logit
from leafgrad.tensor.out import take_out
from leafgrad.tensor.pointwise import (
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    round,
    sigmoid as expit,
    sinc,
    xlogy,
)  # fmt: skip
from leafgrad.tensor.public import publish
from leafgrad.tensor.reductions import log_softmax, logsumexp, softmax
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "log1p", "log_softmax", "logit", "logsumexp", "ndtr",
    "round", "sinc", "softmax", "xlog1py", "xlogy",
]  # fmt: skip


def entr(input: Tensor) -> Tensor:
    """-x log(x): 0 at 0, -inf below. (...) -> (...)"""
    entropy: Tensor = ops.entr(expect_tensor(input, "input", "special.entr"))
    return entropy


def ndtr(input: Tensor) -> Tensor:
    """The probability that a standard normal number is below x. (...) -> (...)"""
    return erfc(expect_tensor(input, "input", "special.ndtr") * -math.sqrt(0.5)) * 0.5


def xlog1py(input: Tensor, other: Tensor) -> Tensor:
    """x log(1 + y), and 0 where x is 0 unless y is nan. (...), (...) -> (...)"""
    x, y = expect_tensor(input, "input", "special.xlog1py"), expect_tensor(other, "other", "special.xlog1py")
    product: Tensor = ops.xlog1py(x, y)
    return product


publish(globals())
take_out(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
