"""What checks found: passed, failed or left out, and why."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Fault(AssertionError):
    """What a check found: where, what was expected, what came, and the remedy."""


class Skip(Exception):
    """A check does not apply; its text says why."""


@dataclass(frozen=True)
class Result:
    """The outcome of one check.

    Attributes:
        check: its name.
        outcome: "passed", "failed" or "skipped".
        reason: why it failed or was skipped; "" where it passed.
        seconds: how long it took. For information: nothing is demanded of it.
    """

    check: str
    outcome: str
    reason: str
    seconds: float


@dataclass
class Report:
    """The results of all checks, in the order in which they ran. Printing it gives a table.

    Attributes:
        untried: what was not exercised: rules and lines that did not run, parameters that no sample varies.
    """

    subject: str
    results: list[Result] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[Result]:
        """The checks that failed."""
        return [r for r in self.results if r.outcome == "failed"]

    @property
    def ok(self) -> bool:
        """Whether none failed."""
        return not self.failures

    @property
    def seconds(self) -> float:
        """How long all of them took together."""
        return sum(r.seconds for r in self.results)

    def require(self) -> None:
        """A ConformanceError if a check failed."""
        if not self.ok:
            raise ConformanceError(self)

    def __str__(self) -> str:
        width = max([len(r.check) for r in self.results], default=0)
        lines = [f"  {r.check:<{width}}  {r.outcome}{': ' if r.reason else ''}{r.reason}" for r in self.results]
        lines += [f"  not exercised: {what}" for what in self.untried]
        return "\n".join([self.subject, *lines])


class ConformanceError(AssertionError):
    """Checks failed; the message has each of them.

    Attributes:
        report: all results.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        failed = report.failures
        lines = [f"{report.subject} fails {len(failed)} of {len(report.results)} checks"]
        super().__init__("\n".join([*lines, *(f"  {r.check}: {r.reason}" for r in failed)]))


def outcome(
    name: str, check: Callable[[Any], None], subject: Any, words: Callable[[Exception], str] | None = None
) -> Result:
    """One check, with its time. ``words``: what to say of an exception; its class and text by default."""
    start = time.perf_counter()
    found, reason = "passed", ""
    try:
        check(subject)
    except Skip as skip:
        found, reason = "skipped", str(skip)
    except AssertionError as fault:
        found, reason = "failed", str(fault)
    except Exception as error:
        found, reason = "failed", words(error) if words is not None else f"{type(error).__name__}: {error}"
    return Result(name, found, reason, time.perf_counter() - start)
