"""``explain``: why the ``.grad`` of a tensor is None, or what it holds, in three lines.

What a tensor knows of itself is enough for most answers. Whether a line of code detached something, or ran under
``no_grad``, nobody knows afterwards, unless ``explain.record()`` took notes.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from leafgrad import backends, modes
from leafgrad.autograd import engine
from leafgrad.autograd.context import FunctionNode
from leafgrad.errors import TraceError
from leafgrad.ops import dispatch, messages
from leafgrad.ops.node import FREED, GraphNode, Leaf, TensorBase
from leafgrad.ops.op import Op
from leafgrad.tensor.printing import PrintedText
from leafgrad.tensor.tensor import Tensor

__all__ = ["explain"]


class Made:
    """How a tensor was made: by what, in which line, of what, in which mode; and whether it requires grad."""

    __slots__ = ("made_of", "mode", "name", "required", "where")

    def __init__(self, name: str, where: str, made_of: list[Made], mode: int, required: bool) -> None:
        self.name, self.where, self.made_of, self.mode, self.required = name, where, made_of, mode, required


class Notes:
    """How each tensor was made, as long as it lives or something that was made of it does."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[weakref.ref[Any], Made]] = {}

    def of(self, t: Any) -> Made | None:
        """How ``t`` was made, if that was seen."""
        ref, made = self.made.get(id(t), (None, None))
        return made if ref is not None and ref() is t else None

    def keep(self, t: TensorBase, made: Made) -> Made:
        key = id(t)
        self.made[key] = weakref.ref(t, lambda _: self.made.pop(key, None)), made
        return made

    def source(self, t: TensorBase) -> Made:
        """The same, for what is used: at least that it is there."""
        made = self.of(t) or self.keep(t, Made("", "", [], 0, False))
        made.required = t._node is not None  # as it is when it is used
        return made

    def watch(self, what: Any, args: Sequence[Any], run: Any) -> Any:
        """Run an op, and note what it made."""
        mode = modes.get()
        result = run()
        if isinstance(what, GraphNode):
            return result
        where, used = messages.user_line(), [self.source(a) for a in args if isinstance(a, TensorBase)]
        for t in result if type(result) is tuple else (result,):
            if isinstance(t, TensorBase):
                self.keep(t, Made(name_of(what), where, used, mode, t._node is not None))
        return result


def name_of(what: Any) -> str:
    """What ran: an op, ``detach``, or a compiled function."""
    if isinstance(what, Op):
        return what.name
    return str(getattr(what, "__qualname__", type(what).__name__))


