"""Why no program of a compiled function served a call: the guards that failed, the last of them kept.

Shapes beyond the third wait until they have come often: a batch of a length that came once may not come again, and a
program that runs once costs far more than it saves, as much as some hundred uncompiled calls of a small step. They wait
no longer than for as many calls as it takes a program to repay what it costs, by the size of the last one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from leafgrad.compile.guard.conditions import Miss
from leafgrad.compile.ir.log import log
from leafgrad.errors import CompileError
from leafgrad.ops import messages
from leafgrad.tensor.tensor import Tensor

EARLY = 3  # shapes that are recorded when they first come
PATIENCE = 8  # recordings, for whatever reason, before all others wait
RARE = 2  # recordings in a row, of which none served a call, after which the next may serve none
VAIN = 6  # recordings in a row, of which none served a call, before all others wait
WAIT = 4  # calls of the first kind that waits; the next waits four times as long, then nine times, and so on
CHANGES = 4  # new values of one thing, each soon after the last recording, after which a step is left open
SOON = 8  # calls
# What recording costs, and what a call saves uncompiled, in us: measured on steps of 50 to 500 equations, and rounded.
SAVED_BY_EQUATION, SAVED_BY_ELEMENT = 1, 0.00075
RECORDING = 30_000, 500  # in all, and for each equation
OF_LENGTH = 3_000, 130  # of a program for another length, which is not recorded again
OF_MEMORY = 300, 8  # of one that serves other lengths already
KEPT = 32
KINDS = 10_000  # of calls that are counted

Kind = tuple[Hashable, Hashable]
Cost = tuple[int, int]


def kind_of(structure: Any, leaves: Sequence[Any]) -> Kind:
    """What calls that one program may serve have in common: what they are of, and the shapes of their tensors."""
    tensors = [isinstance(t, Tensor) for t in leaves]
    of = str(structure), *[t.dtype if is_one else type(t) for t, is_one in zip(leaves, tensors, strict=True)]
    return of, tuple([t._data.shape for t, is_one in zip(leaves, tensors, strict=True) if is_one])


class Misses(list[Miss]):
    """The last misses.

    Attributes:
        total: how many there were in all.
        warns: whether that there are many is still to be said.
        shapes: that were recorded, by what else makes a kind.
        waiting: how many calls of each kind ran uncompiled, since the kind had not come often enough to be recorded.
        waited: how many calls did so in all.
        hasty: by its path, what a value had become when programs had served few calls since the last recording.
        graphs: how often so early another autograd graph stood behind the call's tensors.
        told: whether a call inside vmap was warned of.
        of_part: whether they are of a part of an open function.
        vain: how many recordings in a row have served no call.
        equations: those of the last program.
        saved: what a call of it saves; 0 as long as there is none.
    """

    total = 0
    warns = True
    told = of_part = False
    waited = 0
    graphs = vain = 0
    equations, saved = 0, 0.0

    def __init__(self) -> None:
        self.shapes: dict[Hashable, set[Hashable]] = {}
        self.waiting: Counter[Kind] = Counter()
        self.hasty: dict[str, set[Any]] = {}
        self.served = 0

    @property
    def of_one_shape(self) -> bool:
        """Whether other shapes will be recorded at once, or wait, as where nothing is known of the step."""
        return not self.total and all(len(seen) == 1 for seen in self.shapes.values())

    def may_be_rare(self, executor: str | None) -> bool:
        """Whether a call may be one of many that come but once, so that its program is built when it comes again.

        Else it is built at once, so that a resumed training, which knows less, goes on to the same bits; and where
        somebody asked for an executor.
        """
        return executor is None and (self.of_part or self.vain >= RARE)

    def made(self, equations: int, elements: int) -> None:
        """A program was made, of so many equations, whose results have so many elements in all."""
        self.equations, self.saved = equations, SAVED_BY_EQUATION * equations + SAVED_BY_ELEMENT * elements + 1

    def needed(self, kind: Kind, cost: Cost = RECORDING) -> float:
        """How often a kind of call must come before it is recorded, or what else it costs is paid for it."""
        seen = self.shapes.get(kind[0], ())
        beyond = 0 if kind[1] in seen else len(seen) - EARLY + 1
        if cost is RECORDING:
            beyond = max(beyond, self.total - PATIENCE + 1, self.vain - VAIN + 1)
        repaid = math.ceil((cost[0] + cost[1] * self.equations) / self.saved) if self.saved else math.inf
        return min(WAIT * max(0, beyond) ** 2, repaid)

    def waits(self, name: str, kind: Kind, cost: Cost = RECORDING) -> bool:
        """Whether a call of the function ``name``, of a kind that no program serves, is not to be recorded yet."""
        if self.waiting[kind] >= self.needed(kind, cost):
            del self.waiting[kind]
            self.shapes.setdefault(kind[0], set()).add(kind[1])
            return False
        self.warn(name)
        if len(self.waiting) > KINDS:
            self.waiting.clear()
        self.waiting[kind] += 1
        self.waited += 1
        return True

    def warn(self, name: str) -> None:
        """Say once what is traced again, and that kinds of calls wait."""
        if not self or not self.warns:
            return
        self.warns = False
        often, last = Counter(miss.path for miss in self).most_common(1)[0][0], self[-1]
        times = "once" if self.total == 1 else f"{self.total} times"
        messages.warn(
            f"{name} has been traced again {times}, mostly because of {often} (last: {last.path} was {last.before}, is "
            f"{last.now}). Tracing costs far more than a call: keep shapes fixed, and keep what changes from call to "
            "call out of the function; explain() lists all. From now on a kind of call gets a program when it comes "
            "often, and runs uncompiled until then"
        )

    def note(self, miss: Miss, name: str, served: int) -> None:
        """The function ``name``, of which programs have ``served`` so many calls, is recorded again."""
        self.append(miss)
        if served - self.served < SOON:
            if miss.kind == "value":
                seen = self.hasty.setdefault(miss.path, set())
                seen.add(len(seen) if miss.now in seen else miss.now)  # equal, yet another object
            self.graphs += miss.kind == "graph"
        self.vain = self.vain + 1 if served <= self.served + 1 else 0  # its own call alone
        self.served = served
        del self[:-KEPT]
        self.total += 1
        log(f"{name}: recorded again, since {miss.path} was {miss.before} and is {miss.now}")
        if self.total == PATIENCE:
            self.warn(name)

    def batched(self, name: str, closed: bool) -> None:
        """The function ``name`` was called inside vmap: no program is for batches that it does not see."""
        text = f"{name} runs uncompiled inside vmap; leafgrad.compile(leafgrad.vmap(f)) compiles the whole"
        if closed:
            raise CompileError(f"closed=True: {text}")
        if not self.told:
            self.told = True
            messages.warn(text)

    @property
    def graph_varies(self) -> bool:
        """Whether there is no telling through which graph the next call differentiates."""
        return self.graphs >= CHANGES

    def often(self) -> str | None:
        """A Python value that keeps changing; None if there is none."""
        return next((path for path, values in self.hasty.items() if len(values) >= CHANGES), None)
