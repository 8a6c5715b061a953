"""Layers that act on the lowest Fourier coefficients of functions on a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_fft.transforms import irfftn, rfftn


class SpectralConv(nn.Module):
    """A convolution by its Fourier coefficients, of which it has the lowest: a linear map for each of them.

    The layer of Fourier neural operators (Li et al., 2021, arXiv:2010.08895): since it knows no grid, it works on any
    that resolves its frequencies. (N, in_channels, *grid) -> (N, out_channels, *grid)

    Args:
        in_channels, out_channels: sizes of dimension 1 of input and output.
        modes: for each dimension of the grid, how many coefficients: frequencies 0 to modes - 1 in the last, and
            -modes to modes - 1 in the others. A number stands for a grid of one dimension.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        TypeError: sizes or modes that are no integers. RuntimeError: one of them is not positive.

    Attributes:
        weight: real and imaginary parts, (in_channels, out_channels, *coefficients, 2), at first uniform over
            ±1 / in_channels.
    """

    weight: nn.Parameter

    def __init__(
        self, in_channels: int, out_channels: int, modes: int | Sequence[int], device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.modes = tuple(modes) if isinstance(modes, Iterable) else (modes,)
        sizes = {"in_channels": (in_channels,), "out_channels": (out_channels,), "modes": self.modes}
        for name, given in sizes.items():
            if not all(isinstance(size, Integral) and not isinstance(size, bool) for size in given):
                raise TypeError(f"SpectralConv: {name}: expected integers, got {given!r}")
            if not given or min(given) < 1:
                each = " for each dimension" if name == "modes" else ""
                raise RuntimeError(f"SpectralConv: {name}: expected a positive number{each}, got {given!r}")
        kept = (*[2 * m for m in self.modes[:-1]], self.modes[-1])
        shape = (in_channels, out_channels, *kept, 2)
        self.weight = nn.Parameter(leafgrad.empty(*shape, device=device, dtype=dtype))
        nn.init.uniform_(self.weight, -1 / in_channels, 1 / in_channels)

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *grid) -> (N, out_channels, *grid)

        Raises:
            TypeError: no Tensor. RuntimeError: another number of dimensions or channels, or a grid too coarse for the
                frequencies.
        """
        if not isinstance(input, Tensor):
            raise TypeError(f"SpectralConv: input: expected a Tensor, got {type(input).__name__}")
        grid = tuple(input.shape[2:])
        self._check(tuple(input.shape), grid)
        dims = tuple(range(2, input.ndim))
        spectrum = rfftn(input, dim=dims, norm="forward")
        for dim, m in zip(dims[:-1], self.modes[:-1], strict=True):
            spectrum = leafgrad.cat([spectrum.narrow(dim, 0, m), spectrum.narrow(dim, spectrum.shape[dim] - m, m)], dim)
        spectrum = self._mixed(spectrum.narrow(dims[-1], 0, self.modes[-1]))
        for dim, m, n in zip(dims[:-1], self.modes[:-1], grid[:-1], strict=True):
            between = leafgrad.zeros_like(spectrum.narrow(dim, 0, 1))
            between = between.expand(*[n - 2 * m if d == dim else -1 for d in range(between.ndim)])
            spectrum = leafgrad.cat([spectrum.narrow(dim, 0, m), between, spectrum.narrow(dim, m, m)], dim)
        return irfftn(spectrum, s=grid, dim=dims, norm="forward")

    def _mixed(self, x: Tensor) -> Tensor:
        """The complex product of each coefficient's channels with its matrix."""
        return leafgrad.einsum("ni...,io...->no...", x, leafgrad.view_as_complex(self.weight))

    def _check(self, shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
        if len(grid) != len(self.modes) or shape[1] != self.in_channels:
            raise RuntimeError(
                f"SpectralConv: expected input of shape (N, {self.in_channels}, *grid) with a grid of "
                f"{len(self.modes)} dimensions, got {shape}"
            )
        least = (*[2 * m for m in self.modes[:-1]], 2 * self.modes[-1] - 1)
        if any(n < m for n, m in zip(grid, least, strict=True)):
            raise RuntimeError(f"SpectralConv: expected a grid of at least {least} for modes {self.modes}, got {grid}")

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in_channels}, {self.out_channels}, modes={self.modes}"
