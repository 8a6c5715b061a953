"""The errors of a solution: against a reference, over seeds, and as they are estimated without one."""

from __future__ import annotations

import math
import numbers
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leafgrad.forks import cached_property
from leafgrad_pinn.answers import evaluate, outside
from leafgrad_pinn.domains import Domain, Time
from leafgrad_pinn.estimate import LOOKS
from leafgrad_pinn.families import Given
from leafgrad_pinn.observations import Data
from leafgrad_pinn.references.reference import Reference
from leafgrad_pinn.sampling import Array

SURE = 5  # times what estimates say: seeds that are farther apart contradict them
UNEXPLAINED = "seeds are farther apart than their estimates say, so that there may be several solutions"

if TYPE_CHECKING:
    from leafgrad_pinn.run import Run
    from leafgrad_pinn.solution import Solution


class Errors:
    """Errors against a reference, if there is one, over seeds, and estimates. As a string, a line for each field.

    Attributes:
        l2, max: for each field of the reference the errors of all seeds: relative L2, and largest.
        seconds: of training, of all seeds.
    """

    def __init__(self, solution: Solution) -> None:
        self.solution, self.reference, self.run = solution, solution.reference, solution.run
        self.seconds = [run.seconds for run in solution.runs]
        self.histories = [run.history for run in solution.runs]
        names = solution.runs[0].errors
        self.l2 = {name: [run.errors[name]["l2"] for run in solution.runs] for name in names}
        self.max = {name: [run.errors[name]["max"] for run in solution.runs] for name in names}

    @property
    def estimated(self) -> dict[str, float]:
        """An estimate of each field's relative L2 error that needs no reference, of the run that is shown.

        Each residual that the equations leave is followed to the error that it makes, in polynomials that the network
        knows nothing of. Where these do not explain the residuals, as at corners and shocks, it is `apart`; {} for one
        seed. So it is where that is far above the estimates. ``reservation`` says why, or why an estimate is rough.
        """
        return self.run.estimated | self.unexplained if self.run.estimated else self.apart

    @property
    def reservation(self) -> str:
        """What is to be known of the estimates, or why there are none; "" for nothing."""
        if self.unexplained:
            return f"{UNEXPLAINED}; {self.run.unestimated}" if self.run.unestimated else UNEXPLAINED
        by = "by how far seeds are apart; " if self.estimated and not self.run.estimated else ""
        return by + self.run.unestimated

    @cached_property
    def apart(self) -> dict[str, float]:
        """How far the fields are from the nearest other seed's, in L2, over the square root of two: errors of two seeds
        that have nothing to do with each other are so far apart.

        {} for one seed, for a family of problems, for measured values, whose noise all seeds have, and where the run
        says itself that it is no solution.
        """
        return {name: min(gaps) for name, gaps in self._gaps.items()}

    @cached_property
    def unexplained(self) -> dict[str, float]:
        """How far, where that is more than both seeds' estimates say: there are several solutions, or wrong ones."""
        own = self.run.estimated
        far = {name: gaps for name, gaps in self._gaps.items() if min(gaps) > SURE * own.get(name, math.inf)}
        others = [run.estimated for run in self._others] if far else []
        found = {}
        for name, gaps in far.items():
            each = [gap for gap, other in zip(gaps, others, strict=True)
                    if name in other and gap > SURE * math.hypot(own[name], other[name])]  # fmt: skip
            if each:
                found[name] = min(each)
        return found

    @cached_property
    def _others(self) -> list[Run]:
        """The seeds that came so far, but for the one that is shown."""
        return [run for run in self.solution.runs if run is not self.run]

    @cached_property
    def _gaps(self) -> dict[str, list[float]]:
        """How far each field is from that of each other seed, as `apart` takes it; inf for one that has no numbers."""
        solution, others = self.solution, self._others
        conditions = [c for trainee in self.run.trainees for c in trainee.problem.conditions]
        measured = not conditions or any(isinstance(c, Data) for c in conditions)  # of a file nobody knows
        if not others or solution.domain.functions or measured or self.run.doubts or self.run.astray:
            return {}
        columns = [*solution.domain.interior(LOOKS, "sobol", np.random.default_rng(2)).T]
        own, *found = [solution.values(run, columns, check=False) for run in [self.run, *others]]
        apart: dict[str, list[float]] = {}
        for name, u in own.items():
            inside = np.isfinite(u)
            size = float(np.linalg.norm(u[inside]))
            gaps = [float(np.linalg.norm((other[name] - u)[inside])) for other in found]
            if size and any(map(math.isfinite, gaps)):  # else the field is zero, or no other seed came so far
                apart[name] = [gap / size / math.sqrt(2) if math.isfinite(gap) else math.inf for gap in gaps]
        return apart

    def time_to(self, level: float) -> list[float | None]:
        """Seconds of training after which the relative L2 errors of all fields were at most ``level``, for each seed.

        None for a seed that never got there. Errors are looked at now and then, so this is an upper bound.

        Raises:
            ValueError: there is no reference, by which alone errors are looked at while training.
            TypeError: ``level`` is no number.
        """
        if self.reference is None:
            raise ValueError(
                "time_to: expected a solution with a reference, whose errors are noted while training, got one "
                "without; solve with reference=..."
            )
        if not isinstance(level, numbers.Real):
            raise TypeError(f"time_to: level: expected a number, as 0.01, got {level!r}")
        keys = [f"error {name}" for name in self.l2]
        found: list[float | None] = []
        for rows in self.histories:
            times = [row["seconds"] for row in rows if all((row.get(key) or np.inf) <= level for key in keys)]
            found.append(min(times, default=None))
        return found

    def at_floor(self, name: str) -> bool:
        """Whether the median relative L2 error of a field is within three times the reference's own."""
        return self.reference is not None and statistics.median(self.l2[name]) <= 3 * self.reference.floor[name]

    def __str__(self) -> str:
        times = f"training {statistics.median(self.seconds):.1f} s"
        if self.reference is None:
            why = self.reservation
            by = f"by a rough estimate: {why}" if why else "by its estimate"
            found = [f"{name}: relative L2 error about {e:.1e}, {by}" for name, e in self.estimated.items()]
            return "\n".join([*(found or [f"no reference, and no estimate: {why}"]), times])
        lines = []
        for name, l2 in self.l2.items():
            floor = self.reference.floor[name]
            line = f"{name}: relative L2 error {statistics.median(l2):.2e}"
            line += f", largest {statistics.median(self.max[name]):.2e}"
            if len(l2) > 1:
                line += f" (medians of {len(l2)} seeds; L2 from {min(l2):.1e} to {max(l2):.1e})"
            line += ", at the reference's floor" if self.at_floor(name) else ""
            lines.append(f"{line}; reference: {self.reference.name}, error {floor:.0e}")
        return "\n".join([*lines, f"{times}, reference {self.reference.seconds:.3g} s"])

    __repr__ = __str__


