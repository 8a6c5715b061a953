"""Backends and executors that an op has rules for, and that nobody knows: a misspelt name would go unnoticed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

DTYPES = ("bfloat16",)  # may have a kernel, as backends have
FILES = ("onnx",)  # of lower rules that are not for an executor, but for what writes such files


class Stranger(NamedTuple):
    """A name that is unknown here, of a backend that an op has a kernel for or an executor that it has a rule for.

    near: the known name that is probably meant; empty if it may well be something that is not installed.
    """

    rule: str
    name: str
    near: str

    def __str__(self) -> str:
        question = f"; did you mean {self.near!r}?" if self.near else ""
        return f"{self.rule} {self.name!r}, which is not installed{question}"


def strangers(op: Any, backends: Iterable[str], executors: Iterable[str]) -> Iterator[Stranger]:
    """What an op has rules for that is not among these names."""
    for rule, names, known in (
        ("a kernel for backend", getattr(op, "kernels", ()), (*backends, *DTYPES)),
        ("a lower rule for executor", getattr(op, "lowering", ()), (*executors, *FILES)),
    ):
        for name in names:
            if name not in known:
                from difflib import get_close_matches  # few ops have such

                yield Stranger(rule, name, *(get_close_matches(name, known, 1, cutoff=0.75) or [""]))
