"""``torch.fx.node``: one line of a Graph."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leafgrad.compat.torch.fx.graph import Graph

__all__ = ["Node", "map_aggregate", "map_arg"]


class Node:
    """One value of a Graph, and how it is computed.

    Attributes:
        op: ``"placeholder"``, ``"get_attr"``, ``"call_function"``, ``"call_method"``, ``"call_module"``, ``"output"``.
        target: the function that is called, or the name of the parameter, attribute, method or module.
        args, kwargs: the arguments, Nodes among them, in lists, tuples, dicts and slices too.
        users: the Nodes that have it as an argument, as the keys of a dict.
        name: its name in the graph, of which there is one.
        meta: whatever others want to keep.
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any, type: Any = None) -> None:
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.prev = self.next = self
        self.erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for node in self.all_input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = map_aggregate(tuple(args), _same), map_aggregate(dict(kwargs), _same)
        for node in self.all_input_nodes:
            node.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The Nodes among its arguments, each once, in order."""
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda node: found.setdefault(node))
        return [*found]

    def prepend(self, x: Node) -> None:
        """Move ``x`` before this one."""
        if x is self:
            return
        x.prev.next, x.next.prev = x.next, x.prev
        x.prev, x.next = self.prev, self
        self.prev.next = self.prev = x

    def append(self, x: Node) -> None:
        """Move ``x`` behind this one."""
        self.next.prepend(x)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True
    ) -> list[Node]:
        """Give the users of this Node another one in its place.

        Args:
            replace_with: that one.
            delete_user_cb: whether a user gets it; by default all do.

        Returns:
            Those that do.
        """
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another argument for one."""
        self._set(*map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node))

    def update_arg(self, idx: int, arg: Any) -> None:
        """Set one argument."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def format_node(self) -> str:
        """The Node as a line of the graph's text."""
        if self.op == "output":
            return f"return {self._args[0]}"
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target_name(self.target)}]"
        if self.op == "placeholder":
            return head + (f"(default={self._args[0]})" if self._args else "")
        return head if self.op == "get_attr" else f"{head}(args = {shown(self._args)}, kwargs = {shown(self._kwargs)})"

    def __repr__(self) -> str:
        return self.name


def _same(value: Any) -> Any:
    return value


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """``a`` with ``fn`` of all that is in it, through tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        parts = [map_aggregate(item, fn) for item in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(item, fn) for key, item in a.items()}
    if isinstance(a, slice):
        return slice(*[map_aggregate(part, fn) for part in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """``a`` with ``fn`` of each Node in it."""
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


def shown(value: Any) -> str:
    """An argument in the graph's text."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{key}: {shown(item)}" for key, item in value.items()]) + "}"
    return f"%{value}" if isinstance(value, Node) else str(value)


def target_name(target: Any) -> str:
    """A function by module and name."""
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", type(target).__name__)
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    module = "operator" if getattr(operator, name, None) is target else getattr(target, "__module__", None)
    return f"{module}.{name}"
