"""The Python code of a Graph."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from math import inf, nan
from typing import Any, NamedTuple

from leafgrad import devices, dtypes
from leafgrad.compat.torch.fx.node import Node, target_name

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=",
}  # fmt: skip
FORMS = {
    **{getattr(operator, name): f"{{}} {sign} {{}}" for name, sign in INFIX.items()},
    operator.neg: "-{}", operator.pos: "+{}", operator.invert: "~{}", operator.getitem: "{}[{}]",
}  # fmt: skip
INPLACE = {getattr(operator, "i" + name.rstrip("_")): sign for name, sign in [*INFIX.items()][:13]}


class PythonCode(NamedTuple):
    """The source of a function, and the globals that it needs."""

    src: str
    globals: dict[str, Any]


def python_code(nodes: Iterable[Node], root: str) -> PythonCode:
    """The function ``forward`` of some Nodes in order."""
    return _Writer([*nodes], root).written()


class _Writer:
    def __init__(self, nodes: list[Node], root: str) -> None:
        self.nodes, self.root = nodes, root
        self.scope: dict[str, Any] = {"inf": inf, "nan": nan, "device": devices.device}
        self.last: dict[Node, list[str]] = {}  # which values nobody needs after each Node
        seen: set[Node] = set()
        for node in reversed(nodes):
            ends = [n for n in node.all_input_nodes if n not in seen]
            seen.update(ends)
            self.last[node] = [n.name for n in ends] + ([] if node.users or node.op == "placeholder" else [node.name])

    def written(self) -> PythonCode:
        head, body = [self.root], []
        for node in self.nodes:
            if node.op == "placeholder":
                head.append(f"{node.target} = {self.value(node.args[0])}" if node.args else node.target)
                if (name := node.target.lstrip("*")) != node.name:
                    body.append(f"{node.name} = {name}")
            elif node.op == "output":
                body.append(f"return {self.value(node.args[0])}")
            else:
                ends = f";  {' = '.join([*self.last[node], 'None'])}" if self.last[node] else ""
                body.append(f"{self.assigned(node)}{ends}")
        lines = "".join([f"\n    {line}" for line in body or ["pass"]])
        return PythonCode(f"\n\n\ndef forward({', '.join(head)}):{lines}\n    ", self.scope)

    def assigned(self, node: Node) -> str:
        args = [self.value(a) for a in node.args]
        if node.op == "call_function" and node.target in INPLACE and not node.kwargs and isinstance(node.args[0], Node):
            return f"{args[0]} {INPLACE[node.target]}= {args[1]};  {node.name} = {args[0]}"
        return f"{node.name} = {self.called(node, args)}"

    def called(self, node: Node, args: list[str]) -> str:
        given = ", ".join([*args, *[f"{name} = {self.value(a)}" for name, a in node.kwargs.items()]])
        match node.op:
            case "get_attr":
                return self.attribute(node.target)
            case "call_module":
                return f"{self.attribute(node.target)}({given})"
            case "call_method":
                return f"{args[0]}.{node.target}({given[len(args[0]) :].removeprefix(', ')})"
        if node.target in FORMS and not node.kwargs and len(args) == FORMS[node.target].count("{}"):
            return FORMS[node.target].format(*args)
        if node.target is getattr and len(args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{args[0]}.{node.args[1]}"
        return f"{self.function(node.target)}({given})"

    def attribute(self, path: str) -> str:
        parts = [self.root]
        for part in path.split("."):
            parts = [*parts, part] if part.isidentifier() else [f"getattr({'.'.join(parts)}, {part!r})"]
        return ".".join(parts)

    def function(self, function: Any) -> str:
        """A name by which the code reaches a function: its own, where that leads to it."""
        module, _, name = target_name(function).rpartition(".")
        if module == "builtins":
            return name
        if module[:1] != "_" and getattr(sys.modules.get(module), name, None) is function:
            top = module.partition(".")[0]
            self.scope[top] = sys.modules[top]
            return f"{module}.{name}"
        return self.bound(f"{module}_{name}", function)

    def bound(self, name: str, value: Any) -> str:
        name = "".join([c if c.isalnum() else "_" for c in name])
        name = name if name[:1] == "_" else f"_{name}"
        while self.scope.get(name, value) is not value:
            name += "_"
        self.scope[name] = value
        return name

    def value(self, value: Any) -> str:
        """An argument in the code."""
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            text = ", ".join(map(self.value, value))
            return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
        if isinstance(value, dict):
            return "{" + ", ".join([f"{key!r}: {self.value(item)}" for key, item in value.items()]) + "}"
        if isinstance(value, slice):
            return f"slice({', '.join([self.value(part) for part in (value.start, value.stop, value.step)])})"
        if isinstance(value, Node):
            return value.name
        if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes, devices.device):
            return repr(value)
        if isinstance(value, dtypes.dtype):
            self.scope[dtypes.namespace] = sys.modules[dtypes.namespace]
            return repr(value)
        if callable(value):
            return self.function(value)
        return self.bound(f"{type(value).__name__}_{len(self.scope)}", value)
