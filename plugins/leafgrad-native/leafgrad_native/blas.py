"""The matrix product of the BLAS that NumPy carries, for C to call."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

# (names of the symbols, whether integers have 64 bits)
KNOWN = ((("scipy_cblas_{}64_", "cblas_{}64_"), True), (("scipy_cblas_{}", "cblas_{}"), False))


def libraries() -> list[Path]:
    """Files beside NumPy that may be its BLAS."""
    folder = Path(np.__file__).parent
    places = [folder.parent / "numpy.libs", folder / ".dylibs", folder / ".libs"]
    return sorted(p for place in places for p in place.glob("*openblas*"))


def search() -> tuple[ctypes.CDLL, str, bool] | None:
    for path in libraries():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for patterns, wide in KNOWN:
            for pattern in patterns:
                if all(hasattr(library, pattern.format(n)) for n in ("sgemm", "dgemm")):
                    return library, pattern, wide
    return None


found = search()
long = found is not None and found[2]


def address(name: str) -> int | None:
    """The address of ``sgemm`` or ``dgemm``; None without a BLAS."""
    if found is None:
        return None
    library, pattern, _ = found
    return ctypes.cast(getattr(library, pattern.format(name)), ctypes.c_void_p).value
