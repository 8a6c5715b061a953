"""Forms of ops that read and write elements by integer arrays."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.ops import classes, combine, index, margins
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.compare import gt, ne
from leafgrad.ops.convert import to_dtype
from leafgrad.ops.cumulative import cumprod
from leafgrad.ops.elementwise import add, mul, sub
from leafgrad.ops.geometry import index_axes
from leafgrad.ops.reduce import amax, sum as added
from leafgrad.ops.select import maximum, where
from leafgrad.ops.shape import reshape
from leafgrad.tensor import inplace, view
from leafgrad_onnx.forms.shape import counted
from leafgrad_onnx.writer import OnnxWriter


class Choice:
    """Index arrays ``at`` for some dimensions of an array: as one array of tuples, with those dimensions first.

    Attributes:
        tuples: (..., how many dimensions).
        moved: the dimensions of the array, the chosen ones first.
        axes: where each dimension of what is chosen comes from, negative ones from the index arrays.
        shape: of the index arrays, broadcast.
    """

    def __init__(self, w: OnnxWriter, e: Equation, first: int, whole: tuple[int, ...]) -> None:
        self.w, self.whole, self.dims = w, whole, e.params["dims"]
        at = [v for v in e.inputs[first:] if isinstance(v, Value)]
        self.shape = broadcast_shape([v.shape for v in at])
        width = len(self.shape)
        parts = [
            w.emit("Unsqueeze", w.expand(w(v, "int64"), self.shape), w.ints([width]))
            for v in at
        ]  # fmt: skip
        self.tuples = parts[0] if len(parts) == 1 else w.emit("Concat", *parts, axis=width)
        self.rest = [d for d in range(len(whole)) if d not in self.dims]
        self.moved = [*self.dims, *self.rest]
        self.axes = index_axes(len(whole), self.dims, width)

    def front(self, name: str) -> str:
        """An array with the chosen dimensions first."""
        return name if self.moved == sorted(self.moved) else self.w.emit("Transpose", name, perm=self.moved)

    def back(self, name: str) -> str:
        """The same undone."""
        order = [self.moved.index(d) for d in range(len(self.moved))]
        return name if order == sorted(order) else self.w.emit("Transpose", name, perm=order)

    @property
    def order(self) -> list[int]:
        """For each dimension of the op's result, which it is of GatherND's."""
        width = len(self.shape)
        return [a + width if a < 0 else width + self.rest.index(a) for a in self.axes]


@index.index.lower("onnx")
def _index(w: OnnxWriter, e: Equation) -> str:
    if len(e.params["dims"]) == 1:
        return str(w.emit("Gather", w(e.inputs[0]), w(e.inputs[1], "int64"), axis=e.params["dims"][0]))
    choice = Choice(w, e, 1, e.values[0].shape)
    found = w.emit("GatherND", choice.front(w(e.inputs[0])), choice.tuples)
    return str(found if choice.order == sorted(choice.order) else w.emit("Transpose", found, perm=choice.order))


def written(w: OnnxWriter, e: Equation, data: str, updates: str, choice: Choice, **how: Any) -> str:
    """ScatterND of updates that are shaped as the op's."""
    order = [choice.order.index(d) for d in range(len(choice.order))]
    updates = updates if order == sorted(order) else w.emit("Transpose", updates, perm=order)
    return choice.back(w.emit("ScatterND", choice.front(data), choice.tuples, updates, **how))


def chosen_shape(choice: Choice) -> tuple[int, ...]:
    """The shape of what the index arrays choose."""
    return tuple([choice.shape[len(choice.shape) + a] if a < 0 else choice.whole[a] for a in choice.axes])


@index.index_sum.lower("onnx")
def _index_sum(w: OnnxWriter, e: Equation) -> str:
    choice = Choice(w, e, 1, e.out.shape)
    return written(w, e, w.filled(e.out.shape, 0, e.out.dtype), w(e.inputs[0]), choice, reduction="add")


@index.index_put.lower("onnx")
def _index_put(w: OnnxWriter, e: Equation) -> str:
    choice = Choice(w, e, 2, e.values[0].shape)
    return written(w, e, w(e.inputs[0]), w.expand(w(e.inputs[1], e.out.dtype), chosen_shape(choice)), choice)


