"""A program's functions in parts, which several compilers can take at once.

The text is one: ``-DLG_PARTS=5`` compiles the functions of parts 0 and 2 (bits 0 and 2) and calls the others, which
another compiler makes. Without it the text is a whole.
"""

from __future__ import annotations

import re

PARTS = 4
END = "\n\0\n"  # of a function
CALLS = 0.3  # of a compiler's time for as much text of loops is what it takes for calls
_HEAD = re.compile(r"^LG_FUNCTION [^{]*(?= \{)", re.MULTILINE)


def in_parts(text: str) -> str:
    """Functions, and at the end what calls them, with ``END`` between each.

    Functions that begin with ``LG_FUNCTION`` are in one part each, of about the same work; others are in all of them.
    """
    *texts, last = text.split(END)
    heads = [_HEAD.search(text) for text in texts]
    everywhere = [text for text, head in zip(texts, heads, strict=True) if head is None]
    single = [text for text, head in zip(texts, heads, strict=True) if head is not None]
    declared = [f"{head[0]};" for head in heads if head is not None]
    most = (sum(map(len, single)) + len(last) * CALLS) / PARTS
    found: list[list[str]] = [[] for _ in range(PARTS)]
    length = 0
    for text in single:
        found[min(int(length / most), PARTS - 1)].append(text)
        length += len(text)
    found[-1].append(last)
    guarded = [line for k, group in enumerate(found) for line in (f"#if LG_PARTS & {1 << k}", *group, "#endif", "")]
    return "\n".join([*everywhere, *declared, "", *guarded])


def shares(count: int) -> list[int]:
    """What ``count`` compilers are given as ``LG_PARTS``: each part once."""
    count = min(count, PARTS)
    return [sum(1 << k for k in range(PARTS) if k % count == i) for i in range(count)]
