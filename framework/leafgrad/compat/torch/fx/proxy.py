"""``torch.fx.proxy``: what stands for a value, and writes down what is done with it; and who hands it out."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

from leafgrad import nn
from leafgrad.compat.torch.fx.code import FORMS
from leafgrad.compat.torch.fx.graph import Graph
from leafgrad.compat.torch.fx.node import Node, map_aggregate
from leafgrad.compat.torch.overrides import is_tensor_method_or_property
from leafgrad.tensor.overrides import begin

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "Tracer", "TracerBase", "wrap"]


class TraceError(ValueError):
    """Python asked of a Proxy what only a value can answer."""


class TracerBase:
    """Puts what is done with Proxies into a Graph, ``graph``."""

    graph: Graph

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, type_expr: Any = None
    ) -> Node:
        """A Node; see `Graph.create_node`."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for the value of a Node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, type_expr: Any = None
    ) -> Proxy:
        """A new Node, of arguments with Proxies among them, as a Proxy; see `Graph.create_node`."""
        args, kwargs = map_aggregate((args, kwargs), self.create_arg)
        return self.proxy(self.create_node(kind, target, args, kwargs, name, type_expr))

    def create_arg(self, a: Any) -> Any:
        """What a Node keeps of an argument."""
        return a.node if isinstance(a, Proxy) else a

    def to_bool(self, obj: Proxy) -> bool:
        """What ``if`` is told."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What ``for`` goes through."""
        frame, items = sys._getframe(2), cast(Any, obj)
        now = next(i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti)
        if now.opname == "UNPACK_SEQUENCE":
            return iter([operator.getitem(items, i) for i in range(now.argval)])
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument; how often would depend on a value"
        )


class GraphAppendingTracer(TracerBase):
    """Adds to a Graph that is made by hand.

    Args:
        graph: it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for the value of a Node: functions of tensors, operators, attributes and methods make further ones.

    Args:
        node: it.
        tracer: who adds Nodes; by default one that adds to the graph of ``node``.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        begin()
        self._node, self.tracer = node, tracer or GraphAppendingTracer(node.graph)

    @property
    def node(self) -> Node:
        """The Node for whose value it stands."""
        return self._node

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        kind, target = ("call_method", func.__name__) if is_tensor_method_or_property(func) else ("call_function", func)
        return found[0].tracer.create_proxy(kind, target, args, kwargs or {})

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__"):  # of protocols, which would take it for something else
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __index__(self) -> NoReturn:
        raise TypeError("'Proxy' object cannot be interpreted as an integer")

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    __hash__ = object.__hash__


def _operator(function: Callable[..., Any], reflected: bool = False) -> Any:
    def method(self: Proxy, *others: Any) -> Proxy:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return method


for _function in FORMS:
    _name: str = _function.__name__.rstrip("_")
    setattr(Proxy, f"__{_name}__", _operator(_function))
    if FORMS[_function].count("{}") == 2 and _name not in ("eq", "ne", "lt", "le", "gt", "ge", "getitem"):
        setattr(Proxy, f"__r{_name}__", _operator(_function, reflected=True))


class Attribute(Proxy):
    """An attribute of a Proxy: a Node of its own where its value is used, none where it is called as a method.

    Args:
        root: the Proxy.
        attr: the name.
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer

    @functools.cached_property
    def node(self) -> Node:
        """The Node of its value."""
        return self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


# ---- of functions and modules -------------------------------------------------------------------------------------


class Tracer(TracerBase):
    """Makes a Graph of a function or a Module by calling it with Proxies."""

    root: nn.Module

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether calls of a Module are one Node, rather than what its forward does: those of leafgrad.nn."""
        return type(m).__module__.startswith("leafgrad.nn") and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The name of a Module within the one that is traced."""
        for name, found in self.root.named_modules():
            if found is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call of a Module."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Any:
        """What a Node keeps of an argument: parameters and buffers become Nodes."""
        for name, held in (*self.root.named_parameters(), *self.root.named_buffers()):
            if held is a:
                return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The Graph of a call."""
        self.root = root if isinstance(root, nn.Module) else nn.Module()
        self.graph = Graph(tracer_cls=type(self))
        function = root.forward if isinstance(root, nn.Module) else root
        args, kwargs, given = [], {}, concrete_args or {}
        for name, parameter in inspect.signature(function).parameters.items():
            if name in given:
                value: Any = given[name]
            else:
                default = () if parameter.default is parameter.empty else (parameter.default,)
                value = self.create_proxy("placeholder", name, default, {})
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise NotImplementedError(f"trace: {parameter}: how many there are is not known; write them out")
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        with _patched(self):
            result = function(*args, **kwargs)
        self.create_node("output", "output", (map_aggregate(result, self.create_arg),), {})
        return self.graph


_WRAPPED: list[tuple[dict[str, Any], str]] = []


def wrap(fn_or_name: Any) -> Any:
    """Make calls of a function one Node, whatever it does: at module scope, before or as a decorator of it."""
    caller, name = sys._getframe(1), fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _WRAPPED.append((caller.f_globals, name))
    return fn_or_name


MODULE: Any = nn.Module
MISSING = object()


class _patched:
    """Within it calls of Modules and of wrapped functions are a tracer's."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def __enter__(self) -> None:
        tracer, call = self.tracer, MODULE.__call__

        def call_module(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return tracer.call_module(module, functools.partial(call, module), args, kwargs)

        self.call, self.former = call, [(scope, name, scope.get(name, MISSING)) for scope, name in _WRAPPED]
        MODULE.__call__ = call_module
        for scope, name, value in self.former:
            scope[name] = _recorded(getattr(builtins, name) if value is MISSING else value, tracer)

    def __exit__(self, *_: object) -> None:
        MODULE.__call__ = self.call
        for scope, name, value in self.former:
            scope[name] = value
            if value is MISSING:
                del scope[name]


def _recorded(function: Any, tracer: Tracer) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        return tracer.create_proxy("call_function", function, args, kwargs) if found else function(*args, **kwargs)

    return call
