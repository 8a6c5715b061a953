"""Automatic differentiation: the backward pass and what is built on it."""

from typing import TYPE_CHECKING

from leafgrad.autograd.anomaly import detect_anomaly, set_detect_anomaly
from leafgrad.autograd.api import backward, grad
from leafgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from leafgrad.lazy import attach
from leafgrad.modes import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from leafgrad.tensor.public import publish

if TYPE_CHECKING:
    from leafgrad.autograd import forward, forward_ad, functional, graph
    from leafgrad.autograd.function import Function
else:

    def _made(name, value):
        publish({"__name__": __name__, name: value})
        return value

    __getattr__, __dir__ = attach(__name__, {"Function": "leafgrad.autograd.function"}, made=_made)


__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

publish(globals())
