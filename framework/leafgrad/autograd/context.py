"""What one call of a Function keeps: its context, its node, and the tensors saved in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from leafgrad import dtypes
from leafgrad.ops import dispatch, messages
from leafgrad.ops.node import FREED, GraphNode, Node, Output
from leafgrad.ops.packing import Packed
from leafgrad.tensor import inplace
from leafgrad.tensor.tensor import Tensor


class Saved(NamedTuple):
    """A saved tensor (or what hooks made of it), where its gradient goes, and which output it is, if any."""

    tensor: Any
    edge: GraphNode | None
    number: int | None


class FunctionNode(Node):
    """One recorded call of a Function."""

    __slots__ = ("ctx", "inputs", "outputs", "place", "positions")

    made: ClassVar[bool] = False  # whether there has been one in this process
    ctx: FunctionCtx
    positions: tuple[int, ...]  # which arguments were tensors: those have edges
    inputs: tuple[dtypes.dtype, ...]  # their dtypes
    outputs: tuple[tuple[tuple[int, ...], str] | None, ...]  # shape and dtype of each output, None if no tensor
    place: tuple[str, int]  # the device type and index of the first of its arguments that is a tensor


def tensors_only(tensors: tuple[Any, ...], what: str) -> tuple[Tensor | None, ...]:
    for i, t in enumerate(tensors):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"{what} can only save variables, but argument {i} is of type {type(t).__name__}; keep other values as "
                "attributes, e.g. ctx.n = n"
            )
    return tensors


class FunctionCtx:
    """What ``forward`` leaves for ``backward``: saved tensors, marks, and any attribute you set on it.

    Attributes:
        needs_input_grad: for each argument of ``apply``, whether its gradient is asked for.
    """

    needs_input_grad: tuple[bool, ...]

    _to_save: tuple[Tensor | None, ...] = ()
    _for_forward: tuple[Tensor | None, ...] = ()
    _saved_count = 0  # for backward; those for jvp come after them
    _in_jvp = False
    _read: list[Tensor | None] | None = None  # while somebody wants to know which saved tensors backward reads
    _dirty: tuple[Tensor, ...] = ()
    _constant: tuple[Tensor, ...] = ()
    _materialize = True
    _node: Callable[[], FunctionNode | None] = staticmethod(lambda: None)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or intermediate tensors for ``backward``, which reads them as ``saved_tensors``."""
        self._to_save = tensors_only(tensors, "save_for_backward")
        self._saved_count = len(tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``jvp``, which reads them as ``saved_tensors`` instead of those for ``backward``."""
        self._for_forward = tensors_only(tensors, "save_for_forward")

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved, connected to the graph.

        Raises:
            RuntimeError: a saved tensor was written in place since, or a backward pass has freed them.
        """
        node = self._node()
        if node is None:
            return self._to_save
        saved, n = unpack(node), self._saved_count
        found = saved[n:] if self._in_jvp and len(saved) > n else saved[:n]
        if self._read is not None:
            self._read.extend(found)
        return found

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Name the inputs that ``forward`` writes in place. Each must be an output too."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Name outputs that never require grad; ``backward`` gets zeros for them."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (True, the default) or None for outputs without gradient."""
        self._materialize = value


def same(t: Any, tensors: tuple[Any, ...]) -> int | None:
    """The position of ``t`` itself among ``tensors``."""
    for i, other in enumerate(tensors):
        if other is t:
            return i
    return None


def pack(
    tensors: tuple[Any, ...],
    args: tuple[Any, ...],
    edges: tuple[Any, ...],
    outputs: tuple[Any, ...],
    wrapped: list[Any],
) -> tuple[Saved | None, ...]:
    """Saved tensors in the form in which they make no cycle: outputs without their history."""
    inputs = tuple([a for a in args if isinstance(a, Tensor)])
    saved: list[Saved | None] = []
    for t in tensors:
        if t is None:
            saved.append(None)
            continue
        if t._writes is dispatch.INFERENCE_VERSION:
            raise RuntimeError("Inference tensors cannot be saved for backward. Save a clone() made outside of it")
        i, j = same(t, outputs), same(t, inputs)
        if i is not None and (j is None or wrapped[i] is t):
            result = dispatch.inside(wrapped[i])
            inplace.version(result)
            kept = dispatch.alias(result._data)
            kept._writes = result._writes
            saved.append(Saved(kept, None, None if result._node is None else i))
        else:
            dispatch.raw(t)  # what is saved is read, in a trace as well
            saved.append(Saved(t, None if j is None else edges[j], None))
    return tuple(saved)


def unpack(node: FunctionNode) -> tuple[Tensor | None, ...]:
    if node.saved is FREED:
        raise messages.freed()
    tensors: list[Tensor | None] = []
    for s in node.saved:
        if s is None:
            tensors.append(None)
            continue
        if isinstance(s.tensor, Packed):
            t = s.tensor.tensor()
            end = s.edge if s.number is None else Output.of(node, s.number, t._data.shape)
            tensors.append(dispatch.alias(dispatch.raw(t), end))
            continue
        t = dispatch.inside(s.tensor)
        if t._writes is not None and t._writes.seq > node.seq:
            raise messages.modified(node, t._data, t._writes)
        if s.number is not None:
            tensors.append(dispatch.alias(t._data, Output.of(node, s.number, t._data.shape)))
        else:
            tensors.append(s.tensor if t._node is s.edge else dispatch.connect(t, s.edge))
    return tuple(tensors)
