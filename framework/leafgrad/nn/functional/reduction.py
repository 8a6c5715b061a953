"""How a loss is reduced: ``reduction`` as "mean", "sum" or "none", or the two flags of old."""

from __future__ import annotations

from typing import Any

from leafgrad.ops import messages
from leafgrad.tensor.arguments import expect_real
from leafgrad.tensor.tensor import Tensor

Flag = bool | None


def reduced(loss: Tensor, reduction: str, beside: str = "") -> Tensor:
    """``loss`` under "mean", "sum" or "none", ``beside`` which the loss itself knows others; losses are real."""
    expect_real(loss, "loss")
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction; expected {beside}'mean', 'sum' or 'none'")


def chosen_reduction(size_average: Any, reduce: Any, reduction: str, function: str) -> str:
    """The reduction that is meant; ``size_average`` and ``reduce``, if given, decide, with a warning.

    Raises:
        TypeError: they are not bools: in ``nn.MSELoss(input, target)`` the tensors have gone astray.
    """
    if size_average is None and reduce is None:
        return reduction
    for flag in (size_average, reduce):
        if not isinstance(flag, Flag):
            remedy = f"; make the loss first and then call it: nn.{function}()(input, target)"
            raise TypeError(
                f"{function}: size_average, reduce: expected bools (better: reduction='mean' by name), got "
                f"{type(flag).__name__}{remedy if function[0].isupper() else ''}"
            )
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    messages.warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant
