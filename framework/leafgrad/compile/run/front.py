"""What ``compile`` and ``trace`` do with what they are given."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from leafgrad.compile.run.closing import graph_of
from leafgrad.compile.run.compiled import Compiled, CompiledObject
from leafgrad.tensor.lapack import trace as matrix_trace
from leafgrad.tensor.tensor import Tensor


def of(function: Callable[..., Any], executor: str | None, closed: bool) -> Compiled:
    """``leafgrad.compile`` of a function."""
    if isinstance(function, type) or not callable(function):
        kind = f"the class {function.__name__}" if isinstance(function, type) else f"a {type(function).__name__}"
        raise TypeError(f"compile: function: expected a function, a method or a Module, got {kind}")
    function = function.function if isinstance(function, Compiled) else function
    plain = isinstance(function, (types.FunctionType, types.MethodType, types.BuiltinFunctionType))
    return (Compiled if plain else CompiledObject)(function, executor, closed)


def traced(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``leafgrad.trace`` of a call."""
    if isinstance(fn, Tensor) or not callable(fn):
        return matrix_trace(fn, *args, **kwargs)
    return graph_of(fn.function if isinstance(fn, Compiled) else fn, args, kwargs)
