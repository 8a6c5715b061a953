"""``torch.fx.graph_module``: a Module whose forward is a Graph's code; and what runs a Graph Node by Node."""

from __future__ import annotations

import copy
import itertools
import linecache
from collections.abc import Iterator, Mapping
from typing import Any

from leafgrad import nn
from leafgrad.compat.torch.fx.graph import Graph
from leafgrad.compat.torch.fx.node import Node, map_aggregate, map_arg
from leafgrad.compat.torch.fx.proxy import GraphAppendingTracer, Proxy, Tracer

__all__ = ["GraphModule", "Interpreter", "Transformer", "symbolic_trace"]

_count = itertools.count()


class GraphModule(nn.Module):
    """A Module that does what a Graph says.

    Args:
        root: the Module that has the modules and tensors of the graph, or a dict of them by their names.
        graph: the program.
        class_name: what its class is called.

    Attributes:
        graph: the program; after a change of it call `recompile`.
        code: its Python code.
    """

    program: Graph
    source: str
    made_of: type[GraphModule]  # the class that each object has one of its own of, which will have the forward

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        own: type[GraphModule] = type("GraphModuleImpl", (cls,), {"made_of": cls})
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node.target)
        self.graph = graph

    def _take(self, root: Any, path: str) -> None:
        if isinstance(root, Mapping):
            if path not in root:
                raise RuntimeError(f"Node in a Graph referenced target {path} but that was not provided in root!")
            value = root[path]
        else:
            value = attribute(root, path)
        *above, name = path.split(".")
        place: nn.Module = self
        for part in above:
            if not hasattr(place, part):
                place.add_module(part, nn.Module())
            place = getattr(place, part)
        if not isinstance(root, Mapping) and name in dict(
            attribute(root, ".".join(above)).named_buffers(recurse=False)
        ):
            place.register_buffer(name, value)
        else:
            setattr(place, name, value)

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.program

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self.__dict__["program"] = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code of the graph."""
        return self.source

    def recompile(self) -> Any:
        """Make ``forward`` of the graph as it is now; returns the code and its globals."""
        made = self.program.python_code("self")
        file = f"<eval_with_key>.{next(_count)}"
        linecache.cache[file] = len(made.src), None, made.src.splitlines(keepends=True), file
        scope = made.globals.copy()
        exec(compile(made.src, file, "exec"), scope)
        self.__dict__["source"] = made.src
        type(self).forward = scope["forward"]
        return made

    def print_readable(self, print_output: bool = True) -> str:
        """The code."""
        if print_output:
            print(self.code)
        return self.code

    def __str__(self) -> str:
        return f"{super().__repr__()}\n{self.code}"

    def __reduce__(self) -> tuple[Any, ...]:
        held = {k: v for k, v in self.__dict__.items() if k not in ("program", "source")}
        return _remade, (type(self).made_of, type(self).__name__, self.program), held

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        make, args, held = self.__reduce__()
        made: GraphModule = make(*args[:2], copy.deepcopy(self.program, memo))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(held, memo))
        return made


def _remade(kind: type[GraphModule], name: str, graph: Graph) -> GraphModule:
    made = kind.__new__(kind)
    nn.Module.__init__(made)
    type(made).__name__ = name
    made.graph = graph
    return made


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> Any:
    """A GraphModule of what a Module or a function does with Proxies."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def attribute(root: Any, path: str) -> Any:
    """An attribute by its path.

    Args:
        root: a Module.
        path: as ``"block.weight"``; the root itself if it is empty.

    Raises:
        AttributeError: there is none; with the whole path.
    """
    for part in filter(None, path.split(".")):
        if not hasattr(root, part):
            raise AttributeError(f"{path}: {type(root).__name__} has no {part!r}")
        root = getattr(root, part)
    return root


class Interpreter:
    """Runs a GraphModule Node by Node; subclasses do more, or something else.

    Args:
        module: it.
        garbage_collect_values: whether values are let go after their last use.
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module, self.graph = module, graph or module.graph
        self.submodules = dict(module.named_modules())
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """The result of the graph."""
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        last = {used: node for node in self.graph.nodes for used in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in node.all_input_nodes:
                    if last[used] is node:
                        self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The value of a Node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The next argument, or the default."""
        if target.startswith("*"):
            return [*self.args_iter]
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute of the Module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a Module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the Module."""
        return attribute(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> Any:
        """The arguments of a Node, with values in the place of Nodes."""
        return self.map_nodes_to_values((n.args, n.kwargs), n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in the place of Nodes."""
        return map_arg(args, self.env.__getitem__)


class Transformer(Interpreter):
    """Makes a new GraphModule of one, Node by Node; subclasses change what Nodes become.

    Args:
        module: the GraphModule.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """A parameter of the new graph."""
        return Proxy(self.new_graph.create_node("placeholder", target, args), self.tracer)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """A Node of the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A Node of the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A Node of the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new GraphModule."""
        result = self.run()
        self.new_graph.output(map_aggregate(result, self.tracer.create_arg))
        return GraphModule(self.module, self.new_graph)
