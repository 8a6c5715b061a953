"""Scenarios: one script, run in an eager world and in a compiled one, that must look the same after every call.

A row is a function of a world ``w``. It builds fresh state, hands its step to ``w.compile``, and calls it with
``w.call``, changing between the calls what the step reads. What can be seen after each call (the result, earlier
results, the arguments, and everything that the step's closure reaches: tensors, gradients, Python state, random states)
is noted, and the notes of both worlds are compared. ``w.turns(a, b, c)`` gives the values that a piece of state takes
before each call; every row that uses it runs under several schedules, which change it before the second call, before
the third, late, and back again; the first, which is short, stands for all of them by default.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import linecache
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compile.scenarios.describe import NUMBER, Description, describe, difference, reached

import leafgrad
from leafgrad import dtypes, modes
from leafgrad.batching.pytree import flatten
from leafgrad.errors import CompileError, TraceError

SCHEDULES = {
    "soon": (0, 1, 1, 1, 2, 0, 1),
    "before the second call": (0, 1, 1, 1, 2, 2, 0, 0, 1),
    "before the third call": (0, 0, 1, 1, 1, 2, 0, 1),
    "late": (0, 0, 0, 0, 0, 1, 1, 2, 0),
}
LONG = tuple(name for name in SCHEDULES if name != "soon")
LEGACY = np.random.mtrand  # the generator behind np.random.rand and the like
FOLDER = Path(tempfile.gettempdir(), f"leafgrad-scenarios-{os.getpid()}")
KEPT = 3  # how many earlier results are looked at again after each call


@dataclasses.dataclass(frozen=True)
class Row:
    """A scenario: its script, and what is special about it."""

    script: Callable[[World], None]
    constant: bool = False  # its results are meant to stay the same
    quick: bool = True  # fast enough for every executor
    leaves: bool = True  # its arguments may be leaves that require grad: it does not write into them

    @property
    def kind(self) -> str:
        return self.script.__module__.rpartition(".")[2].removesuffix("_rows")

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.script.__name__.strip('_')}"


ROWS: dict[str, Row] = {}


def row(script: Any = None, **special: bool) -> Any:
    """Add a script to the table. As ``@row`` or ``@row(constant=True)``."""
    if script is None:
        return lambda given: row(given, **special)
    made = Row(script, **special)
    assert made.name not in ROWS, f"two rows are named {made.name}"
    ROWS[made.name] = made
    return script


def points(n: int = 3) -> Any:
    """A fresh tensor: 1, 2, 3, ..."""
    return leafgrad.arange(1.0, n + 1.0)


class Refused(BaseException):
    """The compiled function said in an error, with its line, that it cannot do this. The row ends."""


@dataclasses.dataclass
class Note:
    """What was seen after one call."""

    what: str
    result: Description
    world: Description


class World:
    """Where one run of a script happens: eagerly, or with its steps compiled by ``executor``."""

    def __init__(self, executor: str | None, schedule: str, frozen: bool = False, derivatives: bool = False) -> None:
        self.executor, self.schedule, self.frozen, self.derivatives = executor, schedule, frozen, derivatives
        self.notes: list[Note] = []
        self.turned = False
        self.patch = pytest.MonkeyPatch()
        self._watched: list[Any] = []
        self._results: list[Any] = []
        self._calls = 0

    # ---- what scripts use -------------------------------------------------------------------------------------------

    def compile(self, function: Any) -> Any:
        """The step, compiled in the compiled world. All that its closure reaches is watched."""
        self.watch(*reached(function))
        return self.compile_only(function)

    def compile_only(self, function: Any) -> Any:
        """As ``compile``, without watching anything."""
        return function if self.executor is None else leafgrad.compile(function, executor=self.executor)

    def watch(self, *things: Any) -> Any:
        """Look at these after each call, too. Returns the first."""
        self._watched += [thing for thing in things if not any(thing is seen for seen in self._watched)]
        return things[0] if things else None

    def turns(self, *values: Any) -> Iterator[Any]:
        """The values of a piece of state before each call."""
        self.turned = True
        order = SCHEDULES[self.schedule] + tuple(range(3, len(values)))
        for index in order:
            yield values[0 if self.frozen else index % len(values)]

    def call(self, step: Any, *args: Any, hide: bool = False, keep: bool = True, **kwargs: Any) -> Any:
        """Call the step and note what can be seen then. Returns its result, or None if it raised.

        With ``hide`` the result's value is not compared; with ``keep=False`` it is not looked at again later.
        """
        self._calls += 1
        result: Any = None
        given = leaves_of((args, kwargs)) if self.derivatives else []
        try:
            result = step(*args, **kwargs)
            seen: Any = "hidden" if hide else result
        except (KeyboardInterrupt, SystemExit, Exception) as error:
            self._refused(error)
            seen = ("raised", type(error).__name__)
        self._note(f"call {self._calls}", seen, (args, kwargs), self._results[-KEPT:])
        if given and not hide:
            self.attempt("derivatives", lambda: derivatives(result, given))
        if keep and not hide:
            self._results.append(result)
        return result

    def see(self, what: str, *values: Any) -> None:
        """Note values between calls, such as a gradient after the result's backward pass."""
        self._note(f"{what} after call {self._calls}", values, (), [])

    def attempt(self, what: str, function: Callable[[], Any]) -> None:
        """Note what a function returns, or the type of its error."""
        try:
            outcome = ("returned", function())
        except Exception as error:
            self._refused(error)
            outcome = ("raised", type(error).__name__)
        self.see(what, outcome)

    def module(self, name: str, source: str) -> types.ModuleType:
        """A module of this source, in ``sys.modules`` until the run ends."""
        made = types.ModuleType(name)
        made.__file__ = f"{name}.py"
        linecache.cache[made.__file__] = (len(source), None, source.splitlines(keepends=True), made.__file__)
        exec(compile(source, made.__file__, "exec"), vars(made))
        self.patch.setitem(sys.modules, name, made)
        return made

    def folder(self) -> Path:
        """An empty folder, until the run ends: of the same name in all runs of a process."""
        FOLDER.mkdir()
        return FOLDER

    # ---- what the harness does --------------------------------------------------------------------------------------

    def _refused(self, error: BaseException) -> None:
        """End the row if the error is a refusal that names its line; one that does not name it is a failure."""
        if self.executor is not None and isinstance(error, TraceError | CompileError):
            if re.search(r"\.(py|md):\d+", str(error)):
                raise Refused(str(error)) from error
            raise error

    def _note(self, what: str, result: Any, arguments: Any, earlier: list[Any]) -> None:
        memo: dict[int, Any] = {}
        shown = describe(result, memo)
        states = random.getstate(), pickle.dumps(LEGACY.get_state()), leafgrad.get_rng_state().numpy().tobytes()
        flags = (leafgrad.is_grad_enabled(), str(leafgrad.get_default_dtype()))
        world = [
            ("earlier results", describe(earlier, memo)),
            ("arguments", describe(arguments, memo)),
            ("state", describe(self._watched, memo)),
            ("modes", flags),
            ("random states", hash(states)),
        ]
        self.notes.append(Note(what, shown, world))


