"""Run a function once with Symbols inside its Tensors, and keep the program and the effects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.autograd import engine
from leafgrad.compile.graph import Argument, Captured, Given, Grad, Graph, Line, Source, Value
from leafgrad.compile.recorder import Owner, Recorder, user_line
from leafgrad.compile.symbol import Symbol
from leafgrad.compile.tree import flatten, unflatten
from leafgrad.errors import FreedGraphError, MissingGradientError, TraceError
from leafgrad.ops import carriers
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View


@dataclass
class Traced:
    """What a trace gives.

    Attributes:
        graph: the program of the call.
        outputs: the function's result, with each tensor replaced by a ``Slot``.
        structure: how to rebuild the result from its leaves.
        count: how many results are for the caller; those after them are for ``backward``.
        backward: the program of the backward pass of the ``differentiable`` results; None if there are none.
        saved: the values of ``graph`` that ``backward`` is given, in order: inputs, or results after all others.
        targets: the sources whose gradients ``backward`` gives, in order.
        differentiable: which results have gradients.
        refused: which results require grad but have none, since their graph was freed or cannot be compiled, and what
            to raise when they are differentiated after all.
        leaves: the sources that require grad.
        touched: sources whose ``.grad`` was looked at, with whether it was None.
        views: captured views.
        symbols: all that were made, with the lines that made them.
    """

    graph: Graph
    outputs: list[Any]
    structure: Any
    touched: list[tuple[Owner, bool]]
    views: list[View]
    count: int
    backward: Graph | None = None
    saved: list[Value] = field(default_factory=list)
    targets: list[Owner] = field(default_factory=list)
    differentiable: list[int] = field(default_factory=list)
    refused: dict[int, Exception] = field(default_factory=dict)
    leaves: list[Owner] = field(default_factory=list)
    symbols: list[tuple[weakref.ref[Symbol], Line]] = field(default_factory=list)

    @property
    def captured(self) -> list[Tensor]:
        """The tensors that the function reached from outside."""
        found = [*self.graph.inputs.values(), *(s for s, _ in self.touched), *(e.source for e in self.graph.effects)]
        found += [slot.source for slot in self.outputs if isinstance(slot, Slot) and slot.source is not None]
        owners = [s.of if isinstance(s, Grad) else s for s in found]
        return list({id(s.tensor): s.tensor for s in owners if isinstance(s, Captured)}.values())


@dataclass(frozen=True)
class Slot:
    """Stands in a result for the ``index``-th value, or for a tensor that exists: that of ``source``.

    ``late``: the ``.grad`` that the source's tensor has after all effects, rather than before.
    """

    index: int
    source: Argument | Captured | Grad | None = None
    late: bool = False


@contextmanager
def recording(recorder: Recorder) -> Any:
    token = modes.TRACER.set(recorder)
    before = modes.get() | modes.TRACE, dtypes.get_default_dtype()
    flags = modes.FLAGS.set(before[0])
    try:
        yield
        if (modes.get(), dtypes.get_default_dtype()) != before:
            raise TraceError(
                "a traced function leaves another gradient mode or default dtype behind than it found; use "
                "`with leafgrad.set_grad_enabled(...)` inside it, and set_default_dtype outside"
            )
    finally:
        dtypes.set_default_dtype(before[1])
        modes.FLAGS.reset(flags)
        modes.TRACER.reset(token)


def trace_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """Trace ``function(*args, **kwargs)``. Nothing outside is changed by it; ``check_leaks`` when that is to be sure.

    Raises:
        TraceError: the function needs values, or changes things that a program cannot.
    """
    if modes.get() & modes.TRACE:
        raise TraceError("a trace is running already in this thread")
    leaves, structure = flatten((args, kwargs))
    tensors = [t for t in leaves if isinstance(t, Tensor)]
    stand_ins = {i: stand_in(t) for i, t in enumerate(tensors) if isinstance(t, View)}
    recorder = Recorder(tensors, stand_ins)
    if stand_ins:
        given = iter(recorder.tensors)
        args, kwargs = unflatten(structure, iter([next(given) if isinstance(a, Tensor) else a for a in leaves]))
    try:
        with recording(recorder):
            traced = finish(recorder, function(*args, **kwargs))
    finally:
        recorder.restore()
    traced.symbols = recorder.symbols
    return traced


def stand_in(view: View) -> Tensor:
    """A plain tensor in place of a view, since the next call's view may show another part of its base."""
    out: Tensor = carriers.alias(view._data, view._node)
    out._leaf, out._version = view._leaf, view._version
    return out


