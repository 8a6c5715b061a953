"""Fields of an earlier solution in the equations of another problem, such as a flow that carries heat."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leafgrad import nn
from leafgrad_pinn.complex import ComplexValue
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.values import Points

if TYPE_CHECKING:
    from leafgrad_pinn.solution import Solution


class Known:
    """A solution's fields at points, with their derivatives; no training changes them.

    Args:
        solution: in one window of time, of fields that are the whole domain's.
        domain: of the problem that asks for them.

    Attributes:
        names: of the fields, complex ones too.
        domain: where they are known.

    Raises:
        TypeError: it is no solution. ValueError: it has other coordinates, or is in parts or windows.
    """

    def __init__(self, solution: Solution, domain: Domain) -> None:
        if not hasattr(solution, "runs"):
            raise TypeError(f"Problem: known: expected a solution, got {type(solution).__name__}")
        if solution.domain.functions:
            raise ValueError("Problem: known: expected one problem of the family, as sol(f=...), got the family")
        if solution.moments or any(field.part for field in solution.fields):
            raise ValueError("Problem: known: expected fields of a whole domain, in one window of time, got others")
        if other := [name for name in solution.domain.names if name not in domain.names]:
            raise ValueError(
                f"Problem: known: expected a solution of coordinates among {', '.join(domain.names)}, got one of "
                f"{', '.join(other)}, too"
            )
        self.domain, self.axes = solution.domain, [domain.names.index(name) for name in solution.domain.names]
        self.pairs, self.coordinates = solution.pairs, {field.name: field.domain.names for field in solution.fields}
        self.modules: Sequence[nn.Module] = solution.run.modules
        self.names = [*self.coordinates, *self.pairs]

    def check(self, what: str, parameters: Sequence[str], points: Array) -> None:
        """ValueError if points (n, d) of a function that asks for its fields lie where these are not known."""
        if asked := [name for name in self.names if name in parameters]:
            self.domain.check_inside(f"{what}: {', '.join(asked)} of known=", points[:, self.axes])

    def to(self, dtype: Any, device: Any) -> Known:
        """The same, in a dtype and on a device."""
        found = copy.copy(self)
        found.modules = [copy.deepcopy(module).to(dtype=dtype, device=device) for module in self.modules]
        for module in found.modules:
            module.requires_grad_(False)
        return found

    def __call__(self, points: Points) -> dict[str, Any]:
        """Each field at points, by name."""
        found: dict[str, Any] = {}
        for module in self.modules:
            for name, value in module(points.columns).items():
                found[name] = points.value(value, self.coordinates[name], label=name)
        return found | {name: ComplexValue(found[real], found[imag]) for name, (real, imag) in self.pairs.items()}
