"""One problem of a family, by its input functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.calls import warn
from leafgrad_pinn.copies import copied
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import Field
from leafgrad_pinn.sampling import Array


class Given(nn.Module):
    """The fields of a family for one input function of each kind, whose values at sensors are given, (1, m)."""

    def __init__(self, module: Any, functions: Mapping[str, Array]) -> None:
        super().__init__()
        like = next(iter(module.parameters()))
        self.module, self.parts = module, module.parts
        self.functions = {
            name: leafgrad.tensor(row, dtype=like.dtype, device=like.device) for name, row in functions.items()
        }

    def forward(self, columns: Mapping[str, Tensor], alone: bool = False) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.module({**columns, **self.functions}, alone)
        return found

    def past(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.module.past({**columns, **self.functions})
        return found


def one_of(groups: Sequence[Sequence[Field]]) -> list[list[Field]]:
    """The fields of a family as those of one problem."""
    copies = copied(field for group in groups for field in group)
    for field in copies.values():
        field.domain = field.domain.alone
    return [[copies[field.name] for field in group] for group in groups]


def means_of(domain: Domain) -> dict[str, Array]:
    """A constant for each input function, which is their mean."""
    return {function.name: np.full(function.shape, function.mean) for function in domain.functions}


def rows_of(domain: Domain, given: Mapping[str, Any]) -> dict[str, Array]:
    """One input function of each kind, by its values at the sensors, (1, m).

    Raises:
        TypeError: one is missing, or there is none of that name. ValueError: it has other values than one has.

    Warns:
        UserWarning: it is unlike all functions that are drawn.
    """
    names = [function.name for function in domain.functions]
    if set(given) != set(names):
        raise TypeError(
            f"Solution: expected input functions {', '.join(names)}, as sol({names[0]}=...), got "
            f"{', '.join(given) or 'none'}"
        )
    rows = {function.name: function.values(given[function.name]) for function in domain.functions}
    if several := [name for name, row in rows.items() if len(row) != 1]:
        raise ValueError(f"{several[0]}: expected one function, got {len(rows[several[0]])}; ask for each by itself")
    for function in domain.functions:
        if told := function.unlike(rows[function.name]):
            warn(
                f"{function.name} is unlike the functions that the family was solved for: {told}; the solution may be "
                "far off"
            )
    return rows
