"""Solving a problem: all stages, for all seeds."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from tqdm import tqdm

import leafgrad
from leafgrad.utils import Checkpoints
from leafgrad_pinn.codec import encode
from leafgrad_pinn.determinacy import undetermined
from leafgrad_pinn.diagnosis import deviations, relative, residuals
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.ranks import meet
from leafgrad_pinn.references import Reference
from leafgrad_pinn.seeds import at_once, each
from leafgrad_pinn.solution import Run, Solution, check_reference, score
from leafgrad_pinn.stages import Stage
from leafgrad_pinn.training import ENDINGS, Modules, Training
from leafgrad_pinn.windows import moments_of


def solve(
    problem: Problem,
    *stages: Stage,
    reference: Reference | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    windows: int | Sequence[float] = 1,
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
    check_stages(stages)
    if resume and out is None:
        raise ValueError("resume: expected a folder, out=..., got none")
    if reference is not None:
        check_reference(reference, problem.domain, [field.name for field in problem.fields])
    ranks, numbers = meet(), seeds_of(seeds)
    if out is not None and not resume and ranks.of_first(ranks.first and earlier(Path(out), numbers)):
        raise FileExistsError(
            f"out: expected a folder without an earlier run, got {out}; take another, or resume=True to go on"
        )
    if out is not None:  # what cannot be written is an error now rather than after the training
        encode(problem.fields)
        Path(out).mkdir(parents=True, exist_ok=True)
    moments = moments_of(problem, windows)
    if ranks.first:
        for words in undetermined(problem):
            tqdm.write(f"not determined: {words}", file=sys.stderr)

    def errors(modules: Modules, domain: Domain) -> dict[str, float]:
        return {name: e["l2"] for name, e in score(modules, problem.domain, reference, domain.time).items()}

    def training_of(seed: int, folder: Path | None, resume: bool) -> Training:
        return Training(problem, stages, seed, dtype, device, errors, folder, resume, moments)

    def trained(seed: int, place: int | None = None) -> tuple[Training, dict[str, Any]]:
        training = training_of(seed, None if out is None else Path(out) / f"seed{seed}", resume)
        try:
            training.run(place)
        except Exception as error:
            error.add_note(f"in seed {seed}")
            raise
        return training, details_of(training, problem, reference)

    def elsewhere(seed: int, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
        training, details = trained(seed, place)
        return training.state_dict(), details

    runs, count = [], at_once(numbers, device) if ranks.size == 1 else 1
    if count > 1:
        tqdm.write(f"{len(numbers)} seeds: {count} at once, in processes of their own", file=sys.stderr)
        for state, details in each(elsewhere, numbers, count, keep=out is None):
            seed = state["setup"]["seed"]
            training = training_of(seed, None, False)
            training.load_state_dict(state)
            runs.append(Run(seed, training.modules, details))
    else:
        for seed in numbers:
            training, details = trained(seed)
            runs.append(Run(seed, training.modules, details))
            if training.interrupted:
                break
    if not runs:
        raise SystemExit(130)  # interrupted before any seed had begun
    solution = Solution(problem.groups, runs, reference, problem.pairs, moments)
    if ranks.first:
        for run in solution.runs:
            ended = [reason for reason in run.reasons if any(word in reason for word in ENDINGS)]
            for doubt in [*ended, *([run.doubts] if run.doubts else [])]:
                tqdm.write(f"seed {run.seed}: {doubt}", file=sys.stderr)
    if out is not None and ranks.first:
        solution.save(Path(out) / "solution.safetensors")
    return solution


def details_of(training: Training, problem: Problem, reference: Reference | None) -> dict[str, Any]:
    """What a run keeps of a training beside its networks."""
    return {
        "errors": score(training.modules, problem.domain, reference),
        "unknowns": training.trainee.system.solved(),
        "deviations": deviations(training.trainee),
        "residuals": residuals(training.trainees),
        "relative": relative(training.trainees),
        "reasons": training.reasons,
        "seconds": training.seconds,
        "history": training.rows,
    }


def check_stages(stages: Sequence[Stage]) -> None:
    """A ValueError if there is none, a TypeError if one is none."""
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
