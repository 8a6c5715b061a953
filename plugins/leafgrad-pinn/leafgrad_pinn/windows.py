"""Windows of time: a problem cut into several, each of which goes on from the end of the one before."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.complex import both
from leafgrad_pinn.conditions import Batch, Initial
from leafgrad_pinn.copies import copied
from leafgrad_pinn.domains import Domain, Time, widest
from leafgrad_pinn.field import Field, Surrogate, columns_of
from leafgrad_pinn.layers import Maker
from leafgrad_pinn.orders import order_of
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import sizes_of
from leafgrad_pinn.values import Points


class Piecewise(nn.Module):
    """Fields that share a network, window after window of time: nan where no window has been solved.

    Args:
        surrogates: those of the first windows.
        moments: at which windows begin and end: one more than there are windows.
    """

    def __init__(self, surrogates: Sequence[Surrogate], moments: Sequence[float]) -> None:
        super().__init__()
        self.surrogates, self.moments = nn.ModuleList(surrogates), list(moments)
        self.names, self.parts = surrogates[0].fields, surrogates[0].parts

    def past(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The fields before the first window."""
        found: dict[str, Tensor] = self.surrogates[0].past(columns)
        return found

    def forward(self, columns: Mapping[str, Tensor], alone: bool = False) -> dict[str, Tensor]:
        """The fields; if values ``alone`` are wanted, they need not have derivatives by the coordinates."""
        t = list(columns.values())[-1]  # time is a domain's last coordinate
        ends = leafgrad.tensor(self.moments[1:-1], dtype=t.dtype, device=t.device)
        window = (t[:, None] > ends).sum(1)
        found = {name: leafgrad.full_like(t, float("nan")) for name in self.names}
        for index, surrogate in enumerate(self.surrogates):
            (rows,) = (window == index).nonzero(as_tuple=True)
            if len(rows):
                values = surrogate({name: column[rows] for name, column in columns.items()}, alone)
                found = {name: found[name].index_copy(0, rows, values[name]) for name in found}
        return found


class Continued(Initial):
    """An initial condition in a window: the values, and rates if these are given, of the window before.

    It is given them with its points, in the first window too, so that all windows have the same equations.
    """

    def __init__(self, first: Initial, before: Sequence[Surrogate], parts: Sequence[str]) -> None:
        self.__dict__.update(vars(first))
        self.before, self.parts = before, parts

    @property
    def handed(self) -> list[tuple[str, tuple[str, ...]]]:
        """What each of its residuals is about: a field, and the path of a derivative."""
        paths: list[tuple[str, ...]] = [(), (self.time,)]
        return [(part, path) for path in paths[: 1 + (self.speed is not None)] for part in self.parts]

    def draw(self, domain: Domain, rng: np.random.Generator) -> Batch:
        batch = super().draw(domain, rng)
        if not self.before:
            return batch | self._given(columns_of(domain, batch["points"]))
        for surrogate in self.before:
            wanted = {part: self.speed is not None for part in self.parts if part in surrogate.fields}
            parameter = next(iter(surrogate.parameters()))
            columns = columns_of(domain, batch["points"], parameter.dtype, parameter.device)
            for part, (value, rate) in surrogate.end(columns, wanted, alone=True).items():
                batch[f"value {part}"] = numbers(value)
                if rate is not None:
                    batch[f"rate {part}"] = numbers(rate)
        return batch

    def _given(self, columns: Mapping[str, Tensor]) -> Batch:
        """The values that the condition was made with."""
        found, like = {}, next(iter(columns.values()))
        for name, function in (("value", self.call), ("rate", self.speed)):
            if function is not None:
                for part, value in zip(self.parts, both(function(columns)), strict=False):
                    found[f"{name} {part}"] = numbers(value * leafgrad.ones_like(like))
        return found

    def residual(self, values: Mapping[str, Any], points: Points, extra: Mapping[str, Tensor]) -> Any:
        gaps = [values[part] - extra[f"value {part}"] for part in self.parts]
        if self.speed is not None:
            gaps += [values[part].along([self.time]) - extra[f"rate {part}"] for part in self.parts]
        return tuple(gaps)


