"""Numbers in equations that are solved for."""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.callables import check_name, check_number

KNOWN: list[Mapping[str, float]] = []  # the values that were found, by name, while a solution evaluates a function


class Unknown:
    """A number that is solved for, to be used in equations like a number: ``lam = Unknown("lam", 0.5)``.

    Equations take it from the surrounding Python, or ask for it by name, as for a field, and so do functions that a
    solution evaluates. Functions of tensors take ``+lam``: ``lg.exp(+lam)``.

    Args:
        name: how results call it.
        value: where it starts; what is trained is its ratio to this, so that it may have any units. From 0 it starts as
            a number about 1.
        positive: it stays positive: its logarithm is what is trained.
    """

    def __init__(self, name: str, value: float, positive: bool = False) -> None:
        check_name("Unknown", name)
        check_number(f"Unknown {name!r}: value", value)
        if positive and value <= 0:
            raise ValueError(
                f"Unknown {name!r}: value: expected a {'positive' if positive else 'finite'} number, got {value}"
            )
        self.name, self.value, self.positive = name, float(value), positive
        self.scale = 1.0 if positive else abs(float(value)) or 1.0
        self.raw = self.raw_of(value)
        self.tensor: Tensor | None = None  # while residuals are computed
        self.used = False  # whether an equation asked for it

    def raw_of(self, value: float) -> float:
        """The parameter that is trained, of a value."""
        return math.log(value) if self.positive else float(value) / self.scale

    def number(self, raw: Tensor) -> Tensor:
        """Its value, of the parameter that is trained."""
        return leafgrad.exp(raw) if self.positive else raw if self.scale == 1 else raw * self.scale

    def current(self) -> Tensor:
        """Its value while residuals are computed; RuntimeError at other times."""
        if self.tensor is None:
            if KNOWN and self.name in KNOWN[-1]:
                return leafgrad.tensor(KNOWN[-1][self.name], dtype=leafgrad.float64)
            raise RuntimeError(
                f"Unknown {self.name!r} has a value only in equations and where a solution evaluates functions; give "
                "it to Problem(unknowns=...); Hard(...) takes none: say it by Dirichlet(...) or Initial(...); what was "
                f"found is sol.unknowns[{self.name!r}]"
            )
        self.used = True
        return self.tensor

    def __pos__(self) -> Tensor:
        return self.current()

    def __abs__(self) -> Tensor:
        return abs(self.current())

    def __neg__(self) -> Tensor:
        result: Tensor = -self.current()
        return result

    def __add__(self, other: Any) -> Tensor:
        return apply(operator.add, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return apply(operator.add, other, self)

    def __sub__(self, other: Any) -> Tensor:
        return apply(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return apply(operator.sub, other, self)

    def __mul__(self, other: Any) -> Tensor:
        return apply(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return apply(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return apply(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return apply(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Tensor:
        return apply(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return apply(operator.pow, other, self)

    def __eq__(self, other: object) -> bool:
        raise TypeError(
            f"Unknown {self.name!r}: expected one expression for all of its values, got a comparison; take "
            f"lg.where(+{self.name} > 0, a, b)"
        )

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __hash__(self) -> int:  # one in C would be no attribute that compiled steps know
        return id(self)

    def __repr__(self) -> str:
        return f"Unknown({self.name!r}, {self.value}, positive={self.positive})"


def apply(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Tensor:
    """An operator on numbers, tensors and unknowns."""
    left, right = (side.current() if isinstance(side, Unknown) else side for side in (left, right))
    result: Tensor = function(left, right)
    return result


@contextmanager
def bound(unknowns: Sequence[Unknown], raws: Sequence[Tensor]) -> Iterator[None]:
    """Within it the unknowns have values, those of the given parameters."""
    for unknown, raw in zip(unknowns, raws, strict=True):
        unknown.tensor = unknown.number(raw)
    try:
        yield
    finally:
        for unknown in unknowns:
            unknown.tensor = None


@contextmanager
def found(values: Mapping[str, float]) -> Iterator[None]:
    """Within it unknowns have the values that were found, by name."""
    KNOWN.append(values)
    try:
        yield
    finally:
        KNOWN.pop()


@contextmanager
def moved(raws: Sequence[Tensor], steps: Iterable[float]) -> Iterator[None]:
    """Within it these parameters of unknowns are larger by steps."""
    kept = [raw.detach().clone() for raw in raws]
    try:
        with leafgrad.no_grad():
            for raw, step in zip(raws, steps, strict=True):
                raw.add_(float(step))
        yield
    finally:
        with leafgrad.no_grad():
            for raw, value in zip(raws, kept, strict=True):
                raw.copy_(value)


class Unknowns(Mapping[str, float]):
    """The unknowns that were found, by name, as medians over seeds. As a string, with their errors.

    Attributes:
        values_of: for each unknown the values of all seeds.
        deviations: for each unknown its standard deviation from J^T J, see `leafgrad_pinn.diagnosis.deviations`; the
            median over seeds.
    """

    def __init__(self, found: Sequence[Mapping[str, float]], deviations: Sequence[Mapping[str, float]]) -> None:
        self.values_of = {name: [one[name] for one in found] for name in found[0]}
        self.deviations = {name: statistics.median(one[name] for one in deviations) for name in found[0]}

    def __getitem__(self, name: str) -> float:
        if name not in self.values_of:
            raise KeyError(f"expected one of the unknowns {', '.join(self.values_of) or '(none)'}, got {name!r}")
        return statistics.median(self.values_of[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)

    def __str__(self) -> str:
        parts = []
        for name, values in self.values_of.items():
            deviation = self.deviations[name]
            known = math.isfinite(deviation) and deviation > 0
            digits = decimals(self[name], deviation) if known else ".6g"
            error, source = (f" +- {deviation:{digits}}", "from J^T J") if known else ("", "J^T J gives no error")
            if len(values) > 1:
                source += f"; {min(values):{digits}} to {max(values):{digits}} over {len(values)} seeds"
            parts.append(f"{name} = {self[name]:{digits}}{error} ({source})")
        return ", ".join(parts)

    __repr__ = __str__


def decimals(value: float, deviation: float) -> str:
    """A format that shows a number to the first digit of its deviation."""
    place = math.floor(math.log10(deviation))
    if place >= -8:
        return f".{max(0, -place)}f"
    return f".{max(0, math.floor(math.log10(max(abs(value), deviation))) - place)}e"
