"""Handlers of signals that come while a call is recorded: what they change is no effect of the step's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import signals
from leafgrad.compile.guard.environment import Environment, Place
from leafgrad.compile.run.left import Written

PATIENCE = 50  # looks at what handlers have changed, if others come that fast


class Handlers:
    """Those that come during one call.

    Args:
        before: what the call may read.
        known: whether it is known what that is.
        growing: the places of lists to which it appends, with what stands in them.

    Attributes:
        count: how many are running, or came since what they may have changed was last looked at.
        changed: whether they changed what the call reads, for all that is known.
        unknown: whether any came in a call of which that is not known, so that no other call may be like it.
    """

    def __init__(self, before: Environment, known: bool, growing: Sequence[tuple[Place, Written]]) -> None:
        self.before, self.known, self.growing = before, known, growing
        self.count = 0
        self.changed = self.unknown = False

    def __call__(self, handler: Callable[[], Any]) -> None:
        """Call one. Those that come until it is over, and until that is known to have changed nothing, count as it."""
        self.count += 1
        self.unknown |= not self.known
        if self.unknown or self.changed or self.count > 1:
            return handler()
        held, lengths = signals.held(self.state)
        handler()
        for _ in range(PATIENCE):
            self.count = 1
            changed = signals.held(self.differs, held, lengths)
            if changed or self.count == 1:
                break
        self.count, self.changed = 0, changed or self.count > 1

    def state(self) -> tuple[list[Any], list[int]]:
        return self.before.snapshot(), self.lengths()

    def differs(self, held: list[Any], lengths: list[int]) -> bool:
        return bool(self.before.changed(held)) or self.lengths() != lengths

    def lengths(self) -> list[int]:
        return [list.__len__(spot.number) for _, spot in self.growing]
