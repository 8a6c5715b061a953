"""The kernels of ``leafgrad.lowering`` as tasks."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.lowering import expressions
from leafgrad.lowering.expressions import HELD, literal
from leafgrad.lowering.forms import Form, Root, full
from leafgrad.lowering.kernels import (
    Convolve,
    Copy,
    Draw,
    Kernel,
    Lines,
    Load,
    Lookup,
    Nest,
    Normalize,
    Product,
    Ranges,
    Ranked,
    Reduce,
    Scan,
    Select,
    Slide,
    Store,
)
from leafgrad.lowering.strides import collapsed, spread
from leafgrad_cuda.along import lines, normalize, ranked, reduce
from leafgrad_cuda.convolutions import convolve
from leafgrad_cuda.draws import draw
from leafgrad_cuda.products import product
from leafgrad_cuda.scans import scan
from leafgrad_cuda.sliding import ranged, slide
from leafgrad_cuda.tables import look_up, select, sought
from leafgrad_cuda.walks import Walk, walks
from leafgrad_cuda.writer import QUAD, Failure, Functions, Item, Refused, Task, quad_type


def tasks(kernel: Kernel, functions: Functions, chunk: int) -> list[Task]:
    """The tasks of a kernel, each of which may need those before it; ``chunk`` is 0 for whole arrays."""
    equations = kernel.equations if isinstance(kernel, Nest) else [kernel.equation] if kernel.equation else []

    def item(stem: str = type(kernel).__name__.lower()) -> Item:
        return Item(functions, chunk, stem, equations)

    match kernel:
        case Nest():
            return [nest(item(), kernel)]
        case Load():
            return [load(item(), kernel)]
        case Store():
            return [store(item(), kernel)]
        case Copy():
            out = kernel.target
            first = []
            if isinstance(kernel.fill, Form):
                first = [copy(item(), kernel.fill, full(out.root))]
            elif kernel.fill is not None:
                first = [fill(item("fill"), full(out.root), kernel.fill)]
            return [*first, *(copy(item(), x, out, again=bool(first)) for x in kernel.sources)]
        case Reduce():
            return reduce(item, kernel)
        case Product():
            return product(item, kernel)
        case Normalize():
            return normalize(item, kernel)
        case Lines():
            return [lines(item(), kernel)]
        case Ranked():
            return [ranked(item(), kernel)]
        case Draw():
            return [draw(item(), kernel)]
        case Convolve():
            return convolve(item, kernel)
        case Scan():
            return [scan(item(), kernel)]
        case Slide():
            return [slide(item(), kernel)]
        case Ranges():
            return [ranged(item("sums"), kernel)]
        case Select():
            first = [] if kernel.reads else [fill(item("fill"), kernel.target, 0.0)]
            return [*first, select(item(), kernel)]
        case Lookup():
            first, by_elements = [], sought(item("sought"), kernel)
            if kernel.start is not None:
                first = [copy(item("copy"), kernel.start, kernel.target)]
            elif kernel.kind == "add" and by_elements is None:
                first = [fill(item("fill"), kernel.target, 0.0)]
            return [*first, by_elements or look_up(item(), kernel)]
    raise Refused(kernel.equation, f"no kernel for {type(kernel).__name__.lower()}")


def nest(w: Item, nest: Nest) -> Task:
    """One element: array inputs into registers, expressions, needed results into memory."""
    reads = {key: spread(form, nest.shape) for key, form in nest.reads.items()}
    writes = {v: nest.writes[v].strides for v in nest.writes if v in nest.needed}
    dims, strides = collapsed(nest.shape, nest.axis, [*reads.values(), *writes.values()])
    step = dict(zip([*reads, *writes], strides, strict=True))
    variables = [f"i{k}" for k in range(len(dims))]
    quads = nest.axis is not None
    count = w.decode_quads(variables, dims) if quads else w.decode(variables, dims)
    local: dict[str, str] = {}
    stores: list[str] = []
    registers: dict[object, str] = {}
    failures: list[Failure] = []
    for key, form in nest.reads.items():
        place = w.at(form, step[key], variables)
        if place not in local:
            name = f"r{len(local)}"
            local[place] = name
            if quads and form.root.axis is not None:
                w.add(f"const {quad_type(form.root.dtype)} {name}_ = {w.quad_at(form, place)};")
                local[place] = f"(({HELD[form.root.dtype]}){name}_.at[q])"
            else:
                w.add(f"const {HELD[form.root.dtype]} {name} = {place};")
        registers[key] = local[place]
    for k, v in enumerate(writes if quads else ()):
        w.add(f"{quad_type(nest.writes[v].root.dtype)} w{k};")
        stores.append(f"{w.quad_at(nest.writes[v], w.at(nest.writes[v], step[v], variables))} = w{k};")
    if quads:
        w.open(f"LG_UNROLL for (int q = 0; q < {QUAD}; q++) {{")
    for k, equation in enumerate(nest.equations):
        given = [
            (registers.get((equation, i)) or registers.get(v)) if isinstance(v, Value) else None
            for i, v in enumerate(equation.inputs)
        ]
        registers[equation.out] = f"v{k}"
        text = expressions.render(equation, nest.bodies[equation], given)
        if "refused(" in nest.bodies[equation].text:
            w.lines += ["#undef lg_which", f"#define lg_which (what + {len(failures)})"]
            failures.append(refusal(equation))
        w.add(f"const {HELD[equation.out.dtype]} v{k} = {text};")
        if equation.out in writes and quads:
            w.add(f"w{[*writes].index(equation.out)}.at[q] = v{k};")
        elif equation.out in writes:
            w.add(f"{w.at(nest.writes[equation.out], step[equation.out], variables)} = v{k};")
    if quads:
        w.close()
    for store in stores:
        w.add(store)
    work = sum(operations(body.text) for body in nest.bodies.values()) * (QUAD if quads else 1)
    seen = [(f, step[k], ()) for k, f in nest.reads.items()] + [(nest.writes[v], step[v], ()) for v in writes]
    return w.task(count, nest.inputs, nest.outputs, failures=failures, operations=work, walks=walks(dims, seen))


def refusal(e: Equation) -> Failure:
    """The error of an op that refuses an element."""
    error, message = e.params.get("error", RuntimeError), e.params.get("message", f"{e.name} refuses an element")
    return Failure(e, error, message.replace("{", "{{").replace("}", "}}"))


def keep(w: Item, x: Form, out: Form) -> Task:
    """``out`` becomes ``x`` again, where some kernel found that the program cannot go on."""
    count, (source, target), found = elements(w, out.shape, None, [x, out])
    w.add(f"if (*flag) {target} = {source};")
    return w.task(count, [x], [out], again=True, guarded=True, walks=found)


def operations(text: str) -> int:
    """About how many floating-point operations a C expression takes; a function as many as ten."""
    return sum(text.count(c) for c in "+-*/<>") + 10 * text.count("(") or 1


def elements(
    w: Item, shape: Sequence[int], axis: int | None, arrays: Sequence[Form]
) -> tuple[int, list[str], dict[Root, Walk]]:
    """How many items there are of one element each, the element of each array, and the task's walks."""
    dims, strides = collapsed(tuple(shape), axis, [spread(f, tuple(shape)) for f in arrays])
    variables = [f"i{k}" for k in range(len(dims))]
    count = w.decode(variables, dims, axis is not None)
    at = [w.at(f, s, variables) for f, s in zip(arrays, strides, strict=True)]
    return count, at, walks(dims, [(f, s, ()) for f, s in zip(arrays, strides, strict=True)])


