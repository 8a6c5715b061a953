"""``torch.nn.utils.fusion``: a layer and the normalization over batches behind it as one layer, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.creation import ones_like, zeros_like
from leafgrad.tensor.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of the convolution that is one and then a normalization.

    Args:
        conv_w: (out, in, ...), or (in, out, ...) of a transposed convolution without groups.
        conv_b: (out), or None.
        bn_rm: the running mean. (out)
        bn_rv: the running variance. (out)
        bn_eps: what is added to the variance.
        bn_w: the weight of the normalization, or None. (out)
        bn_b: its bias, or None. (out)
        transpose: whether the convolution is transposed.
    """
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) / (bn_rv + bn_eps).sqrt()
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    bias = (zeros_like(bn_rm) if conv_b is None else conv_b) - bn_rm
    shift = bias * scale + (0 if bn_b is None else bn_b)
    kept = conv_w.requires_grad, conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    made = (conv_w * scale.reshape(shape)).to(conv_w.dtype).detach(), shift.to(conv_w.dtype).detach()
    return Parameter(made[0], kept[0]), Parameter(made[1], kept[1])


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """The same of a linear layer, whose weight is (out, in)."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that is it and then a BatchNorm, both in evaluation mode.

    Raises:
        AssertionError: one of them is in training mode. ValueError: the BatchNorm has no running statistics.
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("fuse_conv_bn_eval: bn: expected running statistics; make it with track_running_stats=True")
    fused = copy.deepcopy(conv)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = fuse_conv_bn_weights(conv.weight, conv.bias, *statistics, transpose)
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that is it and then a BatchNorm of as many features, both in evaluation mode.

    Raises:
        AssertionError: one of them is in training mode, or the BatchNorm has other features.
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return fuse_conv_bn_eval(linear, bn)
