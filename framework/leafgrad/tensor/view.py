"""Views: tensors that share memory with a base, and remember the steps that lead there.

When the base (or another view of it) is written in place under recording, a view's history is out of date; it
is made anew from the base's, by the same steps, when it is next asked for.
"""

from __future__ import annotations

import math
from typing import Any

from leafgrad import modes
from leafgrad.modes import GRAD, TRACE, TRACER
from leafgrad.ops import carriers
from leafgrad.ops.convert import new_full
from leafgrad.ops.define import op
from leafgrad.ops.node import Leaf, Version, hand_over
from leafgrad.tensor.tensor import Tensor

__all__: list[str] = []  # Tensor finds it through the dispatch

Step = tuple[Any, dict[str, Any]]
Path = tuple[Any, Step]  # the path before a step, or None, and the step: views of one view share it


class View(Tensor):
    """A Tensor that shares memory with ``_base``; applying ``_steps`` to the base gives it."""

    __slots__ = ("_base", "_history", "_path", "_root", "_seen")

    _base: Tensor
    _path: Path | None
    _root: Any  # the data of the base that _data was taken from; a trace replaces the base's data at each write
    _history: Any  # the node, as far as writes of the base have been followed
    _seen: float  # the write of the base up to which _history is valid; inf: never made anew

    @property
    def _steps(self) -> tuple[Step, ...]:
        steps, path = [], self._path
        while path is not None:
            path, step = path
            steps.append(step)
        return tuple(reversed(steps))

    @property
    def _node(self) -> Any:
        if self._version.seq > self._seen:
            self._seen = self._version.seq
            with modes.enable_grad():
                history = None if self._base._node is None else follow(self._base, self._steps)._node
            hand_over(self, self._history, history)
            self._history = history
        return self._history

    @_node.setter
    def _node(self, node: Any) -> None:
        self._history = node
        if node is None or type(node) is Leaf:  # of its own, whatever becomes of the base
            self._seen = math.inf

    @property
    def is_own_leaf(self) -> bool:
        """Whether it is a leaf that requires grad, apart from its base."""
        return type(self._history) is Leaf and self._seen == math.inf

    def detach_(self) -> Tensor:
        """Not possible for a view, whose history is its base's."""
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")


def follow(base: Any, steps: tuple[Step, ...]) -> Any:
    """The view of ``base`` that ``steps`` lead to."""
    for step, params in steps:
        base = step(base, **params)
    return base


def make(step: Any, parent: Any, params: dict[str, Any], out: Any) -> Any:
    """``out`` as a View if it shares the memory of ``parent``, else ``out`` itself."""
    traced = modes.get() & TRACE
    if TRACER.get().shares(step, parent, params, out) if traced else shares(out._data, parent._data):
        return of(step, parent, params, out._data, out._node)
    return out


def shares(data: Any, origin: Any) -> bool:
    """Whether an array that was made of another one is in its memory."""
    root = data.base
    return root is not None and (root is origin or root is origin.base)


def of(step: Any, parent: Any, params: dict[str, Any], data: Any, node: Any) -> View:
    """``data``, of history ``node``, as the View of ``parent`` that ``step`` gives."""
    if parent._version is None:
        parent._version = Version()
    base, path = parent, None
    detached = not modes.get() & GRAD
    if isinstance(parent, View) and not parent.is_own_leaf:
        base, path = parent._base, parent._path
        detached = detached or parent._seen == math.inf
    return _new(base, (path, (step, params)), data, node, detached)


def result(base: Any, steps: tuple[Step, ...], detached: bool) -> View:
    """The view of ``base`` that ``steps`` lead to, of which somebody else makes the history."""
    if base._version is None:
        base._version = Version()
    path: Path | None = None
    for step in steps:
        path = path, step
    return _new(base, path, follow(base._data, steps), None, detached)


def stand_in(view: View, base: Any) -> View:
    """A view of ``base`` as ``view`` is one of its own base."""
    return _new(base, view._path, view._data, None, False)


def _new(base: Any, path: Path | None, data: Any, node: Any, detached: bool) -> View:
    view: View = carriers.make(View, data)
    view._version = base._version
    view._base = base
    view._root = base._data
    view._path = path
    view._seen = math.inf if detached else base._version.seq
    view._history = node
    return view


def detach(x: Any) -> Any:
    """The same memory without history. Under a trace, memory is a matter of bookkeeping: a view with no steps."""
    x = carriers.inside(x)
    if x._version is None:
        x._version = Version()
    if modes.get() & TRACE:
        data = TRACER.get().lift(x)
        base, path = (x._base, x._path) if isinstance(x, View) else (x, None)
        return _new(base, path, data, None, True)
    out = carriers.alias(x._data)
    out._version = x._version
    return out


@op("linear")
def write_view(xp: Any, x: Any, v: Any, *, steps: tuple[Step, ...]) -> Any:
    """x with the part that ``steps`` lead to replaced by v."""
    out = xp.array(x, order="C")  # a copy; an array even where a raw gradient is a scalar of NumPy's
    part = out
    for step, params in steps:
        part = step(part, **params)
    part[...] = v
    return out


write_view.vjp(
    x=lambda g, *, steps: write_view(g, new_full(g, shape=(), value=0), steps=steps),
    v=lambda g, *, steps: follow(g, steps),
)


write_view.label = "CopySlices"  # PyTorch's name


carriers.adopt(Tensor, make, detach)