def copy(w: Item, x: Form, out: Form, again: bool = False) -> Task:
    count, (source, target), found = elements(w, out.shape, out.axis, [x, out])
    w.add(f"{target} = {source};")
    return w.task(count, [x], [out], again, walks=found)


def fill(w: Item, out: Form, number: bool | int | float) -> Task:
    count, (target,), found = elements(w, out.shape, out.axis, [out])
    w.add(f"{target} = {literal(number, out.root.dtype)};")
    return w.task(count, [], [out], walks=found)


def load(w: Item, load: Load) -> Task:
    """Rows ``lo`` to ``lo + n`` as a chunk; the points beyond repeat the last one."""
    (x,), out = load.sources, load.target
    count, (rows, points) = rowwise(w, x, out)
    w.add(f"const INDEX row = lo + (p < n ? p : n - 1);\n    {points} = {rows};")
    return w.task(count, [x], [out])


def store(w: Item, store: Store) -> Task:
    """The valid points of a chunk as rows of a whole array."""
    (x,), out = store.sources, store.target
    count, (rows, points) = rowwise(w, out, x)
    w.add(f"const INDEX row = lo + p;\n    if (p < n) {rows} = {points};")
    return w.task(count, [x], [out])


def rowwise(w: Item, whole: Form, chunk: Form) -> tuple[int, tuple[str, str]]:
    """An element of a whole array at ``row`` of the batch, and of the chunk."""
    axis = chunk.axis
    assert axis is not None
    kept = [k for k, n in enumerate(chunk.shape) if k != axis and n != 1]
    variables = [f"i{k}" for k in kept]
    count = w.decode(variables, [chunk.shape[k] for k in kept], points=True)
    rows = w.at(whole, [*(whole.strides[k] for k in kept), whole.strides[axis]], [*variables, "row"])
    return count, (rows, w.at(chunk, [chunk.strides[k] for k in kept], variables))
