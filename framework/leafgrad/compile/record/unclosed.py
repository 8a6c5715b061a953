"""Why no program can repeat a call."""

from __future__ import annotations

from leafgrad.errors import TraceError


class Unclosed(TraceError):
    """What a call did that no program can repeat, in words that follow "since"."""


def must_close(name: str, reason: str) -> TraceError:
    """What is said of a function that was to be closed."""
    return TraceError(
        f"{name} was compiled with closed=True, but is open: {reason}. Pass what changes as an "
        "argument, take it out of the function, or leave closed=True out, and its Python runs at each call"
    )


def must_stay_closed(what: str, line: object, remedy: str) -> TraceError:
    """What is said of what opens such a function, where it comes."""
    return TraceError(
        f"{what} at {line} makes the step open, and it was compiled with closed=True. {remedy}, or leave closed=True "
        "out"
    )
