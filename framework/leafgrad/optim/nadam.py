"""NAdam: Adam that looks a step ahead."""

from __future__ import annotations

import math

from leafgrad.dtypes import float64
from leafgrad.ops.exponential import exp
from leafgrad.optim.adam import check_betas, negative_bias
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum: the gradient and the mean that it will belong to have weights of their own.

    Source: Dozat (2016), "Incorporating Nesterov Momentum into Adam",
    https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        betas: how much of the running means of the gradient and of its square is kept.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        momentum_decay: how fast the momentum rises, from half of the first beta to all of it.
        decoupled_weight_decay: shrink the parameters by ``1 - lr * weight_decay`` instead, as AdamW does.
        foreach, maximize, capturable, differentiable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``eps``, ``weight_decay`` or ``momentum_decay``; a beta outside [0, 1).
    """

    slots = ("exp_avg", "exp_avg_sq")
    numbers = ("step", "mu_product")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("epsilon value", eps, 0)
        check_betas(betas)
        check_range("weight_decay value", weight_decay, 0)
        check_range("momentum_decay value", momentum_decay, 0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        lr, beta1, beta2 = option(group, "lr"), option(group, "betas", 0), option(group, "betas", 1)
        step = bucket.count(g).to(float64)  # the weights below differ by little
        rate = option(group, "momentum_decay") * math.log(0.96)
        mu = (1 - exp(step * rate) * 0.5) * beta1
        ahead = (1 - exp((step + 1) * rate) * 0.5) * beta1
        product = bucket.number("mu_product", g, 1).mul_(mu).to(float64)
        m = bucket.zeros("exp_avg", g).mul_(beta1).add_(g * (1 - beta1))
        v = bucket.zeros("exp_avg_sq", g).mul_(beta2).add_((g * g).mul_(1 - beta2))
        now, then = (1 - mu) * lr / (1 - product), ahead * lr / (1 - product * ahead)
        scale = (v / -negative_bias(group, step, 1)).sqrt_().add_(option(group, "eps"))
        change = -(g * now + m * then).div_(scale)
        if group["decoupled_weight_decay"] and group["weight_decay"]:
            change.sub_(bucket.values() * (lr * option(group, "weight_decay")))
        bucket.add(change)
