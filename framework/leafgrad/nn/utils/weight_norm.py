"""Weight norm and spectral norm as they are known of old, with the parameters in the module itself."""

from __future__ import annotations

from typing import Any

from leafgrad import modes
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.nn.utils import norms
from leafgrad.nn.utils.derived import Rule, derive, rules, underive
from leafgrad.ops.messages import warn
from leafgrad.tensor.handle import RemovableHandle
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class OfOld(Rule):
    """A weight computed from parameters that are named after it."""

    kind = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def assign(self, module: Module, value: Any) -> None:
        raise AttributeError(
            f"{type(module).__name__}.{self.name} is computed by {self.kind}: write to the parameters that it is "
            f"computed from, or call remove_{self.kind} first"
        )


def _weight(module: Module, name: str, kind: str) -> Parameter:
    """The weight to be computed henceforth."""
    if isinstance(found := rules(module).get(name), OfOld) and found.kind == kind:
        raise RuntimeError(f"Cannot register two {kind} hooks on the same parameter {name}")
    weight = module._parameters.get(name)
    if weight is None:
        raise AttributeError(f"{type(module).__name__} has no parameter {name!r}")
    return weight


def _restore(module: Module, name: str, kind: str) -> Rule:
    """Make the weight an ordinary parameter again, with its value as it is."""
    found = rules(module).get(name)
    if not isinstance(found, OfOld) or found.kind != kind:
        raise ValueError(f"{kind} of '{name}' not found in {module}")
    with modes.no_grad():
        value = getattr(module, name).clone()
    underive(module, name)
    module.register_parameter(name, Parameter(value))
    return found


# ---- weight norm ----------------------------------------------------------------------------------------------------


class WeightNorm(OfOld):
    """v times g over the norm of v."""

    kind = "weight_norm"

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Module) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norms.norm_except(v, self.dim))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train length and direction of a weight apart, as ``weight_g`` and ``weight_v``; returns ``module``.

    Salimans and Kingma (2016). Succeeded by ``parametrizations.weight_norm``.

    Args:
        dim: the dimension whose slices have lengths of their own; None or -1 for one length.
        module: the module.
        name: of the parameter.

    Raises:
        RuntimeError: it has been done already. AttributeError: there is no such parameter. IndexError: nor dimension.
    """
    warn(
        "`leafgrad.nn.utils.weight_norm` is deprecated in favor of `leafgrad.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    weight = _weight(module, name, "weight_norm")
    length = norms.norm_except(weight.detach(), dim)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    derive(module, name, WeightNorm(name, dim))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo ``weight_norm``, keeping the value; returns ``module``. ValueError: there is nothing to undo.

    Args:
        module: the module.
        name: of the parameter.
    """
    _restore(module, name, "weight_norm")
    delattr(module, f"{name}_g")
    delattr(module, f"{name}_v")
    return module


# ---- spectral norm --------------------------------------------------------------------------------------------------


class SpectralNorm(OfOld):
    """A weight over its largest singular value; before each forward in training mode the estimate is improved."""

    kind = "spectral_norm"

    def __init__(self, name: str, times: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.times = times
        self.eps = eps
        self.dim = dim
        self.handle: RemovableHandle | None = None

    def _parts(self, module: Module) -> tuple[Tensor, Tensor, Tensor]:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        return weight, u, v

    def compute(self, module: Module) -> Tensor:
        weight, u, v = self._parts(module)
        return norms.over_largest(weight, self.dim, u, v)

    def __call__(self, module: Module, args: Any) -> None:
        if module.training:
            weight, u, v = self._parts(module)
            norms.iterate(norms.as_matrix(weight, self.dim).t(), v, u, self.times, self.eps)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, estimated as training goes on; returns ``module``.

    Miyato et al. (2018). The weight itself is ``weight_orig``, the estimate's vectors are buffers.

    Args:
        n_power_iterations: steps of the estimate before each forward in training mode.
        eps: norms count as at least this.
        dim: the dimension that counts outputs, by default that of the layer.
        module: the module.
        name: of the parameter.

    Raises:
        RuntimeError: it has been done already. AttributeError: there is no such parameter.
        ValueError: ``n_power_iterations`` is not positive.
    """
    norms.check_iterations(n_power_iterations)
    weight = _weight(module, name, "spectral_norm")
    rule = SpectralNorm(name, n_power_iterations, eps, norms.usual_dim(module) if dim is None else dim)
    with modes.no_grad():
        u, v = norms.vectors(norms.as_matrix(weight, rule.dim), eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    derive(module, name, rule)
    rule.handle = module.register_forward_pre_hook(rule)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo ``spectral_norm``, keeping the value; returns ``module``. ValueError: there is nothing to undo.

    Args:
        module: the module.
        name: of the parameter.
    """
    rule = _restore(module, name, "spectral_norm")
    if isinstance(rule, SpectralNorm) and rule.handle is not None:
        rule.handle.remove()
    for part in ("orig", "u", "v"):
        delattr(module, f"{name}_{part}")
    return module


publish(globals())
