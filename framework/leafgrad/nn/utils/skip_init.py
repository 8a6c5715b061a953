"""Modules made without drawing their parameters."""

from __future__ import annotations

import inspect
from typing import Any

from leafgrad.nn import init
from leafgrad.nn.module import Module
from leafgrad.tensor.public import publish

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """``module_cls(*args, **kwargs)`` with arbitrary values in its parameters, and nothing drawn.

    Args:
        module_cls: a class of modules that takes ``device``.

    Raises:
        RuntimeError: ``module_cls`` is no Module, or takes no ``device``.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)


publish(globals())