class recording:
    """``explain.record()``: see there."""

    def __init__(self, explain: Explain) -> None:
        explain.notes = Notes()
        self._watching: modes.watching | None = modes.watching(explain.notes.watch)
        self._watching.__enter__()

    def stop(self) -> None:
        """Take no more notes; those that are there are kept. Doing it twice does no harm."""
        if self._watching is not None:
            self._watching.__exit__()
        self._watching = None

    def __enter__(self) -> recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Explain:
    """Why the ``.grad`` of a tensor is None, or what it holds, in three lines.

    ``explain(t, loss)`` also says whether a backward pass from ``loss`` comes to ``t``, and where the path breaks if
    not. Lines of code are known of what ran under ``autograd.set_detect_anomaly(True)`` or ``explain.record()``.

    Args:
        t: the tensor.
        loss: what ``backward()`` was, or would be, called on.

    Raises:
        TypeError: one of them is no Tensor. TraceError: the call is inside of a compiled function.
    """

    def __init__(self) -> None:
        self.notes = Notes()

    def record(self) -> recording:
        """Take notes of each operation from now on: how a tensor was made, and in which line. It makes them slow.

        Within ``with explain.record():``, or until ``.stop()`` of what is returned.
        """
        return recording(self)

    def __call__(self, t: Tensor, loss: Tensor | None = None) -> PrintedText:
        if modes.tracer():
            raise TraceError("explain: in a compiled function there are no values yet; call it after the function")
        for name, value in (("t", t), ("loss", t if loss is None else loss)):
            if not isinstance(value, Tensor):
                raise TypeError(f"explain: {name}: expected a Tensor, got {type(value).__name__}")
        node = t._node
        if node is None:
            lines = self._constant(t)
        elif (grad := None if t._leaf is None else dispatch.grad_of(t._leaf)) is not None:
            lines = holding(t, grad)
            if loss is not None and (loss._node is None or node not in engine.reachable([loss._node])):
                lines = [lines[0], self._path(node, t, loss)]
        elif isinstance(node, Leaf):
            lines = self._leaf(t, node, loss)
        else:
            lines = self._inner(t, node, loss)
        where = self._line(t)
        lines += [where] * bool(where)
        return PrintedText("\n".join(lines))

    # ---- why there is none --------------------------------------------------------------------------------------

    def _constant(self, t: Tensor) -> list[str]:
        """It requires no grad."""
        head = f".grad is None: this {described(t)} requires no grad, "
        if not t.dtype.is_differentiable:
            return [
                f"{head}since {t.dtype} numbers have no derivatives.",
                "Comparisons, argmax, indices and integer tensors end a gradient; compute with a float tensor, or use "
                "where() or a soft version of the comparison.",
            ]
        made = self.notes.of(t)
        if type(t).__name__ == "Parameter":
            return [f"{head}since it was frozen.", "p.requires_grad_(True), before the next forward pass, thaws it."]
        remedy = "If it is an input, call requires_grad_() on it before computing with it."
        if made is not None and made.name:
            return [f"{head}since {self._cut(made)}.", remedy]
        if t.is_inference():
            return [f"{head}since it was made under inference_mode().", "Make it outside, or clone() it there."]
        view = t._view
        if view is not None and (view.origin or "") in ("no_grad", "inference"):
            return [f"{head}since it was made under {view.origin}().", remedy]
        if view is not None and view.detached:
            return [f"{head}since it comes from detach().", "Use the tensor itself where gradients shall flow."]
        return [
            f"{head}since it is plain data, or comes from detach(), .data or no_grad(), or was made of such tensors.",
            f"{remedy} Under explain.record() the line that made it is noted.",
        ]

    def _cut(self, made: Made) -> str:
        """Why what was made of tensors requires no grad."""
        if made.name == "detach":
            return "it comes from detach()"
        if not made.mode & modes.GRAD:
            mode = "inference_mode()" if made.mode & modes.INFERENCE else "no_grad()"
            return f"{made.name} made it under {mode}"
        if not any(m.required for m in made.made_of):
            return f"{made.name} made it" + (" of tensors of which none requires grad" if made.made_of else "")
        return f"{made.name}, which made it, has no derivative"

    def _leaf(self, t: Tensor, leaf: Leaf, loss: Tensor | None) -> list[str]:
        """A leaf that requires grad, without one."""
        head = f".grad is None: no backward pass came to this leaf, {described(t)}"
        if leaf.passes < 0:
            taken = f".grad is None: {times(-leaf.passes)} came to this leaf, {described(t)}, and its gradient was "
            lines = [taken + "taken away since: by zero_grad(), or by .grad = None."]
            return [*lines, "Look at it between backward() and zero_grad()."]
        if loss is None:
            return [f"{head}.", "Call loss.backward(); if you did, explain(t, loss) says where the path breaks."]
        return [f"{head}.", self._path(leaf, t, loss)]

    def _inner(self, t: Tensor, node: GraphNode, loss: Tensor | None) -> list[str]:
        """A result of an operation."""
        by = f"this {described(t)} is no leaf: {node.name()} made it"
        if not t.retains_grad:
            if lost(node):
                return [
                    f".grad is None: {by} of a leaf that no variable holds.",
                    "If this is what you train, make it the leaf: t = t.detach().requires_grad_().",
                ]
            freed = "; a backward pass has freed the graph there" if is_freed(node) else ""
            return [
                f".grad is None: {by}, so backward() passes its gradient on and keeps none{freed}.",
                "Call retain_grad() on it before backward(), or autograd.grad(loss, t).",
            ]
        if loss is None:
            return [f".grad is None: {by}, and it retains its gradient, but no backward pass came to it.",
                    "Call loss.backward(); if you did, explain(t, loss) says where the path breaks."]  # fmt: skip
        return [f".grad is None: {by}, and it retains its gradient.", self._path(node, t, loss)]

    def _path(self, node: GraphNode, t: Tensor, loss: Tensor) -> str:
        """Whether gradients of ``loss`` come to ``node``, that of ``t``."""
        if loss._node is None:
            why = self._constant(loss)[0].partition("requires no grad")[2].lstrip(", ")
            return f"The loss itself requires no grad, {why} {self._break(t, loss)}".rstrip()
        order = engine.reachable([loss._node])
        if node in order:
            if any(is_freed(n) for n in order):
                return (
                    "The loss leads to it, and its graph is freed: backward(inputs=...) or autograd.grad() went by, "
                    "or .grad was set to None."
                )
            for own in order:
                if isinstance(own, FunctionNode) and node in engine.reachable([own]):
                    return f"The loss leads to it by {own.name()}: call backward(), which shall not return None for it."
            return "The loss leads to it: call backward() on that loss."
        return f"No path leads from the loss to it. {self._break(t, loss)}".rstrip()

    def _break(self, t: Tensor, loss: Tensor) -> str:
        """Where the way from ``t`` to ``loss`` is cut."""
        start, end = self.notes.of(t), self.notes.of(loss)
        if start is not None and end is not None:
            way = between(end, start)
            cut = next((made for made in way[1:] if not made.required), None)
            if cut is not None:
                return f"It is cut at {cut.where or 'a line that is not known'}: {self._cut(cut)}."
        for node in engine.reachable([loss._node]) if loss._node is not None else ():
            if any(shares_memory(s, t) for s in saved_by(node)):
                return (
                    f"{node.name()} read its values as a constant: before requires_grad_(), of "
                    "detach() or .data, or under no_grad()."
                )
        if start is not None and end is not None:
            return "Nothing that was recorded leads from the one to the other: does the loss use it?"
        return (
            "Either the loss does not use it, or detach(), .data, .item(), numpy(), no_grad() or an integer came "
            "between; run it under explain.record() to see where."
        )

    def _line(self, t: Tensor) -> str:
        """The line that made ``t``, if it is known."""
        made, node = self.notes.of(t), t._node
        source = getattr(node, "source", node)
        where = (made.where if made is not None else "") or getattr(source, "where", "")
        return f"It was made at {where}" if where else ""


