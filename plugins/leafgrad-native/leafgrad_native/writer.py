"""Kernels as C text.

In a loop, the innermost C loop runs over the points of a chunk, ``p``; point p of a lane lies at ``lane * chunk + p``;
``n`` points are valid and ``m``, a multiple of the vector length, are computed. On whole arrays the innermost loop
runs over the last dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering import expressions, forms
from leafgrad.lowering.expressions import C_TYPES, FLOATS, literal
from leafgrad.lowering.forms import Form, Root
from leafgrad.lowering.kernels import LOOK, Copy, Load, Nest, Store
from leafgrad.lowering.strides import collapsed, linear, spread, still
from leafgrad_native.blocks import lanes
from leafgrad_native.products import Products

SIMD = "#pragma omp simd"
GRAIN = 64  # elements, whole vectors of them: threads share innermost loops in stretches of so many
ENOUGH = 16  # rounds of a loop that threads can share evenly


class Note(str):
    """Where a comment stands that tells of an equation; None is the copy of a result. It is no part of the code."""

    __slots__ = ("equation",)
    equation: Equation | None


class Functions:
    """The functions of a program, each once however many kernels are alike."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, ...], str] = {}
        self.texts: list[list[str]] = []
        self.shared = 0  # kernels that threads share

    def name(self, kind: str, stem: str, parameters: str, body: Sequence[str]) -> str:
        """The name of the function with this body."""
        key = kind, parameters, *body
        if key not in self.known:
            name = self.known[key] = f"{stem}{len(self.known)}"
            self.texts.append([f"LG_FUNCTION {kind} {name}({parameters}) {{", *body, "}"])
        return self.known[key]


