"""Where fields are before anything is known of them but given values: about the mean of these.

As with exp(T - 300) and log(p), equations may have no numbers, or immense ones, where fields are not about that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

import leafgrad
from leafgrad_pinn.conditions import Dirichlet, Initial
from leafgrad_pinn.layers import Dense
from leafgrad_pinn.observations import Data
from leafgrad_pinn.sampling import Array

if TYPE_CHECKING:
    from leafgrad_pinn.system import System, Tensors

WILD = 1e6  # times their terms: residuals from which no training should start
NEAR = 1e-2  # of a field's size: how far it is from such values then


def means_of(system: System, batches: Sequence[Tensors]) -> dict[str, float]:
    """The mean of the values that are given of each field, beside exact ones; 0 where there are none."""
    exact = {name: ansatz.side is not None or ansatz.start is not None
             for surrogate in system.surrogates for name, ansatz in surrogate.ansatz.items()}  # fmt: skip
    given: dict[str, list[Array]] = {name: [] for name in exact}
    for condition, batch in zip(system.conditions, batches, strict=True) if not system.domain.functions else ():
        for name, values in values_of(system, condition, batch).items():
            if name in exact and not exact[name]:
                given[name].append(values)
    means = {name: float(np.mean(np.concatenate(parts))) if parts else 0.0 for name, parts in given.items()}
    return {name: mean if np.isfinite(mean) else 0.0 for name, mean in means.items()}


def values_of(system: System, condition: object, batch: Tensors) -> dict[str, Array]:
    """The values (n,) that a condition gives of fields."""
    if isinstance(condition, Data):
        return {name: batch[f"value {name}"].numpy() for name in condition.measured}
    if not isinstance(condition, Dirichlet | Initial) or condition.target in system.pairs:
        return {}
    columns = system.points(batch).columns
    if not set(condition.call.parameters) <= set(columns):
        return {}
    values = condition.call.numbers(columns, columns[system.domain.names[0]])
    return {condition.target: values.detach().numpy()}


def wild(system: System, batches: Sequence[Tensors]) -> bool:
    """Whether residuals are no numbers, or immense."""
    with np.errstate(all="ignore"):
        left = [np.abs(system.residuals(k, batch)[0].detach().numpy()).max() for k, batch in enumerate(batches)]
    return not np.max(left) < WILD


def start_at(system: System, means: Mapping[str, float]) -> None:
    """Let networks with a dense last layer begin near these values, if there are any."""
    for surrogate in system.surrogates if means and not system.domain.functions else ():
        starts = [means[field] / scale for field, scale in zip(surrogate.ansatz, surrogate.scales, strict=True)]
        for name, layer in surrogate.net.named_modules():
            if name.split(".")[-1] == "last" and isinstance(layer, Dense):
                with leafgrad.no_grad():
                    layer.weight *= NEAR
                    layer.bias[: len(starts)] = layer.bias.new_tensor(starts)