def moments_of(problem: Problem, windows: int | Sequence[float]) -> list[float]:
    """The moments at which windows begin and end; none if there is one window.

    Args:
        problem: what is cut.
        windows: how many, of the same length, or the moments between them.

    Raises:
        ValueError: the problem cannot be cut so, or the moments do not rise within its time.
    """
    if isinstance(windows, (bool, str)) or not isinstance(windows, (int, Sequence)):
        raise TypeError(f"windows: expected how many, or a list of the moments between them, got {windows!r}")
    if windows in (1, [], ()):
        return []
    time = problem.domain.time
    if problem.domain.functions:
        raise ValueError(
            "windows: expected one problem, got a family of them, of input functions; take one window of time"
        )
    if time is None:
        raise ValueError("windows: the domain has no time; make one with `shape * Time('t', 0, 1)`")
    if isinstance(windows, int):
        inner = np.linspace(time.start, time.stop, max(windows, 0) + 1)[1:-1].tolist()
    else:
        inner = [float(moment) for moment in windows]
    moments = [time.start, *inner, time.stop]
    if len(moments) < 3 or not (np.diff(moments) > 0).all():
        raise ValueError(f"windows: expected at least 1, or moments that rise inside of {time}, got {windows}")
    check(problem, time)
    return moments


def check(problem: Problem, time: Time) -> None:
    """ValueError unless a window's end determines the next: what equations differentiate by time must be handed on."""
    if problem.unknowns:
        names = ", ".join(unknown.name for unknown in problem.unknowns)
        raise ValueError(f"windows: expected no unknowns, which are the same at all times, got {names}")
    for condition in problem.conditions:
        if isinstance(condition, Initial):
            used = {*condition.call.parameters, *(condition.speed.parameters if condition.speed else ())}
            if other := sorted(used - {*problem.domain.names}):
                raise ValueError(f"windows: {condition.name}: expected functions of coordinates, got ones of {other}")
    for field in problem.fields:
        if field.domain.time is None:
            raise ValueError(f"windows: expected fields of {time.name}, got {field.name}, of {field.domain}")
        order = order_of(problem, field, time.name)
        if order > 2:
            raise ValueError(f"windows: {field.name}: expected at most two derivatives by {time.name}, got {order}")
        known = handed(problem, field)
        if known < order:
            lacking = "initial values" if known == 0 else "initial rate"
            raise ValueError(
                f"windows: {field.name} has {order} derivative{'s' * (order > 1)} by {time.name}, and no {lacking} for "
                f"the next window to go on from; give Hard(value, rate=...) as initial=, or Initial(value, rate)"
            )


def handed(problem: Problem, field: Field) -> int:
    """Whether initial conditions give nothing of a field, its values, or its rate too: 0, 1 or 2."""
    known = [
        c.speed is not None for c in problem.conditions if isinstance(c, Initial) if field.name in parts(problem, c)
    ]
    known += [field.initial.rate is not None] if field.initial else []
    return 0 if not known else 2 if any(known) else 1


def parts(problem: Problem, condition: Initial) -> Sequence[str]:
    """The real fields that an initial condition is about."""
    return problem.pairs.get(condition.target, (condition.target,))


def window(problem: Problem, start: float, stop: float, before: Sequence[Surrogate]) -> Problem:
    """The problem from a moment to another; ``before`` has its fields up to there, () in the first window."""
    part = copy.copy(problem)
    part.fields, part.before = cut(problem.fields, start, stop), tuple(before)
    part.domain = widest(field.domain for field in part.fields)
    kept = []
    for condition, name, plan in zip(problem.conditions, problem.names, problem.plans, strict=True):
        inside = condition.within(part.domain)
        if isinstance(inside, Initial):
            inside = Continued(inside, before, parts(problem, inside))
        if inside is not None:
            kept.append((inside, name, plan))
    part.conditions, part.names, part.plans = (list(column) for column in zip(*kept, strict=True))
    part.sizes, part.few = [], []
    part.sizes = sizes_of(part.system(), part.some(), {field.name: field.scale or 1.0 for field in part.fields})
    return part


def module_of(group: Sequence[Field], make: Maker, moments: Sequence[float], count: int) -> Surrogate | Piecewise:
    """The network of a group of fields, or those of its first windows, before their weights are read."""
    if not moments:
        return Surrogate(group, make)
    surrogates: list[Surrogate] = []
    for start, stop in list(pairwise(moments))[:count]:
        surrogates.append(Surrogate(cut(group, start, stop), make, surrogates[-1] if surrogates else None))
    return Piecewise(surrogates, moments)


def cut(group: Sequence[Field], start: float, stop: float) -> list[Field]:
    """Fields from a moment to another."""
    parts = list(copied(group).values())
    for field in parts:
        time = field.domain.time
        assert time is not None
        field.domain = Domain(field.domain.shape, Time(time.name, start, stop), field.domain.parameters)
    return parts


def numbers(tensor: Tensor) -> Array:
    """A tensor as float64."""
    found: Array = tensor.detach().cpu().numpy().astype(np.float64)
    return found
