"""The functions of `leafgrad.special`. Written by `python -m leafgrad.testing.stubs`; do not edit."""

from leafgrad.tensor.pointwise import (
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    exp2 as exp2,
    expm1 as expm1,
    log1p as log1p,
    logit as logit,
    round as round,
    sigmoid,
    sinc as sinc,
    xlogy as xlogy,
)
from leafgrad.tensor.reductions import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax
from leafgrad.tensor.special import entr as entr, ndtr as ndtr, xlog1py as xlog1py

expit = sigmoid
