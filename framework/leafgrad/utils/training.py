"""A loop of training steps that can be interrupted, killed, and continued."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from tqdm import tqdm

from leafgrad import devices, modes, plugins
from leafgrad.distributed.collectives import all_gather_object, barrier, most
from leafgrad.distributed.process_group import get_rank, get_world_size, is_initialized, world
from leafgrad.tensor.random import generator_of
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils.checkpoints import Checkpoints
from leafgrad.utils.interrupts import Interrupts


class Training:
    """Training steps with checkpoints, of which a kill loses those since the last one, and an interrupt none.

        with Training("runs/a", every=100, resume=True, model=model, optimizer=optimizer) as training:
            for step in training.steps(5000):
                loss = ...
                training.note(loss=loss)

    A checkpoint has the parts, the state of the random generators of the CPU and of the parts' devices, and the number
    of steps done. What else a step depends on belongs into a part, an object with ``state_dict`` and
    ``load_state_dict``. Compiled steps forget at a checkpoint what their calls have taught them, as a process that is
    resumed has not learned it.

    Where several processes train together, rank 0 saves what all have in common, and the random generators of all; an
    interrupt of one stops all after the same step. All give the same folder.

    Args:
        folder: where the checkpoints are; see `Checkpoints`.
        every: how many steps lie between two checkpoints. There is one at the end, too.
        keep: how many checkpoints stay.
        resume: go on from the newest checkpoint that is whole. Without, the folder must not have checkpoints.
        setup: what must be the same in a run that is resumed, as a seed: numbers and strings.
        callbacks: who is told of what happens, such as a logger: names, as "csv", which plugins bring, or objects;
            see ``leafgrad.plugins.CallbackSpec``. Of several processes rank 0 tells them.
        parts: what is trained with: the model, the optimizer, schedules, ...

    Attributes:
        done: the number of steps that are done.

    Raises:
        FileNotFoundError: with ``resume``, there is no checkpoint. RuntimeError: none is whole,
            or the ranks found those of different steps. FileExistsError: without ``resume``, there are checkpoints.
        ValueError: the checkpoint has another ``setup`` or other parts, or ``every`` or ``keep`` is less than 1.
        TypeError: a part has no ``state_dict``.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int,
        keep: int = 2,
        resume: bool = False,
        setup: Mapping[str, Any] | None = None,
        callbacks: Sequence[Any] = (),
        **parts: Any,
    ) -> None:
        if every < 1:
            raise ValueError(f"Training: every: expected at least 1, got {every}")
        for name, part in parts.items():
            if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
                raise TypeError(
                    f"Training: {name}: expected a part with state_dict and load_state_dict, as a model or an "
                    f"optimizer, got {type(part).__name__}"
                )
        self.checkpoints = Checkpoints(folder, keep)
        self.every = every
        self.parts, self.setup = parts, dict(setup or {})
        self.done = 0
        self._rank, self._ranks = (get_rank(), get_world_size()) if is_initialized() else (0, 1)
        self._noted: dict[str, float] = {}
        if not resume and self.checkpoints.paths():
            raise FileExistsError(
                f"Training: folder: expected one without checkpoints, got {folder}; resume=True goes on from them, "
                "a new run takes another folder"
            )
        self._interrupts = Interrupts()
        self._running = False
        self.callbacks = [_listed(c)(folder) if isinstance(c, str) else c for c in callbacks]
        if resume:
            self._load(self._found())

    def __enter__(self) -> Self:
        """From now on Ctrl-C, SIGTERM and SIGHUP wait for the end of a step."""
        self._interrupts.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._interrupts.__exit__(*error)

    def steps(self, count: int) -> Iterator[int]:
        """The numbers of the steps that are still to be done, up to ``count``; in between checkpoints are saved.

        Raises:
            SystemExit: Ctrl-C, SIGTERM or SIGHUP came, and the steps that are done were saved.
        """
        received = self._received()
        self._tell("on_start")
        self._running = True
        try:
            with _Bar(total=count, initial=self.done, mininterval=1, miniters=1, disable=self._rank > 0) as bar:
                while self.done < count and not received:
                    yield self.done
                    self.done += 1
                    received = self._received()
                    if self.done % self.every == 0 or self.done == count or received:
                        self._save()
                        received = received or self._received()
                    bar.set_postfix(self._noted, refresh=False)
                    bar.update()
        finally:
            self._running = False
            self._tell("on_end")
        if received:
            self._stop(signal.Signals(received), count)

    def note(self, **terms: Any) -> None:
        """Show the terms of a loss, and stop if one is no number.

        Args:
            terms: numbers, or tensors with one.

        Raises:
            FloatingPointError: a term is nan or infinite; the message names it and the step. Checkpoints stay.
            RuntimeError: there are callbacks, and no loop over ``steps`` in which they could be told.
        """
        if self.callbacks and not self._running:
            raise RuntimeError(
                "Training.note: expected a call in the loop over steps(), where callbacks are told, got one outside; "
                "move it into the loop"
            )
        self._noted = {name: float(term) for name, term in terms.items()}
        self._tell("on_note", self._noted)
        wrong = [f"{name} is {value}" for name, value in self._noted.items() if not math.isfinite(value)]
        if wrong:
            kept = self.checkpoints.paths()
            raise FloatingPointError(
                f"step {self.done}: {', '.join(wrong)}; "
                + (f"an earlier state is in {kept[-1]}" if kept else "no checkpoint was saved yet")
                + ". Lower the learning rate, or find the operation with leafgrad.autograd.detect_anomaly"
            )

    def _tell(self, what: str, *args: Any) -> None:
        """Call a method of the callbacks that have it."""
        for callback in self.callbacks if self._rank == 0 else ():
            method = getattr(callback, what, None)
            if method is not None:
                method(self, *args)

    def _received(self) -> int:
        """The signal that came to any process, 0 if none did."""
        return most(int(self._interrupts.received or 0))

    def _save(self) -> None:
        state = self._state()
        if self._rank == 0:
            self.checkpoints.save(state)
            self._tell("on_save")
        else:
            modes.Checkpoint.number += 1
        if self._ranks > 1:
            barrier()

    def _stop(self, received: signal.Signals, count: int) -> None:
        if self._rank == 0:
            with suppress(OSError):  # the terminal may be gone
                print(
                    f"stopped by {received.name} after {self.done} of {count} steps; resume goes on from there "
                    f"({self.checkpoints.folder})",
                    file=sys.stderr,
                )
        raise SystemExit(128 + received)

    def _state(self) -> dict[str, Any]:
        parts = {name: part.state_dict() for name, part in self.parts.items()}
        tensors = [t for state in parts.values() for t in state.values() if isinstance(t, Tensor)]
        places = sorted({devices.device("cpu"), *(t.device for t in tensors)}, key=str)
        generators: list[Any] = [{str(place): generator_of(place.resolve()).get_state() for place in places}]
        if self._ranks > 1:
            own = generators[0]
            generators = [None] * self._ranks
            all_gather_object(generators, own)
        return {"parts": parts, "generators": generators, "done": self.done, "setup": self.setup}

    def _found(self) -> dict[str, Any]:
        found: dict[str, Any] = self.checkpoints.latest()
        for name, value in self.setup.items():
            if found["setup"].get(name) != value:
                raise ValueError(
                    f"resume: expected {name}={found['setup'].get(name)!r}, as in the checkpoint in "
                    f"{self.checkpoints.folder}, got {name}={value!r}"
                )
        if len(found["generators"]) != self._ranks:
            raise ValueError(
                f"resume: expected {len(found['generators'])} ranks, as in the checkpoint in "
                f"{self.checkpoints.folder}, got {self._ranks}"
            )
        if found["parts"].keys() != self.parts.keys():
            raise ValueError(
                f"resume: expected the parts {', '.join(found['parts'])}, as in the checkpoint in "
                f"{self.checkpoints.folder}, got {', '.join(self.parts)}"
            )
        return found

    def _load(self, saved: dict[str, Any]) -> None:
        if self._ranks > 1:
            world().agree(f"Training(resume=True), from step {saved['done']}")
        for name, part in self.parts.items():
            part.load_state_dict(saved["parts"][name])
        for place, state in saved["generators"][self._rank].items():
            generator_of(devices.device(place).resolve()).set_state(state)
        self.done = saved["done"]


class _Bar(tqdm):
    """A progress bar on a terminal that may have gone away.

    Its lock is this process's own, where tqdm's is shared with forked children, one of which may be killed while it
    holds it; and it has no thread beside it that could hold it when a child is forked.
    """

    _lock = threading.RLock()
    monitor_interval = 0

    def update(self, n: float | None = 1) -> bool | None:
        with suppress(OSError):
            return super().update(n)
        return None

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def _listed(name: str) -> Any:
    """The class of the callback that a plugin lists under this name."""
    spec = plugins.callback(name)
    found = plugins.resolve(spec.target)
    if not isinstance(found, type):
        raise TypeError(f"callback {name!r}: expected {spec.target} to be a class, got {found!r}")
    return found
