"""What the C of a stage consists of: loop nests, copies, reductions and products, each over forms in memory."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leafgrad.compile.ir.graph import Equation, Operand, Value
from leafgrad.lowering import expressions
from leafgrad.lowering.forms import Form, Root, Shape
from leafgrad.lowering.sweeps import Line

LARGEST = 1 << 24  # one more than what 24 bits hold
LOOK = 1 << 18  # operations, a few milliseconds at most, between two looks for signals


@dataclass(eq=False, repr=False)
class Nest:
    """Elementwise equations over one shape, computed together in one loop over its elements.

    Attributes:
        bodies: what each equation computes of an element.
        reads: the array inputs from elsewhere, by equation and position.
        writes: the forms of the results.
        again: cheap values of other nests, computed here once more.
        needed: results that are read elsewhere; the others stay in registers.
    """

    shape: Shape
    axis: int | None
    equations: list[Equation] = field(default_factory=list)
    bodies: dict[Equation, expressions.Body] = field(default_factory=dict)
    reads: dict[tuple[Equation, int], Form] = field(default_factory=dict)
    writes: dict[Value, Form] = field(default_factory=dict)
    again: set[Value] = field(default_factory=set)
    needed: set[Value] = field(default_factory=set)

    @property
    def may_fail(self) -> bool:
        """Whether an angle may be too large for C's sines, or an element refused."""
        return any(body.may_stop for body in self.bodies.values())

    @property
    def inputs(self) -> Iterable[Form]:
        return self.reads.values()

    @property
    def outputs(self) -> Iterable[Form]:
        return [f for v, f in self.writes.items() if v in self.needed]


@dataclass(eq=False, repr=False)
class One:
    """A kernel that makes one array. ``equation`` is None for the copy of a result."""

    equation: Equation | None
    sources: tuple[Form, ...]
    target: Form

    @property
    def may_fail(self) -> bool:
        """Whether the program may have to stop here."""
        return isinstance(self, (Select, Lookup))

    @property
    def maker(self) -> Equation:
        assert self.equation is not None
        return self.equation

    @property
    def inputs(self) -> Iterable[Form]:
        return self.sources

    @property
    def outputs(self) -> Iterable[Form]:
        return (self.target,)


@dataclass(eq=False, repr=False)
class Copy(One):
    """``target = source``, if there is one. With ``fill``, all of the root is that number, or array, before."""

    fill: bool | int | float | Form | None = None

    @property
    def inputs(self) -> Iterable[Form]:
        return (*self.sources, self.fill) if isinstance(self.fill, Form) else self.sources


class Load(One):
    """The rows of a chunk, out of a whole array."""


class Store(One):
    """The rows of a chunk, into a whole array."""


@dataclass(eq=False, repr=False)
class Reduce(One):
    """``"+"``, ``"*"``, ``"max"`` or ``"min"`` of the source over ``dims``, or the mean of a sum.

    With ``total``, the batch is among them: the sum is added to an accumulator.

    Attributes:
        each: what is taken of an element x.
        then: what becomes of the result, also called x.
    """

    dims: tuple[int, ...]
    total: bool
    kind: str
    mean: bool
    each: str = "x"
    then: str = "x"


@dataclass(eq=False, repr=False)
class Product(One):
    """A matrix product. With ``total``, sources[0]^T sources[1] is added to an accumulator: all rows are contracted."""

    total: bool = False


@dataclass(eq=False, repr=False)
class Normalize(One):
    """``"softmax"``, ``"log_softmax"`` or ``"logsumexp"`` over ``dims``."""

    dims: tuple[int, ...]
    kind: str


@dataclass(eq=False, repr=False)
class Lines(One):
    """C statements for each line along ``dim``."""

    code: str
    dim: int


@dataclass(eq=False, repr=False)
class Ranked(One):
    """C statements for each element along ``dim``, which know how many go before it in order."""

    code: str
    dim: int
    descending: bool


@dataclass(eq=False, repr=False)
class Select(One):
    """One class of many along ``dim``, read or written, except where the target is ``ignore``."""

    dim: int
    ignore: int
    reads: bool


@dataclass(eq=False, repr=False)
class Index:
    """An index array: it says where along one dimension of a table, which has ``size`` elements there, ``step`` apart.

    Its form is broadcast to the shape of what is read or written.
    """

    form: Form
    size: int
    step: int


@dataclass(eq=False, repr=False)
class Lookup(One):
    """Elements of ``table`` that index arrays name, read into ``line`` or written from it.

    Attributes:
        kind: ``"read"``, ``"add"``, ``"write"``, ``"max"`` or ``"min"``.
        table: seen in the shape of the line, with strides of 0 where index arrays say where.
        line: the other side; a number that is written everywhere.
        indices: one for each chosen dimension of the table.
        start: of a table that is written, what it holds before; None for zeros.
    """

    kind: str
    table: Form
    line: Form | Operand
    indices: tuple[Index, ...]
    start: Form | None = None


