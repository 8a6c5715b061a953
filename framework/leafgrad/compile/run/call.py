"""A traced call that can be repeated: arrays gathered, the program run, effects applied, results wrapped."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from leafgrad import modes
from leafgrad.batching.pytree import unflatten
from leafgrad.compile.guard.ancestry import collected
from leafgrad.compile.guard.conditions import Miss
from leafgrad.compile.guard.guards import Guards
from leafgrad.compile.ir.draws import States, restore
from leafgrad.compile.ir.effects import complete, plan_effects
from leafgrad.compile.ir.graph import Effect, Graph, SetData, SetRequiresGrad, Value, Write
from leafgrad.compile.ir.locks import Occupied
from leafgrad.compile.ir.memory import laid_out
from leafgrad.compile.ir.sources import Argument, Captured, Expression, Grad, Source
from leafgrad.compile.record.gradients import Pullback
from leafgrad.compile.record.shared import set_memory
from leafgrad.compile.record.trace import Slot, Traced
from leafgrad.compile.run.alike import adopts
from leafgrad.compile.run.backward import Backward, Refused, Saved, plan_saved
from leafgrad.compile.run.followed import Followed
from leafgrad.compile.run.following import Following
from leafgrad.compile.run.idle import is_small
from leafgrad.compile.run.lengths import Lengths
from leafgrad.compile.run.numbers import NumberInputs, Strayed, SymbolicValues
from leafgrad.compile.run.runner import Prepared, Runner
from leafgrad.errors import CompileError
from leafgrad.ops import dispatch
from leafgrad.ops.node import GraphNode, Node, Version
from leafgrad.signals import raised_by_handler
from leafgrad.tensor import inplace, view

Leaves = Sequence[Any]
Early = Mapping[Any, Any]  # gradients that were there before
Made = tuple[Node, list[GraphNode], tuple[Any, ...]]  # a node, those of its results, and where outside it leads


class Failed(Exception):
    """An op refused what it was given, before any effect."""


class Call:
    """One closed program of a compiled function.

    Attributes:
        guards: when it may be run.
        graph: the program.
        runner: what runs it; calls that do the same with other tensors have one.
        lengths: the runners of a program for arguments of any length; None where it is for one.
        pullbacks, backward: how its results are differentiated.
        hits, strays: how often it was run, and how often a value decided for a way that no program goes.
        trusted: whether a second run of the Python has confirmed it.
        short: whether it has few equations, and no backward pass.
        symbolic: the numbers that it computes by expressions; None if there are none.
        replaced: where it puts or appends what comes with its result.
        first: whether it was recorded at the first call, which may find what no other does, such as no gradients.
        thread: the only one that may run it, since it leaves something in places outside; None for any.
    """

    def __init__(
        self,
        traced: Traced,
        guards: Guards,
        name: str | None,
        known: Sequence[Call],
        followed: Followed | None,
        leaves: Leaves,
        waits: bool,
    ) -> None:
        self.guards = guards
        self.outputs = traced.outputs
        self.structure = traced.structure
        self.tensors = guards.given  # the place among the leaves of each tensor argument
        self.hits = self.strays = 0
        self.trusted = self.first = self.short = False
        self.thread = get_ident() if followed is not None and followed.stands else None
        self.count = traced.count
        self.aliases = traced.aliases
        refused = traced.gradients.refused.items()
        self.refused = {i: (Refused(error), self.nodes_of(sources)) for i, (sources, error) in refused}
        twin = next((call for call in known if adopts(traced, call.graph, call.pullbacks, call.count)), None)
        self.graph: Graph = traced.graph
        self.pullbacks: list[Pullback] = traced.gradients.pullbacks
        self.lengths: Lengths | None
        self.runner: Runner
        if twin is not None:
            self.lengths, self.runner = twin.lengths, twin.runner
        elif guards.symbolic.lengths:
            self.lengths = Lengths(self.graph, traced.decisions, name)
        else:
            self.lengths, self.runner = None, Runner(Prepared(self.graph, name), waits=waits)
        if self.lengths is not None:
            self.sizes = guards.expressions(self.lengths.texts)
            self.runner = self.lengths.runner(self.sizes(leaves))
        inputs = list(self.graph.inputs)
        self.effects = plan_effects(traced.graph)
        self.strides, self.versions = traced.strides, traced.versions
        self.views = len(traced.views)
        self.new_leaves = [e for e, _ in self.effects if isinstance(e, SetRequiresGrad)]
        self.backward: list[Backward] = self.differentiated(name) if twin is None else twin.backward
        self.saved = plan_saved(traced, inputs)
        self.seen = {owner for _, owner, _ in self.saved if isinstance(owner, int)}  # results that gradients need, too
        slots = [o.source for o in traced.outputs if isinstance(o, Slot) and not o.late]
        shown = [*slots, *(a.base for a in self.aliases.values()), *(owner for _, owner, _ in self.saved)]
        self.early = [s for s in shown if isinstance(s, Grad)]  # tensors that others may be in place of when it has run
        follows = guards.symbolic.used or traced.items
        written = [] if followed is None else followed.written
        self.symbolic = SymbolicValues(traced, guards, inputs, written) if follows else None
        self.replaced = [] if followed is None else [w._replace(number=None, before=None) for w in followed.replaced]
        self.gather = self.gathering([traced.graph.inputs[v] for v in inputs], inputs)
        rest = self.effects[len(self.new_leaves) :]
        parts = [[p for p in rest if isinstance(p[0], SetData) is new] for new in (False, True)]  # memory that is left
        self.acts = [self.acting(part) for part in parts if part]  # is written first
        behind = traced.ancestors
        self.roots, self.freed = behind.roots, [behind.numbers[node] for node in behind.freed]
        self.pure = not (self.effects or self.replaced or written or self.backward or self.freed)
        self.edges = [self.nodes_of([t for t in p.targets if not isinstance(t, int)]) for p in self.pullbacks]

    def differentiated(self, name: str | None) -> list[Backward]:
        """How its results are differentiated."""
        results = self.graph.results
        return [
            Backward(p, [results[i] for i in p.results], lambda graph: Runner(Prepared(graph, name)))
            for p in self.pullbacks
        ]

    def gathering(
        self, sources: Sequence[Source], values: Sequence[Value]
    ) -> Callable[[Leaves, Sequence[Any], Sequence[Any]], list[Any]]:
        """The function of leaves, of numbers that expressions give and of what the graph behind the leaves keeps, that
        returns the arrays of the inputs.
        """
        parts: list[str] = []
        computed: list[Any] = []
        for source, variable in zip(sources, values, strict=True):
            if isinstance(source, Expression):
                parts.append(f"n[{len(computed)}]")
                computed.append((variable.dtype, variable.place))
            else:
                parts.append(self.guards.array_of(source))
        numbers = [f"n = {self.guards.name(NumberInputs(computed))}(given)"] * bool(computed)
        return self.guards.function("leaves, given, kept", [*numbers, f"return [{', '.join(parts)}]"])

    def nodes_of(self, sources: Sequence[Source]) -> Callable[[Leaves], tuple[Any, ...]]:
        """The function of leaves that gives the nodes of sources' tensors."""
        names = [self.guards.name_of(source) for source in sources]
        return self.guards.function("leaves", [f"return ({''.join(f'{self.guards.node_of(t)}, ' for t in names)})"])

    def acting(self, effects: Sequence[tuple[Effect, int | None]]) -> Callable[[Leaves, Sequence[Any]], None]:
        """The function of leaves and the program's arrays that does to tensors what the function did.

        It may be called twice. That leaves require grad comes before it, since nodes come between.
        """
        lines: list[str] = []
        targets: list[str] = []
        grads: list[str] = []
        pairs: list[str] = []  # of arrays on other devices, and what is written there
        for effect, k in effects:
            t = self.guards.name_of(effect.source)
            if isinstance(effect, Write):
                host = effect.value is not None and effect.value.place == ("cpu", 0)
                lines += [f"t{k} = {t}"]  # a gradient may be another one later
                lines += [f"{f't{k}._data[...] = arrays[{k}]' if host else f'd{k} = t{k}._data'}"]
                pairs += [] if host else [f"(d{k}, arrays[{k}])"]
                targets += [f"t{k}"] * effect.times
            elif isinstance(effect, SetData):
                lines += [f"t{k} = {t}", f"{self.guards.name(set_memory)}(t{k}, arrays[{k}])"]
                targets += [f"t{k}"] * effect.times
            elif k is None:
                lines += [f"if {t}._leaf is not None: {t}._leaf.grad, {t}._leaf.passes = None, 0"]
            else:
                lines += [f"leaf = {t}._leaf or {t}._accumulator()", "leaf.grad, leaf.passes = next(made), 0"]
                grads += [f"arrays[{k}]"]
        if grads:
            lines = [f"made = iter({self.guards.name(dispatch.aliases)}([{', '.join(grads)}]))", *lines]
        if pairs:
            lines += [f"{self.guards.name(self.deliver)}([{', '.join(pairs)}])"]
        if targets:
            lines += [f"{self.guards.name(written)}({', '.join(targets)})"]
        return self.guards.function("leaves, arrays", lines)

    def deliver(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Write what the program returned into arrays on other devices."""
        self.ran.deliver(pairs)

    @property
    def ran(self) -> Runner:
        """What ran the program last."""
        return self.runner if self.lengths is None else self.lengths.last

    def is_idle(self, leaves: Leaves | None = None) -> bool:
        """Whether it is of no use for these arguments; None: for those of the last call."""
        runner = self.ran if leaves is None or self.lengths is None else self.lengths.runners.get(self.sizes(leaves))
        return self.short and runner is not None and is_small(runner.before, runner.elements)

    def is_left_by(self, followed: Followed | None) -> bool:
        """Whether a second recording went another way, since a value that is computed was another one."""
        if followed is None or not followed.numbers.follows:
            return False
        return followed.symbolic.outcomes.keys() != self.guards.symbolic.outcomes.keys()

    def can_be_compared(self, followed: Followed | None) -> bool:
        """Whether a second recording followed all that this one did."""
        if self.symbolic is not None and (followed is None or followed.following.stopped):
            return False
        reads = self.symbolic is not None and bool(self.symbolic.items)
        follows, lengths = (False, {}) if followed is None else (followed.numbers.follows, followed.symbolic.lengths)
        return (follows or not reads) and lengths == self.guards.symbolic.lengths

    def strayed(self) -> Miss:
        """Why it was run in vain."""
        paths = [path for path, _ in self.guards.symbolic.outcomes.values()]
        return Miss(0, ", ".join(dict.fromkeys(paths)), "on one side of a test", "on the other side")

    def __call__(self, leaves: Leaves, checks: bool, drawn: States, following: Following | None = None) -> Any:
        """What the function would return, with everything done that it would do.

        Args:
            checks: whether the program is compared with one that is run op by op.
            drawn: generators and their states before the leaves were drawn; those of the program are added. What is
                there after an error is to be restored, since nothing is done.
            following: what the function follows, where its own thread alone may run this; else Occupied is raised.
        """
        if following is not None and (following.shared or self.thread != get_ident()):
            raise Occupied
        self.hits += 1
        symbolic, known = self.symbolic, len(drawn)
        try:
            given = () if symbolic is None else symbolic.compute_early(leaves)
            kept, freed = ([], []) if (behind := self.guards.behind) is None else collected(behind, leaves)
            inputs = self.gather(leaves, given, kept)
            runner = self.runner if self.lengths is None else self.lengths.runner(self.sizes(leaves))
            arrays = runner(inputs, checks, drawn)
            for k, strides in self.strides:
                if strides is not None or not arrays[k].flags.c_contiguous:  # as seldom
                    arrays[k] = laid_out(arrays[k], strides)
        except Exception as error:
            if isinstance(error, (CompileError, MemoryError)) or raised_by_handler(error):
                raise
            raise Failed from error
        try:
            numbers = {} if symbolic is None else symbolic.after(leaves, given, arrays)
        except Strayed:
            restore(drawn[known:])
            raise
        early = {source: self.tensor(source, leaves, {}) for source in self.early} if self.early else {}
        if self.pure:
            result = self.result(self.tensors_of(arrays, leaves, (), {}, early), early, numbers, leaves)
            drawn.clear()
            return result
        for e in [e for e, _ in self.effects if isinstance(e, Write)] if modes.DERIVATIVES.get() else ():
            inplace.check_captured(self.tensor(e.source, leaves, early), "copy")
        nodes: list[Made] = []
        edges: list[tuple[Any, ...]] = []
        seen = {i: dispatch.alias(arrays[i]) for i in self.seen} if self.seen else {}
        late: list[Callable[[], Any]] = []  # apart from the steps, so that nothing refers to itself

        def find_edges() -> None:
            edges[:] = [of(leaves) for of in self.edges]  # those of views are made anew when the call has written

        def make_nodes() -> None:
            saved = self.save(leaves, [*inputs, *arrays], seen, early)
            made = [b.node([saved[v] for v in b.saved]) for b in self.backward]
            nodes[:] = [(*one, of) for one, of in zip(made, edges, strict=False)]

        def give() -> None:
            nonlocal result
            result = self.result(self.tensors_of(arrays, leaves, nodes, seen, early), early, numbers, leaves)
            if self.replaced:
                result, tensors = result
                late[:] = [w.step(t) for w, t in zip(self.replaced, tensors, strict=True)]

        frees = [node.release for node in freed] if freed else []
        marks = [self.tensor(e.source, leaves, early).requires_grad_ for e in new] if (new := self.new_leaves) else []
        acts: list[Callable[[], Any]] = [partial(act, leaves, arrays) for act in self.acts]
        first, last = ([find_edges], [make_nodes]) if self.backward else ([], [])
        steps: list[Callable[[], Any]] = [*[drawn.clear] * bool(drawn), *frees, *marks, *first, *acts, *last]
        steps += [] if symbolic is None or not symbolic.written else symbolic.leaving(leaves, numbers)
        complete([*steps, give, partial(complete, late)] if self.replaced else [*steps, give])
        return result

    def tensors_of(
        self, arrays: Sequence[Any], leaves: Leaves, nodes: Sequence[Made], seen: dict[int, Any], early: Early
    ) -> list[Any]:
        """The tensors that the program made, those that are ``seen`` with the versions of these."""
        made = dispatch.aliases(arrays[: self.count])
        for i, tensor in seen.items():
            made[i]._writes = inplace.version(tensor)
        for i, alias in self.aliases.items():
            base = made[alias.base] if isinstance(alias.base, int) else self.tensor(alias.base, leaves, early)
            made[i] = view.result(base, alias.steps, alias.apart, alias.whole, alias.origin)
        for i, (refused, led_to) in self.refused.items():
            refused.attach(made[i], led_to(leaves))
        for (node, ends, edges), pullback in zip(nodes, self.pullbacks, strict=False):
            outside = iter(edges)
            node.edges = tuple([made[t]._node if isinstance(t, int) else next(outside) for t in pullback.targets])
            for i, end in zip(pullback.results, ends, strict=True):
                made[i]._node = end
        for version in self.versions:
            version.give(made)
        return made

    def result(self, made: Sequence[Any], early: Early, numbers: dict[str, Any], leaves: Leaves) -> Any:
        """What the function returns, of what the program made, what there was before, and numbers."""
        results: list[Any] = []
        for o in self.outputs:
            if isinstance(o, Expression):
                results.append(numbers[o.text])
            elif not isinstance(o, Slot):
                results.append(o)
            elif o.source is None:
                results.append(made[o.index])
            else:
                results.append(self.tensor(o.source, leaves, early))
        return results[0] if self.structure is None else unflatten(self.structure, iter(results))

    def owner(self, source: Argument | Captured, leaves: Leaves) -> Any:
        """The tensor that a source stands for."""
        return source.tensor if isinstance(source, Captured) else leaves[self.tensors[source.index]]

    def tensor(self, source: Source | None, leaves: Leaves, early: Early) -> Any:
        """The tensor, or gradient, that a source stands for; None for a Python number."""
        if isinstance(source, Grad):
            return early[source] if source in early else self.owner(source.of, leaves)._leaf.grad
        return self.owner(source, leaves) if isinstance(source, (Argument, Captured)) else None

    def save(self, leaves: Leaves, arrays: list[Any], seen: dict[int, Any], early: Early) -> dict[Value, Saved]:
        """What gradients need, with the tensors that must not be written until then."""
        saved: dict[Value, Saved] = {}
        for value, owner, k in self.saved:
            tensor = seen[owner] if isinstance(owner, int) else self.tensor(owner, leaves, early)
            saved[value] = tensor._data if k is None else arrays[k], tensor
        return saved


def written(*tensors: Any) -> None:
    """Their memory was written: later backward passes are to know."""
    versions = []
    for tensor in tensors:
        version = tensor._writes or inplace.version(tensor)
        if version is not dispatch.INFERENCE_VERSION:
            versions.append(version)
    Version.bump(*versions)
