"""Why no program can repeat a call."""

from __future__ import annotations

from leafgrad.errors import TraceError


class Unclosed(TraceError):
    """What a call did that no program can repeat, in words that follow "since"."""
