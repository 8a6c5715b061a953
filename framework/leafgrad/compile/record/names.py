"""Which names executed code has, by which it can have read globals and attributes."""

from __future__ import annotations

import dis
import functools
import os
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from leafgrad.compile.record.attribute_names import BY_NAME, names_given
from leafgrad.compile.record.bytecode import instructions
from leafgrad.compile.record.pure import ANY_NAME as ANY_NAME_MODULES
from leafgrad.compile.record.watch import Codes, is_library, is_ours, source_of
from leafgrad.ops import messages

# Code with these may read an attribute of any name, as may what uses ``getattr`` and its like with a name it computes.
ANY_NAME = frozenset("__dict__ vars dir __dir__ format format_map __getstate__ __reduce__ __reduce_ex__".split())
# Rooms whose code is handed tensors, arrays, programs and errors, and never reads an attribute of anything else.
BELOW = tuple(os.path.join(messages.PACKAGE, room) for room in ("backends", "compile", "ops", "plugins", "signals.py"))
# Those with objects that keep more than tensors.
KEEPING = "compat distributed distributions nn optim profiler testing utils".split()


@functools.cache
def may_change_objects(file: str) -> bool:
    """Whether code in a source file may change attributes of objects, or what else it keeps."""
    return not is_ours(file) or file.startswith(tuple(os.path.join(messages.PACKAGE, room, "") for room in KEEPING))


@functools.cache
def is_above(file: str) -> bool:
    """Whether a source file is of this package, and in none of the rooms below."""
    return is_ours(file) and not file.startswith(BELOW)


ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
IMPLIED = {"LOAD_BUILD_CLASS": "__build_class__", "IMPORT_NAME": "__import__"}  # globals that statements call


@functools.cache
def global_names(code: types.CodeType) -> frozenset[str]:
    """The globals that a code object reads, assigns or deletes."""
    steps = instructions(code)
    return frozenset(IMPLIED.get(i.opname, i.argval) for i in steps if i.opname in GLOBAL or i.opname in IMPLIED)


@functools.cache
def imports(code: types.CodeType) -> frozenset[tuple[int, str, tuple[str, ...]]]:
    """What a code object imports: how many packages up, the name, and what it asks of the module."""
    steps = [i for i in instructions(code) if i.opname.startswith("LOAD_") or i.opname == "IMPORT_NAME"]
    return frozenset(
        (steps[k - 2].argval, i.argval, steps[k - 1].argval or ())
        for k, i in enumerate(steps)
        if i.opname == "IMPORT_NAME"
    )


def imported_names(code: types.CodeType, scope: dict[str, Any]) -> set[str]:
    """The modules that a code object with these globals may reach by its imports: packages and submodules, too."""
    found: set[str] = set()
    package = scope.get("__package__") or str(scope.get("__name__")).rpartition(".")[0]
    for level, name, wanted in imports(code):
        if level:
            name = ".".join(filter(None, (package.rsplit(".", level - 1)[0], name)))
        parts = name.split(".")
        found.update(".".join(parts[: i + 1]) for i in range(len(parts)))
        found.update(f"{name}.{part}" for part in wanted)
    return found


@functools.cache
def spelled(code: types.CodeType) -> frozenset[str]:
    """The strings in a code object that could be names, alone or in tuples."""
    strings = [c for const in code.co_consts for c in (const if type(const) is tuple else (const,)) if type(c) is str]
    return frozenset(filter(str.isidentifier, strings))


@functools.cache
def words(code: types.CodeType) -> frozenset[str]:
    """The names in a code object, and the strings that could be names."""
    return spelled(code) | {*code.co_names}


@functools.cache
def passed_on(code: types.CodeType) -> frozenset[str]:
    """The names whose values a code object uses for more than to read an attribute, by its name, of them."""
    found: set[str] = set()
    steps = list(instructions(code))
    for step, then in zip(steps, [*steps[1:], None], strict=True):
        read = then is not None and then.opname in ("LOAD_ATTR", "LOAD_METHOD") and then.argval != "__dict__"
        if step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST" and not read:
            found |= {step.argval} if isinstance(step.argval, str) else set()
    return frozenset(found)


