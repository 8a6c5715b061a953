"""What tensors become when their program has run: ordinary ones, with arrays, gradients and versions of their own."""

from __future__ import annotations

from typing import Any

from leafgrad.autograd import engine
from leafgrad.compile.record.outside import Outside
from leafgrad.compile.record.recorder import Recorder
from leafgrad.compile.record.shared import owner
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.symbolic import settled
from leafgrad.ops import dispatch
from leafgrad.ops.node import Node, SymbolBase, Version
from leafgrad.tensor.view import follow, is_own_leaf


class Settler(Recorder):
    """A recorder whose programs have run, or run in parts: ``waiting`` has what their values are."""

    def give_gradients(self) -> None:
        for leaf, (_, before, after) in self.grads.items():
            if after is not before:
                leaf.grad, leaf.passes = after, 0

    def settle(self) -> None:
        """Make all tensors that somebody holds ordinary ones."""
        for o in self.outside.values():
            self.pass_on(o)
        for t in self.alive():
            self.settle_tensor(t)
        self.settle_nodes()

    def pass_on(self, o: Outside) -> None:
        """Give a tensor from outside what happened to the one that stands for it."""
        t: Any = o.tensor
        inner: Any = o.inner
        if t._leaf is None:
            t._leaf = inner._leaf
        if inner._view is not None:
            changed = t._history is not inner._history
            if changed and is_own_leaf(inner):
                t._node = inner._history
            elif changed and not inner._view.detached:  # of the version of its base that it was made at
                t._history, t._view.seen = inner._history, inner._view.seen
        elif inner._node is not o.node:
            dispatch.hand_over(t, o.node, inner._node)
            t._node = inner._node
        if inner._view is None and inner._writes is not t._writes:
            if t._writes is None:
                t._writes = inner._writes
            else:
                o.count()
                inner._writes = t._writes

    def settle_memory(self, tensor: Any) -> None:
        """Give a tensor that was made here its array, and all that have that memory, too."""
        base = owner(tensor)
        for t in self.alive():
            if id(t) not in self.inner and owner(t) is base:
                self.settle_tensor(t)

    def settle_tensor(self, t: Any) -> None:
        """Give a tensor that was made here its array."""
        o = self.inner.get(id(t))
        if o is not None:
            t._data = o.tensor._data
            if t._view is not None and (theirs := o.tensor._view) is not None:
                t._view.base, t._view.root, t._writes = theirs.base, theirs.root, o.tensor._writes
        elif (view := t._view) is not None:
            held = self.inner.get(id(view.base))
            if held is not None:
                view.of(held.tensor)
            elif isinstance(view.base._data, SymbolBase) or view.base._view is not None:
                self.settle_tensor(view.base)
            if view.base._writes is None:
                view.base._writes = Version()
            t._data = follow(view.base._data, view.steps)
            view.root = view.base._data
            t._writes = self.outer_version(t._writes) if t._writes.apart else view.base._writes
            if view.whole:
                t._view = None
        else:
            array = self.settled(t._data)
            written = array is not t._data and t._writes is not None and t._writes.count > 0
            t._data = dispatch.copied(array, "K") if written else array  # which the node of what wrote it may keep

    def outer_version(self, version: Version) -> Version:
        """The version for which one of the trace stands; itself if it stands for none."""
        return next((theirs for theirs, ours in self.versions.items() if ours is version), version)

    def settled(self, data: Any) -> Any:
        """The array that a symbol stands for."""
        if type(data) is Symbol:
            return self.waiting[data.value] if data.tracer is self else data
        if isinstance(data, SymbolBase) and hasattr(data, "array"):
            data.array = self.settled(data.array)
        return data

    def settle_nodes(self) -> None:
        """The same for outputs that nodes keep."""
        ends = dict.fromkeys([t._history for t in self.alive() if t._history is not None])
        for node in engine.reachable(ends, self.born):
            if not isinstance(node, Node) or node.seq < self.born:
                continue
            if self.numbers is not None and type(node.saved) is tuple:
                node.saved = tuple(map(settled, node.saved))
            if node.out is not None:
                several = type(node.out) is tuple
                node.out = tuple(map(self.settled, node.out)) if several else self.settled(node.out)
