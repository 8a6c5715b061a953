"""The training of one seed: stages, checkpoints, history, and what happens at a nan."""

from __future__ import annotations

import copy
import csv
import io
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from leafgrad import Tensor
from leafgrad.utils import Checkpoints, Interrupts
from leafgrad_pinn.answers import evaluate
from leafgrad_pinn.conditions import Condition
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import Surrogate
from leafgrad_pinn.integrals import Energy
from leafgrad_pinn.marks import alike
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.ranks import Ranks
from leafgrad_pinn.sampling import Array, reals
from leafgrad_pinn.stages import Stage, Worker
from leafgrad_pinn.system import System
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.windows import Piecewise, window

ENDINGS = BACK, INTERRUPTED, DIVERGED, LOWERED = (  # in reasons that are to be told
    "went back", "interrupted", "diverged", "can fall no further")  # fmt: skip
REACHED = 1e-6  # of an energy's size above its least: what is left when it has come down to that
GROWN = 10  # times its first loss: a stage that ends above has diverged
FORMAT = 5  # of checkpoints: those of before do not tell all problems apart
DENSE = 500  # calls whose terms all go into the history; later ones, only with the error

Modules = list[Surrogate | Piecewise]
Score = Callable[[Modules, Domain], dict[str, float]]
Callback = Callable[[dict[str, Any], Callable[..., dict[str, Array]]], Any]