def score(
    modules: Sequence[Any], domain: Domain, reference: Reference | None, until: Time | None = None
) -> dict[str, dict[str, float]]:
    """The errors of each field of a reference, where the reference has numbers; those of nan are inf.

    ``until`` is a window of time: what comes after its end does not count.
    """
    if reference is None:
        return {}
    if domain.functions:
        return score_family(modules, domain, reference)
    columns = reference.columns(domain.names)
    found = evaluate(modules, domain, columns, check=False)
    errors = {}
    for name, known in truth_of(reference, domain.names).items():
        good = np.isfinite(known)
        for module in modules:
            rows = np.stack([column.ravel() for column in columns], 1)
            good &= ~outside(module, name, domain, rows).reshape(good.shape)
        if until is not None:
            good &= columns[-1] <= until.stop
            if not known[good].any():  # the reference says nothing that an error could be relative to
                continue
        gap = (found[name] - known)[good]
        size = float(np.linalg.norm(known[good]))
        both = {"l2": float(np.linalg.norm(gap)) / size, "max": float(np.abs(gap).max())}
        errors[name] = {key: np.inf if np.isnan(error) else error for key, error in both.items()}
    return errors


def score_family(modules: Sequence[Any], domain: Domain, reference: Reference) -> dict[str, dict[str, float]]:
    """The same of a family of problems: the mean of the relative L2 errors for its functions, and the largest error."""
    each = []
    for i in range(len(next(iter(reference.functions.values())))):
        rows = {name: values[i : i + 1] for name, values in reference.functions.items()}
        each.append(score([Given(module, rows) for module in modules], domain.alone, reference.one(i)))
    return {
        name: {"l2": float(np.mean([e[name]["l2"] for e in each])), "max": max(e[name]["max"] for e in each)}
        for name in each[0]
    }


def truth_of(reference: Reference, names: Sequence[str]) -> dict[str, Array]:
    """The reference's fields, their axes in the order of the names."""
    return {field: reference.values(field, names) for field in reference.fields}


def check_reference(reference: Reference, domain: Domain, names: Sequence[str]) -> None:
    """ValueError if a reference is of other coordinates or fields, or reaches outside the domain."""
    if not isinstance(reference, Reference):
        raise TypeError(
            f"reference: expected Reference(...), as references.exact gives, got {type(reference).__name__}"
        )
    expected = {function.name: function.size for function in domain.functions}
    if expected != {name: rows.shape[-1] for name, rows in reference.functions.items()}:
        raise ValueError(
            f"reference: expected one for {'input functions ' + ', '.join(expected) if expected else 'one problem'}, "
            f"got {', '.join(reference.functions) or 'none of these'}; references.family(...) makes those of families"
        )
    if set(reference.axes) != set(domain.names) or not set() < set(reference.fields) <= set(names):
        raise ValueError(
            f"reference: expected coordinates {', '.join(domain.names)} and fields among {', '.join(names)}, "
            f"got {', '.join(reference.axes)} and {', '.join(reference.fields) or 'none'}"
        )
    if wrong := [name for name, values in reference.fields.items() if np.isinf(values).any()]:
        raise ValueError(f"reference: {wrong[0]}: expected finite numbers, or nan where it is not known, got inf")
    if zero := [name for name, values in reference.fields.items() if not np.nan_to_num(values).any()]:
        raise ValueError(
            f"reference: {', '.join(zero)}: expected numbers other than zero, which errors are relative to, got none; "
            "leave the field out"
        )
    for name, (low, high) in zip(domain.names, domain.bounds, strict=True):
        axis, slack = reference.axes[name], 1e-6 * (high - low)
        if axis.min() < low - slack or axis.max() > high + slack:
            raise ValueError(
                f"reference: expected {name} from {low:g} to {high:g}, as the domain has it, "
                f"got {axis.min():g} to {axis.max():g}"
            )
