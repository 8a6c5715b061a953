"""How nodes of the graph are shown: with PyTorch's names and edges, which say what was called with what.

PyTorch numbers the forms of one function, and has several nodes where an op here has one. A ``ShownNode`` stands for
such a node; there is nothing else to it. Functions that are one node in PyTorch and several ops here mark that
(``ops/marks.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Form = tuple[str, tuple[Any, ...]]


class ShownNode(NamedTuple):
    """A node that is only shown. ``edges`` are nodes, Steps and None."""

    label: str
    edges: tuple[Any, ...]


def form_of(node: Any) -> Form:
    """The name of a recorded call, and where its gradients go: nodes, Steps and None."""
    shown: Form | None = getattr(node, "shown", None)
    if shown is not None:
        return shown
    op = node.op
    if isinstance(op, type):  # a Function
        return f"{op.__name__}Backward", tuple(node.edges)
    form: Callable[[Any], Form] | None = getattr(op, "form", None)
    return (op.label, differentiable(node)) if form is None else form(node)


def differentiable(node: Any) -> tuple[Any, ...]:
    """The edges of arguments that have a gradient at all."""
    op = node.op
    if not hasattr(op, "uses"):
        return tuple(node.edges)
    return tuple([e for i, e in enumerate(node.edges) if op.uses[op.signature.slot(i)]])


def places_of(node: Any) -> list[int] | None:
    """Which of a node's own edges each of the shown ones is; None where some is none of them."""
    places: list[int] = []
    for edge in form_of(node)[1]:
        found = [i for i, own in enumerate(node.edges) if own is edge and i not in places]
        if not found:
            return None
        places.append(found[0])
    left = [own for i, own in enumerate(node.edges) if i not in places]
    return places if not any(left) else None


def kept_number(node: Any, i: int) -> bool:
    """Whether an argument is known to be a number."""
    return isinstance(node.saved, tuple) and i < len(node.saved) and isinstance(node.saved[i], (int, float))


# ---- forms of one function --------------------------------------------------------------------------------------


def pow_form(node: Any) -> Form:
    x, y = node.edges
    if y is None and (kept_number(node, 1) or not isinstance(node.saved, tuple)):
        return "PowBackward0", (x,)
    return ("PowBackward2", (y,)) if x is None and kept_number(node, 0) else ("PowBackward1", (x, y))


def div_form(node: Any) -> Form:
    x, y = node.edges
    if x is None and kept_number(node, 0):
        return "MulBackward0", (ShownNode("ReciprocalBackward0", (y,)), None)
    return "DivBackward0", (x, y)


def with_numbers(label: str) -> Callable[[Any], Form]:
    """Arguments after the first that lead nowhere are numbers, most likely."""

    def form(node: Any) -> Form:
        edges = node.edges
        while len(edges) > 1 and edges[-1] is None:
            edges = edges[:-1]
        return label + ("0" if edges != node.edges else "1"), edges

    return form


def clamp_form(node: Any) -> Form:
    if any(e is not None for e in node.edges[1:]):
        return "ClampBackward0", node.edges
    return "ClampBackward1", node.edges[:1]


def reduction_form(label: str) -> Callable[[Any], Form]:
    def form(node: Any) -> Form:
        whole = not node.shape and not node.params.get("keepdim")
        return label + ("0" if whole else "1"), node.edges

    return form


# ---- one op, several nodes --------------------------------------------------------------------------------------


def through(label: str, edge: Any) -> ShownNode | None:
    return None if edge is None else ShownNode(label, (edge,))


def matmul_form(node: Any) -> Form:
    x, y = node.edges
    ndims = tuple([len(shape) for shape in node.shapes])
    if ndims in PRODUCTS:
        return PRODUCTS[ndims], (x, y)
    if ndims[0] == 1 and ndims[1] == 2:
        return "SqueezeBackward4", (ShownNode("MmBackward0", (through("UnsqueezeBackward0", x), y)),)
    if ndims[1] <= 2:
        return "UnsafeViewBackward0", (ShownNode(PRODUCTS[2, ndims[1]], (through("ViewBackward0", x), y)),)
    return "BmmBackward0", (x, y)


PRODUCTS = {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0"}


def linear_form(node: Any) -> Form:
    x, weight, bias = node.edges
    weight = through("TBackward0", weight)
    label, edges = ("MmBackward0", ()) if bias is None else ("AddmmBackward0", (bias,))
    if len(node.shape) == 2:
        return label, (*edges, x, weight)
    if len(node.shape) == 1 and bias is None:
        return "SqueezeBackward4", (ShownNode(label, (through("UnsqueezeBackward0", x), weight)),)
    view = "UnsafeViewBackward0" if bias is None else "ViewBackward0"
    return view, (ShownNode(label, (*edges, through("ViewBackward0", x), weight)),)


def slice_form(node: Any) -> Form:
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
        edge = ShownNode(label, (edge,))
    return (labels or ["AliasBackward0"])[-1], (edge,)


def cross_entropy_form(node: Any) -> Form:
    return "NllLossBackward0", (ShownNode("LogSoftmaxBackward0", node.edges[:1]),)


def layer_norm_form(node: Any) -> Form:
    """The last of two ops: what was standardized, not the op that did it, is what layer norm was called with."""
    x, *others = node.edges
    whole = getattr(getattr(x, "op", None), "name", "") == "standardize"
    return "NativeLayerNormBackward0", ((x.edges[0] if whole else x), *others)
