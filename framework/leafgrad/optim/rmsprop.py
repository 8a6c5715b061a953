"""RMSprop: gradients divided by their running root mean square."""

from __future__ import annotations

from leafgrad.optim.bucket import Bucket
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Steps along the gradient divided by the root of the running mean of its square.

    Source: Hinton (2012), "Neural Networks for Machine Learning", lecture 6,
    https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf; ``centered``: Graves (2013), "Generating
    Sequences With Recurrent Neural Networks", https://arxiv.org/abs/1308.0850.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        alpha: how much of the running mean of the square is kept.
        eps: added to the root.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        momentum: share of the velocity that is kept.
        centered: divide by the standard deviation, that is, take the square of the mean from the mean square.
        capturable, foreach, maximize, differentiable: as for every ``Optimizer``.

    Raises:
        ValueError: a negative ``lr``, ``eps``, ``momentum``, ``weight_decay`` or ``alpha``.
    """

    slots = ("square_avg", "grad_avg", "momentum_buffer")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("epsilon value", eps, 0)
        check_range("momentum value", momentum, 0)
        check_range("weight_decay value", weight_decay, 0)
        check_range("alpha value", alpha, 0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        bucket.count(g)
        alpha = option(group, "alpha")
        square = bucket.zeros("square_avg", g).mul_(alpha).add_((g * g).mul_(1 - alpha))
        if group["centered"]:
            mean = bucket.zeros("grad_avg", g)
            mean.add_((g - mean) * (1 - alpha))
            square = square - mean * mean
        g = g / (square.sqrt() + option(group, "eps"))
        if group["momentum"] > 0:
            g = bucket.zeros("momentum_buffer", g).mul_(option(group, "momentum")).add_(g)
        bucket.add(g * -option(group, "lr"))
