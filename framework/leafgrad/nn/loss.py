"""Losses as modules: made first, ``loss = nn.MSELoss()``, then called, ``loss(input, target)``."""

from __future__ import annotations

from typing import Any

from leafgrad.nn import functional as F
from leafgrad.nn.module import Module
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class Loss(Module):
    """Base of losses; ``reduction`` is "mean", "sum" or "none"."""

    def __init__(self, *args: Any, reduction: str = "mean") -> None:
        super().__init__()
        name = type(self).__name__
        if args:
            raise TypeError(
                f"{name}: expected keyword arguments such as reduction='mean', got {len(args)} positional ones. Make "
                f"the loss first and then call it: nn.{name}()(input, target)"
            )
        self.reduction = reduction


class WeightedLoss(Loss):
    """Base of losses with a weight, which is a buffer: it moves with the module."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.register_buffer("weight", weight)


class MSELoss(Loss):
    """(input - target)^2."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """|input - target|."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """d^2 / (2 beta) where d = |input - target| is below ``beta``, else d - beta / 2."""

    def __init__(self, *args: Any, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(*args, reduction=reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """d^2 / 2 where d = |input - target| is at most ``delta``, else delta (d - delta / 2). Huber (1964)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(Loss):
    """target (log target - input). See ``functional.kl_div``."""

    def __init__(self, *args: Any, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(*args, reduction=reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(WeightedLoss):
    """-input at the class that target names. See ``functional.nll_loss``."""

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """The cross-entropy of softmax(input) and target. See ``functional.cross_entropy``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(WeightedLoss):
    """-(target log input + (1 - target) log(1 - input)), the logarithms clamped at -100."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """BCELoss of sigmoid(input), without its rounding errors."""

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )
