"""What a problem has that its conditions may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leafgrad_pinn.callables import Function, Named
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.shapes import Shape


class Scene:
    """What conditions may ask for: the domain, the fields' names and values.

    Attributes:
        domain: of the problem.
        fields: for each field, and for the parts of complex ones, its coordinates.
        given: the fields' names as the problem was given them.
        complex: those of complex ones.
        on_grid: whether a network gives values on a grid, with kinks between.
        known: the names of an earlier solution's fields.
        parts: the shapes of fields that belong to a part of the domain.
    """

    def __init__(
        self,
        domain: Domain,
        fields: Mapping[str, Sequence[str]],
        given: Sequence[str],
        complex: Sequence[str] = (),
        on_grid: bool = False,
        known: Sequence[str] = (),
        parts: Mapping[str, Shape] = {},
    ) -> None:
        self.domain, self.fields, self.given, self.complex = domain, dict(fields), list(given), tuple(complex)
        self.on_grid, self.known, self.parts = on_grid, tuple(known), dict(parts)

    def field(self, name: str | None, what: str) -> str:
        """The name itself, or that of the only field; ValueError if there is none of that name, or several."""
        if name is None and len(self.given) == 1:
            return self.given[0]
        if name is None or name not in self.fields:
            got = "none" if name is None else repr(name)
            raise ValueError(f"{what}: field: expected one of {', '.join(self.fields)}, got {got}")
        return name

    def named(self, function: Function | float, what: str, *more: str) -> Named:
        """A function of fields, coordinates, and what else it may ask for."""
        functions = [given.name for given in self.domain.functions]
        return Named(function, what, [*self.fields, *self.domain.names, *functions, *self.known, *more])
