"""What a function calls where it breaks: the user's functions, methods and modules, compiled, too."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.compile.record.watch import is_library, source_of
from leafgrad.compile.run.source import tree_of

MOST = 32  # that are compiled for one function
MANY = 256  # of which it is known whether they are still there


def python_of(called: Any) -> tuple[types.FunctionType | None, tuple[Any, ...]]:
    """The function that runs when something is called, and what it is given before the arguments; None if in C."""
    if type(called) is types.FunctionType:
        return called, ()
    function: Any
    if type(called) is types.MethodType:
        function, owner = called.__func__, called.__self__
    else:
        function, owner = (
            next((vars(c)["__call__"] for c in type(called).__mro__ if "__call__" in vars(c)), None),
            called,
        )
    return (function, (owner,)) if isinstance(function, types.FunctionType) else (None, ())


def is_users(called: Any) -> bool:
    """Whether what is called is code of the user that can be divided, or a module whose ``forward`` is."""
    function, _ = python_of(called)
    if function is None or tree_of(function) is None:
        return False
    if not is_library(source_of(function.__code__, function.__globals__)):
        return True
    return type(called) not in (types.FunctionType, types.MethodType) and is_users(attribute_of(called, "forward"))


@dataclass(slots=True)
class Callee:
    """What was called: its owner, what was compiled of it, and what is called in its place, if anything."""

    owner: weakref.ref[Any]
    met: bool = False
    part: Any = None
    kept: Any = None


class Callees:
    """In the place of each, the same compiled, from the second time on that the very same is called.

    Args:
        compiled: compiles a function.
    """

    def __init__(self, compiled: Callable[[Any], Any]) -> None:
        self.compiled = compiled
        self.known: dict[Any, Callee] = {}

    def __call__(self, called: Any) -> Any:
        """What is to be called."""
        if type(called) in (types.BuiltinFunctionType, type):
            return called
        bound = type(called) is types.MethodType
        owner = called.__self__ if bound else called
        key = id(owner), called.__func__ if bound else None
        found = self.known.get(key)
        if found is None or found.owner() is not owner:
            self.meet(key, owner)
            return called
        if not found.met:
            found.met = True
            if len(self.parts) < MOST and is_users(called):
                found.part = found.kept = self.compiled(called)  # which holds the owner
        return called if found.kept is None else found.kept

    def meet(self, key: Any, owner: Any) -> None:
        """Something is called for the first time."""
        if len(self.known) > MANY:
            self.known = {k: callee for k, callee in self.known.items() if callee.owner() is not None}
        with suppress(TypeError):  # of what has no weak references
            self.known[key] = Callee(weakref.ref(owner))

    @property
    def parts(self) -> list[Any]:
        """What was compiled."""
        return [callee.part for callee in [*self.known.values()] if callee.part is not None]

    def settle(self) -> None:
        """Call as it is what is not worth it to be compiled."""
        for callee in self.known.values():
            callee.kept = None if callee.part is None or callee.part._calls.is_idle else callee.part
