"""``torch.jit``: there is no TorchScript. What asks for it hears no; what asks to be compiled is an error.

The environment variable ``PYTORCH_JIT=0`` means what it means to PyTorch: ``script`` and ``trace`` return what they
are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final as Final, NamedTuple, TypeVar

from leafgrad.compat.absent import refused, refused_class
from leafgrad.ops.messages import warn

__all__ = [
    "Attribute",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "_overload",
    "_overload_method",
    "annotate",
    "export",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
]

T = TypeVar("T")
isinstance = isinstance

REMEDY = "call the Python code itself, or leafgrad.compile it; PYTORCH_JIT=0 in the environment makes script do nothing"
NO_FILES = "save a state_dict() with torch.save, and load it into a module made by its Python class"

ScriptModule = refused_class("torch.jit.ScriptModule", REMEDY)
RecursiveScriptModule = refused_class("torch.jit.RecursiveScriptModule", REMEDY)
ScriptFunction = refused_class("torch.jit.ScriptFunction", REMEDY)
strict_fusion = refused_class("torch.jit.strict_fusion", REMEDY)
freeze, optimize_for_inference = (
    refused("torch.jit.freeze", REMEDY),
    refused("torch.jit.optimize_for_inference", REMEDY),
)
optimized_execution = refused("torch.jit.optimized_execution", REMEDY)
load, save = refused("torch.jit.load", NO_FILES), refused("torch.jit.save", NO_FILES)


class Attribute(NamedTuple):
    """A value, and the type that TorchScript would give it."""

    value: Any
    type: Any


def _unless_off(name: str) -> Callable[..., Any]:
    refuse = refused(f"torch.jit.{name}", REMEDY)

    def compiled(obj: Any, *args: Any, **kwargs: Any) -> Any:
        return obj if os.environ.get("PYTORCH_JIT") == "0" else refuse(obj)

    compiled.__name__ = compiled.__qualname__ = name
    compiled.__doc__ = "``obj`` as it is, with PYTORCH_JIT=0; otherwise a NotImplementedError."
    return compiled


refuse_script = _unless_off("script")


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """A Python function or class as it is, with a warning: it computes the same without TorchScript.

    Raises:
        NotImplementedError: anything else, unless PYTORCH_JIT=0.
    """
    if os.environ.get("PYTORCH_JIT") != "0" and isinstance(obj, (FunctionType, type)):
        warn("torch.jit.script: leafgrad, which stands in for PyTorch here, runs functions as the Python that they are")
        return obj
    return refuse_script(obj)


trace, trace_module = _unless_off("trace"), _unless_off("trace_module")
script_method = _unless_off("script_method")


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


def annotate(the_type: Any, the_value: T) -> T:
    """``the_value``."""
    return the_value


def export(fn: T) -> T:
    """``fn``."""
    return fn


def _overload(fn: T) -> T:
    """``fn``: what follows it under its name is the function."""
    return fn


_overload_method = _overload


def unused(fn: T) -> T:
    """``fn``."""
    return fn


def interface(obj: T) -> T:
    """``obj``."""
    return obj


def script_if_tracing(fn: T) -> T:
    """``fn``, since nothing is ever traced."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The decorated function as it is: ``@ignore`` or ``@ignore(drop=True)``."""
    return drop if callable(drop) else export
