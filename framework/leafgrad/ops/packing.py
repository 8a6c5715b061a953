"""Saved tensors in another form: they go through one function when they are saved, and another when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.ops import dispatch, messages
from leafgrad.ops.conjugate import Conjugating
from leafgrad.ops.node import FREED, GraphNode, Node, TensorBase
from leafgrad.ops.op import Op, Pulled

Hook = Callable[[Any], Any]


class Packed:
    """What ``pack`` made of a tensor, and how to get that back. Hooks see a batch as one tensor, from outside."""

    __slots__ = ("close", "shape", "unpack", "value")

    def __init__(self, tensor: Any, pack: Hook, unpack: Hook) -> None:
        self.shape = tensor._data.shape
        data, self.close = dispatch.opened(tensor._data)
        whole = tensor if data is tensor._data else dispatch.alias(data)
        before = dispatch.inside(whole)._writes
        count = 0 if before is None else before.count
        with modes.no_grad(), modes.outside_batches():
            self.value = pack(whole)
        after = dispatch.inside(whole)._writes
        if after is not None and after.count != count:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook: clone() it instead."
            )
        self.unpack = unpack

    def tensor(self) -> Any:
        """What ``unpack`` makes of it."""
        with modes.outside_batches():
            found = self.unpack(self.value)
        if not isinstance(found, TensorBase):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}"
            )
        data = self.close(found._data)
        return found if data is found._data else dispatch.alias(data)


def packed(value: Any, pack: Hook, unpack: Hook) -> Any:
    return Packed(value, pack, unpack) if isinstance(value, TensorBase) else value


def pack_node(node: Node, pack: Hook, unpack: Hook) -> None:
    """Replace all that a node keeps."""
    if isinstance(node.op, type):  # a Function's
        node.saved = tuple([s and s._replace(tensor=packed(s.tensor, pack, unpack)) for s in node.saved])
        return
    node.saved = tuple([packed(s, pack, unpack) for s in node.saved])
    if node.out is not None:
        several = type(node.out) is tuple
        outs = [dispatch.alias(o) for o in (node.out if several else (node.out,))]
        for out in outs:
            out._writes = node.version
        packs = [Packed(out, pack, unpack) for out in outs]
        node.out = tuple(packs) if several else packs[0]
    node.op = PackedOp.of(node.op)


def is_packed(node: Any) -> bool:
    """Whether something that a node keeps is packed."""
    saved, out = getattr(node, "saved", None), getattr(node, "out", None)
    kept = [*(saved if type(saved) is tuple else ()), *(out if type(out) is tuple else (out,))]
    return any(isinstance(s, Packed) or isinstance(getattr(s, "tensor", None), Packed) for s in kept)


def unpacked(value: Any) -> Any:
    return value.tensor() if isinstance(value, Packed) else value


class PackedOp(Op):
    """An op as the nodes know it whose saved values are packed."""

    def __init__(self, op: Op) -> None:
        vars(self).update({name: value for name, value in vars(op).items() if name not in ("pull", "pull_recorded")})
        self.plain = op

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.plain(*args, **params)

    @classmethod
    def of(cls, op: Any) -> Any:
        """The one of an op."""
        if isinstance(op, Conjugating):
            return Conjugating(cls.of(op.unconjugated))
        if isinstance(op, PackedOp):
            return op
        found: Op = vars(op).setdefault("packed", cls(op))
        return found

    def checked(self, node: Node) -> tuple[Any, ...]:
        """The saved values. What was written since cannot be told of values that are packed."""
        if node.saved is FREED:
            raise messages.freed()
        for s in node.saved:
            if isinstance(s, TensorBase) and s._writes is not None and s._writes.seq > node.seq:
                raise messages.modified(node, s, s._writes)
        return tuple([unpacked(s) for s in node.saved])

    def pull(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        saved = self.checked(node)
        raw = tuple([s._data if isinstance(s, TensorBase) else s for s in saved])
        several = type(node.out) is tuple
        outs = [unpacked(o) for o in (node.out if several else (node.out,))]
        out = tuple([getattr(o, "_data", o) for o in outs])
        return self.run_rules(node, g, needed, raw or (None,) * len(node.edges), out if several else out[0])

    def pull_recorded(self, node: Node, g: Any, needed: set[GraphNode] | None) -> Pulled:
        args = tuple([
            dispatch.connect(s, e) if isinstance(s, TensorBase) else s
            for s, e in zip(self.checked(node), node.edges, strict=False)
        ])  # fmt: skip
        return self.run_rules(node, g, needed, args, dispatch.reconnect_output(node))


class SavedTensor:
    """One tensor that a node keeps: argument ``i``, or the output for None."""

    def __init__(self, node: Node, i: int | None) -> None:
        self._node, self._i = node, i

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Keep ``pack_hook(tensor)`` instead of the tensor; ``unpack_hook`` gives it back when it is read.

        Raises:
            RuntimeError: nothing is kept, it was freed already, or it has hooks.
        """
        node, i = self._node, self._i
        if node.saved is FREED:
            raise messages.freed()
        value = node.out if i is None else node.saved[i] if node.saved else None
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(value, Packed):
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set")
        if i is None:
            node.out = Packed(dispatch.alias(value), pack_hook, unpack_hook)
        else:
            kept = packed(value, pack_hook, unpack_hook)
            node.saved = (*node.saved[:i], kept, *node.saved[i + 1 :])
        node.op = PackedOp.of(node.op)
