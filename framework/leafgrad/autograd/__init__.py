"""Automatic differentiation: the backward pass and what is built on it."""

from importlib import import_module
from typing import TYPE_CHECKING

from leafgrad.autograd.anomaly import detect_anomaly, set_detect_anomaly
from leafgrad.autograd.api import backward, grad
from leafgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from leafgrad.modes import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from leafgrad.tensor.public import publish

if TYPE_CHECKING:
    from leafgrad.autograd import forward, forward_ad, functional, graph
    from leafgrad.autograd.function import Function
else:

    def __getattr__(name: str) -> object:
        if name in ("forward", "forward_ad", "functional", "graph"):
            return import_module(f"leafgrad.autograd.{name}")
        if name == "Function":
            globals()[name] = found = import_module("leafgrad.autograd.function").Function
            publish({name: found})
            return found
        raise AttributeError(f"module 'leafgrad.autograd' has no attribute {name!r}", name=name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


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
