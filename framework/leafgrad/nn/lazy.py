"""Layers that learn the size of their input from the first call."""

from __future__ import annotations

from typing import Any

from leafgrad import modes
from leafgrad.nn.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    ChannelNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from leafgrad.nn.linear import Linear
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import UninitializedBuffer, UninitializedParameter, UninitializedTensor, become
from leafgrad.ops import dispatch
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin(Module):
    """Base: a layer that becomes an ordinary one, ``cls_to_become``, when it is called first.

    A subclass makes uninitialized parameters, and defines ``initialize_parameters``, which is given the arguments of
    the first call.
    """

    cls_to_become: type[Module] | None = None

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer waits for its shape."""
        return any(isinstance(t, UninitializedTensor) for t in (*self.parameters(False), *self.buffers(False)))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes, and values to begin with."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}; a lazy module has to define it"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flags = modes.get()
        dispatch.interrupt(f"{type(self).__name__} makes its parameters")
        token = modes.FLAGS.set(flags & ~(modes.TRACE | modes.GRAD))
        try:
            self.initialize_parameters(*args, **kwargs)
        finally:
            modes.FLAGS.reset(token)
        if self.has_uninitialized_params():
            raise RuntimeError(f"{type(self).__name__}: initialize_parameters left parameters without a shape")
        if self.cls_to_become is not None:
            become(self, self.cls_to_become)
        return Module.__call__(self, *args, **kwargs)


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose ``in_features`` is the size of the last dimension of its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        Module.__init__(self)
        self.in_features = 0
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.register_parameter("bias", UninitializedParameter(device=device, dtype=dtype) if bias else None)

    def initialize_parameters(self, input: Tensor) -> None:
        """Make ``weight`` and ``bias`` for an input like this, unless they were loaded."""
        waiting = self.has_uninitialized_params()
        if not expect_tensor(input, "input", "LazyLinear").ndim:
            raise RuntimeError("LazyLinear: input: expected at least 1 dimension (the features), got 0")
        self.in_features = input.shape[-1] if waiting else self.weight.shape[1]
        for parameter, shape in (
            (self.weight, (self.out_features, self.in_features)),
            (self.bias, (self.out_features,)),
        ):
            if isinstance(parameter, UninitializedTensor):
                parameter.materialize(shape)
        if waiting:
            self.reset_parameters()


class LazyNorm(LazyModuleMixin, ChannelNorm):
    """Base: a norm whose ``num_features`` is the number of channels of its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        ChannelNorm.__init__(self, 0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        for name in [name for name, p in self._parameters.items() if p is not None]:
            setattr(self, name, UninitializedParameter(device=device, dtype=dtype))
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)

    def initialize_parameters(self, input: Tensor) -> None:
        """Make parameters and buffers for an input like this, unless they were loaded."""
        self._check_input_dim(input)
        waiting = self.has_uninitialized_params()
        self.num_features = input.shape[self._channel_dim(input)]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if isinstance(tensor, UninitializedTensor):
                tensor.materialize((self.num_features,))
        if waiting:
            self.reset_parameters()


class LazyBatchNorm1d(LazyNorm, BatchNorm1d):
    """A BatchNorm1d whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(LazyNorm, BatchNorm2d):
    """A BatchNorm2d whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(LazyNorm, BatchNorm3d):
    """A BatchNorm3d whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = InstanceNorm3d
