"""Views: tensors that share memory with a base, and remember the steps that lead there.

When the base (or another view of it) is written in place under recording, a view's history is out of date; it
is made anew from the base's, by the same steps, when it is next asked for.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import Any

from leafgrad import modes
from leafgrad.modes import GRAD, INFERENCE, TRACE, tracer
from leafgrad.ops import dispatch
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.marks import mark
from leafgrad.ops.node import SEQ, Epoch, Leaf, Node, Version
from leafgrad.ops.runtime import runtime
from leafgrad.ops.shape import expand, key, part, reshape
from leafgrad.ops.shifted import Shifted
from leafgrad.tensor.tensor import Tensor

get_mode = modes.get
new = object.__new__
_part = part.function

Step = tuple[Any, dict[str, Any]]
Path = tuple[Any, Step]  # the path before a step, or None, and the step: views of one view share it


class View:
    """What a tensor that is a view knows of it: applying ``steps`` to ``base`` gives the tensor.

    Attributes:
        base: the tensor whose memory it is; no view itself, unless a leaf of its own.
        hides: whether nobody else knows the base, since a tensor of its own took another shape in place.
        path: the steps, ops and their parameters, as a chain that views of this view share.
        own: the node that a write into this view gave the base, and the number of that write; unset before the first.
        root: the data of the base that the tensor's was taken from; a trace replaces the base's data at each write.
        source: of one that hides its base, the node of that by which the tensor's history was made.
        seen: the write of the base up to which the tensor's history is valid; inf: it is never made anew.
        origin: why it must not be written when that would be recorded: the mode in which it was made, or what the error
            says of the function that made it. None if it may.
        whole: whether it was made by detach, in a trace, so that its user sees no view.
    """

    __slots__ = ("_base", "hides", "origin", "own", "path", "root", "seen", "source", "whole")

    origin: str | None
    own: tuple[Any, int]
    root: Any
    source: Any

    def __init__(self, base: Tensor, path: Path | None, detached: bool, origin: str | None, whole: bool) -> None:
        self.origin = origin
        self.hides, self.whole = False, whole
        self._base = base
        self.root = base._data
        self.path = path
        self.seen = math.inf if detached else base._writes.seq

    @property
    def base(self) -> Any:
        while self._base._view is not None and self._base._view.hides:  # it has changed its shape since
            self._base = self._base._view.base
        return self._base

    @base.setter
    def base(self, base: Any) -> None:
        self._base = base

    def of(self, base: Any) -> None:
        """Be a view of ``base``; if that is one itself, of its base, as far as it still shows the memory of that."""
        self.base, self.root, theirs = base, base._data, base._view
        if theirs is None or is_own_leaf(base) or theirs.root is not theirs.base._data:
            return
        path = theirs.path
        for step in self.steps:
            path = path, step
        self.base, self.root, self.path, self.origin = theirs.base, theirs.root, path, self.origin or theirs.origin
        self.seen = math.inf if theirs.detached else self.seen

    @property
    def detached(self) -> bool:
        """Whether the tensor has no part in the base's history."""
        return self.seen == math.inf

    @property
    def steps(self) -> tuple[Step, ...]:
        steps, path = [], self.path
        while path is not None:
            path, step = path
            steps.append(step)
        return tuple(reversed(steps))

    def seen_base(self) -> Any:
        """What its user sees it as a view of; None if as no view."""
        view = self
        while view is not None and not (view.hides or view.whole):
            base = view.base
            if base._view is None or base._view.hides:
                return base
            view = base._view
        return None

    def shows(self, tensor: Any) -> bool:
        """Whether it is the very memory of ``tensor``, which is no view, or a detached one."""
        theirs = tensor._view
        if theirs is None:
            return self.path is None and self.base is tensor
        return theirs.detached and self.path is theirs.path and self.base is theirs.base

    def node(self, tensor: Tensor) -> Any:
        """The node of ``tensor``, which is this view."""
        if tensor._writes.seq > self.seen:
            if self.hides and self.base._node is self.source:  # nothing was recorded
                self.seen = tensor._writes.seq
                return tensor._history
            if self.cut_off(tensor):
                if not get_mode() & GRAD:  # nothing is recorded
                    return tensor._history
                raise RuntimeError(str(self.origin).replace(WRITTEN, REWRITTEN, 1))
            seen = tensor._writes.seq
            with modes.enable_grad():
                base = self.written_base(tensor._writes)
                history = None if base._node is None else follow(base, self.steps)._node
            dispatch.hand_over(tensor, tensor._history, history)
            tensor._history, self.seen = history, seen
            if self.hides:
                self.source = base._node
        return tensor._history

    def cut_off(self, tensor: Any) -> bool:
        """Whether ``tensor``, which is this view, has its history of a user's Function, and its base was written."""
        stale: bool = tensor._writes.seq > self.seen
        return stale and self.origin is not None and self.origin.endswith(CUSTOM) and tensor._history is not None

    def written_base(self, writes: Version) -> Any:
        """The base with its history; if it was detached in place since, with the one that a write into this view gave.

        That must have been the last write: of what others wrote afterwards only the base knew. The history of a hidden
        base leads through the tensor that hides it, whose gradient is that of all other views, too.
        """
        base = self.base
        if writes.cut == writes.seq and getattr(self, "own", (None, -1))[1] == writes.seq:
            return dispatch.alias(base._data, self.own[0])
        shown = face(writes)
        if base._node is None or shown is None or shown._view is self or shown._view.base is not base:
            return base
        edges, raw, params = (base._node, shown._node), (base._data, shown._data), {"steps": shown._view.steps}
        return dispatch.alias(base._data, write_view.node((base, shown), params, raw, base._data, edges, GRAD))

    def given(self, node: Any) -> None:
        """The tensor was given ``node`` from outside."""
        if node is None or type(node) is Leaf:  # of its own, whatever becomes of the base
            self.seen = math.inf


