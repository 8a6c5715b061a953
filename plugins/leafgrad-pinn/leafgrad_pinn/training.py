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

from tqdm import tqdm

from leafgrad.utils import Checkpoints, Interrupts
from leafgrad_pinn.problem import Problem, System
from leafgrad_pinn.stages import Stage, Worker
from leafgrad_pinn.trainee import Trainee

DENSE = 500  # calls whose terms all go into the history; later ones, only with the error

Score = Callable[[System], dict[str, float]]


class Training:
    """Trains a problem from one seed.

    Args:
        problem, stages, seed, dtype, device: what to train, and how.
        score: gives the errors of a system by field.
        folder: for checkpoints and ``history.csv``; None to write nothing.
        resume: go on from the newest checkpoint in the folder, if there is one.

    Attributes:
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
    ) -> None:
        self.problem, self.stages, self.seed, self.score = problem, list(stages), seed, score
        self.trainee = Trainee(problem, seed, dtype, device)
        self.rows: list[dict[str, Any]] = []
        self.reasons: list[str] = []
        self.seconds = 0.0
        self.setup = {"problem": describe(problem), "stages": repr(self.stages), "seed": seed, "dtype": str(dtype)}
        self.checkpoints = None if folder is None else Checkpoints(folder)
        self.saved: dict[str, Any] | None = None
        if self.checkpoints and resume and self.checkpoints.paths():
            self.saved = self.checkpoints.latest(map_location=device)
            self._take(self.saved)

    @property
    def healthy(self) -> bool:
        """Whether no stage met a nan."""
        return not any("nan" in reason or "inf" in reason for reason in self.reasons)

    def run(self) -> None:
        """Train to the end, or to a nan; raises SystemExit after Ctrl-C or the like, with a checkpoint."""
        with Interrupts() as interrupts:
            for number, stage in enumerate(self.stages):
                if number < len(self.reasons):
                    continue
                worker, label = self._worker(stage, number), f"seed {self.seed} {type(stage).__name__}"
                if worker.method:
                    tqdm.write(f"{label}: {worker.method}", file=sys.stderr)
                with tqdm(total=stage.steps, initial=worker.done, desc=label) as bar:
                    self._stage(worker, number, bar, interrupts)
                if interrupts.received:
                    self._save(number, worker)
                    print(f"stopped after {worker.done} steps; resume=True goes on from there", file=sys.stderr)
                    raise SystemExit(128 + interrupts.received)
                self.reasons.append(worker.reason or "")
                self._save(number + 1, None)
                if not self.healthy:
                    return

    def _worker(self, stage: Stage, number: int) -> Worker:
        """A worker at its start, or where the checkpoint was."""
        worker = stage.start(self.trainee, number)
        if self.saved is not None and self.saved["number"] == number and self.saved["worker"] is not None:
            self._put(worker, self.saved)
        return worker

    def _stage(self, worker: Worker, number: int, bar: Any, interrupts: Interrupts) -> None:
        good = self._state(worker)
        while worker.reason is None and not interrupts.received:
            begin, done = time.perf_counter(), worker.done
            terms = worker.advance()
            self.seconds += time.perf_counter() - begin
            worker.calls += 1
            wrong = [f"{name} is {term}" for name, term in zip(self.problem.names, terms, strict=True)
                     if not math.isfinite(term)]  # fmt: skip
            look = worker.calls % worker.look == 0 or worker.reason is not None
            if not wrong and look and not finite(self.trainee.system):
                wrong = ["a weight of the network is not finite"]
            if wrong:
                self._go_back(worker, good, f"{', '.join(wrong)} at step {worker.done}")
                return
            if look or worker.calls < DENSE:
                self._note(number, worker, terms, look)
            if look:
                good = self._state(worker)
                self._save(number, worker)
            with suppress(OSError):
                bar.set_postfix(self._shown(terms), refresh=False)
                bar.update(worker.done - done)

    def _shown(self, terms: Sequence[float]) -> dict[str, str]:
        shown = {name: f"{term:.1e}" for name, term in zip(self.problem.names, terms, strict=True)}
        errors = (
            {name: f"{v:.1e}" for name, v in self.rows[-1].items() if name.startswith("error ")} if self.rows else {}
        )
        return {**shown, **errors}

    def _note(self, number: int, worker: Worker, terms: Sequence[float], look: bool) -> None:
        stage = f"{number + 1} {type(self.stages[number]).__name__}"
        row = {"stage": stage, "step": worker.done, "seconds": self.seconds, "loss": math.fsum(terms)}
        row.update(zip(self.problem.names, terms, strict=True))
        if look:
            row.update({f"error {name}": error for name, error in self.score(self.trainee.system).items()})
        self.rows.append(row)

    def _go_back(self, worker: Worker, good: dict[str, Any], what: str) -> None:
        self._put(worker, good)
        worker.reason = f"{what}: went back to the state after step {worker.done}"

    def _put(self, worker: Worker, state: dict[str, Any]) -> None:
        worker.load_state_dict(state["worker"])
        self.trainee.load_state_dict(state["trainee"])

    def _state(self, worker: Worker) -> dict[str, Any]:
        return {"trainee": copied(self.trainee.state_dict()), "worker": copied(worker.state_dict())}

    def _save(self, number: int, worker: Worker | None) -> None:
        if self.checkpoints is None:
            return
        self.checkpoints.save({
            "number": number,
            "worker": None if worker is None else worker.state_dict(),
            "trainee": self.trainee.state_dict(),
            "rows": self.rows,
            "reasons": self.reasons,
            "seconds": self.seconds,
            "setup": self.setup,
        })  # fmt: skip
        write(self.checkpoints.folder / "history.csv", table(self.rows))

    def _take(self, saved: dict[str, Any]) -> None:
        for name, value in self.setup.items():
            if saved["setup"][name] != value:
                raise ValueError(
                    f"resume: expected {name} {saved['setup'][name]}, as in the checkpoint in "
                    f"{self.checkpoints.folder if self.checkpoints else ''}, got {value}"
                )
        self.rows, self.reasons, self.seconds = list(saved["rows"]), list(saved["reasons"]), saved["seconds"]
        self.trainee.load_state_dict(saved["trainee"])


def copied(state: Any) -> Any:
    """A copy of a state dict that shares no memory with it."""
    return copy.deepcopy(state)


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
