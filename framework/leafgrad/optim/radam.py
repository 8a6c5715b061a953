"""RAdam: Adam that waits for its mean square before it trusts it."""

from __future__ import annotations

from leafgrad.dtypes import float64
from leafgrad.ops.select import maximum, where
from leafgrad.optim.adam import check_betas, negative_bias
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """Rectified Adam: plain momentum at first, and Adam as soon as the mean square rests on enough gradients.

    Source: Liu et al. (2020), "On the Variance of the Adaptive Learning Rate and Beyond",
    https://arxiv.org/abs/1908.03265.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        betas: how much of the running means of the gradient and of its square is kept.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        decoupled_weight_decay: shrink the parameters by ``1 - lr * weight_decay`` instead, as AdamW does.
        foreach, maximize, capturable, differentiable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``eps`` or ``weight_decay``; a beta outside [0, 1).
    """

    slots = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        lr, beta1, beta2 = option(group, "lr"), option(group, "betas", 0), option(group, "betas", 1)
        step = bucket.count(g).to(float64)  # the length below is a small difference of large numbers
        m = bucket.zeros("exp_avg", g).mul_(beta1).add_(g * (1 - beta1))
        v = bucket.zeros("exp_avg_sq", g).mul_(beta2).add_((g * g).mul_(1 - beta2))
        negative1, negative2 = negative_bias(group, step, 0), negative_bias(group, step, 1)
        most = longest(beta2)
        length = step * (negative2 + 1) / negative2 * 2 + most  # on how many gradients the mean square rests
        some = maximum(length, 5.0)
        rectified = ((some - 4) * (some - 2) / some * scale(beta2) * -negative2).sqrt()
        change = m * (lr / negative1) * where(length > 5.0, rectified / (v.sqrt() + option(group, "eps")), 1.0)
        if group["decoupled_weight_decay"] and group["weight_decay"]:
            change.sub_(bucket.values() * (lr * option(group, "weight_decay")))
        bucket.add(change)


def longest(beta: float) -> float:
    """On how many gradients the mean square rests in the long run."""
    return 2 / (1 - beta) - 1


def scale(beta: float) -> float:
    """What brings the rectified step to 1 in the long run; 0 where it never rests on enough gradients."""
    most = longest(beta)
    return most / ((most - 4) * (most - 2)) if most > 5 else 0.0