def check_leaks(traced: Traced) -> None:
    """A TraceError if something outside keeps a tensor of the trace."""
    for collected in (False, True):
        alive = [line for ref, line in traced.symbols if ref() is not None]
        if not alive:
            return
        if not collected:
            gc.collect()
    raise TraceError(
        f"a tensor made while tracing, at {alive[-1]}, was kept outside of the function; at later calls nothing would "
        "be put there. Return it instead. State that is made at a first call, such as an optimizer's, has to exist "
        "before the function is traced"
    )


def finish(recorder: Recorder, result: Any) -> Traced:
    leaves, structure = flatten(result)
    effects = tuple(recorder.effects())
    late = {id(leaf.grad): Grad(s) for leaf, (s, b) in recorder.touched.items() if s is not None and leaf.grad is not b}
    outputs: list[Any] = []
    tensors: list[Tensor] = []
    slots: dict[int, Slot] = {}
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            outputs.append(leaf)
            continue
        if id(leaf) not in slots:
            if id(leaf) in late:
                slots[id(leaf)] = Slot(-1, late[id(leaf)], late=True)
            elif recorder.is_outside(leaf):
                slots[id(leaf)] = Slot(-1, recorder.sources.get(id(leaf)) or recorder.source(leaf))
            else:
                slots[id(leaf)] = Slot(len(tensors))
                tensors.append(leaf)
        outputs.append(slots[id(leaf)])
    values = [recorder.lift(t).value for t in tensors]
    graph = Graph(dict(recorder.inputs), tuple(recorder.equations), tuple(values), effects)
    touched = [(source, before is None) for source, before in recorder.touched.values() if source is not None]
    views = [b.tensor for b in recorder.outside.values() if isinstance(b.tensor, View)]
    traced = Traced(graph, outputs, structure, touched, views, len(values))
    differentiate(recorder, traced, {i: t for i, t in enumerate(tensors) if t._node is not None})
    return traced


def differentiate(recorder: Recorder, traced: Traced, outputs: dict[int, Tensor]) -> None:
    """Add the backward program of those results whose graph can be walked; keep what to raise for the others."""
    forward = len(recorder.equations)

    def attempt(chosen: list[int]) -> Exception | None:
        try:
            trace_backward(recorder, traced, [outputs[i] for i in chosen], forward)
        except (FreedGraphError, MissingGradientError, TraceError) as error:
            return error.with_traceback(None)
        finally:
            del recorder.equations[forward:]
        return None

    traced.leaves = list(dict.fromkeys(differentiable_sources(recorder).values()))
    traced.differentiable = list(outputs)
    if outputs and attempt(traced.differentiable) is not None:
        graph = traced.graph
        traced.refused = {i: error for i in outputs if (error := attempt([i])) is not None}
        traced.graph, traced.backward, traced.saved, traced.targets = graph, None, [], []
        traced.differentiable = [i for i in outputs if i not in traced.refused]
        if traced.differentiable:
            attempt(traced.differentiable)


def differentiable_sources(recorder: Recorder) -> dict[Any, Owner]:
    """The sources that require grad, by their nodes."""
    sources: dict[Any, Owner] = {}
    for b in recorder.outside.values():
        source = recorder.sources.get(id(b.tensor))
        if isinstance(source, (Argument, Captured)) and not isinstance(b.tensor, View) and b.tensor._node is not None:
            sources.setdefault(b.tensor._node, source)
    return sources


def trace_backward(recorder: Recorder, traced: Traced, outputs: list[Tensor], forward: int) -> None:
    """Add the program that takes what the forward one saved and gradients of ``outputs`` to gradients of its inputs."""
    sources = differentiable_sources(recorder)
    symbols = []
    for t in outputs:
        result = recorder.lift(t).value
        gradient = Value(result.shape, result.dtype, result.place)
        recorder.likes[gradient] = result
        symbols.append(recorder.symbol(gradient, user_line()))
    found: dict[Any, Any] = {}
    with modes.no_grad():
        seeds = [(t._node, s) for t, s in zip(outputs, symbols, strict=True)]
        engine.run(seeds, set(sources), True, False, found.__setitem__)
    targets = [(source, recorder.own(found[node]).value) for node, source in sources.items() if node in found]
    equations = tuple(recorder.equations[forward:])
    made = {v for e in equations for v in e.outputs} | {s.value for s in symbols}
    wanted = [v for e in equations for v in e.values] + [v for _, v in targets]
    saved = list(dict.fromkeys(v for v in wanted if v not in made))
    given: dict[Value, Source] = {v: Given(i) for i, v in enumerate([*saved, *(s.value for s in symbols)])}
    graph = traced.graph
    results = (*graph.results[: traced.count], *(v for v in saved if v not in graph.inputs))
    traced.backward = Graph(given, equations, tuple(v for _, v in targets))
    traced.saved = saved
    traced.targets = [source for source, _ in targets]
    traced.graph = Graph(graph.inputs, graph.equations, results, graph.effects)
