"""Functions that ``torch`` has beside those of ``torch.nn.functional``, with arguments in another order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import dtypes
from leafgrad.autograd.anomaly import set_detect_anomaly
from leafgrad.compat.torch import special
from leafgrad.nn import functional as F
from leafgrad.ops.messages import warn
from leafgrad.tensor.creation import arange, full
from leafgrad.tensor.data import as_tensor
from leafgrad.tensor.door import asks
from leafgrad.tensor.storage import UntypedStorage
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "adaptive_max_pool1d", "alpha_dropout", "asarray", "batch_norm", "binary_cross_entropy_with_logits",
    "constant_pad_nd", "cosine_embedding_loss", "ctc_loss", "dropout", "embedding", "feature_alpha_dropout",
    "feature_dropout", "fill", "group_norm", "hinge_embedding_loss", "i0", "instance_norm",
    "is_storage", "kl_div", "layer_norm", "margin_ranking_loss", "mvlgamma", "poisson_nll_loss", "polygamma",
    "range", "rms_norm", "scalar_tensor", "set_anomaly_enabled", "set_flush_denormal", "triplet_margin_loss",
    "typename",
]  # fmt: skip

REDUCTIONS = ("none", "mean", "sum")


# ---- layers -------------------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``functional.dropout``."""
    return F.dropout(input, p, train)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``functional.alpha_dropout``."""
    return F.alpha_dropout(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``functional.dropout`` of whole channels."""
    return F.dropout2d(input, p, train)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``functional.feature_alpha_dropout``."""
    return F.feature_alpha_dropout(input, p, train)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """``functional.layer_norm``."""
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Tensor:
    """``functional.group_norm``."""
    return F.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """``functional.rms_norm``."""
    return F.rms_norm(input, normalized_shape, weight, eps)


def batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """``functional.batch_norm``."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """``functional.instance_norm``."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """``functional.embedding`` with the table first; -1 is no padding."""
    padding = None if padding_idx == -1 else padding_idx
    return F.embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


def constant_pad_nd(input: Tensor, pad: Any, value: float = 0) -> Tensor:
    """``functional.pad`` with a number."""
    return F.pad(input, pad, "constant", value)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Any:
    """``functional.adaptive_max_pool1d`` with indices."""
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


# ---- losses: their reduction is 0 for none, 1 for the mean, 2 for the sum ------------------------------------------


def numbered(name: str) -> Callable[..., Any]:
    """A loss of ``functional`` whose last arguments here are numbered reductions."""
    loss = getattr(F, name)

    def function(*args: Any, reduction: int = 1, **kwargs: Any) -> Any:
        return loss(*args, reduction=REDUCTIONS[reduction], **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``functional.{name}`` with ``reduction`` 0 for none, 1 for the mean, 2 for the sum."
    return function


cosine_embedding_loss, hinge_embedding_loss, kl_div, margin_ranking_loss, triplet_margin_loss = map(
    numbered, ("cosine_embedding_loss", "hinge_embedding_loss", "kl_div", "margin_ranking_loss", "triplet_margin_loss")
)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Tensor:
    """``functional.binary_cross_entropy_with_logits``."""
    how = REDUCTIONS[reduction]
    return F.binary_cross_entropy_with_logits(input, target, weight, reduction=how, pos_weight=pos_weight)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """``functional.ctc_loss``."""
    how = REDUCTIONS[reduction]
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """``functional.poisson_nll_loss``."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction])


# ---- of the gamma function ----------------------------------------------------------------------------------------

i0, polygamma, mvlgamma = map(special.FUNCTIONS.__getitem__, ("i0", "polygamma", "multigammaln"))


# ---- new tensors --------------------------------------------------------------------------------------------------


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of what ``obj`` holds, sharing its memory where it can unless ``copy``.

    Raises:
        ValueError: ``copy`` is False and a copy is needed.
    """
    obj = obj.__array__() if isinstance(obj, UntypedStorage) else obj
    made = as_tensor(obj, dtype=dtype, device=device)
    if made is obj and requires_grad != made.requires_grad:
        made = made.detach()
    if copy:
        made = made.clone().detach()
    elif copy is False and not shares(obj, made):
        raise ValueError("asarray: can't avoid a copy of this object; leave out copy=False")
    return made if made.requires_grad == requires_grad else made.requires_grad_(requires_grad)


def shares(obj: Any, made: Tensor) -> bool:
    """Whether a tensor has the memory of what it is made of."""
    if isinstance(obj, Tensor):
        return obj.data_ptr() == made.data_ptr()
    place = getattr(obj, "__array_interface__", {"data": (0,)})["data"][0]
    return bool(place == made.data_ptr())


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A number as a tensor of the default dtype. -> ()"""
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=kind, device=device, requires_grad=requires_grad)


def range(start: float = 0, end: float = 0, step: float = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """``arange`` that reaches ``end``. (floor((end - start) / step) + 1,)"""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    count = math.floor((end - start) / step) + 1
    return arange(count, device=device).to(dtypes.get_default_dtype() if dtype is None else dtype) * step + start


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like ``input`` filled with a number, or a tensor of one."""
    return input.clone().fill_(value)


# ---- switches -----------------------------------------------------------------------------------------------------


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly detection on or off."""
    set_detect_anomaly(mode, check_nan)


def set_flush_denormal(mode: bool) -> bool:
    """False: the processor's setting is left alone."""
    return False


def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is a storage."""
    return type(obj).__name__.endswith("Storage")


@asks
def _assert(condition: Any, message: str) -> None:
    """AssertionError with a message, unless the condition, a bool or a tensor of one element, holds."""
    if not condition:
        raise AssertionError(message)


def typename(obj: Any, /) -> str:
    """The type of a tensor, ``torch.FloatTensor``, or the name of the class of anything else."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"
