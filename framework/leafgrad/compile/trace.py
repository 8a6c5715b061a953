"""Run a function once with Symbols inside its Tensors, and keep the program and the effects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from leafgrad import backends, mode
from leafgrad.autograd import engine
from leafgrad.backends import Generator
from leafgrad.backends.place import place
from leafgrad.compile.graph import (
    Argument,
    Captured,
    Effect,
    Equation,
    Given,
    Grad,
    Graph,
    Line,
    Live,
    SetGrad,
    SetRequiresGrad,
    Source,
    Value,
    Write,
)
from leafgrad.compile.symbol import Symbol
from leafgrad.compile.tree import flatten
from leafgrad.errors import FreedGraphError, TraceError
from leafgrad.ops import messages
from leafgrad.ops.node import Leaf
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View, follow


@dataclass
class Traced:
    """What a trace gives.

    Attributes:
        graph: the program of the call.
        outputs: the function's result, with each tensor replaced by a ``Slot``.
        structure: how to rebuild the result from its leaves.
        backward: the program of the backward pass of the results; None if none requires grad or the graph was freed.
        saved: how many of the graph's last results exist for ``backward`` only.
        targets: the sources whose gradients ``backward`` gives, in order.
        differentiable: which results require grad.
        touched: sources whose ``.grad`` was looked at, with whether it was None.
    """

    graph: Graph
    outputs: list[Any]
    structure: Any
    backward: Graph | None
    saved: int
    targets: list[Argument | Captured]
    differentiable: list[int]
    touched: list[tuple[Argument | Captured, bool]]


@dataclass(frozen=True)
class Slot:
    """Stands in a result for the ``index``-th value, whether it requires grad, or for an input's own tensor."""

    index: int
    source: Argument | Captured | None = None