class Training:
    """Trains a problem from one seed.

    Args:
        problem, stages, seed, dtype, device: what to train, and how.
        score: gives the errors of networks by field, up to the end of a domain.
        folder: for checkpoints and ``history.csv``; None to write nothing.
        resume: go on from the newest checkpoint in the folder, if there is one.
        moments: at which windows of time begin and end; none for one window.
        callback: called at each evaluation, see `leafgrad_pinn.solver.solve`; None for nothing.
        compiles: whether steps are compiled; None where it pays.

    Attributes:
        trainees: for each window that was begun what is trained in it.
        rows: the history, as dicts: stage, step, seconds, loss, the terms, and the errors where they were computed.
        reasons: for each stage why it stopped.
        seconds: that were spent in it, over all resumed runs.
    """

    def __init__(
        self,
        problem: Problem,
        stages: Sequence[Stage],
        seed: int,
        dtype: Any,
        device: Any,
        score: Score,
        folder: Path | None,
        resume: bool,
        moments: Sequence[float] = (),
        callback: Callback | None = None,
        compiles: bool | None = None,
    ) -> None:
        self.compiles = compiles
        self.problem, self.seed, self.dtype, self.device, self.score = problem, seed, dtype, device, score
        self.ranks, self.callback = Ranks(), callback
        self.moments, self.windows, self.count = list(moments), max(1, len(moments) - 1), len(stages)
        self.stages = list(stages) * self.windows
        self.trainees: list[Trainee] = []
        self.open()
        self.rows: list[dict[str, Any]] = []
        self.reasons: list[str] = []
        self.seconds = 0.0
        self.setup: dict[str, Any] = {
            "format": FORMAT,
            "problem": describe(problem),
            "stages": repr(list(stages)),
            "seed": seed,
            "dtype": str(dtype),
            "windows": repr(self.moments),
            "compiles": self.trainee.compiles,
            "marks": [] if folder is None else problem.marks(every=True),  # which nobody else compares
            "units": units_of(problem),
        }
        self.checkpoints = None if folder is None else Checkpoints(folder)
        self.saved: dict[str, Any] | None = None
        if self.checkpoints and resume:
            there = self.ranks.first and self.checkpoints.paths()
            self.saved = self.ranks.of_first(self.checkpoints.latest(map_location=device) if there else None)
        if self.saved is not None:
            self.load_state_dict(self.saved)

    @property
    def trainee(self) -> Trainee:
        """What is trained now."""
        return self.trainees[-1]

    @property
    def modules(self) -> Modules:
        """The networks, of all windows so far."""
        groups = [list(group) for group in zip(*(t.system.surrogates for t in self.trainees), strict=True)]
        return [Piecewise(group, self.moments) if self.moments else group[0] for group in groups]

    def open(self) -> None:
        """Begin the next window, with the weights of the one before."""
        last, problem = self.trainees[-1] if self.trainees else None, self.problem
        if last is not None:
            last.system.requires_grad_(False)
        if self.moments:
            start, stop = self.moments[len(self.trainees) :][:2]
            modules = () if last is None else last.system.surrogates
            problem = window(problem, start, stop, [s for s in modules if isinstance(s, Surrogate)])
        gradients = sum(stage.steps * stage.gradients for stage in self.stages)
        self.trainees.append(Trainee(problem, self.seed, self.dtype, self.device, last, gradients, self.compiles))

    @property
    def interrupted(self) -> bool:
        """Whether it ended before its time, and nothing else is to be trained."""
        return any(INTERRUPTED in reason for reason in self.reasons)

    @property
    def over(self) -> bool:
        """Whether a stage met a nan, or was interrupted where there are no checkpoints: no stage comes after it."""
        return self.interrupted or any(BACK in reason for reason in self.reasons)

    def run(self, place: int | None = None) -> None:
        """Train to the end, to a nan, or to Ctrl-C or the like, which raises SystemExit if there is a checkpoint.

        Args:
            place: of the bar that shows its progress, among those of other seeds.
        """
        if self.over:
            return
        if self.ranks.first and not self.trainee.compiles:
            tqdm.write(f"seed {self.seed}: not compiled: {self.trainee.extent}", file=sys.stderr)
        with Interrupts() as interrupts:
            for number, stage in enumerate(self.stages):
                if number < len(self.reasons):
                    continue
                if number // self.count == len(self.trainees):
                    self.open()
                worker, label = self._worker(stage, number), f"seed {self.seed} {type(stage).__name__}"
                if self.moments:
                    label += f", window {len(self.trainees)} of {self.windows}"
                if worker.method and self.ranks.first:
                    tqdm.write(f"{label}: {worker.method}", file=sys.stderr)
                hidden = None if self.ranks.first else True
                with tqdm(total=stage.steps, initial=worker.done, desc=label, position=place, disable=hidden) as bar:
                    self._stage(worker, number, bar, interrupts)
                if received := self.ranks.most(int(interrupts.received or 0)):
                    self._interrupted(number, worker, received, place is None)
                    return
                self.reasons.append((worker.reason or "") + self._grown(number) + self._lowered())
                self._save(number + 1, None)
                if self.over:
                    return

    def _interrupted(self, number: int, worker: Worker, received: int, alone: bool) -> None:
        """End the process where it can go on from a checkpoint, else the training; ``alone``, it says so."""
        if self.checkpoints is not None:
            self._save(number, worker)
            if alone and self.ranks.first:
                print(f"stopped after {worker.done} steps; resume=True goes on from there", file=sys.stderr)
            raise SystemExit(128 + received)
        self.reasons.append(f"{INTERRUPTED} after {worker.done} steps, which are all that is kept")

    def _grown(self, number: int) -> str:
        """How the loss has grown in a stage, for the reason why it ended; "" if it has not."""
        label = self._label(number)
        losses = [row["loss"] for row in self.rows if (row.get("window"), row["stage"]) == label]
        if len(losses) < 2 or not losses[-1] > GROWN * losses[0]:
            return ""
        return f", but {DIVERGED}: the loss went from {losses[0]:.2g} to {losses[-1]:.2g}"

    def _lowered(self) -> str:
        """Which energies have come down to what was given as their least, and would fall below it along the gradient.

        Where the least is the minimum, as of squares, they would not.
        """
        last, problem, trainee = self.rows[-1] if self.rows else {}, self.trainee.problem, self.trainee
        energies = [(condition, name) for condition, name in zip(problem.conditions, problem.names, strict=True)
                    if isinstance(condition, Energy)
                    if last.get(name, math.inf) <= REACHED * condition.weight]  # fmt: skip
        if not energies:
            return ""
        batches, weights = trainee.batches, trainee.weights
        gradient, terms, _ = trainee.objective.gradient(trainee.flat, batches, weights)
        if not (square := float(gradient.dot(gradient))):
            return ""
        further = trainee.flat - 2 * float(terms.sum()) / square * gradient
        _, terms, _ = trainee.objective.gradient(further, batches, weights)
        below = {name for name, term in zip(problem.names, terms.tolist(), strict=True) if term == math.inf}
        return "".join(
            f", but {name} has come to least={condition.least:g}, and {LOWERED}; if it should, {condition.remedy}"
            for condition, name in energies
            if name in below
        )

    def _label(self, number: int) -> tuple[int | None, str]:
        """The window, if there are several, and the name of a stage, as in the history."""
        at, place = divmod(number, self.count)
        before = f"{at + 1}." if self.moments else ""
        return at + 1 if self.moments else None, f"{before}{place + 1} {type(self.stages[number]).__name__}"

    def _worker(self, stage: Stage, number: int) -> Worker:
        """A worker at its start, or where the checkpoint was."""
        worker = stage.start(self.trainee, number)
        if self.saved is not None and self.saved["number"] == number and self.saved["worker"] is not None:
            worker.load_state_dict(self.saved["worker"])
        return worker

    def _stage(self, worker: Worker, number: int, bar: Any, interrupts: Interrupts) -> None:
        good = self._state(worker)
        while worker.reason is None and not self.ranks.most(int(interrupts.received or 0)):
            begin, done = time.perf_counter(), worker.done
            terms = worker.advance()
            self.seconds += time.perf_counter() - begin
            worker.calls += 1
            problem = self.trainee.problem
            wrong = [wrong_of(condition, name, term)
                     for condition, name, term in zip(problem.conditions, problem.names, terms, strict=True)
                     if not math.isfinite(term)]  # fmt: skip
            look = worker.calls % worker.look == 0 or worker.reason is not None
            if not wrong and look and not finite(self.trainee.system):
                wrong = ["a weight of the network is not finite"]
            if wrong:
                self._go_back(worker, good, f"{', '.join(wrong)} at step {worker.done}")
                return
            if look or worker.calls < DENSE:
                self._note(number, worker, terms, look)
                self._call(worker, look)
            if look:
                good = self._state(worker)
                self._save(number, worker)
            with suppress(OSError):
                bar.set_postfix(self._shown(terms), refresh=False)
                bar.update(worker.done - done)

    def _shown(self, terms: Sequence[float]) -> dict[str, str]:
        shown = {name: f"{term:.1e}" for name, term in zip(self.trainee.problem.names, terms, strict=True)}
        errors = (
            {name: f"{v:.1e}" for name, v in self.rows[-1].items() if name.startswith("error ")} if self.rows else {}
        )
        return {**shown, **errors}

    def _note(self, number: int, worker: Worker, terms: Sequence[float], look: bool) -> None:
        at, (shown, stage) = number // self.count, self._label(number)
        row: dict[str, Any] = {} if shown is None else {"window": shown}
        row.update({"stage": stage, "step": worker.done, "seconds": self.seconds, "loss": math.fsum(terms)})
        row.update(zip(self.trainee.problem.names, terms, strict=True))
        if look:
            key = "error {}" if at + 1 == self.windows else "error {} so far"
            errors = self.score(self.modules, self.trainee.problem.domain)
            row.update({key.format(name): error for name, error in errors.items()})
        self.rows.append(row)

    def _call(self, worker: Worker, look: bool) -> None:
        """Hand an evaluation to the callback, on the first rank; it may end the stage."""
        if self.callback is None or not look:
            return
        over = ends(self.callback(dict(self.rows[-1]), self.fields)) if self.ranks.first else False
        if self.ranks.of_first(over) and worker.reason is None:
            worker.reason = f"the callback ended it after {worker.done} steps"

    def fields(self, *columns: Any, **named: Any) -> dict[str, Array]:
        """Each field, so far, at points: arrays (n,) or numbers for each coordinate, in order or by name."""
        names = self.problem.domain.names
        given = dict(zip(names, columns, strict=False)) | named
        if set(given) != set(names) or len(columns) + len(named) != len(names):
            raise TypeError(f"fields: expected {', '.join(names)}, got {len(columns)} and {', '.join(named) or 'none'}")
        rows = np.broadcast_arrays(*[reals(f"fields: {name}", given[name]) for name in names])
        return evaluate(self.modules, self.problem.domain, rows)

    def _go_back(self, worker: Worker, good: dict[str, Any], what: str) -> None:
        self._put(worker, good)
        del self.rows[good["rows"] :]  # the history is that of what is kept
        worker.reason = f"{what}: {BACK} to the state after step {worker.done}"

    def _put(self, worker: Worker, state: dict[str, Any]) -> None:
        worker.load_state_dict(state["worker"])
        self.trainee.load_state_dict(state["trainee"])

    def _state(self, worker: Worker) -> dict[str, Any]:
        states = {"trainee": self.trainee.state_dict(), "worker": worker.state_dict()}
        return {**copied(states), "rows": len(self.rows)}

    def _save(self, number: int, worker: Worker | None) -> None:
        if self.checkpoints is None or not self.ranks.first:
            return
        self.checkpoints.save(self.state_dict(number, worker))
        write(self.checkpoints.folder / "history.csv", table(self.rows))

    def state_dict(self, number: int | None = None, worker: Worker | None = None) -> dict[str, Any]:
        """All of it, in or before the stage of a number; None at the end."""
        return {
            "number": len(self.stages) if number is None else number,
            "worker": None if worker is None else worker.state_dict(),
            "trainees": [trainee.state_dict() for trainee in self.trainees],
            "rows": self.rows,
            "reasons": self.reasons,
            "seconds": self.seconds,
            "setup": self.setup,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; ValueError if that is of another problem, or of other stages."""
        where = f"in the checkpoint in {self.checkpoints.folder if self.checkpoints else ''}"
        setup = saved["setup"]
        if setup.get("format", 1) != FORMAT:
            raise ValueError(
                f"resume: expected format {FORMAT} {where}, got {setup.get('format', 1)}, of another version of "
                "leafgrad-pinn: go on with that, or start anew in another folder"
            )
        for name, value in self.setup.items():
            if name not in ("marks", "units") and setup.get(name, True) != value:
                raise ValueError(f"resume: expected {name} {setup.get(name, True)}, as {where}, got {value}")
        marks = zip(setup["marks"], self.setup["marks"], strict=True) if self.checkpoints else ()  # else it is its own
        for k, (old, new) in enumerate(marks):
            if not alike(old, new):
                name = self.problem.names[k]
                raise ValueError(f"resume: {name}: expected the same equations, values and data as {where}, got others")
        if not all(alike(old, new) for old, new in zip(setup["units"], units_of(self.problem), strict=True)):
            raise ValueError(
                f"resume: expected fields and equations of the sizes {setup['units']}, as {where}, got "
                f"{units_of(self.problem)}: start anew in another folder"
            )
        self.rows, self.reasons, self.seconds = list(saved["rows"]), list(saved["reasons"]), saved["seconds"]
        for number, state in enumerate(saved["trainees"]):
            if number:
                self.open()
            self.trainee.load_state_dict(state)


def ends(answer: Any) -> bool:
    """Whether a callback's answer ends the stage; TypeError for what is neither a bool nor None."""
    if answer is None:
        return False
    found = np.asarray(answer) if isinstance(answer, (bool, np.bool_, np.ndarray, Tensor)) else np.empty(0)
    if found.dtype != np.bool_ or found.size != 1:
        raise TypeError(f"callback: expected True, which ends the stage, or False or None, got {answer!r:.60}")
    return bool(found.all())


def wrong_of(condition: Condition, name: str, term: float) -> str:
    """What is wrong with a term that is not finite."""
    if isinstance(condition, Energy) and term == math.inf:
        return f"{name} fell below least={condition.least:g} ({condition.remedy})"
    return f"{name} is {term}"


def copied(state: Any) -> Any:
    """A copy of a state dict that shares no memory with it."""
    return copy.deepcopy(state)


def units_of(problem: Problem) -> list[list[float]]:
    """The sizes of fields, and of each condition's equations."""
    return [[field.scale or 1.0 for field in problem.fields], *problem.sizes]


def finite(system: System) -> bool:
    """Whether all parameters are numbers."""
    return all(bool(p.detach().isfinite().all()) for p in system.parameters())


def describe(problem: Problem) -> str:
    """What must be the same in a resumed run, as far as it can be told from outside functions."""
    conditions = [
        f"{name}: {c.n} {c.sampler} x {c.weight:g}" for name, c in zip(problem.names, problem.conditions, strict=True)
    ]
    return f"{problem.fields} {conditions} {problem.unknowns}"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A history as CSV."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(path: Path, text: str) -> None:
    """Write a file, the old one or the new one at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)
