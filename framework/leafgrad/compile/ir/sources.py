"""Where the inputs of a program come from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from leafgrad.compile.ir.keys import ProgramPart


@dataclass(frozen=True, eq=False, slots=True)
class Argument(ProgramPart):
    """The data of the ``index``-th tensor among the arguments of the call."""

    index: int


@dataclass(frozen=True, eq=False, slots=True)
class Captured(ProgramPart):
    """The data of a tensor that the function reached from outside."""

    tensor: Any


@dataclass(frozen=True, eq=False, slots=True)
class Expression(ProgramPart):
    """A Python number that is computed anew at each call, by an expression in what the call was given."""

    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Raw(ProgramPart):
    """An array that belongs to no tensor; no guarded program has one."""


@dataclass(frozen=True, eq=False, slots=True)
class Grad(ProgramPart):
    """The data of the ``.grad`` of another source's tensor."""

    of: Argument | Captured


@dataclass(frozen=True, eq=False, slots=True)
class Given(ProgramPart):
    """The ``index``-th array given to a backward program: what the forward one saved, then gradients of results."""

    index: int


@dataclass(frozen=True, eq=False, slots=True)
class KeptArray(ProgramPart):
    """The ``index``-th of the arrays that nodes of the autograd graph behind the call's tensors keep."""

    index: int


Source = Argument | Captured | Grad | Given | Expression | Raw | KeptArray


def origin(source: Source) -> str:
    match source:
        case Argument(index):
            return f"argument {index}"
        case Captured():
            return "captured"
        case Expression(text):
            return f"{text} at each call"
        case Raw():
            return "an array"
        case Grad(of):
            return f".grad of {origin(of)}"
        case Given(index):
            return f"given {index}"
        case KeptArray(index):
            return f"array {index} of the graph behind"


def number_source(value: float) -> str:
    """A number as Python source, which stands for it in any expression."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({repr(value)!r})"
    return f"({value!r})" if repr(value).startswith("-") else repr(value)
