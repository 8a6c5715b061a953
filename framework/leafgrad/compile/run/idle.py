"""Closed steps that run uncompiled, since their few ops on small arrays take less time than a program's guards.

Which steps these are is told by what was recorded, not by the clock: the same calls run the same way in every run.
"""

from __future__ import annotations

import os
from _thread import get_ident
from collections.abc import Sequence
from typing import Any

from leafgrad.compile.ir.graph import Graph
from leafgrad.tensor.tensor import Tensor

FEW = 12  # eager ops on small arrays that take no more time than the call of a program
ELEMENTS = 3000  # of results that take as long as one more
CALLS = 64  # that run uncompiled, until one is asked again for its program
KINDS = 64  # of calls that are told apart


def is_short(graph: Graph) -> bool:
    """Whether a recorded program may be of no use: it has few equations, all on the CPU."""
    return len(graph) < FEW and all(v.place[0] == "cpu" for e in graph.equations for v in e.outputs)


def is_small(equations: int, elements: int) -> bool:
    """Whether so many recorded equations, whose results have so many elements in all, need no program."""
    return equations + elements / ELEMENTS < FEW


class Idle:
    """How many of the next calls of a step run uncompiled.

    Attributes:
        left: these, by the shapes of positional arguments, which tell that a call may be worth more than those before.
        total: how many did.
        thread: the only one of which calls do, since it alone records; None for any.
    """

    def __init__(self) -> None:
        self.left: dict[tuple[Any, ...], int] = {}
        self.total = 0
        self.thread: int | None = None

    def begin(self, args: Sequence[Any], alone: bool) -> None:
        """A call came whose program is of no use, of the only thread that records or of one of several.

        An executor that somebody asked for runs in any case.
        """
        if os.environ.get("LEAFGRAD_EXECUTOR"):
            return
        if len(self.left) >= KINDS:
            self.left.clear()
        self.left[tuple([arg._data.shape if type(arg) is Tensor else None for arg in args])] = CALLS
        self.thread = get_ident() if alone else None

    def takes(self, args: Sequence[Any]) -> bool:
        """Whether a call is one of those that run uncompiled."""
        if self.thread not in (None, get_ident()):
            return False
        shapes = tuple([arg._data.shape if type(arg) is Tensor else None for arg in args])
        left = self.left.get(shapes, 0)
        if left:
            self.left[shapes] = left - 1
            self.total += 1
        return left > 0
