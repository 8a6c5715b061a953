"""Fields at other places than the points of an equation: ``u.at(t=t - 5)``, and what they were before the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.domains import Domain, Time
from leafgrad_pinn.planner import Columns, Fields
from leafgrad_pinn.values import Points

SLACK = 1e-6  # of a coordinate's range: how far beyond its ends a place may lie, by rounding


def at_any_time(fields: Fields, past: Fields, time: Time) -> Fields:
    """Fields that are others before their time begins; each is asked for at its own times alone."""

    def found(columns: Columns) -> dict[str, Tensor]:
        t = columns[time.name]
        early, start = t < time.start, leafgrad.full_like(t, time.start)
        now = fields({**columns, time.name: leafgrad.where(early, start, t)})
        then = past({**columns, time.name: leafgrad.where(early, t, start)})
        return {name: leafgrad.where(early, then[name], value) for name, value in now.items()}

    return found


def anywhere(fields: Fields, past: Fields, domain: Domain) -> Fields:
    """Fields of places (n,) that may lie before the first moment; beyond the bounds of the domain they are nan."""
    begun = fields if domain.time is None else at_any_time(fields, past, domain.time)

    def found(columns: Columns) -> dict[str, Tensor]:
        kept, beyond = dict(columns), []
        for name, (low, high) in domain.ends.items():
            c, slack = columns[name], SLACK * (high - low)
            if name in domain.periodic:
                kept[name] = c - (high - low) * ((c - low) / (high - low)).detach().floor()
                continue
            over = c > high + slack
            if domain.time is None or name != domain.time.name:
                over = over | (c < low - slack)
            kept[name] = leafgrad.where(over, leafgrad.full_like(c, low), c)
            beyond.append(over)
        out = beyond[0] if beyond else leafgrad.zeros_like(next(iter(columns.values())), dtype=leafgrad.bool)
        for each in beyond[1:]:
            out = out | each
        return {n: leafgrad.where(out, leafgrad.full_like(v, float("nan")), v) for n, v in begun(kept).items()}

    return found


def check(what: str, points: Points, domain: Domain, histories: Mapping[str, Any]) -> None:
    """ValueError if fields were asked for where they are not: outside, or before the start without a history.

    Args:
        what: how errors call the equation.
        points: of the equation, which noted it.
        domain: of the fields.
        histories: what each field was before, None where nobody said.
    """
    time, periodic = domain.time, [domain.names.index(name) for name in domain.periodic]
    for name, rows in points.visited:
        places = rows.copy()
        low, length = domain.bounds[:, 0], np.ptp(domain.bounds, axis=1)
        places[:, periodic] = low[periodic] + (places[:, periodic] - low[periodic]) % length[periodic]
        if time is not None:
            early = rows[:, -1] < time.start
            places[early, -1] = time.start
            if early.any() and histories[name] is None:
                raise ValueError(
                    f"{what}: {name}.at: asked for {name} at {time.name} = {rows[early, -1].min():.4g}, before the "
                    f"first moment, {time.start:g}: say what it was there, as Field({name!r}, ..., history=0)"
                )
        domain.check_inside(f"{what}: {name}.at", places)