@dataclass(eq=False, repr=False)
class Convolve(One):
    """A convolution, its transpose, or its sum over windows, as ``window_patterns.convolution`` explains.

    With ``total``, the batch is summed: what a chunk gives is added to an accumulator.

    Attributes:
        sweeps: for each part of the outputs, a line for each dimension.
        groups: of channels, each of which sees its like alone.
        kind: ``"gather"``, ``"spread"`` or ``"taps"``.
        scratch: memory that a target needs on the way.
    """

    sweeps: list[tuple[Line, ...]]
    groups: int
    kind: str
    scratch: tuple[Form, ...] = ()

    @property
    def work(self) -> int:
        """Multiplications for one image."""
        pairs = sum(math.prod(line.size * line.taps for line in lines) for lines in self.sweeps)
        outputs = (self.sources[1] if self.kind == "taps" else self.target).shape[1]
        return pairs * self.sources[0].shape[1] * outputs // self.groups

    @property
    def may_fail(self) -> bool:
        """Whether weights may be infinite."""
        return self.kind == "spread"

    @property
    def outputs(self) -> Iterable[Form]:
        return (self.target, *self.scratch)


@dataclass(eq=False, repr=False)
class Slide(One):
    """Windows over the last dimensions.

    Attributes:
        windows: lengths, kernels, strides, paddings, dilations and sizes, each with an entry for each dimension.
        kind: ``"max"``, ``"argmax"``, ``"read"`` or ``"add"``, as ``windowed`` explains.
    """

    windows: Sequence[Sequence[int]]
    kind: str


@dataclass(eq=False, repr=False)
class Ranges(One):
    """Sums of ``ranges``, (start, stop), of ``dim``, whose order is kept."""

    ranges: Sequence[tuple[int, int]]
    dim: int


@dataclass(frozen=True)
class ScanStep:
    """A step of a recurrence, as ``patterns.scan`` explains."""

    code: str
    results: tuple[str, ...]
    carried: tuple[str, ...]
    across: str
    turned: bool
    first: str | None
    reverse: bool


@dataclass(eq=False, repr=False)
class Scan(One):
    """A recurrence over dimension 0.

    Attributes:
        hidden: the size of a part of the last dimension.
        arrays: the arguments by name, but for the matrix, which ``sources`` has first.
        made: the results that have an entry for each step, by name.
        carried: what a step leaves to the next, by name.
        scratch: memory that a target needs on the way.
    """

    step: ScanStep
    hidden: int
    arrays: dict[str, Form]
    made: dict[str, Form]
    carried: dict[str, Form]
    scratch: tuple[Form, ...] = ()

    @property
    def matrix(self) -> Form:
        return self.sources[0]

    @property
    def known(self) -> dict[str, Form]:
        """What the statements of a step see as arrays, but for the product."""
        every = {**self.arrays, **self.made}
        return {name: form for name, form in every.items() if name not in self.carried}

    @property
    def outputs(self) -> Iterable[Form]:
        return (*self.made.values(), *self.carried.values(), *self.scratch)


class Draw(One):
    """Random zeros and ones.

    Attributes:
        bound: numbers of 24 bits below it are ones.
    """

    @property
    def bound(self) -> int:
        return bound(self.maker.params["p"])


def bound(p: float) -> int:
    """The numbers of 24 bits below it are those that are less than ``p``, over 2**24 and in float32."""
    (rounded,) = struct.unpack("f", struct.pack("f", p))
    return min(LARGEST, max(0, math.ceil(rounded * LARGEST)))


Kernel = (
    Convolve
    | Draw
    | Nest
    | Copy
    | Load
    | Store
    | Reduce
    | Product
    | Normalize
    | Lines
    | Ranges
    | Ranked
    | Scan
    | Select
    | Slide
    | Lookup
)


def work(kernel: Kernel, chunk: int) -> int:
    """About how many operations a kernel takes, on a chunk of so many points where it has points."""

    def lengths(form: Form) -> list[int]:
        return [chunk if s is None else n for n, s in zip(form.shape, form.strides, strict=True)]

    if isinstance(kernel, Convolve):
        return kernel.work * lengths(kernel.sources[0])[0]
    if isinstance(kernel, Product) and kernel.total:
        return math.prod(lengths(kernel.sources[0])) * kernel.target.shape[-1]
    if isinstance(kernel, Product):
        return math.prod(lengths(kernel.target)) * lengths(kernel.sources[0])[-1]
    if isinstance(kernel, Scan):
        return kernel.target.shape[0] * kernel.target.shape[1] * math.prod(kernel.matrix.shape)
    if isinstance(kernel, Slide):  # a round for each tap
        return math.prod(lengths(kernel.target)) * math.prod(kernel.windows[1])
    if isinstance(kernel, Ranked):
        return math.prod(lengths(kernel.sources[0])) * kernel.sources[0].shape[kernel.dim]
    seen = [f for f in (*kernel.inputs, *kernel.outputs) if not chunk or f.axis is not None]
    size = max((math.prod(lengths(f)) for f in seen), default=0)
    return size * len(kernel.equations) if isinstance(kernel, Nest) else size


def roots(forms: Iterable[Form]) -> list[Root]:
    """The memory that forms lie in, in their order: the same program has the same text in every process."""
    return list(dict.fromkeys(f.root for f in forms))