class Recorder:
    """The Tracer that the dispatch talks to while a function is traced."""

    def __init__(self, arguments: Sequence[Tensor]) -> None:
        self.arguments = {id(t): i for i, t in reversed(list(enumerate(arguments)))}
        self.tensors = list(arguments)
        self.equations: list[Equation] = []
        self.inputs: dict[Value, Source] = {}
        self.sources: dict[int, Argument | Captured | Grad] = {}  # by id of tensor; kept alive by `borrowed`
        self.borrowed: list[tuple[Tensor, Any]] = []  # external tensors with their real data
        self.touched: dict[Leaf, tuple[Argument | Captured, Any]] = {}
        self.constants: dict[int, Any] = {}
        self.generators: dict[int, tuple[Generator, Any]] = {}
        self.flags = [t.requires_grad for t in arguments]

    # ---- asked by the dispatch --------------------------------------------------------------------------------

    def lift(self, tensor: Any) -> Symbol:
        """The Symbol of a tensor; an external tensor becomes an input of the program."""
        data = tensor._data
        if isinstance(tensor, View):
            root = self.lift(tensor._base)
            if tensor._root is root:
                return self.own(data)
            if not isinstance(data, Symbol):
                self.borrowed.append((tensor, data))
            tensor._data = follow(root, tensor._steps)
            tensor._root = root
            return self.own(tensor._data)
        if isinstance(data, Symbol):
            return self.own(data)
        source = self.sources.get(id(tensor)) or self.source(tensor)
        self.sources[id(tensor)] = source
        symbol = self.input(source, data)
        self.borrowed.append((tensor, data))
        tensor._data = symbol
        return symbol

    def own(self, symbol: Symbol) -> Symbol:
        if symbol.tracer is not self:
            raise TraceError(
                f"a tensor from an earlier trace was kept and is used again, at {messages.user_line()}; return it from "
                "the traced function instead of storing it"
            )
        return symbol

    def source(self, tensor: Tensor) -> Argument | Captured | Grad:
        """Where an external tensor comes from."""
        index = self.arguments.get(id(tensor))
        if index is not None:
            return Argument(index)
        for of, gradient in self.touched.values():
            if gradient is tensor:
                return Grad(of)
        return Captured(tensor)

    def input(self, source: Source, array: Any, weak: bool = False) -> Symbol:
        value = Value(tuple(array.shape), array.dtype.name, place(array))
        self.inputs[value] = source
        return Symbol(self, value, array, weak)

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``op`` on the arrays behind the Symbols and record it."""
        arrays, operands = [], []
        for a in args:
            if isinstance(a, Symbol):
                self.own(a)
                arrays.append(a.array)
                operands.append(a.value)
            elif hasattr(a, "dtype") and hasattr(a, "shape"):
                raise TraceError(
                    f"{op.name}: an array that the program does not know, at {messages.user_line()}. backward() reached "
                    "a graph that was recorded outside of the traced function: detach() what comes from there, or move "
                    "its computation inside"
                )
            else:
                arrays.append(a)
                operands.append(a)
        if "dynamic" in op.traits:
            raise TraceError(
                f"{op.name}: the shape of its result depends on values, which are known only when the program runs, at "
                f"{messages.user_line()}; use leafgrad.where or a mask of fixed shape"
            )
        self.remember_generators(params)
        return self.record(op, tuple(operands), params, op.compute(tuple(arrays), params))

    def create(self, op: Any, where: tuple[str, int], params: dict[str, Any]) -> Any:
        """Run an op without array arguments on a device and record it."""
        self.remember_generators(params)
        backend = backends.by_device_type(where[0])
        with backend.device_scope(where[1]):
            result = backend.wrap(op.kernels.get(backend.name, op.forward)(backend.xp, **params))
        return self.record(op, (), params, result)

    def live(self, read: Callable[[], float]) -> Symbol:
        """A Symbol for a Python number that is read anew at each call of the program."""
        backend = backends.by_device_type("cpu")
        return self.input(Live(read), backend.asarray(float(read()), "float64", 0), weak=True)

    def touch(self, leaf: Leaf) -> None:
        """``leaf.grad`` is about to be read or written."""
        if leaf in self.touched:
            return
        owner = leaf.variable
        index = self.arguments.get(id(owner)) if owner is not None else None
        if owner is None:
            owner = Tensor.__new__(Tensor)
            owner._data, owner._node, owner._leaf, owner._version = None, leaf, leaf, None
        source = Argument(index) if index is not None else self.sources.get(id(owner)) or Captured(owner)
        assert not isinstance(source, Grad)
        self.sources.setdefault(id(owner), source)
        self.borrowed.append((owner, owner._data)) if not isinstance(owner._data, Symbol) else None
        self.touched[leaf] = source, leaf.grad

    def record(self, op: Any, operands: tuple[Any, ...], params: dict[str, Any], result: Any) -> Any:
        several = type(result) is tuple
        arrays = result if several else (result,)
        values = tuple(Value(tuple(a.shape), a.dtype.name, place(a)) for a in arrays)
        self.equations.append(Equation(op, operands, params, values, user_line(), several))
        symbols = tuple(Symbol(self, v, a) for v, a in zip(values, arrays, strict=True))
        return symbols if several else symbols[0]

    def remember_generators(self, params: dict[str, Any]) -> None:
        for p in params.values():
            if isinstance(p, Generator) and id(p) not in self.generators:
                self.generators[id(p)] = p, p.get_state()

    # ---- when the function has returned -----------------------------------------------------------------------

    def effects(self) -> list[Effect]:
        """What the function did to tensors that it did not make."""
        found: list[Effect] = []
        inputs = {id(s): v for v, s in self.inputs.items()}
        for tensor, _ in self.borrowed:
            source = self.sources.get(id(tensor))
            if source is None or isinstance(tensor, View):
                continue
            symbol = tensor._data
            if isinstance(symbol, Symbol) and inputs.get(id(source)) is not symbol.value:
                found.append(Write(source, symbol.value))
        for leaf, (source, before) in self.touched.items():
            after = leaf.grad
            if after is before:
                continue
            if after is not None and after._node is not None:
                raise TraceError(
                    "backward(create_graph=True) inside a traced function would leave .grad in a graph that exists only "
                    "while tracing; use leafgrad.autograd.grad(..., create_graph=True) instead"
                )
            found.append(SetGrad(source, None if after is None else self.lift(after).value))
        for i, (tensor, flag) in enumerate(zip(self.tensors, self.flags, strict=True)):
            if tensor.requires_grad and not flag:
                found.append(SetRequiresGrad(Argument(i)))
        return found

    def restore(self) -> None:
        """Give external tensors their data, gradients and generators their state back."""
        for tensor, data in reversed(self.borrowed):
            tensor._data = data
            if isinstance(tensor, View):
                tensor._root = tensor._base._data
        for leaf, (_, before) in self.touched.items():
            leaf.grad = before
        for tensor, flag in zip(self.tensors, self.flags, strict=True):
            if tensor.is_leaf and not flag:
                tensor._node = None
        for generator, state in self.generators.values():
            generator.set_state(state)


PACKAGE = messages.PACKAGE


def user_line() -> Line:
    """The innermost line outside this package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def recording(recorder: Recorder) -> Any:
    token = mode.TRACER.set(recorder)
    flags = mode.FLAGS.set(mode.get() | mode.TRACE)
    try:
        yield
    finally:
        mode.FLAGS.reset(flags)
        mode.TRACER.reset(token)


