"""What the walk notes of modules: globals that code reads, by itself or through a module."""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Iterable
from typing import Any

from leafgrad.compile.guard.environment import Class, Keys
from leafgrad.compile.guard.known import CACHE, CODE, file_of
from leafgrad.compile.guard.objects import ObjectWalker
from leafgrad.compile.record import pure
from leafgrad.compile.record.names import global_names, handed, imported_names, is_above
from leafgrad.compile.record.watch import is_library, source_of
from leafgrad.ops.op import Op


class ModuleWalker(ObjectWalker):
    """Of modules, too, it knows what executed code can have read."""

    def globals(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        wanted = global_names(code)
        for name in sorted(wanted & scope.keys()):
            self.visit("item", scope, name, name)
        own = builtins_of(scope)
        if (place := (id(scope), "item", "__builtins__")) not in self.read and "__builtins__" in scope:
            self.read.add(place)  # functions that are made in it find them there
            self.place("item", scope, "__builtins__", "builtins", scope["__builtins__"])
        for name in sorted(wanted & own.keys() - scope.keys()):
            if isinstance(own[name], CODE) or (isinstance(own[name], type) and not own[name].__flags__ & pure.HEAP):
                self.place("item", own, name, name, own[name])
            else:  # the user put it there
                self.visit("item", own, name, name)
        for name in handed(code) & wanted:
            self.called_from_c(scope.get(name, own.get(name)), name)
        missing = tuple(sorted(wanted - scope.keys()))
        if missing:
            self.place("absent", scope, missing, "globals", True)
        if nowhere := tuple(sorted(wanted - scope.keys() - own.keys())):  # a NameError is met
            self.place("absent", own, nowhere, "builtins", True)
        for name in sorted(imported_names(code, scope)):
            way, _, last = name.rpartition(".")
            if name in sys.modules:
                self.visit("item", sys.modules, name, name)
            elif way in sys.modules:
                self.called_from_c(vars(sys.modules[way]).get(last), name)

    def module(self, value: types.ModuleType, path: str) -> None:
        """What the user's code reads of a module; of a library's, functions and classes are known when called."""
        library, held = is_library(file_of(value)), vars(value)
        self.place("class", value, None, f"type({path})", Class(type(value), None))
        names = self.names.users & held.keys()
        known = {"", *(way.rpartition(".")[2] for way in (path, value.__name__))}  # by which code may have read it
        loose = self.names.computed and id(value) in self.loose
        if loose and library:
            self.named(value, held.keys())
            for name, found in list(held.items()):
                if isinstance(found, types.ModuleType) and is_above(file_of(found)):
                    self.push(found, f"{path}.{name}")
        elif loose:
            self.place("keys", held, None, f"the names in {path}", Keys.of(held))
            names = names | {name for name in held if not name.startswith("__")}
        for name in sorted(names):
            found = held[name]
            if library and is_called(found):  # what it does is looked at when it is called
                self.place("item", held, name, f"{path}.{name}", found)
            else:
                self.visit("item", held, name, f"{path}.{name}")
            if (loose and name in self.names.spelled) or not self.names.handed.isdisjoint(
                [(own, name) for own in known]
            ):
                self.called_from_c(found, f"{path}.{name}")
        if not library or self.names.asks:
            self.absent(held, f"{path}", self.names.users | {"__getattr__"})

    def named(self, value: types.ModuleType, names: Iterable[str]) -> None:
        """What stands under these names in a module is what is called or read there: the same objects."""
        self.bodies.setdefault(value, set()).update(names)

    def through_modules(self) -> None:
        """What code of this package reads of its modules, as a layer does of ``nn.functional``; tables of ``copy``."""
        for code, scope in self.codes:
            for name in code.co_names if is_above(source_of(code, scope)) else ():
                held = scope.get(name)
                if isinstance(held, types.ModuleType) and is_above(file_of(held)):
                    self.named(held, vars(held).keys() & code.co_names)
        asked = [(code, scope) for code, scope in self.codes if scope.get("__name__") in pure.ANY_NAME]
        tables = {
            f"{scope['__name__']}.{name}": scope.get(name) for code, scope in asked for name in global_names(code)
        }
        for path, held in tables.items():
            if type(held) is dict:
                self.place("call", held.copy, None, path, held.copy())


def builtins_of(scope: dict[str, Any]) -> dict[str, Any]:
    """What functions with these globals find where these have nothing: Python's builtins, or some of their own."""
    held = scope.get("__builtins__", builtins)
    return held if isinstance(held, dict) else vars(held)


def is_called(value: Any) -> bool:
    """Whether a library's thing is a function, or the like, no call of which goes unseen."""
    if isinstance(value, types.FunctionType):  # the user's may have attributes, and stand there all the same
        return is_library(source_of(value.__code__, value.__globals__))
    return isinstance(value, (*CODE, CACHE, Op)) or type(value).__name__ in pure.OF_NUMPY
