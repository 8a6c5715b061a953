"""Effects that happen all or not at all, whatever signal arrives between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def complete(steps: Sequence[Callable[[], Any]]) -> None:
    """Take all steps, each of which may be taken twice; then raise what a signal's handler raised meanwhile.

    A step that fails by itself, so that it fails again, ends it at once.
    """
    at, failed, raised = 0, -1, None
    while at < len(steps):
        try:
            while at < len(steps):
                steps[at]()
                at += 1
        except BaseException as error:
            if failed == at:
                raise
            failed, raised = at, error
    if raised is not None:
        raise raised
