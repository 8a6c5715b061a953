"""Run a function once with Symbols inside its Tensors, and keep the program and the effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.batching.pytree import flatten
from leafgrad.compile.ir import memory
from leafgrad.compile.ir.effects import plan_effects
from leafgrad.compile.ir.graph import Effect, Graph, SetData, SetGrad, SetRequiresGrad, Write
from leafgrad.compile.ir.keys import ProgramPart
from leafgrad.compile.ir.sources import Argument, Captured, Expression, Grad, Raw, Source
from leafgrad.compile.record.ancestors import Ancestors, Owner
from leafgrad.compile.record.gradients import Gradients, gradients_of, saving
from leafgrad.compile.record.kept import check_kept, check_made
from leafgrad.compile.record.layouts import Decision
from leafgrad.compile.record.recorder import Recorder
from leafgrad.compile.record.shared import owner
from leafgrad.compile.record.strict import StrictRecorder
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import SymbolicNumber
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.versions import Counts, VersionOf, versions_of
from leafgrad.errors import TraceError
from leafgrad.ops import messages
from leafgrad.ops.node import Leaf
from leafgrad.signals import interruptible
from leafgrad.tensor import inplace
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import is_own_leaf

IMMUTABLE = (bool, int, float, complex, str, bytes, type(None))


@dataclass
class Traced:
    """What a trace gives.

    Attributes:
        graph: the program of the call.
        outputs: the function's result, with each tensor replaced by a ``Slot``.
        structure: how to rebuild the result from its leaves.
        touched: sources whose ``.grad`` was looked at, with whether it was None.
        views: captured views.
        count: how many results are for the caller; those after them are for ``gradients``.
        gradients: how results are differentiated.
        aliases: which results are in the memory of others.
        items: which results are read as numbers, by the number in their names ``r0``, ``r1``, ….
        memory: what has the memory of each value that gradients need: a source, a result or None.
        strides: of results and new gradients, by number among what the program returns, in bytes; None: C order.
        versions: of results, where they are not new ones or those of their bases.
        ancestors: the graph behind tensors from outside through which the call has differentiated.
        decisions: on memory that depend on sizes, of a program for arguments of any length.
    """

    graph: Graph
    outputs: list[Any]
    structure: Any
    touched: list[tuple[Owner, bool]]
    views: list[Tensor]
    count: int
    gradients: Gradients
    aliases: dict[int, Alias]
    items: dict[int, int]
    memory: list[Owner | int | None]
    strides: list[tuple[int, tuple[int, ...] | None]]
    versions: list[VersionOf]
    ancestors: Ancestors
    decisions: list[Decision] = field(default_factory=list)

    @property
    def captured(self) -> list[Tensor]:
        """The tensors that the function reached from outside."""
        found = [*self.graph.inputs.values(), *(s for s, _ in self.touched), *(e.source for e in self.graph.effects)]
        found += self.ancestors.roots
        found += [slot.source for slot in self.outputs if isinstance(slot, Slot) and slot.source is not None]
        found += [a.base for a in self.aliases.values() if not isinstance(a.base, int)]
        owners = [s.of if isinstance(s, Grad) else s for s in found]
        return list({id(s.tensor): s.tensor for s in owners if isinstance(s, Captured)}.values())


@dataclass(frozen=True)
class Slot(ProgramPart):
    """Stands in a result for the ``index``-th value, or for a tensor that exists: that of ``source``.

    ``late``: the ``.grad`` that the source's tensor has after all effects, rather than before.
    """

    index: int
    source: Source | None = None
    late: bool = False


@dataclass(frozen=True)
class Alias(ProgramPart):
    """A result that is a view: of the tensor of a source, or of another result.

    ``apart``: without its history. ``whole``: made by detach. ``origin``: why it must not be written.
    """

    base: Source | int
    steps: Any
    apart: bool
    whole: bool
    origin: str | None


@contextmanager
def recording(recorder: Any) -> Iterator[None]:
    """Within it ops are recorded. A mode that the function leaves behind stays, as after any call."""
    outer, modes.HERE.tracer = modes.HERE.tracer, recorder
    modes.FLAGS.set(modes.get() | modes.TRACE)
    try:
        yield
    finally:
        modes.FLAGS.set(modes.get() & ~modes.TRACE)
        modes.HERE.tracer = outer


def trace_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """Trace ``function(*args, **kwargs)``. No tensor is changed by it.

    Raises:
        TraceError: the function needs values, or does what a program cannot.
    """
    if modes.tracer():
        raise TraceError("a trace is running already in this thread")
    leaves, _ = flatten((args, kwargs))
    recorder = StrictRecorder([t for t in leaves if isinstance(t, Tensor)])
    before, default = modes.get(), dtypes.get_default_dtype()
    try:
        with recording(recorder):
            result = interruptible(function, *args, **kwargs)
            if modes.get() & ~modes.TRACE != before or sets_default(default):
                raise TraceError(
                    "a traced function leaves another gradient mode or default dtype behind than it found; use "
                    "`with leafgrad.set_grad_enabled(...)` inside it, and set_default_dtype outside"
                )
            found = finish(recorder, result)
            check_kept(recorder, result)
            return found
    finally:
        recorder.undo()
        if sets_default(default):
            dtypes.set_default_dtype(default)
        modes.FLAGS.set(before)


def sets_default(before: dtypes.dtype) -> bool:
    """Whether the default dtype is another than before, and not since another thread set it."""
    return dtypes.get_default_dtype() is not before and dtypes.default_set_here()


# ---- what a call leaves behind ------------------------------------------------------------------------------------


def finish(recorder: Recorder, result: Any, written: Sequence[Any] = ()) -> Traced:
    """The program of a recorded call, which leaves ``written`` numbers behind. Nothing is recorded after it.

    Raises:
        Unclosed: the call did what a program cannot.
    """
    effects = tuple(effects_of(recorder))
    leaves, structure = flatten(result)
    check_gradients(recorder, [leaf for leaf in leaves if isinstance(leaf, Tensor)])
    outputs, tensors = outputs_of(recorder, leaves)
    numbers = [n for n in (*leaves, *written) if type(n) is SymbolicNumber]
    items: dict[int, int] = {}
    wanted = {k for n in numbers for k in n._items}
    if recorder.numbers is not None:
        wanted |= {k for _, read in recorder.numbers.outcomes.values() for k in read}
        items = {k: place(tensors, recorder.numbers.items[k]) for k in sorted(wanted)}
    aliases: dict[int, Alias] = {}
    bases = Counter(id(owner(t)) for t in tensors)
    for i, t in enumerate(tensors):  # grows
        if t._view is not None:
            base, steps, apart = shown_by(t)
            held, plain = recorder.inner.get(id(base)), isinstance(base._data, Symbol)
            if any(o.before is base for o in recorder.outside.values()):
                raise Unclosed("it returns memory that t.data = ... has taken away from a tensor")
            if held is not None:
                aliases[i] = Alias(held.source, steps, apart, t._view.whole, t._view.origin)
            elif bases[id(base)] > 1 or (plain and inplace.overlaps(recorder.layout(t))):  # else nobody can tell
                if not plain:
                    raise Unclosed("it returns several tensors in one memory, which was made within vmap")
                aliases[i] = Alias(place(tensors, base), steps, apart, t._view.whole, t._view.origin)
    check_made(
        recorder, [*tensors, *(g for _, before, g in recorder.grads.values() if g is not None and g is not before)]
    )
    values = [recorder.lift(t).value for t in tensors]
    inputs = dict(recorder.sources)
    raw = next((v for v, s in inputs.items() if isinstance(s, Raw)), None)
    if raw is not None:
        raise Unclosed("it makes tensors of arrays or values that are not the same at each call")
    graph = Graph(inputs, tuple(recorder.equations), tuple(values), effects)
    touched = [(source, before is None) for source, before, _ in recorder.grads.values() if source is not None]
    views = [o.tensor for o in recorder.outside.values() if o.inner._view is not None and o.tensor._view is not None]
    gradients = gradients_of(recorder, graph, {i: t for i, t in enumerate(tensors) if t._node is not None})
    memory = gradients.kept_in(recorder, {i: t for i, t in enumerate(tensors) if i not in aliases})
    graph = saving(recorder, graph, gradients.saved, memory)
    strides = strides_of(recorder, graph, {i: t for i, t in enumerate(tensors) if i not in aliases})
    return Traced(
        graph, outputs, structure, touched, views, len(values), gradients, aliases, items, memory, strides,
        versions_of(recorder, tensors), recorder.ancestors,
    )  # fmt: skip


def strides_of(
    recorder: Recorder, graph: Graph, results: dict[int, Tensor]
) -> list[tuple[int, tuple[int, ...] | None]]:
    """Those of results, new gradients and memory. What is made of arrays in C order lies like that, and is left out."""
    views = any("view" in e.op.traits for e in graph.equations)
    if not views and not recorder.orders and all(a.flags.c_contiguous for a in recorder.known.values()):
        return []
    made = [g for source, before, g in recorder.grads.values() if source is not None and g is not before]
    made += [o.inner for o in recorder.outside.values() if o.before is not None]
    tensors = {recorder.lift(t).value: t for t in made if t is not None}
    planned = [(e.value, k) for e, k in plan_effects(graph) if isinstance(e, (SetGrad, SetData))]
    new = {k: tensors[value] for value, k in planned if k is not None and value is not None}
    return [(k, recorder.strides(t)) for k, t in (results | new).items()]


def shown_by(t: Any) -> tuple[Any, Any, bool]:
    """The tensor whose memory a view shows, the steps that lead there, and whether it has no part in its history.

    The base of a view is a view itself where it is a leaf of its own.
    """
    base, steps, apart = t._view.base, t._view.steps, t._view.detached
    while base._view is not None:
        base, steps, apart = base._view.base, (*base._view.steps, *steps), True
    return base, steps, apart


def outputs_of(recorder: Recorder, leaves: Sequence[Any]) -> tuple[list[Any], list[Tensor]]:
    """What stands for the leaves of a result, and the tensors among them that the call made."""
    late = {id(after): Grad(s) for s, before, after in recorder.grads.values() if s is not None and after is not before}
    outputs: list[Any] = []
    tensors: list[Tensor] = []
    slots: dict[int, Slot] = {}
    for leaf in leaves:
        if type(leaf) is SymbolicNumber:
            outputs.append(Expression(leaf._text))
            continue
        if not isinstance(leaf, Tensor):
            if type(leaf) not in IMMUTABLE:
                raise Unclosed(f"it returns a {type(leaf).__name__}, which has to be made anew at each call")
            outputs.append(leaf)
            continue
        if id(leaf) not in slots:
            if id(leaf) in late:
                slots[id(leaf)] = Slot(-1, late[id(leaf)], late=True)
            elif id(leaf) in recorder.inner:  # what stands for an argument of any length
                slots[id(leaf)] = Slot(-1, recorder.inner[id(leaf)].source)
            elif isinstance(leaf._data, Symbol):
                slots[id(leaf)] = Slot(place(tensors, leaf))
            else:
                recorder.inside(leaf)
                slots[id(leaf)] = Slot(-1, recorder.outside[id(leaf)].source)
        outputs.append(slots[id(leaf)])
    return outputs, tensors


def place(tensors: list[Tensor], t: Tensor) -> int:
    """The number of a tensor among results, of which it becomes one."""
    for i, known in enumerate(tensors):
        if known is t:
            return i
    tensors.append(t)
    return len(tensors) - 1


def effects_of(recorder: Recorder) -> list[Effect]:
    """What the call did to tensors from outside."""
    found: list[Effect] = []
    counts = Counts()
    for o in list(recorder.outside.values()):
        if o.inner._view is not None:
            if is_own_leaf(o.inner) and o.inner._node is not o.node:
                raise changed(o.tensor)
            node = o.inner._history
            if node is not None and node is not o.node and node.hooked:
                raise Unclosed("a view whose base it has written has a hook or retains its gradient")
            continue
        if o.before is not None:
            found.append(SetData(o.source, o.inner._data.value, counts.of(o)))
        elif o.written:
            found.append(Write(o.source, o.inner._data.value, counts.of(o)))
        if o.inner._node is not o.node:
            if o.node is None and isinstance(o.source, Argument) and type(o.inner._node) is Leaf:
                found.append(SetRequiresGrad(o.source))
            else:
                raise changed(o.tensor)
    check_overlap(recorder)
    for source, before, after in recorder.grads.values():
        if after is before or source is None:
            continue
        if after is not None and not isinstance(after._data, Symbol):
            raise Unclosed("it puts a tensor from outside into .grad")
        if after is not None and after._node is not None:
            raise Unclosed("backward(create_graph=True) leaves a .grad that is in a graph")
        found.append(SetGrad(source, None if after is None else recorder.lift(after).value))
    return sorted(found, key=lambda e: 2 * isinstance(e, SetGrad) + isinstance(e, SetData))


def check_gradients(recorder: Recorder, results: list[Tensor]) -> None:
    """Unclosed if a new ``.grad`` shares its memory with another tensor that stays: a program gives it its own."""
    new = [g for source, before, g in recorder.grads.values() if source is not None and g is not before]
    new = [g for g in new if g is not None]
    others = {id(t): t for t in results if all(t is not g for g in new)}
    owners = Counter(id(owner(t)) for t in [*new, *others.values()])
    for g in new:
        if id(owner(g)) in recorder.inner or owners[id(owner(g))] > 1:
            raise Unclosed("it puts a tensor into .grad that shares its memory with another one")


def changed(tensor: Tensor) -> Unclosed:
    return Unclosed(
        f"it changes whether or how a tensor from outside, {messages.describe(tensor)}, requires grad: by writing into "
        "it with recording on, detach_() or requires_grad_()"
    )


def check_overlap(recorder: Recorder) -> None:
    """Unclosed if memory that is written is also reached through another tensor."""
    written = [o for o in recorder.outside.values() if o.inner._view is None and o.written]
    for o in written:
        ours = o.tensor._data
        for value, source in recorder.sources.items():
            if source is not o.source and memory.overlap(ours, recorder.known[value]):
                raise Unclosed(
                    f"it writes into a tensor, {messages.describe(o.tensor)}, whose memory it also reaches through "
                    "another tensor, made outside by detach(), data or a slice"
                )
