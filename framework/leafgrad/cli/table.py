"""Tables, for people: in columns, or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[str]


def columns(head: Row, rows: Sequence[Row]) -> str:
    """A table whose columns are as wide as what is in them."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))


def markdown(head: Row, rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
