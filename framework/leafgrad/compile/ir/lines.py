"""Places in the source of a user: for messages, and to know which statements of a function need Python."""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import types
from collections.abc import Collection
from dataclasses import dataclass

from leafgrad.ops import messages


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source.

    Attributes:
        derived: whether this stands for derivatives that the line asks for, rather than for what it says itself.
    """

    file: str
    number: int
    derived: bool = False

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.number).strip()
        return f"{self.file.rpartition('/')[2]}:{self.number}" + (f": {text}" if text else "")


CORE, DERIVING = os.path.join(messages.PACKAGE, ""), os.path.join(messages.PACKAGE, "autograd", "")


def user_line() -> Line:
    """The innermost line outside this package. Plugins that are installed beside it are passed, too, but are not it."""
    frame, derived, core = sys._getframe(1), False, True
    while frame.f_back is not None and frame.f_code.co_filename.startswith(messages.PACKAGE):
        core = core and frame.f_code.co_filename.startswith(CORE)
        derived = derived or (core and frame.f_code.co_filename.startswith(DERIVING))
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno, derived)


Position = tuple[int, int, int, int]  # of an expression: its first line and column, as ast counts them, and its last


def position_of(frame: types.FrameType) -> Position | None:
    """Where in its source a frame is."""
    line, last, column, end = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    return None if line is None or last is None or column is None or end is None else (line, column, last, end)


def positions_in(codes: Collection[types.CodeType]) -> set[Position]:
    """Where the innermost frame of each of some codes is, as far as they run."""
    found: dict[types.CodeType, Position | None] = {}
    frame: types.FrameType | None = sys._getframe(1) if codes else None
    while frame is not None and len(found) < len(codes):
        if frame.f_code in codes and frame.f_code not in found:
            found[frame.f_code] = position_of(frame)
        frame = frame.f_back
    return {position for position in found.values() if position is not None}
