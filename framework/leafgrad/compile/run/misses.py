"""Why no program of a compiled function served a call: the guards that failed, the last of them kept.

After some recordings a kind of call waits for the next one: a batch of a length that came once may not come again, and
a program that runs once costs far more than it saves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from leafgrad.compile.guard.conditions import Miss
from leafgrad.compile.ir.log import log
from leafgrad.errors import CompileError
from leafgrad.ops import messages
from leafgrad.tensor.tensor import Tensor

PATIENCE = 8  # recordings before a warning, and before others wait
CHANGES = 4  # new values of one thing, each soon after the last recording, after which a step is left open
SOON = 8  # calls
KEPT = 32
KINDS = 10_000  # of calls that are counted


def kind_of(structure: Any, leaves: Sequence[Any]) -> Hashable:
    """What calls that one program may serve have in common: the shapes and dtypes of their tensors."""
    return str(structure), *[(t._data.shape, t.dtype) if isinstance(t, Tensor) else type(t) for t in leaves]


class Misses(list[Miss]):
    """The last misses.

    Attributes:
        total: how many there were in all.
        warns: whether many of them are worth a warning.
        waiting: how many calls of each kind ran uncompiled, since the kind had not come often enough to be recorded.
        waited: how many calls did so in all.
        hasty: by its path, what a value had become when programs had served few calls since the last recording.
        graphs: how often so early another autograd graph stood behind the call's tensors.
        told: whether a call inside vmap was warned of.
    """

    total = 0
    warns = True
    told = False
    waited = 0
    graphs = 0

    def __init__(self) -> None:
        self.waiting: Counter[Hashable] = Counter()
        self.hasty: dict[str, set[str]] = {}
        self.served = 0

    @property
    def needed(self) -> int:
        """How often a kind of call must come before it is recorded: a program is to be worth what it costs."""
        return max(0, self.total - PATIENCE + 1) ** 2

    def waits(self, kind: Hashable) -> bool:
        """Whether a call of a kind that no program serves is not to be recorded yet."""
        if self.waiting[kind] >= self.needed:
            del self.waiting[kind]
            return False
        if len(self.waiting) > KINDS:
            self.waiting.clear()
        self.waiting[kind] += 1
        self.waited += 1
        return True

    def note(self, miss: Miss, name: str, served: int) -> None:
        """The function ``name``, of which programs have ``served`` so many calls, is recorded again."""
        self.append(miss)
        if served - self.served < SOON:
            if miss.kind == "value":
                self.hasty.setdefault(miss.path, set()).add(miss.now)
            self.graphs += miss.kind == "graph"
        self.served = served
        del self[:-KEPT]
        self.total += 1
        log(f"{name}: recorded again, since {miss.path} was {miss.before} and is {miss.now}")
        if self.total == PATIENCE and self.warns:
            paths = [m.path for m in self]
            often = max(paths, key=paths.count)
            messages.warn(
                f"{name} has been traced again {PATIENCE} times, mostly because of {often} (last: {miss.path} was "
                f"{miss.before}, is {miss.now}). Tracing costs far more than a call: keep shapes fixed, and keep what "
                "changes from call to call out of the function; explain() lists all. From now on a kind of call is "
                "traced when it comes often, and runs uncompiled until then"
            )

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
