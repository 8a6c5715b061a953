"""ASGD: stochastic gradient descent whose iterates are averaged."""

from __future__ import annotations

from leafgrad.dtypes import float64
from leafgrad.ops.select import maximum
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Gradient descent with steps that become shorter; ``state[p]["ax"]`` is the mean of the iterates after ``t0``.

    Source: Polyak and Juditsky (1992), "Acceleration of Stochastic Approximation by Averaging",
    https://doi.org/10.1137/0330046.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size at the start.
        lambd: how much the parameters shrink at each step, times the step size; and how fast this decays.
        alpha: power of the decay of the step size, ``lr / (1 + lambd * lr * step) ** alpha``.
        t0: the step from which on the iterates are averaged.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        foreach, maximize, differentiable, capturable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr`` or ``weight_decay``.
    """

    slots = ("ax",)
    numbers = ("step", "eta", "mu")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("weight_decay value", weight_decay, 0)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g, p = self.gradient(group, bucket), bucket.values()
        lr, lambd = option(group, "lr"), option(group, "lambd")
        step = bucket.count(g)
        eta, mu = bucket.number("eta", g, lr), bucket.number("mu", g, 1)
        mean = bucket.zeros("ax", g)
        change = -(p * (eta.to(float64) * lambd) + g * eta)
        bucket.add(change)
        mean.add_((p + change - mean) * mu)
        eta.copy_(lr / (step * (lambd * lr) + 1) ** option(group, "alpha"))
        mu.copy_(1 / maximum(step - option(group, "t0"), 1.0))
