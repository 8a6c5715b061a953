"""Solving a problem: all stages, for all seeds."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

from tqdm import tqdm

import leafgrad
from leafgrad.utils import Checkpoints
from leafgrad_pinn.calls import fitting
from leafgrad_pinn.codec import encode
from leafgrad_pinn.determinacy import backwards, homogeneous, undetermined
from leafgrad_pinn.diagnosis import relative, residuals, scattered, undefined
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.errors import check_reference, score
from leafgrad_pinn.estimate import suspected
from leafgrad_pinn.freedom import directions, hidden
from leafgrad_pinn.posterior import Posterior
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.ranks import Ranks, meet
from leafgrad_pinn.references import Reference
from leafgrad_pinn.run import UNSOLVED, Run
from leafgrad_pinn.scales import apart
from leafgrad_pinn.seeds import at_once, each
from leafgrad_pinn.solution import Solution
from leafgrad_pinn.stages import Stage
from leafgrad_pinn.training import ENDINGS, INTERRUPTED, Callback, Modules, Training
from leafgrad_pinn.values import recording
from leafgrad_pinn.windows import moments_of


@partial(fitting, name="solve")
@recording()
def solve(
    problem: Problem,
    *stages: Stage,
    reference: Reference | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    windows: int | Sequence[float] = 1,
    callback: Callback | None = None,
    compile: bool | None = None,
    dtype: Any = leafgrad.float64,
    device: Any = "cpu",
) -> Solution:
    """Train the problem's fields, stage after stage, from each seed.

    Args:
        stages: such as ``Adam(2000), LBFGS(5000)`` or ``GaussNewton(100)``.
        reference: what errors are measured against.
        seeds: how many, from 0 on, or which. On Linux as many at once as leafgrad may use threads
            (``leafgrad.set_num_threads``), each in a process of its own.
        out: a folder for checkpoints, ``seed0/history.csv`` and so on, and ``solution.safetensors``; None for none.
        resume: go on from the checkpoints in ``out``, to the same bits as a run that never stopped.
        windows: into how many windows time is cut, or the moments between them. Each is solved by all stages, with
            its own points and its own copy of the networks, and goes on from the end of the one before: exact initial
            values from its values, soft ones from these at points. Unknowns are not possible.
        callback: called with a row of the history and the fields at each evaluation, that is wherever there is an
            error: ``callback(row, fields)``, where ``fields(x, t)`` gives each field by name. If it returns True, of
            Python or NumPy, the stage ends. With several seeds it is called in their processes.
        compile: whether steps are compiled. None: where it pays, by the numbers of steps, points and weights; for few
            steps of a small problem it does not, and a line says so.
        dtype: of weights and points; leafgrad.float64 or leafgrad.float32.
        device: where to train.

    Returns:
        The solution. A nan ends the training of a seed at its last good state, and Ctrl-C that of all where it is,
        unless ``out`` keeps it to be resumed; ``sol.run.reasons`` says so.

    Raises:
        FileExistsError: an earlier run in ``out``, without ``resume``.
        ValueError: a reference of other fields; ``resume`` without ``out``, or of another problem; windows of a problem
            without time, with unknowns, or without the initial values that its derivatives by time need.
    """
    check(problem, stages, reference, out, resume, callback, compile, dtype)
    ranks, numbers, moments = meet(), seeds_of(seeds), moments_of(problem, windows)
    folder = None if out is None else Path(out)
    job = Job(problem, stages, reference, folder, resume, moments, dtype, device, callback, compile)
    job.prepare(numbers, ranks)
    count = at_once(numbers, device) if ranks.size == 1 else 1
    runs = job.at_once(numbers, count) if count > 1 else job.in_turn(numbers)
    if not runs:
        raise SystemExit(130)  # interrupted before any seed had begun
    solution = Solution(problem.groups, runs, reference, problem.pairs, moments)
    if ranks.first:
        for line in doubts(solution.runs):
            tqdm.write(line, file=sys.stderr)
        if out is not None:
            solution.save(Path(out) / "solution.safetensors")
    return solution


@dataclass(frozen=True)
class Job:
    """The training of all seeds; see `solve` for its parts."""

    problem: Problem
    stages: Sequence[Stage]
    reference: Reference | None
    out: Path | None
    resume: bool
    moments: Sequence[float]
    dtype: Any
    device: Any
    callback: Callback | None = None
    compiles: bool | None = None

    def prepare(self, numbers: Sequence[int], ranks: Ranks) -> None:
        """Make the folder, and tell what can be told before the first step; FileExistsError for an earlier run."""
        if self.out is not None:
            if not self.resume and ranks.of_first(ranks.first and earlier(self.out, numbers)):
                raise FileExistsError(
                    f"out: expected a folder without an earlier run, got {self.out}; take another, or resume=True to "
                    "go on"
                )
            encode(self.problem.fields, dtype=self.dtype.name)  # an error now rather than after the training
            self.out.mkdir(parents=True, exist_ok=True)
        if ranks.first:
            told = [f"not determined: {words}" for words in undetermined(self.problem)]
            told += [f"not well posed: {words}" for words in backwards(self.problem)]
            for line in [*told, homogeneous(self.problem), apart(self.problem.names, self.problem.sizes)]:
                if line:
                    tqdm.write(line, file=sys.stderr)

    def training(self, seed: int, folder: Path | None, resume: bool) -> Training:
        """That of a seed, at its start or where its checkpoint is."""

        def errors(modules: Modules, domain: Domain) -> dict[str, float]:
            found = score(modules, self.problem.domain, self.reference, domain.time)
            return {name: error["l2"] for name, error in found.items()}

        return Training(
            self.problem,
            self.stages,
            seed,
            self.dtype,
            self.device,
            errors,
            folder,
            resume,
            self.moments,
            self.callback,
            self.compiles,
        )

    def train(self, seed: int, place: int | None = None) -> tuple[Training, dict[str, Any]]:
        """Run a seed's training; returns it with what is kept of it beside its networks."""
        training = self.training(seed, None if self.out is None else self.out / f"seed{seed}", self.resume)
        try:
            training.run(place)
        except Exception as error:
            error.add_note(f"in seed {seed}")
            raise
        return training, details_of(training, self.problem, self.reference)

    def in_turn(self, numbers: Sequence[int]) -> list[Run]:
        """One seed after the other, up to the one that is interrupted."""
        runs = []
        for seed in numbers:
            training, details = self.train(seed)
            runs.append(Run(seed, training.modules, details, training.trainees))
            if training.interrupted:
                break
        return runs

    def at_once(self, numbers: Sequence[int], count: int) -> list[Run]:
        """So many seeds at once, in processes of their own."""

        def elsewhere(seed: int, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
            training, details = self.train(seed, place)
            return training.state_dict(), details

        tqdm.write(f"{len(numbers)} seeds: {count} at once, in processes of their own", file=sys.stderr)
        runs = []
        try:
            found = each(elsewhere, numbers, count, keep=self.out is None)
        except SystemExit:  # each of them has kept its checkpoint, and said nothing
            tqdm.write("stopped all seeds; resume=True goes on from their checkpoints", file=sys.stderr)
            raise
        for state, details in found:
            training = self.training(state["setup"]["seed"], None, False)
            training.load_state_dict(state)
            runs.append(Run(training.seed, training.modules, details, training.trainees))
        return runs


def doubts(runs: Sequence[Run]) -> list[str]:
    """What is to be told of runs at their end: a line for each, but one for all that were interrupted."""
    lines, stopped = [], []
    for run in runs:
        stopped += [f"seed {run.seed} {reason}" for reason in run.reasons if INTERRUPTED in reason]
        ended = [r for r in run.reasons if INTERRUPTED not in r and any(word in r for word in ENDINGS)]
        lines += [f"seed {run.seed}: {doubt}" for doubt in [*ended, run.doubts] if doubt]
    return [*lines, *([f"{', '.join(stopped)}; out=... keeps checkpoints to go on from"] if stopped else [])]


def details_of(training: Training, problem: Problem, reference: Reference | None) -> dict[str, Any]:
    """What a run keeps of a training beside its networks."""
    shares, (free, untold) = relative(training.trainees), directions(training.trainee)
    lacking = undefined(training.trainees)
    solved = not free and not lacking and all(share < UNSOLVED for share in shares.values())
    large, contradicted = suspected(training.trainees, max(shares.values(), default=0.0)) if solved else ({}, "")
    hardly: dict[str, float] = {}
    if solved and not (untold or large or contradicted):
        free, hardly = hidden(training.trainee)
    return {
        "errors": score(training.modules, problem.domain, reference),
        "unknowns": training.trainee.system.solved(),
        "deviations": Posterior(training.trainee).unknowns() if problem.unknowns else {},
        "free": free,
        "untold": untold,
        "hardly": hardly,
        "residuals": residuals(training.trainees),
        "relative": shares,
        "undefined": lacking,
        "suspected": large,
        "contradicted": contradicted,
        "backwards": list(backwards(problem)),
        "scattered": {} if solved else scattered(training.trainees),
        "reasons": training.reasons,
        "seconds": training.seconds,
        "history": training.rows,
    }


def check(
    problem: Problem,
    stages: Sequence[Stage],
    reference: Reference | None,
    out: Any,
    resume: bool,
    callback: Any,
    compile: Any,
    dtype: Any,
) -> None:
    """ValueError without stages, for ``resume`` without a folder, or another's reference; TypeError for other kinds."""
    if resume and out is None:
        raise ValueError("resume: expected a folder, out=..., got none")
    if reference is not None:
        check_reference(reference, problem.domain, [field.name for field in problem.fields])
    if not (callback is None or callable(callback)):
        raise TypeError(f"callback: expected a function of a row and the fields, got {callback!r}")
    if compile not in (None, True, False):
        raise TypeError(f"compile: expected True, False, or None for where it pays, got {compile!r}")
    if dtype not in (leafgrad.float64, leafgrad.float32):
        raise TypeError(f"dtype: expected leafgrad.float64 or leafgrad.float32, got {dtype!r}")
    if not stages:
        raise ValueError("solve: expected at least one stage, such as LBFGS(1000), got none")
    if wrong := [stage for stage in stages if not isinstance(stage, Stage)]:
        got = f"the class {wrong[0].__name__}" if isinstance(wrong[0], type) else type(wrong[0]).__name__
        raise TypeError(f"solve: expected stages, such as LBFGS(1000), got {got}")


def earlier(out: Path, seeds: Sequence[int]) -> bool:
    """Whether there are checkpoints of these seeds, or their solution, which a new run would overwrite."""
    return (out / "solution.safetensors").exists() or any(Checkpoints(out / f"seed{seed}").paths() for seed in seeds)


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """Which seeds are meant by how many, or by a list of them; ValueError for neither."""
    found = list(range(seeds)) if isinstance(seeds, Integral) else list(seeds) if isinstance(seeds, Sequence) else []
    whole = all(isinstance(seed, Integral) and seed >= 0 for seed in found)
    if not found or len(set(found)) < len(found) or not whole or isinstance(seeds, bool):
        raise ValueError(f"seeds: expected at least one, or different whole numbers, got {seeds!r}")
    return [int(seed) for seed in found]
