"""Taylor series through an op: against nested forward mode."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np

from leafgrad import func
from leafgrad.testing.conformance.gradients import derivatives
from leafgrad.testing.conformance.subject import Subject, host, tensor

ORDER = 3
FEW = 2  # samples of an op whose series follow from its vjp rules
REMEDY = "mend the jet rule, or the vjp rule from which a series follows"


def jets(subject: Subject) -> None:
    """Derivatives along curves, to third order, are those of nested jvps: all arguments move, or one."""
    declared = getattr(subject.op, "expanding", None) is not None
    for derived in islice(derivatives(subject), None if declared else FEW):
        sample, places = derived.sample, derived.places
        point = [tensor(sample.args[i], "cpu") for i in places]
        curves = [[derived.rng.uniform(-1.0, 1.0, sample.args[i].shape) for _ in range(ORDER)] for i in places]
        for moving in [list(range(len(places))), *([[k] for k in range(len(places))] if len(places) > 1 else [])]:
            for length in (ORDER, 1) if declared else (ORDER,):
                compare_curve(subject, derived, point, curves, moving, length)


def compare_curve(
    subject: Subject, derived: Any, point: list[Any], curves: list[Any], moving: list[int], length: int
) -> None:
    """Compare along one curve, of which so many derivatives are not zero."""
    sample = derived.sample
    terms = [[tensor(c, "cpu") if k in moving and j < length else None for j, c in enumerate(curve)]
             for k, curve in enumerate(curves)]  # fmt: skip

    def function(*moved: Any) -> tuple[Any, ...]:
        given = subject.tensors(sample, device="cpu")
        for i, t in zip(derived.places, moved, strict=True):
            given[i] = t
        return tuple([r for r in subject.run(sample, given) if r.dtype.is_floating_point])

    def along(t: Any) -> tuple[Any, ...]:
        moved = []
        for x, curve in zip(point, terms, strict=True):
            for j, v in enumerate(curve, 1):
                x = x if v is None else x + v * (t**j / math.factorial(j))
            moved.append(x)
        return function(*moved)

    _, series = func.jet(function, tuple(point), tuple(terms))
    nested = along
    names = ", ".join(repr(subject.argument(derived.places[k])) for k in moving)
    zero = tensor(np.zeros(()), "cpu")
    for order in range(1, ORDER + 1):
        before = nested

        def nested(t: Any, before: Any = before) -> tuple[Any, ...]:
            return tuple(func.jvp(before, (t,), (tensor(np.ones(()), "cpu"),))[1])

        for found, want in zip(series, nested(zero), strict=True):
            w = host(want.detach())
            scale = max(1.0, float(np.abs(w[np.isfinite(w)]).max(initial=0.0)))
            what = f"derivative {order} along a curve in {names}" + (", a line" if length == 1 else "")
            subject.compare(sample, host(found[order - 1].detach()), w, 1e-8 * scale, REMEDY, what, "jet,vjp")
