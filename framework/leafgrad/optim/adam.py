"""Adam, and AdamW, which decays weights apart from the gradient."""

from __future__ import annotations

import math

from leafgrad.ops.exponential import expm1
from leafgrad.ops.select import maximum
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range
from leafgrad.tensor.live import live

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam: steps of size ``lr`` scaled by running means of the gradient and of its square.

    Source: Kingma and Ba (2015), "Adam: A Method for Stochastic Optimization", https://arxiv.org/abs/1412.6980;
    ``amsgrad``: Reddi et al. (2018), "On the Convergence of Adam and Beyond", https://openreview.net/forum?id=ryQu7f-RZ.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        betas: how much of the running means of the gradient and of its square is kept.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        amsgrad: divide by the largest mean square so far.
        maximize: go up instead of down.
        decoupled_weight_decay: shrink the parameters by ``1 - lr * weight_decay`` instead, as AdamW does.

    Raises:
        ValueError: a negative ``lr``, ``eps`` or ``weight_decay``; a beta outside [0, 1).
    """

    slots = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("epsilon value", eps, 0)
        if len(betas) != 2:
            raise ValueError(f"betas: expected two numbers, got {betas!r}")
        check_range("beta parameter at index 0", betas[0], 0, 1)
        check_range("beta parameter at index 1", betas[1], 0, 1)
        check_range("weight_decay value", weight_decay, 0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = -bucket.gradient() if group["maximize"] else bucket.gradient()
        decay = live(lambda: group["weight_decay"]) if group["weight_decay"] else None
        if decay is not None and not group["decoupled_weight_decay"]:
            g = g + bucket.values() * decay
        lr = live(lambda: group["lr"])
        beta1, beta2 = live(lambda: group["betas"][0]), live(lambda: group["betas"][1])
        step = bucket.count(g)
        m = bucket.zeros("exp_avg", g).mul_(beta1).add_(g * (1 - beta1))
        v = bucket.zeros("exp_avg_sq", g).mul_(beta2).add_((g * g).mul_(1 - beta2))
        if group["amsgrad"]:
            most = bucket.zeros("max_exp_avg_sq", g)
            v = most.copy_(maximum(most, v))
        # Both means started at zero; 1 - beta**step, written so that no digits cancel, makes up for it.
        negative1 = expm1(step * live(lambda: log(group["betas"][0])))
        negative2 = expm1(step * live(lambda: log(group["betas"][1])))
        change = (m / (v / -negative2).sqrt_().add_(live(lambda: group["eps"]))).mul_(lr / negative1)
        if decay is not None and group["decoupled_weight_decay"]:
            change.sub_(bucket.values() * (lr * decay))
        bucket.add(change)


class AdamW(Adam):
    """Adam that shrinks the parameters by ``1 - lr * weight_decay`` at each step, apart from the gradient.

    Source: Loshchilov and Hutter (2019), "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        betas: how much of the running means of the gradient and of its square is kept.
        eps: added to the denominator.
        weight_decay: what the parameters are shrunk by, times ``lr``.
        amsgrad: divide by the largest mean square so far.
        maximize: go up instead of down.

    Raises:
        ValueError: as for Adam.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)


def log(beta: float) -> float:
    """The logarithm, of 0 too."""
    return math.log(beta) if beta else -math.inf
