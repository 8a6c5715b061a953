"""Parametrizations ready for use: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafgrad import modes
from leafgrad.nn.functional.normalization import normalize
from leafgrad.nn.module import Module
from leafgrad.nn.utils import norms
from leafgrad.nn.utils.orthogonal import orthogonal as orthogonal
from leafgrad.nn.utils.parametrize import register_parametrization
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---- weight norm ----------------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / norms.norm_except(v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norms.norm_except(weight, self.dim), weight


class _FromOld:
    """Before loading: names that ``nn.utils.weight_norm`` gave become those of the parametrization."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(
        self, module: Module, state_dict: dict[str, Any], prefix: str, metadata: Mapping[str, Any], *report: Any
    ) -> None:
        old = [f"{prefix}{self.name}_{part}" for part in ("g", "v")]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{self.name}.original{i}"] = state_dict.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train length and direction of a weight apart; returns ``module``. Salimans and Kingma (2016).

    Args:
        dim: the dimension whose slices have lengths of their own; None or -1 for one length.

    Raises:
        ValueError: there is no such parameter. IndexError: there is no such dimension.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(_FromOld(name))
    return module


# ---- spectral norm --------------------------------------------------------------------------------------------------


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        self.n_power_iterations = norms.check_iterations(n_power_iterations)
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            with modes.no_grad():
                matrix = norms.as_matrix(weight, self.dim)
                u, v = norms.vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            norms.iterate(matrix, u, v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, 2, 0, self.eps)
        if self.training:
            matrix = norms.as_matrix(weight, self.dim)
            norms.iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        return norms.over_largest(weight, self.dim, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, estimated as training goes on; returns ``module``.

    Miyato et al. (2018).

    Args:
        n_power_iterations: steps of the estimate at each use in training mode.
        eps: norms count as at least this.
        dim: the dimension that counts outputs, by default that of the layer.

    Raises:
        ValueError: there is no such tensor, or ``n_power_iterations`` is not positive.
    """
    weight = _tensor(module, name)
    dim = norms.usual_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


publish(globals())
