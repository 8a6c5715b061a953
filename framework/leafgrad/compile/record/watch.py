"""Which Python code a call executes, and which callees it has that might do something else next time."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad.backends import BACKENDS
from leafgrad.compile.ir.lines import Line, Position, positions_in
from leafgrad.compile.ir.locks import Lock
from leafgrad.compile.record import pure
from leafgrad.compile.record.compared import Side, operands, sides_with_equals
from leafgrad.ops import messages
from leafgrad.signals import handlers

STDLIB = os.path.dirname(os.__file__) + os.sep
NAMEDTUPLE = STDLIB + "collections"
OURS = messages.PACKAGE + os.sep
IMPORT = sys.modules["_frozen_importlib"]._find_and_load.__code__  # runs where a module is not there yet
FIND = sys.modules["_frozen_importlib"]._find_spec.__code__  # asks finders, which may be anybody's

Begins = Callable[[types.FrameType], None]
Calls = Callable[[types.FrameType, bool], None]


def files_of(rooms: Iterable[str]) -> tuple[str, ...]:
    """How the paths of the files in some rooms of this package begin."""
    return tuple(OURS + room.replace("/", os.sep) + ("" if room.endswith(".py") else os.sep) for room in rooms)


UNSAFE, SAFE = files_of(pure.UNSAFE), files_of(pure.SAFE)


@functools.cache
def is_ours(file: str) -> bool:
    """Whether a source file belongs to this package."""
    return file.startswith((OURS, "<leafgrad"))


@functools.cache
def is_python(file: str) -> bool:
    """Whether a source file belongs to Python."""
    return (file.startswith(STDLIB) and "site-packages" not in file) or file.startswith("<frozen ")


@functools.cache
def is_library(file: str) -> bool:
    """Whether a source file belongs to this package, to Python or to an array library: no user's program changes it."""
    return is_ours(file) or is_python(file) or file.startswith(tuple(map(library_of, list(BACKENDS))))


def library_of(kind: type) -> str:
    """Where the source of an array library is: its package, or, of one that may be the user's, the class's module."""
    package = getattr(sys.modules.get(kind.__module__.partition(".")[0]), "__file__", None) or "<unknown>"
    folder = os.path.dirname(package) + os.sep
    installed = f"{os.sep}site-packages{os.sep}" in folder or f"{os.sep}dist-packages{os.sep}" in folder
    return folder if installed else getattr(sys.modules.get(kind.__module__), "__file__", None) or "<unknown>"


def source_of(code: types.CodeType, scope: dict[str, Any]) -> str:
    """The file that executed code belongs to; generated code belongs to the module whose globals it has."""
    file = code.co_filename
    if file[:1] != "<" or is_ours(file):
        return file
    if str(scope.get("__name__")).startswith("namedtuple_"):  # the constructor of a namedtuple
        return NAMEDTUPLE
    return str(scope.get("__file__") or file)


