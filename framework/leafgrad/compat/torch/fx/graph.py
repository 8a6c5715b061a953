"""``torch.fx.graph``: a program as a list of Nodes, and the Python code of it."""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad.compat.torch.fx.code import PythonCode, python_code
from leafgrad.compat.torch.fx.node import Node, map_aggregate, map_arg, target_name

__all__ = ["Graph", "PythonCode"]

TAKEN = {*keyword.kwlist, *dir(builtins), "inf", "nan", "device", "self", "torch", "leafgrad"}


class Graph:
    """A program: Nodes in the order in which they run.

    Args:
        owning_module: the GraphModule that it is of.
        tracer_cls: the class of the tracer that made it.
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None) -> None:
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._names: set[str] = set()
        self._root = Node(self, "", "root", "", (), {})
        self._place = self._root  # new nodes come before this one

    @property
    def nodes(self) -> Nodes:
        """The Nodes, which may be erased and inserted while one goes through them."""
        return Nodes(self._root)

    # ---- making ---------------------------------------------------------------------------------------------------

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A new Node, at the place where Nodes are inserted: the end, or as `inserting_before` says."""
        asked = name or _snake_case(target_name(target).rpartition(".")[2] if callable(target) else str(target))
        node = Node(self, self._free(asked, target), op, target, args or (), kwargs or {}, type_expr)
        self._place.prepend(node)
        return node

    def _free(self, asked: str, target: Any) -> str:
        name = re.sub("[^0-9a-zA-Z_]+", "_", asked) or "_unnamed"
        name = f"_{name}" if name[0].isdigit() else name
        match = re.fullmatch(r"(.*)_(\d+)", name)
        base, count = (match[1], int(match[2])) if match else (name, 0)
        while name in self._names or name in TAKEN:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Parameter.empty) -> Node:
        """A parameter."""
        args = () if default_value is inspect.Parameter.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the program returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """A copy of a Node of another graph."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = node.meta.copy()
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies of all Nodes of another graph.

        Args:
            g: it.
            val_map: Nodes of this graph for some of that; gets those of the others.
            return_output_node: whether the output is returned together with its Node.

        Returns:
            What the other graph returns, in Nodes of this one; it makes no output of it.
        """
        for node in g.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            if node not in val_map:
                val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    # ---- changing -------------------------------------------------------------------------------------------------

    @contextmanager
    def inserting_before(self, n: Node | None = None) -> Iterator[None]:
        """Within it new Nodes come before one."""
        former, self._place = self._place, n or self._root.next
        try:
            yield
        finally:
            self._place = former

    def inserting_after(self, n: Node | None = None) -> Any:
        """Within it new Nodes come behind one, in the order in which they are made."""
        return self.inserting_before((n or self._root).next)

    def erase_node(self, to_erase: Node) -> None:
        """Take a Node away that nobody uses.

        Args:
            to_erase: it.

        Raises:
            RuntimeError: it is used.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if not to_erase.erased:
            to_erase.args, to_erase.kwargs = (), {}
            to_erase.prev.next, to_erase.next.prev = to_erase.next, to_erase.prev
            to_erase.erased = True

    def eliminate_dead_code(self) -> bool:
        """Erase what has no users, is no parameter, and does not write in place. Whether there was anything."""
        dead = False
        for node in reversed(self.nodes):
            name = target_name(node.target).rpartition(".")[2]
            writes = name.endswith("_") or name in ("setitem", "setattr") or name.startswith("_assert")
            if not node.users and node.op in ("call_function", "call_method", "get_attr") and not writes:
                self.erase_node(node)
                dead = True
        return dead

    # ---- reading --------------------------------------------------------------------------------------------------

    def output_node(self) -> Node:
        """The Node of what it returns."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The Nodes of a kind."""
        return [node for node in self.nodes if node.op == op and target in (None, node.target)]

    def lint(self) -> None:
        """An error where a Node uses one that comes later, or one of another graph."""
        seen: set[Node] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! Copy nodes of another graph with arg_transform of node_copy()"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that "
                        "Nodes in the graph are topologically ordered"
                    )
            seen.add(node)

    def python_code(self, root_module: str) -> PythonCode:
        """Its Python code, ``def forward``, and the globals that this needs."""
        return python_code(self.nodes, root_module)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *[node.format_node() for node in self.nodes]])

    def __reduce__(self) -> tuple[Any, ...]:
        """A list of the Nodes, in which numbers stand for them."""
        order = {node: Reference(i) for i, node in enumerate(self.nodes)}
        kept = [(n.op, n.target, map_arg((n.args, n.kwargs), order.__getitem__), n.name, n.type, n.meta) for n in order]
        return rebuilt, (type(self), kept)


class Reference(int):
    """Stands for the Node of this number."""


def rebuilt(kind: type[Graph], kept: list[Any]) -> Graph:
    """The graph of which ``Graph.__reduce__`` gave a list."""
    graph = kind()
    made: list[Node] = []
    for op, target, given, name, type_expr, meta in kept:
        args, kwargs = map_aggregate(given, lambda a: made[a] if isinstance(a, Reference) else a)
        made.append(graph.create_node(op, target, args, kwargs, name, type_expr))
        made[-1].meta = meta
    return graph


class Nodes:
    """The Nodes of a graph, forwards or backwards."""

    def __init__(self, root: Node, step: str = "next") -> None:
        self.root, self.step = root, step

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.root, self.step)
        while node is not self.root:
            following = node
            if not node.erased:
                yield node
            node = getattr(following, self.step)

    def __reversed__(self) -> Nodes:
        return Nodes(self.root, "prev" if self.step == "next" else "next")

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
