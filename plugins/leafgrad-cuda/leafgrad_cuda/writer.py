"""Kernels as tasks: so many items that threads take in any order, and a function that computes one.

In a loop over chunks, point p of a lane lies at ``lane * pitch + p``. Threads take quads, four neighbouring points at
once; a pitch of an odd number of quads lets neighbouring threads reach quads of neighbouring lanes at once. ``n``
points of a chunk are valid, and those beyond repeat the last one.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering.expressions import STORED
from leafgrad.lowering.forms import Form, Root
from leafgrad.lowering.strides import linear
from leafgrad_cuda.walks import Walk

FLAG = Root((), "uint64")  # what kernels tell of failures
QUAD = 4  # points that an item of a chunk may take, in one access to memory
ITEMS = 1 << 16  # at which a GPU is busy; where there are fewer, long sums are cut


class Refused(Exception):
    """No kernel does what ``equation`` asks for; its op has to run it."""

    def __init__(self, equation: Equation | None, reason: str) -> None:
        super().__init__(reason)
        self.equation = equation


class Failure(NamedTuple):
    """Why a program cannot go on: where, the error, and its text, in which ``{index}`` is what a kernel found."""

    equation: Equation
    error: type[Exception]
    text: str


@dataclass(frozen=True)
class Tile:
    """How a block makes a square of a product.

    Attributes:
        type: of what threads keep in registers: products, and what was fetched for the next step.
        kept: how many of these.
        terms, depth: of the sum, and of those in a step.
        threads, elements: of a block, and of a square.
        shared: bytes of shared memory.
        fetch, pointers: of a slice into registers, and the roots that it is given.
        put, multiply, gather: from there into shared memory, of what is there, and the products back to there.
    """

    type: str
    kept: int
    terms: int
    depth: int
    threads: int
    elements: int
    shared: int
    fetch: str
    pointers: tuple[Root, ...]
    put: str
    multiply: str
    gather: str

    @property
    def room(self) -> tuple[str, int, int, int]:
        """What it takes of a block; tiles that take the same may be of one section."""
        return self.type, self.kept, self.threads, self.shared


@dataclass(eq=False, repr=False)
class Task:
    """Independent items of work.

    Attributes:
        equations: what it computes.
        count: of items.
        function: the name of the function that computes one.
        pointers: the roots that it is given.
        reads, writes: those that it reads, and writes. A sum that it adds to is among both.
        again: whether it writes where another task of the same kernel wrote before.
        failures: why it may find that the program cannot go on.
        guarded: whether it asks if some kernel found that.
        tile: how a block makes an item, if one thread does not.
        operations: of one item, about.
        terms: how many elements an item reads one after the other.
        walks: how items go with elements, for roots of which that is known.
        steps: of a recurrence, how often all items run, each time after all of their row ran the time before; else 0.
        row: how many items a row of it has.
    """

    equations: Sequence[Equation]
    count: int
    function: str
    pointers: tuple[Root, ...]
    reads: frozenset[Root]
    writes: frozenset[Root]
    again: bool = False
    failures: Sequence[Failure] = ()
    operations: int = 1
    terms: int = 1
    walks: Mapping[Root, Walk] = field(default_factory=dict)
    steps: int = 0
    row: int = 1
    guarded: bool = False
    tile: Tile | None = None

    @property
    def known(self) -> tuple[Root, ...]:
        """The roots that any of its functions is given."""
        return (*(self.tile.pointers if self.tile else ()), *self.pointers)

    @property
    def items(self) -> int:
        """Those with which others may go in the same thread: of a product by squares, its elements."""
        return self.count if self.tile is None else sum(r.lanes for r in self.walks)

    @property
    def alone(self) -> bool:
        """Whether it has blocks of its own: a recurrence, or a product by squares."""
        return bool(self.steps or self.tile)

    @property
    def needs(self) -> frozenset[Root]:
        """What must have been written before it."""
        return self.reads | (self.writes if self.again else frozenset()) | ({FLAG} if self.guarded else frozenset())

    @property
    def makes(self) -> frozenset[Root]:
        """What others may need."""
        return self.writes | ({FLAG} if self.failures else frozenset())


def pitch(chunk: int) -> int:
    """From a point of a lane to the same of the next."""
    return chunk if chunk // QUAD % 2 else chunk + QUAD


def quad_type(dtype: str) -> str:
    """Of four neighbouring points."""
    return f"lg_quad_{dtype}"


class Functions:
    """The functions of a program, each once however many kernels are alike.

    Attributes:
        draws: the equations for which kernels draw random numbers.
        words: memory with two words for each, from which these follow.
        aligned: roots that are read in quads, which must begin at one.
    """

    def __init__(self, draws: Sequence[Equation] = ()) -> None:
        self.draws = draws
        self.words = Root((2 * len(draws),), "int64")
        self.aligned: set[Root] = set()
        self.known: dict[tuple[str, ...], str] = {}
        self.texts: list[str] = []

    def name(self, stem: str, parameters: str, body: Sequence[str], returns: str = "void") -> str:
        """The name of the function with this body."""
        key = stem, parameters, *body
        if key not in self.known:
            name = self.known[key] = f"{stem}{len(self.known)}"
            self.texts.append("\n".join([f"LG_FUNCTION {returns} {name}({parameters}) {{", *body, "}"]))
        return self.known[key]


@dataclass(eq=False, repr=False)
class Item:
    """The function of a task while it is written.

    Attributes:
        functions: those of the program.
        chunk: points of a chunk; 0 for whole arrays.
        stem: of its name.
        equations: what it computes.
    """

    functions: Functions
    chunk: int
    stem: str
    equations: Sequence[Equation]
    lines: list[str] = field(default_factory=list)
    names: dict[Root, str] = field(default_factory=dict)
    depth: int = 1

    @property
    def pitch(self) -> int:
        return pitch(self.chunk)

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        self.add(line)
        self.depth += 1

    def loop(self, variable: str, end: int | str, first: int | str = 0) -> None:
        self.open(f"for (INDEX {variable} = {first}; {variable} < {end}; {variable}++) {{")

    def loops(self, variables: Sequence[str], lengths: Sequence[int]) -> None:
        for v, n in zip(variables, lengths, strict=True):
            self.loop(v, n)

    def close(self, count: int = 1) -> None:
        for _ in range(count):
            self.depth -= 1
            self.add("}")

    def name(self, root: Root) -> str:
        return self.names.setdefault(root, f"lg_x{len(self.names)}")  # no name that an op's author may use

    # ---- items ------------------------------------------------------------------------------------------------

    def decode(self, variables: Sequence[str], lengths: Sequence[int], points: bool = False) -> int:
        """Loop variables, and the point, of item ``i``; how many items there are. Neighbours share all but the last."""
        self.split("i", [*variables, *(["p"] if points else [])], [*lengths, *([self.chunk] if points else [])])
        return math.prod(lengths) * (self.chunk if points else 1)

    def decode_quads(self, variables: Sequence[str], lengths: Sequence[int]) -> int:
        """Loop variables of item ``i``, and the first point p of four; how many items there are."""
        count = self.chunk // QUAD
        self.split("i", [*variables, "quad"], [*lengths, count])
        self.add(f"const INDEX p = quad * {QUAD};")
        return math.prod(lengths) * count

    def each_of_quad(self, statements: Sequence[str]) -> None:
        """Statements for each point q of four."""
        self.open(f"LG_UNROLL for (int q = 0; q < {QUAD}; q++) {{")
        for s in statements:
            self.add(s)
        self.close()

    def split(self, number: str, variables: Sequence[str], lengths: Sequence[int]) -> None:
        """The variables that ``number`` counts, the last fastest."""
        step = 1
        for k in reversed(range(len(variables))):
            at = f"{number} / {step}" if step > 1 else number
            step *= lengths[k]
            self.add(f"const INDEX {variables[k]} = {at}{f' % {lengths[k]}' if k else ''};")

    # ---- addresses --------------------------------------------------------------------------------------------

    def at(self, form: Form, strides: Iterable[int | None], variables: Iterable[str], extra: str = "") -> str:
        """The element of ``form`` at loop variables that step by ``strides``, which count lanes in a chunk."""
        lane = linear(form.offset, [int(s or 0) for s in strides], variables)
        lane = f"{lane} + {extra}" if extra else lane
        if form.root.axis is None:
            return f"{self.name(form.root)}[{lane}]"
        return f"{self.name(form.root)}[({lane}) * {self.pitch} + p]"

    def quad_at(self, form: Form, place: str) -> str:
        """The four points from ``place``, which is of ``form``, on."""
        return f"*({quad_type(form.root.dtype)} *)&{place}"

    # ---- the task ---------------------------------------------------------------------------------------------

    def task(
        self,
        count: int,
        reads: Iterable[Form],
        writes: Iterable[Form],
        again: bool = False,
        failures: Sequence[Failure] = (),
        operations: int = 1,
        terms: int = 1,
        walks: Mapping[Root, Walk] | None = None,
        steps: int = 0,
        row: int = 1,
        guarded: bool = False,
    ) -> Task:
        """The function, closed, and what calls it."""
        read, written = (frozenset(f.root for f in forms) & self.names.keys() for forms in (reads, writes))
        parameters = ["const INDEX i", *(["const INDEX s"] if steps else [])]
        more = ["const INDEX lo", "const INDEX n"] if self.chunk else []
        more += ["uint64_t *flag"] if failures or guarded else []
        more += ["const int what"] if failures else []
        name, pointers = self.function(self.stem, parameters, written, more=more), tuple(self.names)
        return Task(
            self.equations, count, name, pointers, read, written, again, failures, operations, terms, walks or {},
            steps, row, guarded,
        )  # fmt: skip

    def function(
        self,
        stem: str,
        parameters: Sequence[str],
        written: Container[Root] = (),
        returns: str = "void",
        more: Sequence[str] = (),
    ) -> str:
        """The name of the function, closed, which is given its roots between its other parameters."""
        known = [f"{'' if r in written else 'const '}{STORED[r.dtype]} *{name}" for r, name in self.names.items()]
        return self.functions.name(stem, ", ".join([*parameters, *known, *more]), self.lines, returns)
