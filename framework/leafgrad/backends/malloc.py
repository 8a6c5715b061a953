"""Freed memory stays with the process, for the arrays of the next step.

A training step makes gradients and intermediate results anew and frees them. What glibc's malloc gives back to the
system in between comes again as pages that are mapped and cleared one by one as they are first written, which takes
longer than most of what is computed into them: steps of networks from some 100,000 weights on take up to thrice the
time.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of mallopt(3)
KEPT = 1 << 29  # bytes that may lie free at the end of the heap
LARGEST = 1 << 25  # bytes of an array in the heap, the most that glibc takes: larger ones are mapped each time
SET = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Ask malloc for it, where it is glibc's and nobody has set otherwise by the environment; whether it was asked."""
    if any(name in environment for name in SET) or "glibc.malloc." in environment.get("GLIBC_TUNABLES", ""):
        return False
    if sys.platform != "linux" or not hasattr(library := ctypes.CDLL(None), "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(MMAP_THRESHOLD, LARGEST) and library.mallopt(TRIM_THRESHOLD, KEPT))
