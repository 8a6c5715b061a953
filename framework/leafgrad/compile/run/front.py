"""What ``compile`` and ``trace`` do with what they are given."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

from leafgrad.compile.run.compiled import Compiled
from leafgrad.compile.run.inputs import graph_of
from leafgrad.signals import held
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.tensor import Tensor


class CompiledObject(Compiled[..., Any]):
    """A compiled object, such as an ``nn.Module``; its attributes are the object's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["function"], name)

    def __copy__(self) -> Compiled:
        return type(self)(copy.copy(self.function), self.executor, self.closed)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            vars(self)[name] = value
        else:
            setattr(self.function, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.function)})

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self


def of(function: Callable[..., Any], executor: str | None, closed: bool) -> Compiled:
    """``leafgrad.compile`` of a function."""
    if isinstance(function, type) or not callable(function):
        kind = f"the class {function.__name__}" if isinstance(function, type) else type(function).__name__
        raise TypeError(f"compile: function: expected a function, a method or a Module, got {kind}")
    function = function.function if isinstance(function, Compiled) else function
    plain = isinstance(function, (types.FunctionType, types.MethodType, types.BuiltinFunctionType))
    return (Compiled if plain else CompiledObject)(function, executor, closed)


def traced(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``leafgrad.trace`` of a call."""
    if isinstance(fn, Tensor) or not callable(fn):
        return expect_tensor(fn, "input", "trace").trace(*args, **kwargs)
    return held(graph_of, fn.function if isinstance(fn, Compiled) else fn, args, kwargs)
