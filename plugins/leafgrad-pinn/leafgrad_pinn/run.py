"""The result of one seed, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leafgrad.forks import cached_property
from leafgrad_pinn.estimate import Astray, estimated
from leafgrad_pinn.families import Given
from leafgrad_pinn.field import Surrogate
from leafgrad_pinn.posterior import Posterior
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.taylor import Unfit
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.windows import Piecewise

UNSOLVED = 0.1  # of its terms: what a condition's residuals have to be below
KEPT = (
    "errors",
    "unknowns",
    "deviations",
    "residuals",
    "relative",
    "undefined",
    "suspected",
    "free",
    "untold",
    "hardly",
    "contradicted",
    "scattered",
    "backwards",
    "reasons",
    "seconds",
    "history",
)


class Run:
    """The result of one seed.

    Attributes:
        seed: of weights and points.
        modules: one for each group of fields on one network.
        errors: for each field ``{"l2": relative L2 error, "max": largest error}``; empty without a reference.
        unknowns, deviations: the numbers that were solved for, and their standard deviations from J^T J.
        residuals: for each condition ``points`` (m, d), and ``sizes`` (m,) of its residual there.
        relative: for each condition the norm of its residuals over that of its terms.
        undefined: at how many of some points a condition's residuals are nan or infinite, in words.
        suspected: errors of fields that small residuals stand for, if these are large.
        contradicted: why the fields are no solution though their residuals are small; "" if nothing says so.
        scattered: for measured values whose residuals look like noise what `Data` is given that expects such.
        backwards: which equations go backwards in time, so that small errors of what is given grow without bound.
        free: what may be added to the fields without a change of any residual, by the rank of the linearised problem.
        untold: why it cannot be said whether anything may be added.
        hardly: errors of fields, relatively, that change residuals by no more than is left of them, if this is much.
        reasons: why each stage stopped.
        seconds: of training.
        history: a dict for each noted step.
        trainees: what was trained, by windows; none of a file's.
        functions: of one problem of a family the input functions' values at sensors, (1, m).
    """

    def __init__(
        self,
        seed: int,
        modules: Sequence[Surrogate | Piecewise | Given],
        details: Mapping[str, Any],
        trainees: Sequence[Trainee] = (),
        functions: Mapping[str, Array] = {},
    ) -> None:
        self.seed, self.modules, self.trainees, self.functions = seed, list(modules), list(trainees), functions
        self.errors: dict[str, dict[str, float]] = details["errors"]
        self.unknowns: dict[str, float] = details["unknowns"]
        self.deviations: dict[str, float] = details["deviations"]
        self.residuals: dict[str, dict[str, Array]] = details["residuals"]
        self.relative: dict[str, float] = details.get("relative", {})  # which older files do not have
        self.undefined: dict[str, str] = details.get("undefined", {})
        self.suspected: dict[str, float] = details.get("suspected", {})
        self.contradicted: str = details.get("contradicted", "")
        self.scattered: dict[str, str] = details.get("scattered", {})
        self.backwards: list[str] = details.get("backwards", [])
        self.free: str = details.get("free", "")
        self.untold: str = details.get("untold", "")
        self.hardly: dict[str, float] = details.get("hardly", {})
        self.reasons: list[str] = details["reasons"]
        self.seconds: float = details["seconds"]
        self.history: list[dict[str, Any]] = details["history"]
        self._estimated: dict[str, float] = details.get("estimated", {})
        self._asked = False  # whether an estimate was tried
        self.astray = False  # whether that said that nothing is solved
        self.unestimated = (
            details.get("rough", "") if self._estimated else "it was not made before the solution was saved"
        )

    @property
    def loss(self) -> float:
        """The last one; of several windows of time the sum of theirs."""
        return sum({row.get("window"): row["loss"] for row in self.history}.values()) if self.history else float("inf")

    @property
    def doubts(self) -> str:
        """Which conditions the fields do not satisfy, whatever the loss says, and what they leave open; "" for none."""
        wrong = [f"the residuals of {name} are {share:.0%} of its terms{self._noise(name)}"
                 for name, share in self.relative.items()
                 if not share < UNSOLVED and name not in self.undefined]  # fmt: skip
        wrong += [f"the residuals of {name} are nan or inf at {points}" for name, points in self.undefined.items()]
        wrong += [f"small residuals stand for an error of {share:.0%} of {n}" for n, share in self.suspected.items()]
        wrong += [self.contradicted] if self.contradicted else []
        found = [f"not solved: {', '.join(wrong)}"] if wrong else []
        if self.free:
            found.append(f"not determined: {self.free}")
        if self.untold:
            found.append(f"perhaps not determined: {self.untold}")
        found += [f"not well posed: {words}" for words in self.backwards]
        return "; ".join(found)

    def _noise(self, name: str) -> str:
        """What is to be said where measured values are as far from the field as noise may be, and beside such."""
        if given := self.scattered.get(name):
            return f" and look like noise: if values are measured no better, say Data(..., {given})"
        return " (beside values with noise give it a larger weight=)" if self.scattered else ""

    @property
    def estimated(self) -> dict[str, float]:
        """The relative L2 error of each field, without a reference; {} for none.

        ``unestimated`` says why there is none, or, of a rough one, what is not explained. It is made when it is first
        asked for, in some seconds; see `leafgrad_pinn.estimate`.
        """
        if not self._asked and not self._estimated and self.trainees:
            try:
                if why := self.free or self.changed:
                    raise Unfit(why)
                found, self.unestimated = estimated(self.trainees, self.functions)
                self._estimated = {name: max(error, self.hardly.get(name, 0.0)) for name, error in found.items()}
                if self._estimated != found:
                    self.unestimated = "the residuals hardly tell a change of it that is as large"
            except Unfit as error:
                self.unestimated, self.astray = str(error), isinstance(error, Astray)
            self._asked = True
        return self._estimated

    @cached_property
    def posterior(self) -> Posterior:
        """How well the conditions determine the fields; ValueError for a run of a file, in windows or of a family."""
        if len(self.trainees) != 1 or self.functions:
            got = "one of a family" if self.functions else "windows of time" if self.trainees else "one that was loaded"
            raise ValueError(f"deviation: expected a solution as it was solved, in one window of time, got {got}")
        if self.changed:
            raise ValueError(f"deviation: {self.changed}")
        return Posterior(self.trainees[0])

    @property
    def changed(self) -> str:
        """Which condition is another now than the one that was trained, in words; "" for none."""
        return next((words for trainee in self.trainees if (words := trainee.changed)), "")

    def details(self) -> dict[str, Any]:
        """All but seed and modules, as numbers, strings, lists and dicts."""
        found = {**vars(self), "estimated": self._estimated, "rough": self.unestimated}
        made = {"estimated", "rough"} if self._estimated else set()
        return {name: found[name] for name in [*KEPT, *sorted(made)]}
