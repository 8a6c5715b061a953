"""One library for batches of any length.

The C of a step at two lengths is the same text but for some numbers: ends of loops, where arrays lie, what a sum is
divided by for its mean. At the first length they stand in the text, where the compiler makes the most of them. From the
second on those that differ are read from the call, as ``call->sizes[3]`` or ``call->reals[0]``, and lengths that differ
in no other number need no compiler. Where a program is planned for many sizes at once, its text names their Extents.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock

from leafgrad import forks
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.sources import Argument

KEPT = 64  # kinds of steps that are remembered
MANY = 8  # steps of one kind
_WORD = re.compile(r"[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*")
_SIZE = re.compile(r"\d{1,18}L?")
_REAL = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ATOM = re.compile(r"\b(size|real)(\d+)L?\b")  # of Extents
_LONG = re.compile(r"\)L\b")  # of a sum of some
_FIXED = re.compile(r"^ *#(?!define).*|\[\d+\] = \{+0\}+", re.MULTILINE)  # where C wants a number


class Known:
    """What is known of the numbers of a step's text.

    Attributes:
        text: at the first length, as long as there is no second one.
        first: all of its numbers.
        mark: what the text is but for these.
        slots: of those that were others at another length, by position, which number of the call each is. Those that
            have been equal at each length are one.
    """

    def __init__(self, text: str) -> None:
        self.text: str | None = text
        self.slots: dict[int, int] = {}

    def is_of(self, mark: bytes) -> bool:
        """Whether a text with this mark is that of the same step."""
        if self.text is not None:
            pieces, self.first = cut(self.text)
            self.text, self.mark = None, mark_of(pieces)
        return self.mark == mark

    def read(self, numbers: list[str]) -> list[str]:
        """The numbers that the call holds at a length with these in its text."""
        found: dict[tuple[int | None, str, str], int] = {}
        slots: dict[int, int] = {}
        for i, (old, new) in enumerate(zip(self.first, numbers, strict=True)):
            if old != new or i in self.slots:
                slots[i] = found.setdefault((self.slots.get(i), old, new), len(found))
        self.slots = slots
        return [new for _, _, new in found]


_known: OrderedDict[bytes, list[Known]] = OrderedDict()
_lock = forks.guard(Lock())


def served(graph: Graph, text: str) -> tuple[str, list[str]]:
    """The text of a step for its length alone, or for any length; then with the numbers that its call holds."""
    key = mark_of(facts(graph))
    with _lock:
        alike = _known.setdefault(key, [])
        _known.move_to_end(key)
        while len(_known) > KEPT:
            _known.popitem(last=False)
        if any(known.text == text for known in alike):
            return text, []
        pieces, numbers = cut(text) if alike else ([], [])
        mark = mark_of(pieces)
        known = next((known for known in alike if known.is_of(mark)), None)
        if known is None:
            alike[:] = [*alike[1 - MANY :], Known(text)]
            return text, []
        if known.first == numbers:
            return text, []
        held, slots = known.read(numbers), known.slots
    return joined(pieces, numbers, slots), held


def of_any_sizes(text: str) -> str:
    """A text with Extents in it, which reads their atoms from the call."""
    return _LONG.sub(")", _ATOM.sub(lambda atom: f"call->{atom[1]}s[{atom[2]}]", text))


def mark_of(parts: Sequence[object]) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def facts(graph: Graph) -> list[object]:
    """What makes two texts those of one step: lines of source, and what is read, but for the shapes of arguments."""
    lines = [(e.line.file, e.line.number) for e in graph.equations]
    given = [(v, isinstance(source, Argument)) for v, source in graph.inputs.items()]
    return [lines, *((v.ndim if argument else v.shape, v.dtype) for v, argument in given)]


def is_size(number: str) -> bool:
    """Whether it is a whole number of C."""
    return _SIZE.fullmatch(number) is not None


def cut(text: str) -> tuple[list[str], list[str]]:
    """The numbers of a text that may be variables, and the pieces around them, one more, which tell a size by ``L``."""
    pieces: list[str] = []
    numbers: list[str] = []
    end = 0
    for start, stop in spans(text):
        number = sys.intern(text[start:stop])  # a few are most of them, and steps are remembered
        pieces.append(text[end:start] + "L" * is_size(number))
        numbers.append(number)
        end = stop
    return [*pieces, text[end:]], numbers


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where these numbers stand."""
    fixed = [match.span() for match in _FIXED.finditer(text)][::-1]
    for word in _WORD.finditer(text):
        if not word[0][0].isdigit() or not (is_size(word[0]) or _REAL.fullmatch(word[0])):
            continue
        while fixed and fixed[-1][1] <= word.start():
            fixed.pop()
        if not (fixed and fixed[-1][0] <= word.start()):
            yield word.span()


def joined(pieces: Sequence[str], numbers: Sequence[str], slots: dict[int, int]) -> str:
    """The text with numbers of the call in place of those that have a slot."""
    parts: list[str] = []
    for i, (piece, number) in enumerate(zip(pieces[:-1], numbers, strict=True)):
        table = "sizes" if is_size(number) else "reals"
        shown = f"call->{table}[{slots[i]}]" if i in slots else number
        parts += [piece.removesuffix("L") if table == "sizes" else piece, shown]
    return "".join([*parts, pieces[-1]])
