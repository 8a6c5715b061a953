"""Forms of reductions, and of what runs along a dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad.compile.ir.graph import Equation
from leafgrad.ops import cumulative, extremes, reduce, softmax, sort
from leafgrad.ops.traits import dims
from leafgrad_onnx.forms.shape import converted, reversed_along
from leafgrad_onnx.writer import OnnxWriter

WIDER = {"bool": "int64", "uint8": "int64", "int8": "int64", "int16": "int64", "float16": "float32"}


def reduction(kind: str) -> Callable[[OnnxWriter, Equation], str]:
    """The form of a reduction by one operator; in a dtype that runtimes have it for."""

    def form(w: OnnxWriter, e: Equation) -> str:
        x = e.values[0]
        wide = WIDER.get(x.dtype, x.dtype)
        wide = e.out.dtype if e.out.dtype.startswith("float") and not wide.startswith("float") else wide
        over = dims(e.params.get("dim"), x.ndim)
        return converted(w, w.reduce(kind, w(x, wide), over, e.params.get("keepdim", False)), wide, e.out.dtype)

    return form


for _op, _kind in (
    (reduce.sum, "ReduceSum"), (reduce.prod, "ReduceProd"), (reduce.mean, "ReduceMean"), (reduce.amax, "ReduceMax"),
    (reduce.amin, "ReduceMin"), (reduce.any, "ReduceMax"), (reduce.all, "ReduceMin"), (extremes.largest, "ReduceMax"),
    (extremes.smallest, "ReduceMin"),
):  # fmt: skip
    _op.lower("onnx", reduction(_kind))


@reduce.nansum.lower("onnx")
def _nansum(w: OnnxWriter, e: Equation) -> str:
    x = e.values[0]
    kept = w.emit("Where", w.emit("IsNaN", w(x)), w.scalar(0, x.dtype), w(x))
    return w.reduce("ReduceSum", kept, dims(e.params["dim"], x.ndim), e.params["keepdim"])


@reduce.count_nonzero.lower("onnx")
def _count_nonzero(w: OnnxWriter, e: Equation) -> str:
    x = e.values[0]
    return w.reduce("ReduceSum", w.cast(w(x, "bool"), "int64"), dims(e.params["dim"], x.ndim))


def moment(w: OnnxWriter, e: Equation) -> str:
    """The variance: squares of x less its mean, summed, over the count less ``correction``, at least 0."""
    x, over = e.values[0], dims(e.params["dim"], e.values[0].ndim)
    wide = WIDER.get(x.dtype, x.dtype) if x.dtype.startswith("float") else "float64"
    name = w(x, wide)
    d = w.emit("Sub", name, w.reduce("ReduceMean", name, over, keepdim=True))
    squares = w.reduce("ReduceSum", w.emit("Mul", d, d), over, e.params["keepdim"])
    left = max(math.prod([x.shape[k] for k in over]) - e.params["correction"], 0)
    return converted(w, w.emit("Div", squares, w.scalar(float(left), wide)), wide, WIDER.get(e.out.dtype, e.out.dtype))


@reduce.var.lower("onnx")
def _var(w: OnnxWriter, e: Equation) -> str:
    return converted(w, moment(w, e), WIDER.get(e.out.dtype, e.out.dtype), e.out.dtype)


@reduce.std.lower("onnx")
def _std(w: OnnxWriter, e: Equation) -> str:
    return converted(w, w.emit("Sqrt", moment(w, e)), WIDER.get(e.out.dtype, e.out.dtype), e.out.dtype)


@reduce.norm.lower("onnx")
def _norm(w: OnnxWriter, e: Equation) -> str:
    x, p, over, keepdim = e.values[0], e.params["p"], dims(e.params["dim"], e.values[0].ndim), e.params["keepdim"]
    if p in (1, 2):
        return w.reduce(f"ReduceL{int(p)}", w(x), over, keepdim) if over else str(w.emit("Abs", w(x)))
    if p == 0:
        return w.reduce("ReduceSum", w.cast(w.cast(w(x), "bool"), x.dtype), over, keepdim)
    powers = w.emit("Pow", w.emit("Abs", w(x)), w.scalar(float(p), x.dtype))
    return str(w.emit("Pow", w.reduce("ReduceSum", powers, over, keepdim), w.scalar(1 / p, x.dtype)))


@softmax.logsumexp.lower("onnx")
def _logsumexp(w: OnnxWriter, e: Equation) -> str:
    """With the largest taken out, but an infinite one, as the op does."""
    x, over, keepdim = e.values[0], dims(e.params["dim"], e.values[0].ndim), e.params["keepdim"]
    if not over:
        return str(w.emit("Identity", w(x)))
    top = w.reduce("ReduceMax", w(x), over, keepdim=True)
    top = w.emit("Where", w.emit("IsInf", top), w.scalar(0, x.dtype), top)
    sums = w.reduce("ReduceSum", w.emit("Exp", w.emit("Sub", w(x), top)), over, keepdim=True)
    found = w.emit("Add", w.emit("Log", sums), top)
    return found if keepdim else str(w.emit("Squeeze", found, w.ints(over)))


def along(kind: str) -> Callable[[OnnxWriter, Equation], Any]:
    """Softmax and its logarithm; of an array without dimensions the op's own steps are the form."""

    def form(w: OnnxWriter, e: Equation) -> Any:
        x = e.values[0]
        if not x.ndim:
            zero = w.emit("Sub", w(x), w(x))
            return zero if kind == "LogSoftmax" else w.emit("Exp", zero)
        return w.emit(kind, w(x), axis=e.params["dim"])

    return form


softmax.softmax.lower("onnx", along("Softmax"))
softmax.log_softmax.lower("onnx", along("LogSoftmax"))


