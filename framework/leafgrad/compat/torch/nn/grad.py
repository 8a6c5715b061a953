"""``torch.nn.grad``: the gradients of convolutions, as functions. They can be differentiated in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import autograd, modes
from leafgrad.nn import functional as F
from leafgrad.tensor.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Convolution = Callable[..., Tensor]


def _by_input(convolution: Convolution) -> Callable[..., Tensor]:
    def function(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        """The gradient at the input, of ``input_size``, from that at the result."""
        at = weight.new_zeros(input_size)
        return _pulled(lambda x: convolution(x, weight, None, stride, padding, dilation, groups), at, grad_output)

    function.__name__ = function.__qualname__ = f"{convolution.__name__}_input"
    return function


def _by_weight(convolution: Convolution) -> Callable[..., Tensor]:
    def function(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        """The gradient at the weight, of ``weight_size``, from that at the result."""
        at = input.new_zeros(weight_size)
        return _pulled(lambda w: convolution(input, w, None, stride, padding, dilation, groups), at, grad_output)

    function.__name__ = function.__qualname__ = f"{convolution.__name__}_weight"
    return function


def _pulled(linear: Callable[[Tensor], Tensor], at: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient of a linear function, at any point."""
    recorded = modes.is_grad_enabled()
    with modes.enable_grad():
        point = at.requires_grad_()
        (found,) = autograd.grad(linear(point), point, grad_output, create_graph=recorded)
    return found


conv1d_input, conv1d_weight = _by_input(F.conv1d), _by_weight(F.conv1d)
conv2d_input, conv2d_weight = _by_input(F.conv2d), _by_weight(F.conv2d)
conv3d_input, conv3d_weight = _by_input(F.conv3d), _by_weight(F.conv3d)
