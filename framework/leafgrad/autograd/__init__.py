"""Automatic differentiation: the backward pass and what is built on it."""

from leafgrad.autograd import forward, forward_ad, functional, graph
from leafgrad.autograd.anomaly import detect_anomaly, set_detect_anomaly
from leafgrad.autograd.api import backward, grad
from leafgrad.autograd.function import Function
from leafgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from leafgrad.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from leafgrad.tensor.public import publish

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
]

publish(globals())