def between(end: Made, start: Made) -> list[Made]:
    """The way from ``start`` to ``end`` over what was made of what; empty if there is none."""
    came: dict[int, Made | None] = {id(end): None}
    order = [end]
    for made in order:  # grows while it is walked
        if made is start:
            way: list[Made] = []
            at: Made | None = made
            while at is not None:
                way.append(at)
                at = came[id(at)]
            return way
        for m in made.made_of:
            if id(m) not in came:
                came[id(m)] = made
                order.append(m)
    return []


def holding(t: Tensor, grad: Tensor) -> list[str]:
    """What ``.grad`` holds."""
    leaf = t._leaf
    data = grad.detach()
    if leaf.passes:
        came = f"the gradient of {times(leaf.passes)}" if leaf.passes == 1 else f"the sum of {times(leaf.passes)}"
    elif isinstance(t._node, Leaf):
        came = "what a compiled step put there, or an assignment"
    else:
        came = "the gradient of this result, which retains it"
    lines = [f".grad holds {came}, {described(grad)}, {size_of(data)}."]
    writes = grad._writes.count if grad._writes is not None and not grad.is_inference() else 0
    if leaf.passes and writes > leaf.passes - 1:
        lines.append("It was written in place besides: by zero_(), clipping or scaling.")
    elif leaf.passes > 1:
        lines.append("backward() adds up; optimizer.zero_grad() between the passes starts anew.")
    elif grad.requires_grad:
        lines.append("It requires grad itself, since create_graph=True recorded the pass.")
    return lines


def size_of(data: Tensor) -> str:
    """How large the numbers are."""
    if not data.numel():
        return "empty"
    backend = backends.backend_of(data._data)
    array = abs(backend.to_host(data._data).astype("float64"))
    if array.max() != array.max():
        return "with nan in it; autograd.set_detect_anomaly(True) names the line that it comes from"
    if array.max() == float("inf"):
        return "with inf in it"
    return "all zeros" if not array.max() else f"at most {array.max():.3g} in size"


def described(t: Tensor) -> str:
    """``float32 tensor (3, 4)``."""
    return f"{t.dtype.name} {type(t).__name__.lower()} {tuple(t.shape)}"


def times(n: int) -> str:
    return "one backward pass" if n == 1 else f"{n} backward passes"


def is_freed(node: Any) -> bool:
    """Whether a backward pass has taken what the node had saved."""
    return getattr(getattr(node, "source", node), "saved", None) is FREED


def lost(node: GraphNode) -> bool:
    """Whether the node made something of nothing but leaves that are gone: ``randn(3, requires_grad=True) * 0.1``."""
    return all(edge is None or (isinstance(edge, Leaf) and edge.owner() is None) for edge in node.edges)


def saved_by(node: Any) -> Iterable[Any]:
    """The tensors that a node keeps."""
    saved = getattr(node, "saved", ())
    return [s for s in saved if isinstance(s, TensorBase)] if isinstance(saved, tuple) else []


def shares_memory(a: Any, b: Tensor) -> bool:
    """Whether two tensors are in the memory of one array."""
    x, y = a._data, b._data
    return type(x) is type(y) and hasattr(x, "base") and dispatch.memory_of(x) is dispatch.memory_of(y)


Explain.__call__.__qualname__ = "explain"  # as Python names it in errors
explain = Explain()
