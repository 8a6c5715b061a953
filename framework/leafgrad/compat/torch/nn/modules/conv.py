"""The base of convolutions, with PyTorch's order of arguments for the layers of scripts."""

from __future__ import annotations

from typing import Any

from leafgrad.nn.convolution import ConvNd

__all__ = ["_ConvNd"]


class Base(type):
    """The class of ``_ConvNd``, of which all convolution layers are instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(ConvNd if cls.__module__ == __name__ else cls, subclass)


class _ConvNd(ConvNd, metaclass=Base):
    """What a layer of a script derives from: parameters and sizes, which are tuples; ``forward`` is its own."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...],
        padding: tuple[int, ...], dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...],
        groups: int, bias: bool, padding_mode: str, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        object.__setattr__(self, "dims", len(kernel_size))
        object.__setattr__(self, "transposed", transposed)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.output_padding = output_padding