def leaves_of(arguments: Any) -> list[Any]:
    """The tensors of real numbers among arguments, which require grad from now on."""
    found, _ = flatten(arguments)
    leaves = [t for t in found if isinstance(t, leafgrad.Tensor) and t.is_leaf and t.is_floating_point()]
    return [t.requires_grad_() for t in leaves]


def derivatives(result: Any, given: list[Any]) -> Any:
    """Those of a step's result, if it has any."""
    made = [t for t in flatten(result)[0] if isinstance(t, leafgrad.Tensor) and t.requires_grad]
    if not made:
        return None
    return leafgrad.autograd.grad(sum(t.sin().sum() for t in made), given, retain_graph=True, allow_unused=True)


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Seeds, modes, default dtype and warnings as at the start of each run, and as before after it."""
    flags, dtype = modes.FLAGS.get(), dtypes.get_default_dtype()
    random.seed(0)
    LEGACY.seed(0)
    leafgrad.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        modes.FLAGS.set(flags)
        dtypes.set_default_dtype(dtype)


def run(
    row: Row, executor: str | None, schedule: str, frozen: bool = False, derivatives: bool = False
) -> tuple[World, str | None]:
    """One run of the script: the world with its notes, and the refusal that ended it, if one did."""
    world, refusal = World(executor, schedule, frozen, derivatives), None
    with isolated():
        try:
            row.script(world)
        except Refused as error:
            refusal = str(error)
        finally:
            world.patch.undo()
            shutil.rmtree(FOLDER, ignore_errors=True)
    return world, refusal


@functools.lru_cache(maxsize=len(SCHEDULES))
def eager(row: Row, schedule: str, derivatives: bool) -> World:
    """The eager run that others are compared with."""
    return run(row, None, schedule, derivatives=derivatives)[0]


def check(
    row: Row, executor: str | None, schedules: tuple[str, ...] = LONG, fair: bool = True, derivatives: bool = False
) -> list[str]:
    """Assert that the compiled world looks as the eager one after every call. Returns the refusals.

    ``executor`` None compares eager with eager: what fails then is the row's fault. With ``fair`` it must also be
    one whose state matters. With ``derivatives`` arguments require grad, and results are differentiated by them.
    """
    refusals = []
    for schedule in schedules:
        expected = eager(row, schedule, derivatives)
        got, refusal = run(row, executor, schedule, derivatives=derivatives)
        for ours, theirs in zip(got.notes, expected.notes, strict=False):
            where = f"{row.name}, changed {schedule}: {theirs.what}"
            assert ours.what == theirs.what, f"{where}: the script went another way: {ours.what}"
            for what, a, b in (("result", ours.result, theirs.result), ("world", ours.world, theirs.world)):
                found = difference(a, b)
                assert not found, f"{where}: the {what}{found}"
        if refusal is None:
            assert len(got.notes) == len(expected.notes), f"{row.name}: the script went another way"
        else:
            refusals.append(refusal)
        if executor is None and fair:
            meaningful(row, expected, schedule)
        if not expected.turned:
            break
    return refusals


def meaningful(row: Row, world: World, schedule: str) -> None:
    """Assert that the script has six calls or more, and that its state matters."""
    calls = [note for note in world.notes if note.what.startswith("call ")]
    assert len(calls) >= 6, f"{row.name}: {len(calls)} calls are too few to see anything"
    if row.constant:
        return
    firsts: dict[str, Note] = {}
    for note in world.notes:
        firsts.setdefault(NUMBER.sub("", note.what), note)
    changed = any(differs(note, firsts[NUMBER.sub("", note.what)]) for note in world.notes)
    assert changed, f"{row.name}: nothing ever changes"
    if world.turned:
        frozen, _ = run(row, None, schedule, frozen=True)
        notes = zip(world.notes, frozen.notes, strict=False)
        assert any(differs(a, b) for a, b in notes), f"{row.name}: what changes does not matter to the step"


def differs(a: Note, b: Note) -> bool:
    """Whether the results or the worlds do, but for earlier results, which pile up."""
    return bool(difference(a.result, b.result) or difference(a.world[1:], b.world[1:]))
