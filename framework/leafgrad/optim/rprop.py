"""Rprop: steps that follow the sign of the gradient only."""

from __future__ import annotations

from leafgrad.ops.select import maximum, minimum, where
from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_pair, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Each weight has a step size of its own, which grows while its gradient keeps its sign; for whole batches.

    Source: Riedmiller and Braun (1993), "A direct adaptive method for faster backpropagation learning: the RPROP
    algorithm", https://doi.org/10.1109/ICNN.1993.298623; where the sign changes, the weight stays for a step.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: the first step size.
        etas: what the step size is multiplied by where the sign has changed, and where it has not.
        step_sizes: the smallest and the largest step size.
        capturable, foreach, maximize, differentiable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``; ``etas`` that are not ``0 < etas[0] < 1 < etas[1]``.
    """

    slots = ("prev", "step_size")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_pair("etas", etas)
        check_pair("step_sizes", step_sizes)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}; expected 0 < etas[0] < 1 < etas[1]")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        bucket.count(g)
        before = bucket.zeros("prev", g)
        size = bucket.full("step_size", g, option(group, "lr"))
        trend = g * before
        less, more = size * option(group, "etas", 0), size * option(group, "etas", 1)
        changed = where(trend < 0, less, where(trend > 0, more, size))
        size.copy_(minimum(maximum(changed, option(group, "step_sizes", 0)), option(group, "step_sizes", 1)))
        g = where(trend < 0, 0.0, g)
        bucket.add(g.sign() * -size)
        before.copy_(g)
