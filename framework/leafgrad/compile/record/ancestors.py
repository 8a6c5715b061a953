"""The autograd graph behind what a call is given, through which a backward pass of the call goes.

What the nodes of that graph keep are inputs of the program. It serves later calls behind whose tensors the same graph
stands: the same ops with the same parameters, edges and leaves, which keep arrays of the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad import backends
from leafgrad.compile.ir.sources import Argument, Captured, KeptArray
from leafgrad.ops import dispatch
from leafgrad.ops.node import FREED, GraphNode, Leaf, Node, Output, TensorBase

MOST = 256  # nodes, each of which is looked at before each call

NUMBERS = frozenset({bool, int, float, type(None)})

Owner = Argument | Captured
Kept = tuple[Any, Any]  # an array or number, and the tensor that it belongs to, if any


def kept_by(node: Any) -> list[Kept]:
    """What a node keeps: what was given to its op, then what the op made."""
    saved = () if node.saved is FREED else node.saved  # a compiled call's are pairs already
    pairs = [s if type(s) is tuple else (s._data, s) if isinstance(s, TensorBase) else (s, None) for s in saved]
    return [*pairs, *((out, None) for out in (node.out if type(node.out) is tuple else (node.out,)))]


def extend(numbers: dict[GraphNode, int], root: GraphNode) -> None:
    """Number ``root`` and the nodes behind it after those that have a number; of too many a few are enough."""
    waiting = [root]
    for node in waiting:  # grows
        if node not in numbers and len(numbers) <= MOST:
            numbers[node] = len(numbers)
            waiting += [edge for edge in node.edges if edge is not None]


def is_plain(node: Any) -> bool:
    """Whether a node is no more than what is compared of nodes."""
    if type(node) is not Node:
        return type(node) is Leaf or (type(node) is Output and node.hooks is None)
    return node.hooks is None and all(type(kept) in NUMBERS or is_array(kept) for kept, _ in kept_by(node))


def is_array(kept: Any) -> bool:
    return type(kept) in backends.BACKENDS


def arrays_of(node: Any) -> list[Any]:
    """The arrays among what a node keeps."""
    return [kept for kept, _ in kept_by(node) if is_array(kept)] if type(node) is Node else []


def is_intact(node: Any) -> bool:
    """Whether nothing was written since a node kept it."""
    if type(node) is not Node:
        return True
    written = [node.version, *(t._writes for _, t in kept_by(node) if t is not None)]
    return all(version is None or version.seq <= node.seq for version in written)


def again(saved: Any, kept: Any) -> Any:
    """What a node saved, of which ``kept`` is the array or number."""
    if isinstance(saved, TensorBase):
        return dispatch.alias(kept)
    return (kept, saved[1]) if type(saved) is tuple else kept


class Ancestors:
    """The graph behind the tensors from outside, as far as one recorded call differentiates through it.

    Attributes:
        roots: those tensors.
        numbers: the nodes, in the order in which they are met.
        arrays: what they keep, by id, as inputs of a program.
    """

    def __init__(self) -> None:
        self.roots: list[Owner] = []
        self.numbers: dict[GraphNode, int] = {}
        self.arrays: dict[int, KeptArray] = {}
        self.before: list[tuple[Any, Any, Any]] = []  # nodes with what they kept before the call
        self.starts: list[GraphNode] = []  # of the roots
        self.count = 0

    def know(self, nodes: Iterable[Any], given: Iterable[tuple[Owner, Any]]) -> bool:
        """Whether a pass may go through ``nodes``, behind what is ``given``: sources of tensors, and their nodes."""
        met = len(self.numbers)
        for source, node in given:
            if not any(source is root for root in self.roots):
                self.roots.append(source)
                self.starts.append(node)
                extend(self.numbers, node)
        new = list(self.numbers)[met:]
        if len(self.numbers) > MOST or not all(map(is_plain, new)) or not self.numbers.keys() >= set(nodes):
            return False
        for node in new:
            if type(node) is Node:
                self.before.append((node, node.saved, node.out))
                for kept in arrays_of(node):
                    self.arrays.setdefault(id(kept), KeptArray(self.count))
                    self.count += 1
        return all(map(is_intact, nodes))

    def lift(self, nodes: Iterable[Any], symbol: Callable[[Any, KeptArray, Any], Any]) -> None:
        """Let ``nodes`` keep Symbols until the call is over, each of an array, an input, and its leaf, if any."""
        wanted = set(nodes)
        for node, saved, out in self.before:
            if node in wanted and node.saved is saved is not FREED:
                lifted = [self.lifted(kept, tensor, symbol) for kept, tensor in kept_by(node)]
                node.saved = tuple([again(s, to) for s, to in zip(saved, lifted, strict=False)])
                outs = lifted[len(saved) :]
                node.out = tuple(outs) if type(out) is tuple else outs[0]

    def lifted(self, kept: Any, tensor: Any, symbol: Callable[[Any, KeptArray, Any], Any]) -> Any:
        """What stands for what a node keeps, of a tensor perhaps."""
        if not is_array(kept):
            return kept
        return symbol(kept, self.arrays[id(kept)], self.leaf_of(kept, tensor))

    def leaf_of(self, kept: Any, tensor: Any) -> Any:
        """The leaf to which the graph leads whose data a node keeps, of a ``tensor`` that may stand for it, or None."""
        node = None if tensor is None else tensor._node
        owner = node.owner() if type(node) is Leaf and node in self.numbers else None
        return owner if owner is not None and owner._data is kept else None

    @property
    def freed(self) -> list[GraphNode]:
        """Those that the call has freed so far."""
        return [node for node, saved, _ in self.before if node.saved is FREED and saved is not FREED]

    @property
    def leaves(self) -> list[Any]:
        """The tensors to which the graph leads."""
        return [owner for node in self.numbers if type(node) is Leaf and (owner := node.owner()) is not None]

    def settle(self) -> None:
        """Let the nodes that are not freed keep arrays again."""
        for node, saved, out in self.before:
            if node.saved is not FREED:
                node.saved, node.out = saved, out

    def restore(self, freed: bool = True) -> None:
        """Let the nodes keep what they kept before the call, or only those that it has not ``freed``."""
        for node, saved, out in self.before:
            if freed or node.saved is not FREED:
                node.saved, node.out = saved, out

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Within it they do."""
        now = [(node, node.saved, node.out) for node, _, _ in self.before]
        self.restore()
        try:
            yield
        finally:
            for node, saved, out in now:
                node.saved, node.out = saved, out
