"""Adamax: Adam that divides by the largest gradient."""

from __future__ import annotations

from leafgrad.ops.select import maximum
from leafgrad.optim.adam import check_betas, negative_bias
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Adam with the largest of the fading gradients in place of their mean square.

    Source: Kingma and Ba (2015), "Adam: A Method for Stochastic Optimization", algorithm 2,
    https://arxiv.org/abs/1412.6980.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        betas: how much of the running mean, and of the largest gradient so far, is kept.
        eps: added to the size of each gradient.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        foreach, maximize, differentiable, capturable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``eps`` or ``weight_decay``; a beta outside [0, 1).
    """

    slots = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("epsilon value", eps, 0)
        check_betas(betas)
        check_range("weight_decay value", weight_decay, 0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        beta1, beta2 = option(group, "betas", 0), option(group, "betas", 1)
        step = bucket.count(g)
        m = bucket.zeros("exp_avg", g).mul_(beta1).add_(g * (1 - beta1))
        largest = bucket.zeros("exp_inf", g)
        largest.copy_(maximum(largest * beta2, g.abs().add_(option(group, "eps"))))
        bucket.add(m / largest * (option(group, "lr") / negative_bias(group, step, 0)))