def is_own_leaf(x: Any) -> bool:
    """Whether a view is a leaf that requires grad, apart from its base."""
    return isinstance(x._history, Leaf) and x._view.detached


def follow(base: Any, steps: tuple[Step, ...]) -> Any:
    """The view of ``base`` that ``steps`` lead to."""
    for step, params in steps:
        base = step(base, **params)
    return base


def make(step: Any, parent: Any, params: dict[str, Any], out: Any) -> Any:
    """``out`` as a view if it shares the memory of ``parent``, else ``out`` as it is."""
    flags = get_mode()
    if flags & TRACE and (here := tracer()):
        if not here.shares(step, parent, params):
            return out
    elif (root := out._data.base) is None or (
        root is not parent._data and root is not parent._data.base and not shares(out._data, parent._data)
    ):
        return out
    if parent._writes is None:
        parent._writes = Version()
    origin, base, path = None if flags & GRAD else "inference" if flags & INFERENCE else "no_grad", parent, None
    detached, root = not flags & GRAD, parent._data
    view = parent._view
    if view is not None and not (view.seen == math.inf and is_own_leaf(parent)):
        base = view._base if view._base._view is None else view.base
        path, detached = view.path, detached or view.seen == math.inf
        origin, root = view.origin or origin, view.root  # the base may have got other memory since
    out._view = found = new(View)
    found.hides = found.whole = False
    found.origin, found.path = origin, (path, (step, params))
    found._base, found.root = base, root
    found.seen = math.inf if detached else base._writes.seq
    out._writes, out._epoch = parent._writes, parent._epoch  # which of t.data, and of a derivative's leaf, are its own
    return out


def shares(data: Any, origin: Any) -> bool:
    """Whether an array that was made of another one is in its memory, which arrays of other classes may lie between."""
    root = data.base
    if root is None or root is origin or root is origin.base:
        return root is not None
    return dispatch.memory_of(data) is dispatch.memory_of(origin)


