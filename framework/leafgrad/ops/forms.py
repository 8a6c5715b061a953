"""How nodes of the graph are shown: with PyTorch's names and edges, which say what was called with what.

PyTorch numbers the forms of one function, and has several nodes where an op here has one. A ``Step`` stands for such
a node; there is nothing else to it. Functions that are one node in PyTorch and several here are marked by ``shown_as``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from leafgrad import modes

F = TypeVar("F", bound=Callable[..., Any])
Form = tuple[str, tuple[Any, ...]]


class Step(NamedTuple):
    """A node that is only shown. ``edges`` are nodes, Steps and None."""

    label: str
    edges: tuple[Any, ...]


LABELS = {
    "cholesky": "LinalgCholeskyExBackward0",
    "complementary_erf": "ErfcBackward0",
    "cross": "LinalgCrossBackward0",
    "det": "LinalgDetBackward0",
    "eigh": "LinalgEighBackward0",
    "inv": "LinalgInvExBackward0",
    "inverse_erf": "ErfinvBackward0",
    "largest": "MaxBackward1",
    "log1p": "Log1PBackward0",
    "logsigmoid": "LogSigmoidBackward0",
    "norm": "LinalgVectorNormBackward0",
    "pad": "ConstantPadNdBackward0",
    "qr": "LinalgQrBackward0",
    "reshape": "ViewBackward0",
    "smallest": "MinBackward1",
    "solve": "LinalgSolveExBackward0",
    "square": "PowBackward0",
    "svd": "LinalgSvdBackward0",
    "window_max": "MaxPool2DWithIndicesBackward0",
}


def form_of(node: Any) -> Form:
    """The name of a recorded call, and where its gradients go: nodes, Steps and None."""
    shown: Form | None = getattr(node, "shown", None)
    if shown is not None:
        return shown
    op = node.op
    if op.name in FORMS:
        return FORMS[op.name](node)
    return LABELS.get(op.name, op.label), differentiable(node)


def differentiable(node: Any) -> tuple[Any, ...]:
    """The edges of arguments that have a gradient at all."""
    op = node.op
    if not hasattr(op, "uses"):
        return tuple(node.edges)
    return tuple([e for i, e in enumerate(node.edges) if op.uses[op.signature.slot(i)]])


def kept_number(node: Any, i: int) -> bool:
    """Whether an argument is known to be a number."""
    return isinstance(node.saved, tuple) and i < len(node.saved) and isinstance(node.saved[i], (int, float))


# ---- forms of one function --------------------------------------------------------------------------------------


def _pow(node: Any) -> Form:
    x, y = node.edges
    if y is None and (kept_number(node, 1) or not isinstance(node.saved, tuple)):
        return "PowBackward0", (x,)
    return ("PowBackward2", (y,)) if x is None and kept_number(node, 0) else ("PowBackward1", (x, y))


def _div(node: Any) -> Form:
    x, y = node.edges
    if x is None and kept_number(node, 0):
        return "MulBackward0", (Step("ReciprocalBackward0", (y,)), None)
    return "DivBackward0", (x, y)


def _with_numbers(label: str) -> Callable[[Any], Form]:
    """Arguments after the first that lead nowhere are numbers, most likely."""

    def form(node: Any) -> Form:
        edges = node.edges
        while len(edges) > 1 and edges[-1] is None:
            edges = edges[:-1]
        return label + ("0" if edges != node.edges else "1"), edges

    return form


def _clamp(node: Any) -> Form:
    if any(e is not None for e in node.edges[1:]):
        return "ClampBackward0", node.edges
    return "ClampBackward1", node.edges[:1]


def _reduction(label: str) -> Callable[[Any], Form]:
    def form(node: Any) -> Form:
        whole = not node.shape and not node.params.get("keepdim")
        return label + ("0" if whole else "1"), node.edges

    return form


# ---- one op, several nodes --------------------------------------------------------------------------------------


def through(label: str, edge: Any) -> Step | None:
    return None if edge is None else Step(label, (edge,))


def _matmul(node: Any) -> Form:
    x, y = node.edges
    ndims = tuple([len(shape) for shape in node.shapes])
    if ndims in PRODUCTS:
        return PRODUCTS[ndims], (x, y)
    if ndims[0] == 1 and ndims[1] == 2:
        return "SqueezeBackward4", (Step("MmBackward0", (through("UnsqueezeBackward0", x), y)),)
    if ndims[1] <= 2:
        return "UnsafeViewBackward0", (Step(PRODUCTS[2, ndims[1]], (through("ViewBackward0", x), y)),)
    return "BmmBackward0", (x, y)


PRODUCTS = {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0"}


def _linear(node: Any) -> Form:
    x, weight, bias = node.edges
    weight = through("TBackward0", weight)
    label, edges = ("MmBackward0", ()) if bias is None else ("AddmmBackward0", (bias,))
    if len(node.shape) == 2:
        return label, (*edges, x, weight)
    if len(node.shape) == 1 and bias is None:
        return "SqueezeBackward4", (Step(label, (through("UnsqueezeBackward0", x), weight)),)
    view = "UnsafeViewBackward0" if bias is None else "ViewBackward0"
    return view, (Step(label, (*edges, through("ViewBackward0", x), weight)),)


def _slice(node: Any) -> Form:
    """``x[1, None, 2:]`` is one op here, and one node for each entry in PyTorch."""
    shape = list(node.shapes[0]) if node.shapes else []
    labels = []
    d = 0
    for entry in node.params["at"]:
        if entry is None:
            labels.append("UnsqueezeBackward0")
            continue
        if isinstance(entry, int):
            labels.append("SelectBackward0")
        elif d >= len(shape) or tuple(entry) != (0, shape[d], 1):
            labels.append("SliceBackward0")
        d += 1
    edge = node.edges[0]
    for label in labels[:-1]:
        edge = Step(label, (edge,))
    return (labels or ["AliasBackward0"])[-1], (edge,)


FORMS: dict[str, Callable[[Any], Form]] = {
    "clamp": _clamp,
    "cross_entropy": lambda node: ("NllLossBackward0", (Step("LogSoftmaxBackward0", node.edges[:1]),)),
    "div": _div,
    "fmod": _with_numbers("FmodBackward"),
    "lerp": _with_numbers("LerpBackward"),
    "linear": _linear,
    "matmul": _matmul,
    "mean": _reduction("MeanBackward"),
    "pow": _pow,
    "prod": _reduction("ProdBackward"),
    "remainder": _with_numbers("RemainderBackward"),
    "slice": _slice,
    "sum": _reduction("SumBackward"),
}


# ---- several ops, one node --------------------------------------------------------------------------------------


def mark(out: Any, label: str, *inputs: Any) -> Any:
    """Show what made ``out`` of ``inputs``, each one or several in a tuple, as one node. Returns ``out``."""
    if modes.get() & ~modes.ANOMALY != modes.GRAD:  # elsewhere the op records what it likes
        return out
    edges: list[Any] = []
    for t in inputs:
        edges += [getattr(one, "_node", None) for one in (t if isinstance(t, (tuple, list)) else (t,))]
    for part in out if isinstance(out, tuple) else (out,):
        node: Any = getattr(part, "_node", None)
        node = getattr(node, "source", node)
        if hasattr(node, "op") and node not in edges:
            node.shown = label, tuple(edges)
    return out


def shown_as(label: str, *names: str) -> Callable[[F], F]:
    """Decorate a function of which each call is one node: ``@shown_as("MseLossBackward0", "input", "target")``.

    Args:
        label: the node's name.
        names: the arguments that are its edges; the first argument by default.
    """

    def decorate(function: F) -> F:
        known = list(inspect.signature(function).parameters)
        places = [(known.index(name), name) for name in names or known[:1]]

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            out = function(*args, **kwargs)
            inputs = [args[i] if i < len(args) else kwargs.get(name) for i, name in places]
            return mark(out, label, *inputs)

        return cast(F, recorded)

    return decorate
