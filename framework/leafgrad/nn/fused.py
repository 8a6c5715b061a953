"""Operations that bring a gradient of their own, faster and with less memory than recording every step would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.autograd.api import grad
from leafgrad.autograd.function import Function
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