# ---- along one dimension ------------------------------------------------------------------------------------------


def along(w: OnnxWriter, e: Equation, kind: str, data: str, *others: str, **how: Any) -> str:
    """GatherElements or ScatterElements; of numbers as of vectors of one element."""
    if not e.out.ndim:
        names = [w.reshape(name, (1,)) for name in (data, *others)]
        return w.reshape(w.emit(kind, *names, axis=0, **how), ())
    return str(w.emit(kind, data, *others, axis=e.params["dim"], **how))


def updates(w: OnnxWriter, e: Equation) -> str:
    """The values of a scatter, one for each index."""
    at, v = e.inputs[1], e.inputs[2]
    assert isinstance(at, Value)
    return w(v, e.out.dtype) if isinstance(v, Value) else w.filled(at.shape, v or 0, e.out.dtype)


index.gather.lower("onnx", lambda w, e: along(w, e, "GatherElements", w(e.inputs[0]), w(e.inputs[1], "int64")))
index.scatter.lower(
    "onnx", lambda w, e: along(w, e, "ScatterElements", w(e.inputs[0]), w(e.inputs[1], "int64"), updates(w, e))
)


@index.gather_sum.lower("onnx")
def _gather_sum(w: OnnxWriter, e: Equation) -> str:
    zeros = w.filled(e.out.shape, 0, e.out.dtype)
    return along(w, e, "ScatterElements", zeros, w(e.inputs[1], "int64"), w(e.inputs[0]), reduction="add")


@combine.scatter_best.lower("onnx")
def _scatter_best(w: OnnxWriter, e: Equation) -> str:
    how = "max" if e.params["largest"] else "min"
    data, at = w(e.inputs[0]), w(e.inputs[1], "int64")
    return along(w, e, "ScatterElements", data, at, updates(w, e), reduction=how)


@combine.scatter_product.lower("onnx")
def _scatter_product(w: OnnxWriter, e: Equation) -> str:
    data, at = w(e.inputs[0]), w(e.inputs[1], "int64")
    return along(w, e, "ScatterElements", data, at, updates(w, e), reduction="mul")


@index.argwhere.lower("onnx")
def _argwhere(w: OnnxWriter, e: Equation) -> str | None:
    if not e.values[0].ndim:  # of which runtimes think otherwise
        return None
    return str(w.emit("Transpose", w.emit("NonZero", w(e.inputs[0])), perm=[1, 0]))


# ---- one class of many --------------------------------------------------------------------------------------------


def kept(w: OnnxWriter, e: Equation) -> tuple[str, str]:
    """Which targets count, and where they are, along a dimension of their own; 0 for the others."""
    target = w(e.inputs[1], "int64")
    counts = w.emit("Not", w.emit("Equal", target, w.scalar(e.params["ignore"], "int64")))
    places = w.emit("Where", counts, target, w.scalar(0, "int64"))
    return counts, w.emit("Unsqueeze", places, w.ints([e.params["dim"]]))


@classes.pick.lower("onnx")
def _pick(w: OnnxWriter, e: Equation) -> str:
    counts, places = kept(w, e)
    found = w.emit("GatherElements", w(e.inputs[0]), places, axis=e.params["dim"])
    found = w.emit("Squeeze", found, w.ints([e.params["dim"]]))
    if e.out.dtype == "bool":
        return str(w.emit("And", counts, found))
    return str(w.emit("Where", counts, found, w.scalar(0, e.out.dtype)))


@classes.place.lower("onnx")
def _place(w: OnnxWriter, e: Equation) -> str:
    counts, places = kept(w, e)
    values = w(e.inputs[0])
    if e.out.dtype == "bool":
        values = w.emit("And", counts, values)
    else:
        values = w.emit("Where", counts, values, w.scalar(0, e.out.dtype))
    values = w.emit("Unsqueeze", values, w.ints([e.params["dim"]]))
    zeros = w.filled(e.out.shape, 0, e.out.dtype)
    return str(w.emit("ScatterElements", zeros, places, values, axis=e.params["dim"]))


