"""What networks are made of: dense layers, activations, and the input layers that know the domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.callables import check_number
from leafgrad_pinn.sampling import Array

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "tanh": leafgrad.tanh,
    "sin": leafgrad.sin,
    "sigmoid": leafgrad.sigmoid,
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "softplus": nn.functional.softplus,
}


def activation(name: str) -> Activation:
    """The function of that name; ValueError if there is none."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {', '.join(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]


@dataclass(frozen=True)
class Maker:
    """Makes parameters and buffers from one stream of random numbers, the same on all devices."""

    rng: np.random.Generator
    dtype: Any
    device: Any

    def tensor(self, values: Array) -> Tensor:
        return leafgrad.tensor(values, dtype=self.dtype, device=self.device)

    def parameter(self, values: Array) -> nn.Parameter:
        return nn.Parameter(self.tensor(values))


@dataclass(frozen=True)
class Factorised:
    """Random weight factorisation: each weight column is exp(s) times a vector, s ~ N(mean, std), both trained.

    Source: Wang, Wang, Seidman and Perdikaris (2022), arXiv 2210.01274.
    """

    mean: float = 0.5
    std: float = 0.1


class Dense(nn.Module):
    """x W + b: W by Glorot's rule and b zero, or both uniform, in a given range and in that of 1 / sqrt(inputs).

    (n, inputs) -> (n, outputs)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        make: Maker,
        factorised: Factorised | None = None,
        limit: float | Array | None = None,
    ) -> None:
        super().__init__()
        if limit is None:
            weight = make.rng.normal(size=(inputs, outputs)) * math.sqrt(2 / (inputs + outputs))
            bias = np.zeros(outputs)
        else:
            weight = make.rng.uniform(-limit, limit, (inputs, outputs))
            bias = make.rng.uniform(-1, 1, outputs) / math.sqrt(inputs)
        self.scale = None
        if factorised is not None:
            scale = make.rng.normal(factorised.mean, factorised.std, outputs)
            weight, self.scale = weight / np.exp(scale), make.parameter(scale)
        self.weight = make.parameter(weight)
        self.bias = make.parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight if self.scale is None else self.weight * leafgrad.exp(self.scale)
        result: Tensor = x @ weight + self.bias
        return result


@dataclass(frozen=True, init=False)
class Periodic:
    """Harmonics of periodic coordinates: ``Periodic(x=5)`` replaces x by cos and sin of k 2 pi x / L, k = 1 .. 5.

    Whatever the network then is, it and all its derivatives are periodic. Other coordinates stay.
    """

    waves: ClassVar[tuple[Activation, ...]] = (leafgrad.cos, leafgrad.sin)
    harmonics: dict[str, int]

    def __init__(self, harmonics: dict[str, int] | None = None, **names: int) -> None:
        chosen = {**(harmonics or {}), **names}
        for name, count in chosen.items():
            check_number(f"Periodic: {name}", count, 1, whole=True)
        if not chosen:
            raise ValueError(f"Periodic: expected coordinates with at least 1 harmonic each, as x=5, got {chosen}")
        object.__setattr__(self, "harmonics", chosen)


class Even(Periodic):
    """The cosines of `Periodic` alone: the network is periodic, and even about the middle of the interval."""

    waves = (leafgrad.cos,)


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features: cos and sin of B z, B ~ N(0, scale^2), z the inputs; ``features`` of them.

    Source: Tancik et al. (2020), arXiv 2006.10739.
    """

    features: int = 64
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("Fourier: features", self.features, whole=True)
        check_number("Fourier: scale", self.scale)
        if self.scale <= 0:
            raise ValueError(f"Fourier: scale: expected a positive number, got {self.scale}")
        if self.features < 2 or self.features % 2:
            raise ValueError(f"Fourier: features: expected an even number of at least 2, got {self.features}")


class Inputs(nn.Module):
    """The input layer: coordinates, each scaled from the domain to [-1, 1], or what an embedding makes of them.

    n numbers for each coordinate -> (n, size)
    """

    def __init__(
        self, names: Sequence[str], bounds: Array, embed: Periodic | Fourier | Sequence[Any] | None, make: Maker
    ) -> None:
        super().__init__()
        self.names = list(names)
        self.register_buffer("middles", make.tensor(bounds.mean(1)), persistent=False)
        self.register_buffer("radii", make.tensor(np.ptp(bounds, axis=1) / 2), persistent=False)
        parts = [] if embed is None else list(embed) if isinstance(embed, Sequence) else [embed]
        if wrong := [part for part in parts if not isinstance(part, (Periodic, Fourier))]:
            raise TypeError(f"embed: expected Periodic(...), Even(...) or Fourier(...), got {type(wrong[0]).__name__}")
        random = [part for part in parts if isinstance(part, Fourier)]
        if len(random) > 1:
            raise ValueError(f"embed: expected Fourier(...) once, got {len(random)} of them")
        self.harmonics: dict[str, int] = {}
        self.waves: dict[str, tuple[Activation, ...]] = {}
        for part in parts:
            if isinstance(part, Periodic):
                self.harmonics.update(part.harmonics)
                self.waves.update(dict.fromkeys(part.harmonics, part.waves))
        if unknown := set(self.harmonics) - set(self.names):
            raise ValueError(f"Periodic: expected names among {', '.join(names)}, got {', '.join(sorted(unknown))}")
        self.register_buffer("frequencies", None)
        counts = {name: len(self.waves[name]) * harmonics for name, harmonics in self.harmonics.items()}
        # of which coordinate each feature is, before a Fourier embedding
        self.origins = [name for name in self.names for _ in range(counts.get(name, 1))]
        self.size = len(self.origins)
        for part in random:
            matrix = make.rng.normal(scale=part.scale, size=(self.size, part.features // 2))
            self.frequencies = make.tensor(matrix)
            self.size = part.features

    def forward(self, columns: Sequence[Tensor]) -> Tensor:
        features = []
        for index, (name, column) in enumerate(zip(self.names, columns, strict=True)):
            scaled = (column - self.middles[index]) / self.radii[index]
            if name in self.harmonics:
                angles = [math.pi * k * scaled for k in range(1, self.harmonics[name] + 1)]
                features += [f(angle) for angle in angles for f in self.waves[name]]
            else:
                features.append(scaled)
        z = leafgrad.stack(features, -1)
        if self.frequencies is None:
            return z
        z = z @ self.frequencies
        return leafgrad.cat([leafgrad.cos(z), leafgrad.sin(z)], -1)
