"""Layers that normalise each channel: over the batch, or within each element of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafgrad.dtypes import int64
from leafgrad.nn import functional as F, init
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.ops import messages
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import empty, ones, zeros
from leafgrad.tensor.joining import cat
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "SyncBatchNorm",
]


class ChannelNorm(Module):
    """Base: normalises each channel, and may keep running averages and learn a factor and a summand for each.

    Args:
        num_features: the number of channels, C.
        eps: added to the variance.
        momentum: how far the running averages move towards each batch's; None averages over all batches alike.
        affine: learn a factor (``weight``) and a summand (``bias``) for each channel.
        track_running_stats: keep running averages, and use them in evaluation mode.
        bias: False leaves the summand out.

    Attributes:
        running_mean, running_var: (C,). The variance is the unbiased one.
        num_batches_tracked: how many batches they have seen.
    """

    _version = 2
    dims: tuple[int, ...] = ()  # how many dimensions an input may have; 2 and more if empty

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        where = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(num_features, **where)) if wanted else None)
        self.register_buffer("running_mean", zeros(num_features, **where) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features, **where) if track_running_stats else None)
        count = zeros((), dtype=int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget all batches."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget all batches, and make factors 1 and summands 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        expect_tensor(input, "input", type(self).__name__)
        ndim = len(input._data.shape)
        if ndim < 2 if not self.dims else ndim not in self.dims:
            expected = " or ".join(f"{n}D" for n in self.dims) or "at least 2D"
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def _channel_dim(self, input: Tensor) -> int:
        return 1

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm(ChannelNorm):
    """Base: over the batch. Ioffe and Szegedy (2015)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) -> the same"""
        self._check_input_dim(input)
        if input._data.shape[1] != self.num_features:
            raise RuntimeError(
                f"input: expected {self.num_features} channels in dimension 1, got {input.shape[1]}; running_mean "
                f"should contain {input.shape[1]} elements not {self.num_features}"
            )
        factor: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and (seen := self.num_batches_tracked) is not None:
            seen.add_(1)
            if self.momentum is None:
                factor = 1.0 / seen.double()
        moves = not self.training or self.track_running_stats
        averages = (self.running_mean, self.running_var) if moves else (None, None)
        return self._normalized(input, *averages, factor)

    def _normalized(self, input: Tensor, mean: Tensor | None, var: Tensor | None, factor: float | Tensor) -> Tensor:
        by_batch = self.training or self.running_mean is None
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)

    def forget_running_stats(self) -> None:
        """Keep no running averages from now on: normalize by each batch, in evaluation mode too."""
        self.running_mean = self.running_var = self.num_batches_tracked = None
        self.track_running_stats = False

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Mapping[str, Any], *report: Any
    ) -> None:
        count = self.num_batches_tracked
        if local_metadata.get("version", 1) < 2 and count is not None:  # batches were not counted then
            state_dict.setdefault(f"{prefix}num_batches_tracked", count.detach())
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *report)


class BatchNorm1d(BatchNorm):
    """Shifts and scales each channel to mean 0 and variance 1 over the batch. (N, C) or (N, C, L) -> the same

    See ``ChannelNorm`` for the arguments. Ioffe and Szegedy (2015).
    """

    dims = (2, 3)


class BatchNorm2d(BatchNorm):
    """Shifts and scales each channel to mean 0 and variance 1 over the batch. (N, C, H, W) -> the same"""

    dims = (4,)


class BatchNorm3d(BatchNorm):
    """Shifts and scales each channel to mean 0 and variance 1 over the batch. (N, C, D, H, W) -> the same"""

    dims = (5,)


class SyncBatchNorm(BatchNorm):
    """As the others, for inputs of any number of dimensions, over the batches of all processes in training mode.

    Each process may have another number of elements. See `leafgrad.distributed`.

    Args:
        process_group: None: all processes.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _normalized(self, input: Tensor, mean: Tensor | None, var: Tensor | None, factor: float | Tensor) -> Tensor:
        from leafgrad import distributed  # which few programs need
        from leafgrad.distributed.functional import all_reduce

        if not self.training or not distributed.is_initialized() or distributed.get_world_size() == 1:
            return super()._normalized(input, mean, var, factor)
        dims, shape = (0, *range(2, input.ndim)), (1, -1) + (1,) * (input.ndim - 2)
        own = input.new_full((1,), input.numel() // self.num_features)
        sums = all_reduce(cat((input.sum(dims), own)))
        count = sums[-1].detach()
        centre = sums[:-1] / count
        moved = input - centre.reshape(shape)
        spread = all_reduce((moved * moved).sum(dims)) / count
        result = moved * (spread + self.eps).rsqrt().reshape(shape)
        if mean is not None and var is not None:
            mean += factor * (centre.detach() - mean)
            var += factor * (spread.detach() * (count / (count - 1)) - var)
        if self.weight is not None:
            result = result * self.weight.reshape(shape)
        return result if self.bias is None else result + self.bias.reshape(shape)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """``module`` with a layer of this class, and of the same tensors, for each batch norm in it."""
        made = module
        if isinstance(module, BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, False, False, process_group)
            made.affine, made.track_running_stats = module.affine, module.track_running_stats
            made._parameters, made._buffers = module._parameters.copy(), module._buffers.copy()
            made.train(module.training)
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class InstanceNorm(ChannelNorm):
    """Base: within each element of the batch. Ulyanov, Vedaldi and Lempitsky (2016)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _channel_dim(self, input: Tensor) -> int:
        return 0 if input.ndim == min(self.dims) else 1

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) or (C, ...) -> the same"""
        self._check_input_dim(input)
        at = self._channel_dim(input)
        alone = at == 0
        if input.shape[at] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={at} to match num_features ({self.num_features}), but got: "
                    f"{input.shape[at]}."
                )
            messages.warn(
                f"input's size at dim={at} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False"
            )
        result = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if alone else result


class InstanceNorm1d(InstanceNorm):
    """Shifts and scales each channel of each element to mean 0 and variance 1. (N, C, L) or (C, L) -> the same

    See ``ChannelNorm`` for the arguments. Ulyanov, Vedaldi and Lempitsky (2016).
    """

    dims = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """Shifts and scales each channel of each element to mean 0 and variance 1. (N, C, H, W) or (C, H, W)"""

    dims = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """Shifts and scales each channel of each element to mean 0 and variance 1. (N, C, D, H, W) or (C, D, H, W)"""

    dims = (4, 5)


# Names that scripts ask isinstance with.
_NormBase = ChannelNorm
_BatchNorm = BatchNorm
_InstanceNorm = InstanceNorm
