"""Adadelta: gradients scaled by how far the last steps went."""

from __future__ import annotations

import math

from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Steps along the gradient times the ratio of two root mean squares: of the last steps and of the last gradients.

    Source: Zeiler (2012), "ADADELTA: An Adaptive Learning Rate Method", https://arxiv.org/abs/1212.5701.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: what the steps are multiplied by.
        rho: how much of the running means is kept.
        eps: added to both mean squares.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        foreach, capturable, maximize, differentiable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``eps`` or ``weight_decay``; ``rho`` outside [0, 1].
    """

    slots = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("rho value", rho, 0, math.nextafter(1.0, 2.0))
        check_range("epsilon value", eps, 0)
        check_range("weight_decay value", weight_decay, 0)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        bucket.count(g)
        rho, eps = option(group, "rho"), option(group, "eps")
        square = bucket.zeros("square_avg", g).mul_(rho).add_((g * g).mul_(1 - rho))
        moved = bucket.zeros("acc_delta", g)
        change = (moved + eps).sqrt() / (square + eps).sqrt() * g
        moved.mul_(rho).add_((change * change).mul_(1 - rho))
        bucket.add(change * -option(group, "lr"))