@functools.cache
def handed(code: types.CodeType) -> frozenset[str]:
    """The globals that a code object reads for more than to call them at once."""
    steps = instructions(code)
    return frozenset(step.argval for step in steps if step.opname in GLOBAL and not calls_at_once(step))


@functools.cache
def handed_of(code: types.CodeType) -> frozenset[tuple[str, str]]:
    """The attributes of which that is so, each behind the name by which their owner was read, if it has one."""
    found, called = set(), False  # whether the whole chain is what is called, as it is of modules
    for owner, step in pairwise(instructions(code)):
        if step.opname in ATTRIBUTE:
            called = called if owner.opname in ATTRIBUTE else calls_at_once(owner)
            if not called and not calls_at_once(step):
                found.add((owner.argval if isinstance(owner.argval, str) else "", step.argval))
    return frozenset(found)


def calls_at_once(step: dis.Instruction) -> bool:
    """Whether a step of bytecode reads what is called next."""
    marked = step.opname == "LOAD_GLOBAL" or (step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12))
    return step.opname == "LOAD_METHOD" or (marked and bool((step.arg or 0) & 1))


@functools.cache
def matches(code: types.CodeType) -> bool:
    """Whether a code object has a class pattern, which reads attributes that ``__match_args__`` of the class names."""
    return any(step.opname == "MATCH_CLASS" for step in instructions(code))


class Names:
    """Which attributes executed code can have read, by who owns them."""

    def __init__(self, codes: Codes, everything: bool, file_of: Callable[[type], str]) -> None:
        self.users: set[str] = set()
        self.spelled: set[str] = set()  # among them, in strings
        self.ours: set[str] = set()
        self.by_file: dict[str, set[str]] = {}
        self.computed = False  # names, by the user's code
        self.copied = False  # objects, perhaps, by a library
        self.passed_on: set[str] = set()
        self.handed: set[tuple[str, str]] = set()
        self.everything = everything
        self.file_of = file_of
        self.known: dict[type, set[str] | None] = {}
        for code, scope in codes:
            self.add(code, scope)

    def add(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Count code among what was executed, before anything is asked."""
        file = source_of(code, scope)
        if not is_library(file):
            self.users |= words(code)
            self.spelled |= spelled(code)
            self.passed_on |= passed_on(code)
            self.handed |= handed_of(code)
            given = names_given(code) if BY_NAME.isdisjoint(spelled(code)) else None
            self.computed |= given is None or not ANY_NAME.isdisjoint(words(code)) or matches(code)
            self.handed |= {("", name) for name in given or ()}
        elif not file.startswith(BELOW):
            found = words(code)
            self.by_file.setdefault(file, set()).update(found)
            self.ours |= found if is_ours(file) else set()
            self.copied |= scope.get("__name__") in ANY_NAME_MODULES

    @property
    def any_name(self) -> bool:
        """Whether attributes of any name may be read of objects."""
        return self.computed or self.copied

    @property
    def asks(self) -> bool:
        """Whether the user's code may go on where an attribute is not there."""
        return self.computed or not self.users.isdisjoint(("AttributeError", "getattr", "hasattr"))

    def of(self, kind: type) -> set[str] | None:
        """The names that matter in an object of a class; None for all of them.

        An object of a class of this package may be read by any of its code; one of a user's class that derives from
        such a class, by the user's code and by that of the base classes; one of another library's class by anything.
        """
        if kind not in self.known:
            file = self.file_of(kind)
            found = self.users | (self.ours if is_library(file) else set())
            for base in kind.__mro__:
                found |= self.by_file.get(self.file_of(base), set())
            unknown = not is_ours(file) and (self.any_name or is_library(file))  # whose code nobody has looked at
            self.known[kind] = None if self.everything or unknown else found
        return self.known[kind]
