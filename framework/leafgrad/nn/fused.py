"""Operations that bring a gradient of their own, faster and with less memory than recording every step would."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.autograd.api import grad
from leafgrad.autograd.context import FunctionCtx, FunctionNode, Saved
from leafgrad.autograd.function import Function, make_node
from leafgrad.ops import dispatch, messages
from leafgrad.ops.convert import to_dtype
from leafgrad.ops.node import FREED, GraphNode, Output, SymbolBase
from leafgrad.ops.packing import Packed
from leafgrad.tensor.inplace import version
from leafgrad.tensor.tensor import Tensor


class Fused(Function):
    """The first gradient is written by hand; those of higher order follow from the definition.

    A subclass has ``run``, which computes what ``definition`` says from the same arguments, and ``gradients``. Under
    ``create_graph`` the definition is computed again and differentiated instead, so that the gradient is recorded.
    """

    pure = True
    fresh = True
    definition: Callable[..., tuple[Tensor, ...]]  # (ctx.params, *args) -> the outputs

    @staticmethod
    def run(params: Any, *args: Any) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The outputs, and what else ``gradients`` needs."""
        raise NotImplementedError

    @staticmethod
    def gradients(params: Any, wanted: tuple[bool, ...], saved: Any, grads: Any) -> tuple[Any, ...]:
        """The gradient of each argument, for ``grads`` of the outputs; ``saved`` is args, outputs and the rest."""
        raise NotImplementedError

    @classmethod
    def apply(cls, params: Any, *args: Any) -> tuple[Any, ...]:
        """As of any Function; where nothing else goes on, without looking for what only a user's might do."""
        flags, edges = modes.get(), []
        for a in args:
            if isinstance(a, Tensor):
                if flags > modes.GRAD or isinstance(a._data, SymbolBase):
                    found: tuple[Any, ...] = super().apply(params, *args)
                    return found
                edges.append(a._history if a._view is None else a._node)
        token = modes.FLAGS.set(flags & ~modes.GRAD)
        try:
            outputs, rest = cls.run(params, *args)
        finally:
            modes.FLAGS.reset(token)
        if flags and any(edges):
            record(cls, params, args, edges, outputs, rest)
        return outputs

    @classmethod
    def pull(cls, node: FunctionNode, g: tuple[Any, ...], needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """The same, backward."""
        plain = not modes.get() and node.saved is not FREED and not [one for one in g if isinstance(one, SymbolBase)]
        saved: list[Any] = []
        for s in node.saved if plain else ():
            t = None if s is None else s.tensor
            if type(t) is Packed or (t is not None and isinstance(t._data, SymbolBase)):
                plain = False
            elif t is not None and t._writes is not None and t._writes.seq > node.seq:
                raise messages.modified(node, t._data, t._writes)
            saved.append(t)
        if not plain:
            return super().pull(node, g, needed)
        ctx: Any = node.ctx
        wanted = [False] * ctx.count
        for i, edge in zip(node.positions, node.edges, strict=True):
            wanted[i - 1] = edge is not None and (needed is None or edge in needed)
        grads = [None if one is None else dispatch.alias(dispatch.array(one)) for one in g]
        found = cls.gradients(ctx.params, tuple(wanted), saved, grads)
        pulled = []
        for i, edge, dtype in zip(node.positions, node.edges, node.inputs, strict=True):
            one = found[i - 1]
            if wanted[i - 1] and one is not None:
                kind = dtypes.of(one._data)
                one = one if kind is dtype else to_dtype(one, dtype=dtype.name, source=kind.name)
                pulled.append((edge, one._data))
        return pulled

    @classmethod
    def forward(cls, ctx: Any, params: Any, *args: Tensor | None) -> tuple[Tensor, ...]:
        outputs, rest = cls.run(params, *args)
        ctx.params, ctx.count = params, len(args)
        ctx.save_for_backward(*args, *outputs, *rest)
        ctx.set_materialize_grads(False)
        return outputs

    @classmethod
    def backward(cls, ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        wanted = ctx.needs_input_grad[1:]
        if not modes.is_grad_enabled():
            return None, *cls.gradients(ctx.params, wanted, ctx.saved_tensors, grads)
        args = ctx.saved_tensors[: ctx.count]
        args = [a.view_as(a) if want else a for a, want in zip(args, wanted, strict=True)]  # one may be given twice
        pairs = [(o, g) for o, g in zip(cls.definition(ctx.params, *args), grads, strict=True) if g is not None]
        inputs = [a for a, want in zip(args, wanted, strict=True) if want]
        found = iter(grad([o for o, _ in pairs], inputs, [g for _, g in pairs], create_graph=True, allow_unused=True))
        return None, *(next(found) if want else None for want in wanted)


def record(
    cls: type[Fused], params: Any, args: tuple[Any, ...], edges: list[Any], outputs: tuple[Any, ...], rest: Any
) -> None:
    """Record a call as ``Function.apply`` does, of which arguments and outputs are known to be different tensors."""
    ctx = FunctionCtx()
    vars(ctx).update(params=params, count=len(args))
    node = make_node(cls, ctx, (params, *args), tuple(edges), outputs)
    found = iter(edges)
    needs, saved = [False], []
    for a in args:
        edge = None if a is None else next(found)
        needs.append(edge is not None)
        if a is not None and a._writes is dispatch.INFERENCE_VERSION:
            raise RuntimeError("Inference tensors cannot be saved for backward. Save a clone() made outside of it")
        saved.append(None if a is None else Saved(a, edge, None))
    for i, out in enumerate(outputs):
        kept = dispatch.alias(out._data)
        kept._writes = version(out)
        saved.append(Saved(kept, None, i))
        out._node = Output.of(node, i, out._data.shape)
    saved += [None if t is None else Saved(t, None, None) for t in rest]
    ctx.needs_input_grad, ctx._saved_count, ctx._materialize = tuple(needs), len(saved), False
    ctx._node = weakref.ref(node)
    node.saved = tuple(saved)