class Codes:
    """Code, each with the globals that it ran in, by identity: functions of two modules may have equal code."""

    def __init__(self) -> None:
        self.held: dict[tuple[int, int], tuple[types.CodeType, dict[str, Any]]] = {}
        self.compared: dict[tuple[int, int], set[Side]] = {}  # of what it compares by "is", what may have equals

    def add(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        self.held[id(code), id(scope)] = code, scope

    def has(self, code: types.CodeType, scope: dict[str, Any]) -> bool:
        return (id(code), id(scope)) in self.held

    def __contains__(self, function: types.FunctionType) -> bool:
        """Whether the code of a function is here."""
        return self.has(function.__code__, function.__globals__)

    def __iter__(self) -> Iterator[tuple[types.CodeType, dict[str, Any]]]:
        return iter(self.held.values())

    def sides_with_equals(self, code: types.CodeType, scope: dict[str, Any]) -> set[Side]:
        """Which sides of comparisons by ``is`` may have equals, by what functions were given."""
        every = {(i, j) for i in range(len(operands(code))) for j in (0, 1)}
        return self.compared.get((id(code), id(scope)), every)

    def __or__(self, other: Codes) -> Codes:
        both = Codes()
        both.held = self.held | other.held
        both.compared = {**self.compared}
        for mark, found in other.compared.items():
            both.compared[mark] = both.compared.get(mark, set()) | found
        return both

    def same(self, other: Codes) -> bool:
        """Whether it is the same code, with the same sides of comparisons that may have equals."""
        return self.held.keys() == other.held.keys() and self.compared == other.compared

    def of_users(self) -> list[types.CodeType]:
        """The code that belongs to no library."""
        return [code for code, scope in self if not is_library(source_of(code, scope))]


def handles_signal(frame: types.FrameType) -> bool:
    """Whether a frame of a handler's code was begun by the interpreter, between two lines of the frame below it."""
    code = frame.f_code
    given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        given += frame.f_locals[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
    return any(value is frame.f_back for value in given)


class Watch:
    """What the code of a user did while a call was watched.

    Imports are done once, by no call of the function's, and a signal's handler, by none either.

    Attributes:
        codes: the Python code that was executed.
        open: callees that are not known to be pure, each with the line that called them.
        failed: whether a function of C's raised an error in it.
    """

    def __init__(self) -> None:
        self.codes = Codes()
        self.open: list[tuple[str, Line]] = []
        self.failed = False
        self.code: frozenset[types.CodeType] = frozenset()  # of the function
        self.positions: set[Position] = set()  # in it, of such calls
        self.users: dict[int, bool] = {}  # whether code is a user's, by id
        self.compares: dict[tuple[int, int], bool] = {}  # whether it compares by "is", too
        self.aside: types.FrameType | None = None  # no part of the function until it returns
        self.handlers = {id(code): code for code in handlers()}  # a hash of code goes through all of it
        self.known: Codes | None = None
        self.beware: Begins | None = None  # told of the frame of other code of the user that begins
        self.meanwhile: Calls | None = None  # told of that of what nobody knows, or, if that is C, of its caller's

    def is_user(self, frame: types.FrameType) -> bool:
        """Whether a frame runs code of the user, not of a library."""
        code = frame.f_code
        found = self.users.get(id(code))  # no other gets this id: it is held, or on the stack
        if found is None:
            found = not is_library(source_of(code, frame.f_globals))
            if code.co_filename[:1] != "<" or is_ours(code.co_filename):  # else its globals say whose it is
                self.users[id(code)] = found
        return found

    def note(self, frame: types.FrameType, event: str, callee: Any) -> None:
        """What the interpreter tells of each call. Most are calls within libraries, which are passed over."""
        if self.aside is not None:
            if event == "return" and frame is self.aside:
                self.aside = None
                self.imported(frame, callee)
        elif event == "call":
            code, scope = frame.f_code, frame.f_globals
            if code is IMPORT or code is FIND or (id(code) in self.handlers and handles_signal(frame)):
                self.aside = frame
                return
            mark = id(code), id(scope)
            self.codes.held[mark] = code, scope
            compares = self.compares.get(mark)
            if compares is None:
                compares = self.compares[mark] = self.is_user(frame) and bool(operands(code))
            if compares:
                self.codes.compared.setdefault(mark, set()).update(sides_with_equals(code, frame.f_locals))
            if self.beware and not (self.known and mark in self.known.held) and self.is_user(frame):
                self.beware(frame)
            caller = frame.f_back
            if caller is None or self.users.get(id(caller.f_code)) is False:
                return
            if self.is_user(caller) and not self.is_user(frame):
                self.called(frame, caller)
        elif event == "c_call":
            if self.users.get(id(frame.f_code)) is not False and self.is_user(frame) and not pure.is_pure(callee):
                self.calls(pure.callee_name(callee), frame)
        elif event == "c_exception" and self.is_user(frame):
            self.failed = True

    def calls(self, callee: str, frame: types.FrameType, begun: types.FrameType | None = None) -> None:
        """A frame of the user's calls what nobody knows, which has ``begun`` if it is written in Python."""
        self.opens(f"calls {callee}", frame)
        if self.meanwhile is not None:
            self.meanwhile(begun or frame, begun is not None)

    def opens(self, what: str, frame: types.FrameType) -> None:
        """A frame of the user's does what may be something else next time."""
        self.open.append((what, Line(frame.f_code.co_filename, frame.f_lineno)))
        self.positions |= positions_in(self.code)

    def imported(self, frame: types.FrameType, module: Any) -> None:
        """An import may be over. One that found nothing is tried again at each call."""
        if module is None and frame.f_code is IMPORT:
            asked: Any = frame
            while asked.f_back is not None and not self.is_user(asked):
                asked = asked.f_back
            self.opens(f"imports {frame.f_locals['name']}, which is not found,", asked)

    def called(self, frame: types.FrameType, caller: types.FrameType) -> None:
        """A user's function called a library's in Python, which is looked up."""
        file = frame.f_code.co_filename
        if is_ours(file) and (file.startswith(SAFE) or not file.startswith(UNSAFE)):
            return
        module = frame.f_globals.get("__name__", "")
        name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
        known = module in pure.ANY_NAME or (module in pure.MODULES and not name.startswith(pure.ACTING))
        if source_of(frame.f_code, frame.f_globals) == NAMEDTUPLE or known:
            return
        self.calls(f"{module}.{name}()", caller, frame)


class unwatched:
    """Within it nothing is noted: what runs is this package's, or ops run to see what they make."""

    def __enter__(self) -> None:
        self.note = note = sys.getprofile()
        if callable(note):
            sys.setprofile(None)

    def __exit__(self, *_: object) -> None:
        if callable(self.note):
            sys.setprofile(self.note)


class Collector:
    """Keeps Python's garbage collector off while any thread needs that: it is one for all of them."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)

    def forget(self) -> None:
        self.users = 0
        self.enabled = False  # whether it was on before

    def forked(self) -> None:
        """In a child only the thread that forked goes on; what others kept off is on again."""
        if self.users and self.enabled:
            gc.enable()
        self.forget()

    def __enter__(self) -> None:
        """A thread needs it off."""
        self.lock.run(self.begin)

    def __exit__(self, *_: object) -> None:
        """A thread needs that no longer."""
        self.lock.run(self.end)

    def begin(self) -> None:
        if not self.users:
            self.enabled = gc.isenabled()
            gc.disable()
        self.users += 1

    def end(self) -> None:
        self.users = max(0, self.users - 1)
        if not self.users and self.enabled:
            gc.enable()


COLLECTOR = Collector()


@contextmanager
def watching(
    watch: Watch, known: Codes | None = None, beware: Begins | None = None, meanwhile: Calls | None = None
) -> Iterator[None]:
    """Note what this thread executes.

    ``beware(frame)`` is called before code of the user begins that is not ``known``, and ``meanwhile(frame, begins)``
    before the user calls what nobody knows, with the frame that begins, or that of the caller if it is written in C.
    """
    watch.known, watch.beware, watch.meanwhile = known, beware, meanwhile
    with COLLECTOR:  # its callbacks are no part of the function
        before: Any = sys.getprofile()
        note = watch.note
        sys.setprofile(note)
        try:
            yield
        finally:
            undisturbed = sys.getprofile() == note
            watch.known = watch.beware = watch.meanwhile = None
            if before is None or callable(before):
                sys.setprofile(before)
            else:  # cProfile's own object
                sys.setprofile(None)
                before.enable()
            if not undisturbed:
                watch.open.append(("changes sys.setprofile", Line("", 0)))
