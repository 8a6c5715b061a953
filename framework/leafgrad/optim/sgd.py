"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent: ``p -= lr * v`` with ``v = momentum * v + (1 - dampening) * g``.

    The first step takes ``v = g``. Source: Sutskever et al. (2013), "On the importance of initialization and
    momentum in deep learning", in PyTorch's form, where ``lr`` multiplies the velocity.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        momentum: share of the velocity that is kept.
        dampening: share of the gradient that is held back from the velocity.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        nesterov: look ahead: step along ``g + momentum * v``.
        maximize, foreach, differentiable, fused: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``momentum`` or ``weight_decay``; ``nesterov`` without momentum, or with
            dampening.
    """

    slots = ("momentum_buffer",)
    numbers = ()

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("momentum value", momentum, 0)
        check_range("weight_decay value", weight_decay, 0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"Nesterov momentum requires a momentum and zero dampening, got momentum {momentum} and dampening "
                f"{dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        if group["momentum"]:
            momentum = option(group, "momentum")
            v = bucket.find("momentum_buffer")
            if v is None:
                v = bucket.keep("momentum_buffer", g.clone())
            else:
                v.mul_(momentum).add_(g * (1 - option(group, "dampening")))
            g = g + v * momentum if group["nesterov"] else v
        bucket.add(g * -option(group, "lr"))
