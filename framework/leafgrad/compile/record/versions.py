"""Versions, when a program has run: how often it has written memory, and which results have one in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad.compile.ir.keys import ProgramPart
from leafgrad.compile.record.layouts import Layouts
from leafgrad.compile.record.outside import Outside
from leafgrad.compile.record.shared import owner
from leafgrad.ops import dispatch
from leafgrad.ops.node import Version
from leafgrad.tensor import inplace
from leafgrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class VersionOf(ProgramPart):
    """The version of the results at ``places``: with so many writes, None for that of inference tensors.

    ``apart``: that of ``t.data``, and not that of the memory.
    """

    places: list[int]
    count: int | None
    apart: bool

    def give(self, made: Sequence[Any]) -> None:
        """Let these of the tensors that were made have it."""
        version = dispatch.INFERENCE_VERSION
        if self.count is not None:
            version = Version() if self.apart else inplace.version(made[self.places[0]])
            version.count = self.count
        for i in self.places:
            made[i]._writes = version


def versions_of(recorder: Layouts, tensors: Sequence[Tensor]) -> list[VersionOf]:
    """Those of results, but for new ones and those of tensors from outside."""
    groups: dict[Version, list[int]] = {}
    for i, t in enumerate(tensors):
        version = t._writes
        if version is None or not (version.count or version.apart or version is dispatch.INFERENCE_VERSION):
            continue
        if version.apart or version is dispatch.INFERENCE_VERSION or id(owner(t)) not in recorder.inner:
            groups.setdefault(version, []).append(i)
    return [
        VersionOf(places, None if version is dispatch.INFERENCE_VERSION else version.count, version.apart)
        for version, places in groups.items()
    ]


class Counts:
    """How often what effects write was written; where two of them share a version, the first counts for both."""

    def __init__(self) -> None:
        self.counted: set[Version] = set()

    def of(self, o: Outside) -> int:
        """Writes that the version outside has not counted."""
        version = o.inner._writes
        if version in self.counted:
            return 0
        self.counted.add(version)
        return int(version.count - version.counted)
