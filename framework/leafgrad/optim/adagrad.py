"""Adagrad: gradients divided by the root of the sum of their squares."""

from __future__ import annotations

from leafgrad.ops.convert import new_full
from leafgrad.optim.bucket import Bucket, exact
from leafgrad.optim.optimizer import Group, Optimizer, Params, check_range, option
from leafgrad.tensor.tensor import Tensor

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps along the gradient divided by the root of the sum of all its squares so far: shorter and shorter ones.

    Source: Duchi, Hazan and Singer (2011), "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", https://jmlr.org/papers/v12/duchi11a.html.

    Args:
        params: tensors, (name, tensor) pairs or groups.
        lr: step size.
        lr_decay: the step size is divided by ``1 + lr_decay * (step - 1)``.
        weight_decay: adds ``weight_decay * p`` to the gradient (an L2 penalty).
        initial_accumulator_value: what the sums start from, in every group, whatever it says itself.
        eps: added to the root.
        foreach, maximize, differentiable, fused: as for every ``Optimizer``.

    Raises:
        ValueError: a negative number among these.
    """

    slots = ("sum",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_range("learning rate", lr, 0)
        check_range("lr_decay value", lr_decay, 0)
        check_range("weight_decay value", weight_decay, 0)
        check_range("initial_accumulator_value value", initial_accumulator_value, 0)
        check_range("epsilon value", eps, 0)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        """Optimize more parameters: a dict with ``"params"`` and options. Their sums start here, as in PyTorch."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        value = self.defaults["initial_accumulator_value"]
        steps: dict[object, Tensor] = {}
        for p in group["params"]:
            kind = exact(p.dtype)
            step = steps.setdefault((kind, p.device), new_full(p.detach(), shape=(), value=0, dtype=kind.name))
            both = complex(value, value) if p.dtype.is_complex else value  # the sums of both parts start there
            start = new_full(p.detach(), shape=tuple(p.shape), value=both)
            self.state[p] = {"step": step, "sum": start}

    def update(self, group: Group, bucket: Bucket) -> None:
        """One step of the parameters in ``bucket``."""
        g = self.gradient(group, bucket)
        step = bucket.count(g)
        total = bucket.full("sum", g, self.defaults["initial_accumulator_value"]).add_(g * g)
        rate = option(group, "lr") / ((step - 1) * option(group, "lr_decay") + 1)
        bucket.add(g / (total.sqrt() + option(group, "eps")) * -rate)
