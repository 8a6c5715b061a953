"""What is recorded: the bare tensor, its version, and the nodes of the backward graph.

A tensor points to its node and a node points to earlier nodes, never back, so nothing here forms a
reference cycle and a graph is freed as soon as its last tensor is. A leaf's ``.grad`` lives in its Leaf node.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from leafgrad.ops import forms

# Nodes are numbered by birth. An edge always leads to an older node, so sorting by number is a
# topological sort; in-place writes draw from the same numbers, so "written after it was saved" is one comparison.
SEQ: Final = itertools.count(1)


class Version:
    """How often the memory of a tensor and its views was written in place, and when lately.

    Of the writes to what stands for a tensor in a trace, the version outside has ``counted`` so many. One that is
    ``apart`` is that of ``t.data``, which has the memory of ``t``. After the one numbered ``cut`` the tensor was
    detached in place. ``face`` is the tensor that its users know in place of the base, where that is hidden.
    """

    count = 0  # a default, like the others: most versions are made and never written
    seq = 0
    cut = -1
    counted = 0
    apart = False
    face: Any = None  # a weak reference
    earlier: tuple[int, ...] = ()  # the writes before the last one, as far as they are remembered

    @classmethod
    def of_data(cls) -> Version:
        """The version of ``t.data``."""
        made = cls()
        made.apart = True
        return made

    def bump(*versions: Version) -> None:
        """Each is written now."""
        for version in versions:
            version.count += 1
            version.earlier = (*version.earlier[-14:], version.seq)
            version.seq = next(SEQ)

    def count_at(self, seq: int) -> tuple[int, bool]:
        """How often it had been written at ``seq``, and whether that is certain: else it was no more often."""
        since = sum(written > seq for written in (*self.earlier, self.seq))
        return self.count - since, since < 16


class Epoch:
    """How many derivatives have begun. A tensor keeps the number, which says whether it was there before one."""

    now = 0


T = TypeVar("T", bound="TensorBase")  # what functions of a tensor give back


class TensorBase:
    """The state of a tensor; ``leafgrad.Tensor`` adds the behaviour.

    ``_data`` is a raw array or a Symbol; ``_node`` is None unless the tensor requires grad; ``_leaf`` keeps
    ``.grad`` and hooks of a leaf; ``_writes`` is made at the first view, in-place write or saved output; ``_view`` is
    None unless the tensor is a view. Then ``_history`` is its node as far as writes of its base have been followed.
    ``_epoch`` is the Epoch in which its memory was made, or taken up.
    """

    __slots__ = ("__dict__", "__weakref__", "_data", "_epoch", "_history", "_leaf", "_view", "_writes")

    _data: Any
    _epoch: int
    _history: Any
    _leaf: Any
    _view: Any
    _writes: Any

    @property
    def _node(self) -> Any:
        view = self._view
        return self._history if view is None or self._writes.seq <= view.seen else view.node(self)

    @_node.setter
    def _node(self, node: Any) -> None:
        self._history = node
        if self._view is not None:
            self._view.given(node)


class SymbolBase:
    """A value that ops are not simply computed on. ``bind`` says what an op does instead: a Symbol records it.

    ``place``: its device type and index. ``level``: where several meet in an op, the one of the highest level decides;
    0 for a Symbol, more for a Batched.
    """

    __slots__ = ()

    level: int = 0
    __array_ufunc__ = None  # it has no elements that NumPy could compute with

    @property
    def place(self) -> tuple[str, int]:
        raise NotImplementedError

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        raise NotImplementedError

    def withheld(self, what: str) -> Exception:
        """The error of one who asks for its elements by ``what``."""
        raise NotImplementedError

    def beside(self, data: Any) -> Any:
        """Raw ``data``, made for use with this, in a form that can be written where this can."""
        return data

    def opened(self) -> tuple[Any, Callable[[Any], Any]]:
        """What is inside of all batches, and the function that puts a value like it there again."""
        return self, lambda data: data

    def of(self, function: Callable[[Any], Any]) -> Any:
        """The same batch with what a function makes of the array, Symbol or Batched inside."""
        raise NotImplementedError

    def overwritten(self, data: Any) -> Any:
        """What stands here when raw ``data`` of its shape, perhaps the same for all samples, is written over it."""
        return data

    def memory(self) -> Any:
        """The raw array in which it lies; None where that is not known."""
        return None

    def sample(self) -> Any:
        """A raw array that lies in memory as one sample does; None where that is not known."""
        return None

    def check_target(self, data: Any) -> None:
        """An error if this cannot be written into raw ``data``."""


Functions = dict[int, Callable[..., Any]]


class Hooks:
    """What users attached to a node.

    Attributes:
        functions: called with the gradient of one tensor, in order.
        retained: the leaves of the tensors that keep it.
        before: called with the gradients of all outputs, before the node passes them on.
        after: called with the gradients of its inputs and of its outputs, once it has.
        accumulated: called with a leaf whose ``.grad`` is complete.
        settled: called once when all gradients of a pass are in place, however many leaves have it.
        metadata: whatever else; see ``autograd.graph.Node``.
    """

    __slots__ = ("accumulated", "after", "before", "functions", "metadata", "retained", "settled")

    def __init__(self) -> None:
        self.functions: Functions = {}
        self.before: Functions = {}
        self.after: Functions = {}
        self.accumulated: Functions = {}
        self.settled: Functions = {}
        self.retained: list[weakref.ref[Leaf]] = []
        self.metadata: dict[Any, Any] = {}

    def all(self) -> tuple[Callable[..., Any], ...]:
        """Every function, in the order of the calls."""
        kinds = self.functions, self.before, self.after, self.accumulated, self.settled
        return tuple([function for kind in kinds for function in kind.values()])


class GraphNode:
    """What every node of the backward graph has: who comes before it, its birth, its output's shape, its hooks."""

    __slots__ = ("__weakref__", "edges", "hooks", "seq", "shape")

    edges: tuple[Any, ...]
    seq: int
    shape: tuple[int, ...]
    hooks: Hooks | None

    def name(self) -> str:
        """The node's name as PyTorch spells it, e.g. ``"MulBackward0"``."""
        raise NotImplementedError

    @property
    def hooked(self) -> bool:
        """Whether a gradient that comes here meets a hook, or is retained."""
        return self.hooks is not None and bool(self.hooks.all() or self.hooks.retained)

    def attached(self) -> Hooks:
        """Its hooks, ready to take more."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks


class Leaf(GraphNode):
    """Where the gradient of one leaf accumulates."""

    __slots__ = ("dtype", "grad", "owner", "passes")

    passes: int  # how many backward passes are in grad; 0 if it came otherwise; below 0: in one that was taken away

    fixed = True  # whether recorded writes into its tensor are refused

    def __init__(self, tensor: TensorBase) -> None:
        self.edges = ()
        self.seq = next(SEQ)
        self.shape = tensor._data.shape
        self.dtype = tensor._data.dtype
        self.hooks = None
        self.grad: Any = None
        self.passes = 0
        self.owner = weakref.ref(tensor)

    def name(self) -> str:
        return "AccumulateGrad"


class Freed:
    """Stands in for saved values that a backward pass has released."""

    def __repr__(self) -> str:
        return "<freed>"


FREED: Final = Freed()
EMPTY: Final[dict[str, Any]] = {}


class Node(GraphNode):
    """One recorded call of an op: which arguments came from where, and what its rules asked to be kept."""

    __slots__ = (
        "dtypes", "ends", "op", "out", "params", "results", "saved", "shapes", "shown", "takes", "version", "where"
    )  # fmt: skip

    op: Any
    params: dict[str, Any]
    saved: Any  # per argument: the Tensor or value that some rule reads, else None; () if none is read
    out: Any  # the raw output, if some rule reads it
    version: Version | None  # the version of out's memory
    shapes: tuple[Any, ...] | None  # per argument, if some rule reads a shape
    dtypes: tuple[Any, ...]  # of each output of an op that has several, or is not this package's
    takes: tuple[Any, ...]  # the dtype of each argument, None of a number; of an op that is not this package's
    ends: dict[int, weakref.ref[Output]]  # the living Outputs of an op that has several
    results: dict[int | None, GraphNode]  # the nodes that its outputs have, where it stands for another for a while
    where: str  # the forward line, under anomaly detection only
    shown: tuple[str, tuple[Any, ...]]  # the name and edges of the function that made it, if that is more than the op

    def name(self) -> str:
        return forms.form_of(self)[0]

    def release(self) -> None:
        """Let go of what the rules needed. Nodes that kept nothing may run again."""
        if self.saved or self.out is not None:
            self.saved = FREED
            self.out = None


def transparent(node: GraphNode) -> bool:
    """Whether a node only hands a tensor over to a batch. What is not an op's node, but a compiled call's, does not."""
    return isinstance(node, Node) and getattr(node.op, "transparent", False)


class Output(GraphNode):
    """One output of an op that has several; passes its gradient on into its slot."""

    __slots__ = ("index", "source")

    index: int
    source: Node

    @classmethod
    def each(cls, source: Node, shapes: Iterable[tuple[int, tuple[int, ...]]]) -> list[Output]:
        """New ones, by number and shape."""
        made = []
        for index, shape in shapes:
            end = object.__new__(cls)
            end.edges, end.source, end.index = (source,), source, index
            end.seq, end.shape, end.hooks = next(SEQ), shape, None
            source.ends[index] = weakref.ref(end)
            made.append(end)
        return made

    @classmethod
    def of(cls, source: Node, index: int, shape: tuple[int, ...]) -> Output:
        """The Output of a node that has it already, since gradients and hooks meet in one; else a new one."""
        ref = source.ends.get(index)
        found = None if ref is None else ref()
        return cls.each(source, [(index, shape)])[0] if found is None else found

    def name(self) -> str:
        return self.source.name()