@classes.target_weights.lower("onnx")
def _target_weights(w: OnnxWriter, e: Equation) -> str:
    counts, _ = kept(w, e)
    flags = w.cast(counts, e.out.dtype)
    total = w.reduce("ReduceSum", flags, tuple(range(len(e.values[1].shape))))
    shares = w.emit("Div", flags, w.emit("Max", total, w.scalar(1, e.out.dtype)))
    return str(w.emit("Unsqueeze", shares, w.ints([e.params["dim"]])))


# ---- in place -------------------------------------------------------------------------------------------------------


inplace.overwrite.lower("onnx", lambda w, e: w.emit("Identity", w(e.inputs[1])))


@view.write_view.lower("onnx")
def _write_view(w: OnnxWriter, e: Equation) -> str:
    """Elements have numbers, and what the steps lead to of these is where to write."""
    x, v = e.values[0], e.inputs[1]
    count = math.prod(x.shape)
    numbers = Value(x.shape, "int64", x.place)
    w.names[numbers] = w.reshape(counted(w, 0, 1, count), x.shape)
    parts: list[Value] = [numbers]

    def follow(graph: Any) -> Value:
        for step, params in e.params["steps"]:
            parts.append(graph.emit(step, parts[-1], **params))
        return parts[-1]

    places = w.steps(e, follow, numbers)
    shape = parts[-1].shape
    many = (math.prod(shape),)
    updates = w.expand(w(v, e.out.dtype), shape)
    flat = w.reshape(w(x), (count,))
    found = w.emit("ScatterElements", flat, w.reshape(places, many), w.reshape(updates, many), axis=0)
    return w.reshape(found, x.shape)


# ---- margins --------------------------------------------------------------------------------------------------------


def _shortfalls(graph: Any, e: Equation) -> tuple[Any, Any]:
    """Where the targets are, and what each lacks over each class: (..., c) and (..., c, c)."""
    (x, target), dim = e.values, e.values[0].ndim - 1
    lead, n = x.shape[:-1], x.shape[-1]
    flags = graph.emit(to_dtype, graph.emit(ne, target, -1), dtype=x.dtype, source="bool")
    flags = graph.emit(cumprod, flags, dim=dim, reverse=False)
    at = graph.emit(where, graph.emit(ne, flags, 0), target, 0)
    own = graph.emit(classes.place, flags, at, shape=(*x.shape, n), dim=dim + 1, ignore=-1)
    flags = graph.emit(reshape, flags, shape=(*lead, n, 1))
    pairs = graph.emit(mul, flags, graph.emit(sub, 1, graph.emit(amax, own, dim=(dim,), keepdim=True)))
    needed = graph.emit(sub, 1, graph.emit(index.gather, x, at, dim=dim, inside=True))
    short = graph.emit(
        add, graph.emit(reshape, needed, shape=(*lead, n, 1)), graph.emit(reshape, x, shape=(*lead, 1, n))
    )
    return at, graph.emit(where, graph.emit(ne, pairs, 0), graph.emit(maximum, short, 0), 0)


def _multilabel_margin(graph: Any, e: Equation) -> Any:
    short = _shortfalls(graph, e)[1]
    return graph.emit(added, short, dim=(short.ndim - 2, short.ndim - 1), keepdim=False)


def _multilabel_margin_slopes(graph: Any, e: Equation) -> Any:
    at, short = _shortfalls(graph, e)
    x = e.values[0]
    lacks = graph.emit(to_dtype, graph.emit(gt, short, 0), dtype=x.dtype, source="bool")
    by_class, by_target = (graph.emit(added, lacks, dim=(short.ndim - k,), keepdim=False) for k in (2, 1))
    of_targets = graph.emit(index.gather_sum, by_target, at, shape=x.shape, dim=x.ndim - 1, inside=True)
    return graph.emit(sub, by_class, of_targets)


margins.multilabel_margin.lower("onnx", lambda w, e: w.steps(e, lambda graph: _multilabel_margin(graph, e)))
margins.multilabel_margin_slopes.lower(
    "onnx", lambda w, e: w.steps(e, lambda graph: _multilabel_margin_slopes(graph, e))
)
