"""One derivative being taken: its leaves, the run of the function on them, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from leafgrad import modes
from leafgrad.autograd import api, engine, forward
from leafgrad.autograd.functional import plain_zeros
from leafgrad.autograd.local import close, local, node, open_to, settled
from leafgrad.batching import pytree
from leafgrad.ops import dispatch
from leafgrad.ops.node import SEQ, Epoch, GraphNode, Version
from leafgrad.tensor.inplace import is_fixed, rebase, version
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.undone import Writes

Hook = Callable[[Tensor], Tensor | None]


class Level:
    """Within it the leaves are open and operations are recorded, whatever the mode outside.

    Attributes:
        recorded: whether recording was on outside, so that derivatives can be differentiated there.
        leaves: the tensors differentiated by.
        forward: whether by forward mode.
        writes: what was written meanwhile, for forward mode; one for all levels.
        epoch: what tensors that are made within it have at least.
        seq: what nodes that are recorded within it come after.
    """

    def __init__(self, forward: bool = False) -> None:
        self.recorded = modes.is_grad_enabled()
        self.leaves: list[Tensor] = []
        self.forward = forward
        outer = modes.DERIVATIVES.get()
        self.writes: Writes = outer[0].writes if outer else Writes()
        self._mode = modes.inference_mode(False)
        self._primals: list[tuple[Tensor, Tensor, GraphNode]] = []
        self._given: dict[Version, tuple[Tensor, GraphNode | None]] = {}

    def __enter__(self) -> Self:
        self._mode.__enter__()
        self.seq = next(SEQ)
        Epoch.now += 1
        self.epoch = Epoch.now
        self._token = modes.DERIVATIVES.set((*modes.DERIVATIVES.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        modes.DERIVATIVES.reset(self._token)
        self._mode.__exit__(kind, error, trace)
        close(self.leaves)
        for tensor, before in self._given.values():
            if tensor._node is not before:  # it was written
                tensor._node = before if not self.recorded else node(tensor) if open_to([tensor]) else None
        for source, tensor, before in self._primals:
            settled = self.settled(tensor)
            if self.recorded and tensor._node is not before and (source.requires_grad or settled.requires_grad):
                rebase(source, settled)

    def writable(self, values: Any, leaves: Any) -> Any:
        """The leaves made of ``values``, nested, for a function that may write into them, as forward mode allows."""
        if modes.tracer():  # where a leaf does not share its memory
            return leaves
        sources = iter(pytree.flatten(values)[0])

        def alias(leaf: Tensor) -> Tensor:
            source = next(sources)
            leaf._node.fixed = any(is_fixed(outside) for outside in leaf._node.edges)
            out: Tensor = dispatch.alias(leaf._data, leaf._node)
            out._writes = leaf._writes
            if any(d is not self and d.captured(source) for d in modes.DERIVATIVES.get()):
                out._epoch = source._epoch
            self._primals.append((source, out, leaf._node))
            return out

        return pytree.mapped(alias, leaves)

    def give(self, values: Any) -> None:
        """Arguments of the function, nested, by which it is not differentiated: it may write into them."""
        for value in pytree.flatten(values)[0]:
            if isinstance(value, Tensor):
                x = dispatch.inside(value)
                base = x if x._view is None else x._view.base
                self._given[version(base)] = base, base._node

    def kept(self, values: Any) -> Any:
        """Nested results of the function: those that it was given, as tensors that keep the history it gave them."""

        def own(value: Any) -> Any:
            if not isinstance(value, Tensor) or dispatch.inside(value)._writes not in self._given:
                return value
            found = node(value)  # of a view, after its base was written
            out: Tensor = dispatch.detach(dispatch.inside(value))
            out._epoch, out._node = Epoch.now, found
            return out

        return pytree.mapped(own, values)

    def captured(self, x: Tensor) -> bool:
        """Whether the memory of ``x`` was neither made by the function nor given to it."""
        return x._epoch < self.epoch and x._writes not in self._given

    def made(self, node: GraphNode) -> bool:
        """Whether the function has recorded ``node``."""
        return node.seq > self.seq

    def hooked(self, hook: Hook) -> Hook:
        """``hook`` for gradients of this derivative alone, and not for those of others that come along the graph."""

        def within(g: Tensor) -> Tensor | None:
            targets = engine.PASS.get().targets
            mine = targets is not None and any(leaf._node in targets for leaf in self.leaves)
            return hook(g) if mine else None

        return within

    def differentiable(self, values: Any) -> Any:
        """Nested tensors as leaves of this derivative."""

        def leaf(value: Any) -> Tensor:
            if not isinstance(value, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
            made = local(value, self.recorded)
            self.leaves.append(made)
            return made

        return pytree.mapped(leaf, values)

    def recall(self, outputs: list[Tensor]) -> None:
        """Let what the function recorded have the values from before they were written."""
        if self.writes.log:
            self.writes.undo(engine.reachable([n for out in outputs if (n := node(out)) is not None], self.seq))

    def settled(self, values: Any) -> Any:
        """Nested results as they are outside; after the end of this derivative."""
        leaves, structure = pytree.flatten(values)
        return pytree.unflatten(structure, iter(settled(leaves, self.recorded)))


def vjps(outputs: list[Tensor], leaves: list[Tensor], gradients: list[Tensor] | None, retain: bool) -> list[Tensor]:
    """The gradients of ``outputs`` by ``leaves``, zeros where there is none; recorded where someone may want that."""
    pairs = [
        (o, None if gradients is None else g)
        for o, g in zip(outputs, gradients or outputs, strict=True)
        if o.requires_grad
    ]
    recorded = modes.is_grad_enabled() and is_open(outputs, gradients)
    if not pairs:
        return [plain_zeros(x) for x in leaves]
    found = api.grad(
        [o for o, _ in pairs],
        leaves,
        None if gradients is None else [g for _, g in pairs],
        retain_graph=retain or recorded,
        create_graph=recorded,
        allow_unused=True,
    )
    return settled([plain_zeros(x) if g is None else g for x, g in zip(leaves, found, strict=True)], recorded)


def jvps(
    level: Level, outputs: list[Tensor], leaves: list[Tensor], tangents: list[Tensor], strict: bool = False
) -> list[Tensor]:
    """The derivatives of ``outputs`` as ``leaves`` move along ``tangents``; recorded where someone may want that."""
    recorded = modes.is_grad_enabled() and is_open(outputs, tangents)
    level.recall(outputs)
    found = forward.push(tuple(outputs), tuple(leaves), tuple(tangents), recorded, strict)
    return settled(list(found), recorded)


def is_open(outputs: list[Tensor], others: list[Tensor] | None) -> bool:
    """Whether a derivative of ``outputs`` depends on something that may be differentiated by outside."""
    return bool(open_to(outputs)) or any(t.requires_grad for t in others or ())
