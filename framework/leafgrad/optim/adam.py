"""Adam, and AdamW, which decays weights apart from the gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leafgrad.ops.exponential import expm1
from leafgrad.ops.select import maximum
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_pair, check_range, option
from leafgrad.tensor.tensor import Tensor

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
        foreach, maximize, capturable, differentiable, fused: as for every ``Optimizer``.
        decoupled_weight_decay: shrink the parameters by ``1 - lr * weight_decay`` instead, as AdamW does.

    Raises:
        ValueError: a negative ``lr``, ``eps`` or ``weight_decay``; a beta outside [0, 1).
    """

    slots = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("epsilon value", eps, 0)
        check_betas(betas)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError(f"betas must be either both floats or both Tensors, got {betas!r}")
        check_range("weight_decay value", weight_decay, 0)
        defaults = {
            "lr": lr,
            "betas": (float(betas[0]), float(betas[1])),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        lr, beta1, beta2 = option(group, "lr"), option(group, "betas", 0), option(group, "betas", 1)
        step = bucket.count(g)
        m = bucket.zeros("exp_avg", g).mul_(beta1).add_(g * (1 - beta1))
        v = bucket.zeros("exp_avg_sq", g).mul_(beta2).add_((g * g).mul_(1 - beta2))
        if group["amsgrad"]:
            most = bucket.zeros("max_exp_avg_sq", g)
            v = most.copy_(maximum(most.clone(), v))
        negative1, negative2 = negative_bias(group, step, 0), negative_bias(group, step, 1)
        change = (m * (lr / negative1)).div_((v / -negative2).sqrt_().add_(option(group, "eps")))
        if group["decoupled_weight_decay"] and group["weight_decay"]:
            change.sub_(bucket.values() * (lr * option(group, "weight_decay")))
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
        maximize, foreach, capturable, differentiable, fused: as for every ``Optimizer``.

    Raises:
        ValueError: as for Adam.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


def check_betas(betas: Sequence[float | Tensor]) -> None:
    """A ValueError unless these are two numbers in [0, 1)."""
    check_pair("betas", betas)
    for i, beta in enumerate(betas):
        check_range(f"beta parameter at index {i}", beta, 0, 1)


def negative_bias(group: Group, step: Tensor, index: int) -> Tensor:
    """``beta**step - 1``: what a running mean that started at zero lacks, written so that no digits cancel."""
    return expm1(step * log_of(option(group, "betas", index)))


def log_of(beta: Any) -> Any:
    """The logarithm of a number or tensor, of 0 too."""
    if hasattr(beta, "log"):
        return beta.log()
    return math.log(beta) if beta else -math.inf
