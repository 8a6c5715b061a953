"""Layers that act on the lowest Fourier coefficients of functions on a grid, and the network that they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import leafgrad
from leafgrad import Tensor, nn
from leafgrad.nn import functional as F
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


class FNO(nn.Module):
    """A Fourier neural operator: from functions on a grid to others, on any grid that resolves its frequencies.

    Input and coordinates, from 0 to 1 in each dimension, go through a linear map at each point, blocks that are the sum
    of a `SpectralConv` and a linear map, with GELU between, and two linear maps at each point.
    (N, in_channels, *grid) -> (N, out_channels, *grid)

    Args:
        in_channels, out_channels: how many functions.
        modes: see `SpectralConv`; as many as the grid has dimensions.
        width: how many functions there are between blocks.
        depth: how many blocks.
        padding: by which part of the grid it is extended with zeros at the end of each dimension, for functions that
            are not periodic.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        TypeError, RuntimeError: as `SpectralConv`. ValueError: a depth below 1, or a negative padding.

    Source: Li et al. (2021), arXiv:2010.08895.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        modes: int | Sequence[int],
        width: int = 32,
        depth: int = 4,
        padding: float = 0.0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if depth < 1 or padding < 0:
            raise ValueError(
                f"FNO: expected a depth of at least 1 and a padding of at least 0, got {depth} and {padding}"
            )
        options = {"device": device, "dtype": dtype}
        self.spectral = nn.ModuleList([SpectralConv(width, width, modes, **options) for _ in range(depth)])
        self.in_channels, self.modes, self.padding = in_channels, self.spectral[0].modes, padding
        self.local = nn.ModuleList([nn.Conv1d(width, width, 1, **options) for _ in range(depth)])
        self.lift = nn.Conv1d(in_channels + len(self.modes), width, 1, **options)
        self.project = nn.Sequential(
            nn.Conv1d(width, 4 * width, 1, **options), nn.GELU(), nn.Conv1d(4 * width, out_channels, 1, **options)
        )

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, *grid) -> (N, out_channels, *grid)

        Raises:
            TypeError: no Tensor. RuntimeError: another number of dimensions or channels, or a grid too coarse for the
                frequencies.
        """
        if not isinstance(input, Tensor):
            raise TypeError(f"FNO: input: expected a Tensor, got {type(input).__name__}")
        shape = tuple(input.shape)
        if len(shape) != len(self.modes) + 2 or shape[1] != self.in_channels:
            raise RuntimeError(
                f"FNO: expected input of shape (N, {self.in_channels}, *grid) with a grid of {len(self.modes)} "
                f"dimensions, got {shape}"
            )
        grid, dims = shape[2:], range(2, len(shape))
        axes = [leafgrad.linspace(0, 1, n, dtype=input.dtype, device=input.device) for n in grid]
        places = leafgrad.stack(leafgrad.meshgrid(*axes, indexing="ij"))
        x = pointwise(self.lift, leafgrad.cat([input, places.expand(shape[0], *places.shape)], 1))
        sides = [side for n in reversed(grid) for side in (0, round(self.padding * n))]
        x = F.pad(x, sides) if any(sides) else x
        for spectral, local in zip(self.spectral, self.local, strict=True):
            x = spectral(x) + pointwise(local, x)
            x = F.gelu(x) if spectral is not self.spectral[-1] else x
        for dim, n in zip(dims, grid, strict=True):
            x = x.narrow(dim, 0, n)
        return pointwise(self.project, x)


def pointwise(layer: nn.Module, x: Tensor) -> Tensor:
    """A layer of (N, channels, points) at each point of a grid."""
    found: Tensor = layer(x.flatten(2))
    return found.reshape(*found.shape[:2], *x.shape[2:])