def parts(x: Any, places: Sequence[Any], label: str) -> tuple[Any, ...]:
    """Parts of ``x`` that a function makes at once, at basic indices; shown as made by one node.

    A write into one of them could not be told apart from its siblings'.
    """
    flags, data, name = get_mode(), x._data, label.removesuffix("Backward0")
    if flags > GRAD or part.lines.get(type(data), (None,))[0] is not part.forward:
        made = [_part(x, at=at) for at in places]
        for i, out in enumerate(made):
            if out._view is not None and out._view.origin is None:
                out._view.origin = made_by(i, name, SEVERAL)
        return mark(tuple(made), label, x)
    made, first, edges = [], None, ((x._history if x._view is None else x._node) if flags else None,)
    for i, at in enumerate(places):  # the same, without calls for each
        params = {"at": at}
        out = new(Tensor)
        out._data, out._epoch = data[key(at)], Epoch.now
        out._history = out._leaf = out._writes = out._view = None
        if edges[0] is not None:
            out._history = node = Node()
            node.op, node.params, node.edges, node.saved, node.shapes = part, params, edges, (), (data.shape,)
            node.seq, node.shape, node.hooks, node.out, node.version = next(SEQ), out._data.shape, None, None, None
            node.shown = label, edges
        if first is None:
            make(part, x, params, out)
            first = out._view
            origin = None if first is None else first.origin
        else:
            out._view = view = new(View)
            view.hides = view.whole = False
            view._base, view.root, view.seen = first._base, first.root, first.seen
            view.path = first.path[0], (part, params)
            out._writes, out._epoch = x._writes, x._epoch
        if out._view is not None:
            out._view.origin = origin or made_by(i, name, SEVERAL)
        made.append(out)
    return tuple(made)


WRITTEN, REWRITTEN = "is being modified inplace", "its base or another view of its base has been modified inplace"
SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
    "handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
    "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
AMBIGUOUS = {
    "no_grad": ("no_grad mode", "with grad mode enabled", "no_grad block"),
    "inference": ("inference mode", "in normal mode", "inference_mode block"),
}


@functools.lru_cache(maxsize=1024)
def made_by(i: int, function: str, why: str) -> str:
    """The origin of a view that is output ``i`` of a function."""
    return f"Output {i} of {function} is a view and {WRITTEN}. {why}"


def of_function(x: Any, out: Any, i: int, name: str) -> None:
    """Let ``out``, output ``i`` of a user's Function, be a view: of ``x`` unless of another.

    Its history is its own until its base is written: then it has none, and to ask for it is an error.
    """
    if out._view is None:
        own = x._view is None or is_own_leaf(x)
        base, path, root = (x, None, x._data) if own else (x._view.base, x._view.path, x._view.root)
        if base._writes is None:
            base._writes = Version()
        become(out, base, path, detached=True)._view.root = root
    out._view.seen, out._view.whole = out._writes.seq, False
    out._view.origin = made_by(i, name, CUSTOM)


def refuses(view: View) -> bool:
    """Whether a view must not be written; under forward mode its siblings are no reason, as in PyTorch."""
    return view.origin is not None and not (view.origin.endswith(SEVERAL) and modes.forward_alone())


def ambiguous(origin: str) -> RuntimeError:
    """The error of one who writes, with recording on, into a view of this origin."""
    if origin not in AMBIGUOUS:
        return RuntimeError(origin)
    mode, now, block = AMBIGUOUS[origin]
    return RuntimeError(
        f"A view was created in {mode} and is being modified inplace {now}. Given that this use case is ambiguous and "
        "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both "
        f"inside the {block} (if you don't want the inplace to be tracked) or both outside (if you want the inplace to "
        "be tracked)."
    )


def become(x: Any, base: Any, path: Path | None, detached: bool, origin: str | None = None, whole: bool = False) -> Any:
    """``x`` as the view of ``base`` that a path leads to."""
    x._writes, x._epoch = base._writes, base._epoch
    x._view = View(base, path, detached, origin, whole)
    x._view.of(base)
    return x


def result(base: Any, steps: tuple[Step, ...], detached: bool, whole: bool, origin: str | None) -> Any:
    """The view of ``base`` that ``steps`` lead to, of which somebody else makes the history."""
    if base._writes is None:
        base._writes = Version()
    path: Path | None = None
    for step in steps:
        path = path, step
    out: Any = dispatch.alias(follow(base._data, steps))
    if whole:  # as detach makes it without a trace: of the same memory and version, and no view
        out._writes, out._epoch = base._writes, base._epoch
        return out
    return become(out, base, path, detached, origin)