@cumulative.cumsum.lower("onnx")
def _cumsum(w: OnnxWriter, e: Equation) -> str:
    x = e.values[0]
    if not x.ndim:
        return str(w.emit("Identity", w(x)))
    wide = {"float16": "float32", "float32": "float32", "float64": "float64"}.get(x.dtype, "int64")
    found = w.emit("CumSum", w(x, wide), w.scalar(e.params["dim"], "int64"), reverse=int(e.params["reverse"]))
    return converted(w, found, wide, e.out.dtype)


def extreme_place(kind: str) -> Callable[[OnnxWriter, Equation], str]:
    """Where the largest or smallest is, the first of equal ones."""

    def form(w: OnnxWriter, e: Equation) -> str:
        x, dim, keepdim = e.values[0], e.params["dim"], e.params["keepdim"]
        wide = {"bool": "int32", "int16": "int32", "int64": "int64", "float16": "float32"}.get(x.dtype, x.dtype)
        name = w(x, wide)
        if dim is not None and x.ndim:
            return str(w.emit(kind, name, axis=dim, keepdims=int(keepdim)))
        found = w.emit(kind, w.reshape(name, (math.prod(x.shape),)), axis=0, keepdims=0)
        return w.reshape(found, (1,) * x.ndim) if keepdim else found

    return form


extremes.argmax.lower("onnx", extreme_place("ArgMax"))
extremes.argmin.lower("onnx", extreme_place("ArgMin"))


@sort.argsort.lower("onnx")
def _argsort(w: OnnxWriter, e: Equation) -> str:
    """TopK of all gives equal ones as they come."""
    x, dim = e.values[0], e.params["dim"]
    wide = {"bool": "int32", "int16": "int32", "int8": "int32", "uint8": "int32", "float16": "float32"}.get(
        x.dtype, x.dtype
    )
    largest = int(e.params["descending"])
    size = w.ints([x.shape[dim]])
    return str(w.emit("TopK", w(x, wide), size, outputs=2, axis=dim, largest=largest, sorted=1)[1])


@sort.searchsorted.lower("onnx")
def _searchsorted(w: OnnxWriter, e: Equation) -> str:
    """How many edges are below: counted, of one row of edges for all."""
    edges, x = e.values
    if edges.ndim != 1:
        raise w.refusal("op 'searchsorted' has no ONNX form of edges row by row", e)
    wide = "float64" if "float64" in (edges.dtype, x.dtype) else edges.dtype if edges.dtype == x.dtype else "float32"
    kind = "LessOrEqual" if e.params["right"] else "Less"
    below = w.emit(kind, w(edges, wide), w.emit("Unsqueeze", w(x, wide), w.ints([x.ndim])))
    return w.reduce("ReduceSum", w.cast(below, "int64"), (x.ndim,))


@cumulative.cumprod.lower("onnx")
def _cumprod(w: OnnxWriter, e: Equation) -> str:
    return sweeps(w, e, lambda late, early: w.emit("Mul", late, early), 1)


@cumulative.logcumsumexp.lower("onnx")
def _logcumsumexp(w: OnnxWriter, e: Equation) -> str:
    def joined(late: str, early: str) -> str:
        top, low = w.emit("Max", late, early), w.emit("Min", late, early)
        gap = w.emit("Sub", low, top)
        gap = w.emit("Where", w.emit("Equal", low, top), w.scalar(0, e.out.dtype), gap)
        one = w.scalar(1, e.out.dtype)
        return str(w.emit("Add", top, w.emit("Log", w.emit("Add", w.emit("Exp", gap), one))))

    return sweeps(w, e, joined, -math.inf)


def sweeps(w: OnnxWriter, e: Equation, join: Callable[[str, str], str], neutral: float) -> str:
    """Running results in log2(n) sweeps that double how far back each reaches, so as many nodes as n asks for."""
    x, dim = e.values[0], e.params["dim"]
    reverse = e.params.get("reverse", False)
    if not x.ndim:
        return str(w.emit("Identity", w(x)))
    name, reach, n = w(x), 1, x.shape[dim]
    name = reversed_along(w, name, (dim,)) if reverse else name
    while reach < n:
        early = w.emit("Slice", name, w.ints([0]), w.ints([-reach]), w.ints([dim]))
        fill = w.filled(tuple(reach if d == dim else k for d, k in enumerate(x.shape)), neutral, x.dtype)
        name = join(name, w.emit("Concat", fill, early, axis=dim))
        reach *= 2
    name = reversed_along(w, name, (dim,)) if reverse else name
    return str(w.emit("Identity", name))


@cumulative.recurrence.lower("onnx")
def _recurrence(w: OnnxWriter, e: Equation) -> str:
    """As the op does it: b[late] += a[late] b[early], a[late] *= a[early]."""
    x, dim, reverse = e.values[0], e.params["dim"], e.params["reverse"]
    a, b = (w(v) for v in e.inputs)
    if not x.ndim:
        return str(w.emit("Identity", b))
    if reverse:
        a, b = (reversed_along(w, v, (dim,)) for v in (a, b))
    reach, n = 1, x.shape[dim]
    while reach < n:
        shape = tuple(reach if d == dim else k for d, k in enumerate(x.shape))

        def late(name: str, neutral: float, by: int = reach, shape: tuple[int, ...] = shape) -> str:
            early = w.emit("Slice", name, w.ints([0]), w.ints([-by]), w.ints([dim]))
            return str(w.emit("Concat", w.filled(shape, neutral, x.dtype), early, axis=dim))

        b = w.emit("Add", b, w.emit("Mul", a, late(b, 0)))
        a = w.emit("Mul", a, late(a, 1))
        reach *= 2
    return reversed_along(w, b, (dim,)) if reverse else str(w.emit("Identity", b))
