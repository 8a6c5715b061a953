"""Why no program of a compiled function served a call: the guards that failed, the last of them kept."""

from __future__ import annotations

from leafgrad.compile.guard.conditions import Miss
from leafgrad.compile.ir.log import log
from leafgrad.ops import messages

PATIENCE = 8  # recordings before a warning
CHANGES = 3  # changes of one Python value after which a step is left open
KEPT = 32


class Misses(list[Miss]):
    """The last misses.

    Attributes:
        total: how many there were in all.
    """

    total = 0

    def note(self, miss: Miss, name: str) -> None:
        """The function ``name`` is recorded again, since a guard failed."""
        self.append(miss)
        del self[:-KEPT]
        self.total += 1
        log(f"{name}: recorded again, since {miss.path} was {miss.before} and is {miss.now}")
        if self.total == PATIENCE:
            paths = [m.path for m in self]
            often = max(paths, key=paths.count)
            messages.warn(
                f"{name} has been traced again {PATIENCE} times, mostly because of {often} (last: {miss.path} was "
                f"{miss.before}, is {miss.now}). Tracing costs far more than a call: keep shapes fixed, and keep what "
                "changes from call to call out of the function; explain() lists all"
            )

    def often(self) -> str | None:
        """A Python value that keeps changing; None if there is none."""
        changed = [miss.path for miss in self if not miss.of_tensor]
        return next((path for path in changed if changed.count(path) >= CHANGES), None)