class CWriter:
    """Writes the kernels of one stage.

    Args:
        address: the C expression of a root's address.
        functions: those that the text calls so far.
        products: the matrix products that it calls.
        chunk: points per chunk of a loop; 0 for a stage on whole arrays.
        key: the number, among the keys of a call, of that of an equation which draws random numbers.
    """

    def __init__(
        self,
        address: Callable[[Root], str],
        functions: Functions,
        products: Products,
        chunk: int,
        key: Callable[[Equation], int],
    ) -> None:
        self.address = address
        self.functions = functions
        self.names: dict[Root, str] = {}  # the pointers of the kernel that is being written
        self.products = products
        self.chunk = chunk
        self.key = key
        self.lines: list[str] = []
        self.inside = [0]  # operations in a round of each open loop; 0 where it need not look for signals
        self.tasks: list[str] = []  # functions that do a thread's share of a kernel
        self.sharing = False  # whether threads share the kernel that is being written
        self.rounds: tuple[int, int] | None = None  # of the loop that they share: how many, in stretches of so many

    # ---- text -------------------------------------------------------------------------------------------------

    def add(self, line: str) -> None:
        self.lines.append("    " * len(self.inside) + line)

    def note(self, equation: Equation | None) -> None:
        """A comment: what follows computes this equation."""
        note = Note("    " * len(self.inside) + "// ")
        note.equation = equation
        self.lines.append(note)

    def open(self, line: str = "{", inside: int | None = None) -> None:
        self.add(line)
        self.inside.append(self.inside[-1] if inside is None else inside)

    def close(self, count: int = 1) -> None:
        for _ in range(count):
            self.inside.pop()
            self.add("}")

    def loop(
        self,
        variable: str,
        end: int,
        first: int = 0,
        by: int = 1,
        simd: str | None = None,
        stop: str | None = None,
        shared: bool = False,
    ) -> None:
        """A loop, which looks for signals where a round takes little time and all of them may take long.

        ``simd``: it stands under this pragma. ``stop``: its end in C, where the text does not know it. ``shared``: its
        rounds can run in any order, and at once; threads may share them.
        """
        inside = self.inside[-1]
        if inside > LOOK:
            inside = inside * by // max(by, end - first)
        start, stop = str(first), stop or str(end)
        if shared:
            start, stop = self.ends(end, by if simd is None else GRAIN)
        if self.inside[-1] > LOOK >= inside:
            start, stop = self.stretches(start, stop, max(1, LOOK // max(1, inside)) * by)
            inside = 0
        if simd is not None:
            self.add(simd)
        self.open(f"for (long {variable} = {start}; {variable} < {stop}; {variable} += {by}) {{", inside)

    def cut(self, lengths: Sequence[int]) -> int | None:
        """Which of several nested loops threads share best: the first that is long enough, else the longest."""
        first = next((k for k, n in enumerate(lengths) if n >= ENOUGH), None)
        return first if first is not None or not lengths else lengths.index(max(lengths))

    def ends(self, count: int, grain: int = 1) -> tuple[str, str]:
        """Where a loop begins and ends in C. The first of a kernel that is asked for is the one that threads share."""
        if not self.sharing or self.rounds is not None or count <= grain:
            return "0", str(count)
        self.rounds = count, grain
        return "first", "last"

    def share(self, call: str, ends: bool, rounds: tuple[int, int], most: int) -> None:
        """Threads, at most so many, share the rounds of a kernel; ``ends``: it may stop the program."""
        count, grain = rounds
        name = f"share{self.functions.shared}"
        self.functions.shared += 1
        self.tasks += [
            f"static void {name}(void *context, int part) {{",
            "    lg_call *call = context;",
            f"    LG_ROUNDS({count}, {grain})",
            f"    const int code = {call};" if ends else f"    {call};",
            *(["    if (code) __atomic_store_n(&call->failed, code, __ATOMIC_RELAXED);"] if ends else []),
            "}",
        ]
        self.add(f"if ((code = lg_share(call, {name}, {min(most, -(-count // grain))}))) return code;")

    def stretches(self, first: str, end: str, size: int) -> tuple[str, str]:
        """Cut the loop that follows into stretches, with a look for signals before each: where one begins and ends."""
        self.add(f"LG_STRETCHES({first}, {end}, {size})")
        return "lg_first", "lg_end"

    def look(self) -> None:
        """End the call if the handler of a signal raised an exception."""
        self.add("{ const int code = call->look(); if (code) return code; }")

    def points(self, clause: str = "") -> None:
        """The loop over the points of the chunk."""
        self.add(SIMD + clause)
        self.open("for (long p = 0; p < m; p++) {")

    # ---- addresses --------------------------------------------------------------------------------------------

    def at(self, form: Form, strides: Sequence[int], variables: Sequence[str], extra: int = 0) -> str:
        """The element of ``form`` at loop variables that step by ``strides``, as C."""
        lane = linear(form.offset + extra, strides, variables)
        if form.root.axis is None:
            return f"{self.names[form.root]}[{lane}]"
        return f"{self.names[form.root]}[{self.scaled(lane)} + p]"

    def row(self, form: Form, strides: Sequence[int], variables: Sequence[str], extra: int = 0) -> str:
        """The address of the first point (or of the element itself)."""
        lane = linear(form.offset + extra, strides, variables)
        return f"{self.names[form.root]} + {lane if form.root.axis is None else self.scaled(lane)}"

    def scaled(self, lane: str) -> str:
        """The first point of a lane."""
        return "0" if lane == "0" else f"({lane}) * {self.chunk}L"

    # ---- elements ----------------------------------------------------------------------------------------------

    def nest(self, nest: Nest) -> None:
        """One loop nest: array inputs into registers, expressions, needed results into memory."""
        shape, axis = nest.shape, nest.axis
        reads = {key: spread(form, shape) for key, form in nest.reads.items()}
        writes = {v: nest.writes[v].strides for v in nest.writes if v in nest.needed}
        keys: list[Any] = [*reads, *writes]
        dims, strides = collapsed(shape, axis, [*reads.values(), *writes.values()])
        step = dict(zip(keys, strides, strict=True))
        variables = [f"i{k}" for k in range(len(dims))]
        inner = None if axis is not None or not dims else len(dims) - 1
        if nest.may_fail:
            self.add("int far = 0;")
        cut = self.cut(dims) if axis is None else None
        for k, n in enumerate(dims):
            if k != inner:
                self.loop(variables[k], n, shared=k == cut)
        local: dict[tuple[Root, str], str] = {}
        registers: dict[Any, str] = {}
        far = " reduction(| : far)" if nest.may_fail else ""

        def load(key: Any, form: Form) -> None:
            place = self.at(form, step[key], variables)
            if (form.root, place) not in local:
                local[form.root, place] = f"r{len(local)}"
                self.add(f"const {C_TYPES[form.root.dtype]} r{len(local) - 1} = {place};")
            registers[key] = local[form.root, place]

        steady = [k for k, f in nest.reads.items() if still(f, step[k], inner, axis is not None)]
        for key in steady:
            load(key, nest.reads[key])
        if inner is not None:
            self.loop(variables[inner], dims[inner], simd=SIMD + far, shared=inner == cut)
        elif axis is not None:
            self.points(far)
        for key, form in nest.reads.items():
            if key not in registers:
                load(key, form)
        for k, equation in enumerate(nest.equations):
            reads_ = [
                (registers.get((equation, i)) or registers.get(v)) if isinstance(v, Value) else None
                for i, v in enumerate(equation.inputs)
            ]
            registers[equation.out] = f"v{k}"
            text = expressions.render(equation, nest.bodies[equation], reads_)
            self.add(f"const {C_TYPES[equation.out.dtype]} v{k} = {text};")
            if equation.out in writes:
                self.add(f"{self.at(nest.writes[equation.out], step[equation.out], variables)} = v{k};")
        self.close(len(dims) + (axis is not None))
        if nest.may_fail:
            self.add("if (far) return 2;")

    def copy(self, copy: Copy) -> None:
        out = copy.target
        assert not isinstance(copy.fill, Form)  # no pattern of C has one
        if copy.fill is not None:
            self.fill(forms.full(out.root), copy.fill, shared=not copy.sources)
        for x in copy.sources:
            self.elements(out.shape, out.axis, [x, out], lambda a, o: f"{o} = {a};", shared=copy.fill is None)

    def fill(self, form: Form, value: bool | int | float, shared: bool = False) -> None:
        number = literal(value, form.root.dtype)
        self.elements(form.shape, form.axis, [form], lambda o: f"{o} = {number};", shared=shared)

    def elements(
        self,
        shape: forms.Shape,
        axis: int | None,
        arrays: Sequence[Form],
        statement: Callable[..., str],
        clause: str = "",
        shared: bool = False,
    ) -> None:
        """A statement for each element of ``shape``, in any order; ``clause`` names a sum that it adds to."""
        dims, strides = collapsed(shape, axis, [spread(f, shape) for f in arrays])
        variables = [f"i{k}" for k in range(len(dims))]
        inner = None if axis is not None or not dims else len(dims) - 1
        cut = self.cut(dims) if shared and axis is None else None
        for k, n in enumerate(dims):
            self.loop(variables[k], n, simd=SIMD + clause if k == inner else None, shared=k == cut)
        if axis is not None:
            self.points(clause)
        self.add(statement(*(self.at(f, s, variables) for f, s in zip(arrays, strides, strict=True))))
        self.close(len(dims) + (axis is not None))

    def load(self, load: Load) -> None:
        """Rows ``lo`` to ``lo + n`` as a chunk; the points beyond repeat the last one."""
        (x,), out = load.sources, load.target
        dims, step = lanewise(x, out, out.axis)
        first = self.squares(x, dims, out, step, into=True)
        for k, (n, _, _) in enumerate(dims):
            self.loop(f"i{k}", n)
        variables = [f"i{k}" for k in range(len(dims))]
        source = linear(x.offset, [s for _, s, _ in dims], variables)
        target = self.scaled(linear(out.offset, [o for _, _, o in dims], variables))
        into, name = self.names[out.root], self.names[x.root]
        self.add(f"for (long p = {first}; p < n; p++) {into}[{target} + p] = {name}[{source} + (lo + p) * {step}L];")
        self.add(f"for (long p = n; p < m; p++) {into}[{target} + p] = {into}[{target} + n - 1];")
        self.close(len(dims))

    def store(self, store: Store) -> None:
        """The valid points of a chunk as rows of a whole array."""
        (x,), out = store.sources, store.target
        dims, step = lanewise(out, x, x.axis)
        first = self.squares(out, dims, x, step, into=False)
        for k, (n, _, _) in enumerate(dims):
            self.loop(f"i{k}", n)
        variables = [f"i{k}" for k in range(len(dims))]
        source = self.scaled(linear(x.offset, [s for _, _, s in dims], variables))
        target = linear(out.offset, [o for _, o, _ in dims], variables)
        self.add(
            f"for (long p = {first}; p < n; p++) "
            f"{self.names[out.root]}[{target} + (lo + p) * {step}L] = {self.names[x.root]}[{source} + p];"
        )
        self.close(len(dims))

    def squares(self, rows: Form, dims: Sequence[tuple[int, int, int]], points: Form, step: int, into: bool) -> str:
        """Square blocks between rows of a whole array and points of a chunk; the first point that is in none.

        They lie along a dimension whose elements are neighbours in the rows, where there is one that is long enough.
        """
        kind = rows.root.dtype
        size = lanes(kind) if kind in FLOATS else 0
        along = next((k for k, (n, s, _) in enumerate(dims) if s == 1 and n >= size > 0), None)
        if along is None:
            return "0"
        for k, (n, _, _) in enumerate(dims):
            if k != along:
                self.loop(f"i{k}", n)
        variables = [f"i{k}" if k != along else "j" for k in range(len(dims))]
        row = (
            f"{self.names[rows.root]} + {linear(rows.offset, [s for _, s, _ in dims], variables)} + (lo + p) * {step}L"
        )
        lane = linear(points.offset, [s for _, _, s in dims], variables)
        point = f"{self.names[points.root]} + {self.scaled(lane)} + p"
        count, between = dims[along][0], f"{dims[along][2] * self.chunk}L"
        ends = f"{row}, {step}L, {point}, {between}" if into else f"{point}, {between}, {row}, {step}L"
        call = f"{self.products.turn(kind)}({ends});"
        self.open(f"for (long p = 0; p + {size} <= n; p += {size}) {{")
        self.add(f"for (long j = 0; j + {size} <= {count}; j += {size}) {call}")
        if count % size:
            self.add(f"{{ const long j = {count - size}; {call} }}")
        self.close(len(dims))
        return f"n / {size} * {size}"


def lanewise(rows: Form, points: Form, axis: int | None) -> tuple[list[tuple[int, int, int]], int]:
    """The dimensions of a point, each with its length and its strides in both forms, and how far rows lie apart."""
    assert axis is not None
    step = rows.strides[axis]
    assert step is not None
    lengths, strides = collapsed(rows.shape, axis, [rows.strides, points.strides])
    return list(zip(lengths, *strides, strict=True)), step