def trace_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """Trace ``function(*args, **kwargs)``. Nothing outside is changed by it."""
    if mode.get() & mode.TRACE:
        raise TraceError("a trace is running already in this thread")
    leaves, _ = flatten((args, kwargs))
    recorder = Recorder([t for t in leaves if isinstance(t, Tensor)])
    try:
        with recording(recorder):
            result = function(*args, **kwargs)
            return finish(recorder, result)
    finally:
        recorder.restore()


def finish(recorder: Recorder, result: Any) -> Traced:
    leaves, structure = flatten(result)
    outputs: list[Any] = []
    values: list[Value] = []
    tensors: list[Tensor] = []
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            outputs.append(leaf)
            continue
        source = recorder.sources.get(id(leaf)) or (recorder.source(leaf) if id(leaf) in recorder.arguments else None)
        if source is not None and not isinstance(source, Grad):
            outputs.append(Slot(-1, source))
            continue
        outputs.append(Slot(len(values)))
        values.append(recorder.lift(leaf).value)
        tensors.append(leaf)
    forward = len(recorder.equations)
    effects = tuple(recorder.effects())
    inputs = dict(recorder.inputs)
    touched = [(source, before is None) for source, before in recorder.touched.values()]
    differentiable = [i for i, t in enumerate(tensors) if t._node is not None]
    backward, saved, targets = None, [], []
    if differentiable:
        try:
            backward, saved, targets = trace_backward(recorder, [tensors[i] for i in differentiable], forward)
        except FreedGraphError:
            pass  # the function ran backward itself: its results require grad, but their graph is gone
    equations = tuple(recorder.equations[:forward])
    graph = Graph(inputs, equations, tuple(values) + tuple(saved), effects)
    return Traced(graph, outputs, structure, backward, len(saved), targets, differentiable, touched)


def trace_backward(
    recorder: Recorder, outputs: list[Tensor], forward: int
) -> tuple[Graph, list[Value], list[Argument | Captured]]:
    """The program that takes what the forward one saved and gradients of ``outputs`` to gradients of its inputs."""
    sources: dict[Any, Argument | Captured] = {}
    for tensor, _ in recorder.borrowed:
        source = recorder.sources.get(id(tensor))
        if tensor._node is not None and isinstance(source, (Argument, Captured)) and not isinstance(tensor, View):
            sources.setdefault(tensor._node, source)
    symbols = []
    for t in outputs:
        array = recorder.lift(t).array
        symbols.append(Symbol(recorder, Value(tuple(array.shape), array.dtype.name, place(array)), array))
    found: dict[Any, Any] = {}
    with mode.no_grad():
        engine.run([(t._node, s) for t, s in zip(outputs, symbols, strict=True)], set(sources), True, False, found.__setitem__)
    targets = [(source, recorder.own(found[node]).value) for node, source in sources.items() if node in found]
    equations = tuple(recorder.equations[forward:])
    made = {v for e in equations for v in e.outputs} | {s.value for s in symbols}
    wanted = [v for e in equations for v in e.values] + [v for _, v in targets]
    saved = list(dict.fromkeys(v for v in wanted if v not in made))
    given: dict[Value, Source] = {v: Given(i) for i, v in enumerate([*saved, *(s.value for s in symbols)])}
    graph = Graph(given, equations, tuple(v for _, v in targets))
    return graph, saved, [source for source, _ in targets]
