"""Generated C with the headers that it stands on, compiled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from leafgrad import threads
from leafgrad_native.cache import Library, library as compiled
from leafgrad_native.target import vector_bytes

SHORT = 20_000  # characters that one compiler takes as fast as several
_PHASE = re.compile(r"^int (phase\d+)\(", re.MULTILINE)
RUNTIME = Path(__file__).parent / "runtime"


def library(text: str, name: str = "step", symbols: Sequence[str] | None = None, blas_long: bool = False) -> Library:
    """The shared library of a text.

    Args:
        name: begins its file names.
        symbols: the functions that it must have; by default those of a program's phases.
        blas_long: whether integers of BLAS have 64 bits.

    Raises:
        NoCompiler, CompilationFailed: from `leafgrad_native.compiler`.
    """
    given = [f"#define LG_VB {vector_bytes()}"]
    given += ["#define LG_BLAS_LONG"] if blas_long else []
    sides = threads.processors() if len(text) > SHORT else 1
    source = "\n".join([*given, ""]) + header("kernels.h") + header("maths.h") + text
    return compiled(source, name, _PHASE.findall(text) if symbols is None else symbols, sides)


@cache
def header(name: str) -> str:
    """A header's text with the headers that it includes in their places."""
    text = (RUNTIME / name).read_text(encoding="utf-8")
    return re.sub(r'#include "([^"]+)"', lambda match: header(match[1]), text)
