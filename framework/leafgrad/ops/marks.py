"""Functions that are one node in PyTorch, and several ops here: their last node is shown as that one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from leafgrad import modes
from leafgrad.modes import BATCH, GRAD, tracer
from leafgrad.ops.node import Node, Output, TensorBase

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")  # a tensor, or several
get_mode = modes.get


def mark(out: T, label: str, *inputs: Any) -> T:
    """Show what made ``out`` of ``inputs``, each one or several in a tuple, as one node. Returns ``out``."""
    flags = get_mode()
    if flags & (GRAD | BATCH) != GRAD:  # in a batch, arguments pass other nodes on their way
        return out
    edges: list[Any] = []
    for t in inputs:
        if flags == GRAD and isinstance(t, TensorBase):  # as mostly
            edges.append(t._history if t._view is None else t._node)
        elif type(t) in (tuple, list):
            edges += map(node_of, t)
        else:
            edges.append(node_of(t))
    parts: Any = out if isinstance(out, tuple) else (out,)
    for part in parts:
        node = part._history if part._view is None or part._writes.seq <= part._view.seen else part._node
        if type(node) is Output:
            node = node.source
        if type(node) is Node and node not in edges:
            node.shown = label, tuple(edges)
    return out


def node_of(value: Any) -> Any:
    if not isinstance(value, TensorBase):
        return None
    if here := tracer():
        value = here.inside(value)
    return value._history if value._view is None else value._node


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
            if isinstance(out, TensorBase) and out._history is None and out._view is None:
                return out  # nothing to mark
            for i, name in places:
                value = args[i] if i < len(args) else kwargs.get(name)
                if not isinstance(value, TensorBase) or value._node is not None:  # there may be something to mark
                    return mark(out, label, *[args[i] if i < len(args) else kwargs.get(name) for i, name in places])
            return out

        return cast(F, recorded)

    return decorate