def stand_in(inner: Any, x: Any, base: Any) -> Any:
    """``inner`` as a view of ``base``, as ``x`` is one of its own base."""
    become(inner, base, x._view.path, False, x._view.origin, x._view.whole)
    return alone(inner) if x._view.hides else inner


def alone(x: Any) -> Any:
    """``x``, which is memory that nobody else has in another shape, and so no view to who gets it."""
    if x._view is not None:
        x._view.hides, x._view.source = True, x._view.base._node
        if face(x._writes) is None:  # else x is what that detached
            x._writes.face = weakref.ref(x)
    return x


def face(writes: Version) -> Any:
    """The tensor that hides the base of this version, or None."""
    found = None if writes.face is None else writes.face()
    return None if found is None or found._view is None else found


def cut(x: Any) -> None:
    """Take the history from ``x``, which its user sees as no view; views of it keep theirs, up to the last write."""
    if x._writes is not None and x._writes is not dispatch.INFERENCE_VERSION:
        x._writes.cut = x._writes.seq
    view, x._node = x._view, None
    if view is not None and view.hides:
        view.base._node = None  # which nobody else knows
        x._view = view if tracer() else None


def detach(x: Any) -> Any:
    """The same memory without history. Under a trace, memory is a matter of bookkeeping: a view with no steps."""
    x = dispatch.inside(x)
    if x._writes is None:
        x._writes = Version()
    if get_mode() & TRACE and (here := tracer()):
        out = dispatch.alias(here.lift(x))
        base, path = (x, None) if x._view is None else (x._view.base, x._view.path)
        become(out, base, path, detached=True, whole=True)
    else:
        out = dispatch.alias(x._data)
    out._writes, out._epoch = x._writes, x._epoch
    return out


@op("linear", "complex")
def write_view(xp: Any, x: Any, v: Any, *, steps: tuple[Step, ...]) -> Any:
    """x with the part that ``steps`` lead to replaced by v."""
    out = xp.array(x, order="C")  # a copy; an array even where a raw gradient is a scalar of NumPy's
    part = follow(out, steps)
    if xp.may_share_memory(dispatch.opened(part)[0], out):
        part[...] = v
        return out
    # The steps reshape what lies in another order in the base, and is copied here.
    if any(step.inverse for step, _ in steps):
        return written_through(x, v, steps)
    out.reshape(-1)[follow(xp.arange(out.size).reshape(out.shape), steps)] = v
    return out


write_view.vjp(
    x=lambda g, *, steps: write_view(g, new_full(g, shape=(), value=0), steps=steps),
    v=lambda g, *, steps: follow(g, steps),
)
write_view.lower("cuda", lambda c, e: c.written(lambda memory: follow(memory, e.params["steps"])))
write_view.shape(lambda x, v: x.shape)


@write_view.batched
def _write_view_batched(call: Any) -> Any:
    x = call.front(0)
    steps: tuple[Step, ...] = ()
    for step, params in call.params["steps"]:
        if step is expand:  # to more dimensions, which stand behind the batch's
            shape, sizes = params["shape"], follow(x, steps).shape[1:]
            ones = (1,) * (len(shape) - len(sizes))
            steps += ((reshape, {"shape": (call.size, *ones, *sizes)}),) if ones else ()
            steps += ((expand, {"shape": (call.size, *shape)}),)
            continue
        if not isinstance(step.batching, Shifted):
            return call.sample_by_sample() if call.size else x  # steps of the batch are not known, by a rule of its own
        steps += ((step, step.batching.changed(params, call.size)),)
    return write_view(x, call.front(1, len(follow(x, steps).shape) - 1), steps=steps)


write_view.label = "CopySlices"  # PyTorch's name


def written_through(data: Any, value: Any, steps: tuple[Step, ...]) -> Any:
    """Raw ``data`` with the part that ``steps`` lead to, perhaps into vmap or out of it, replaced by ``value``."""
    at = next((k for k, (step, _) in enumerate(steps) if step.inverse), None)
    if at is None:
        return write_view(data, value, steps=steps)
    crossing, params = steps[at]
    beyond = crossing(follow(data, steps[:at]), **params)
    part = crossing.inverse(written_through(beyond, value, steps[at + 1 :]), **params)
    return write_view(data, part, steps=steps[:at]) if at else part


runtime.view, runtime.detach = make, detach
