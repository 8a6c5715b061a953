"""The symbolic numbers of one recording: which there are, what was asked of them, and values that are read later."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from leafgrad import backends, dtypes, modes
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import NUMBERS, UNREAD, SymbolicNumber, fixed, holds
from leafgrad.compile.record.watch import unwatched
from leafgrad.ops import dispatch

LATER = ("item()", "bool()")  # what reads a value that may be known later
KINDS: dict[str, type] = {"float32": float, "float64": float, "int64": int, "bool": bool}  # of elements as numbers


class Numbers:
    """The symbolic numbers of one recording.

    Attributes:
        relations: expressions that are true as long as the Python goes the same way, each with a reader's words for
            what it looks at, and the expression that it binds to a value, with that, if it does.
        outcomes: the same of values that the program computes, which are known after it has run.
        items: tensors of one element that were read as numbers ``r0``, ``r1``, …, whose program has not run.
        follows: whether items are.
        over: whether the recording is over. The numbers are ordinary ones then.
        asked: whether the Python needed a length itself.
        hashed: whether some dict or cache was asked for one that is a length.
        declare: is told of a dict whose numbers may be others at the next call.
    """

    def __init__(self, recorder: Any, follows: bool) -> None:
        self.recorder, self.follows = recorder, follows
        self.relations: dict[str, tuple[str, tuple[str, Any] | None]] = {}
        self.outcomes: dict[str, tuple[str, frozenset[int]]] = {}
        self.items: list[Any] = []
        self.made: list[weakref.ref[SymbolicNumber]] = []
        self.declare: Callable[[dict[str, Any]], None] = lambda numbers: None
        self.over = self.asked = self.hashed = False
        self.thread = get_ident()

    @property
    def apart(self) -> bool:
        """Whether the numbers are ordinary ones now: the recording is over, or another thread has found one."""
        return self.over or get_ident() != self.thread

    def given(self, value: Any, text: str, path: str) -> Any:
        """A number from outside, or a tuple of some, which ``text`` reads, and a reader calls ``path``."""
        if type(value) is tuple:
            return tuple([self.given(part, f"{text}[{i}]", f"{path}[{i}]") for i, part in enumerate(value)])
        return SymbolicNumber(self, value, type(value), text, (path,)) if type(value) in NUMBERS else value

    def size(self, value: int, text: str, path: str) -> Any:
        """The length of an argument, and of whatever is made of it: of these nobody keeps account."""
        return SymbolicNumber(self, value, int, text, (path,), size=True)

    def of(self, tensor: Any, what: str) -> Any:
        """What stands for the element of a tensor that the program computes; None if ``what`` must read it at once."""
        data: Any = self.recorder.inside(tensor)._data if self.follows and what in LATER else None
        if type(data) is not Symbol or data.size != 1 or data.value.dtype not in KINDS:
            return None
        if data.value in self.recorder.sources or data.value in self.recorder.waiting:
            return None
        self.items.append(dispatch.alias(data))
        text, read = f"r{len(self.items) - 1}", frozenset([len(self.items) - 1])
        return SymbolicNumber(self, UNREAD, KINDS[data.value.dtype], text, ("a value that it computes",), read)

    def read(self, k: int) -> Any:
        """The value of an item, after everything that was recorded."""
        array = self.recorder.reveal(self.items[k], "item()")
        return backends.backend_of(array).item(array)

    def alive(self) -> list[SymbolicNumber]:
        """The numbers that somebody holds."""
        found = [number for ref in self.made if (number := ref()) is not None]
        self.made[:] = [ref for ref in self.made if ref() is not None]
        return found

    def read_all(self) -> None:
        """Read what is not known yet of all numbers."""
        for number in self.alive():
            number._read()

    def foresees(self, items: frozenset[int]) -> bool:
        """Whether items can be computed beside the recording, by nothing that other processes wait for."""
        waiting, equations = self.recorder.waiting, self.recorder.equations
        known = all(self.items[k]._data.value not in waiting for k in items)
        return known and not any("collective" in e.op.traits for e in equations)

    def foresee(self, k: int) -> Any:
        """The value of an item in this call. The recording goes on, and its program computes it once more."""
        token = modes.FLAGS.set(modes.get() & ~(modes.TRACE | modes.GRAD | modes.BATCH))
        try:
            with unwatched():
                array = self.recorder.array(self.items[k]._data.value)
        finally:
            modes.FLAGS.reset(token)
        return backends.backend_of(array).item(array)

    def ready(self, op: Any, args: tuple[Any, ...], raw: bool) -> tuple[Any, ...]:
        """Operands of an op: values that the program computes are taken as tensors, or ``raw``, or else read."""
        return tuple([self.operand(op, a, raw) if type(a) is SymbolicNumber and a._items else a for a in args])

    def operand(self, op: Any, number: SymbolicNumber, raw: bool) -> Any:
        """The tensor that a number is the element of, where an op makes the same of both; else the number, read."""
        if number._value is UNREAD and not number._parts and "elementwise" in op.traits:
            tensor = self.items[min(number._items)]
            if not tensor._data.shape and tensor.dtype is dtypes.get_default_dtype():
                return tensor._data if raw else tensor
        return fixed(number)

    def plain(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of an op, which are the same at each call, but for lengths in shapes."""
        return {k: fixed(v, sizes=False) for k, v in params.items()} if any(map(holds, params.values())) else params
