"""What the processor has that generated C should know."""

from __future__ import annotations

import importlib
import importlib.util
import platform
from functools import cache
from pathlib import Path


@cache
def features() -> frozenset[str]:
    """The processor's features as the system names them; where it does not say, as NumPy finds them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return frozenset(flags.partition(":")[2].split()) or measured()


def measured() -> frozenset[str]:
    """The features that NumPy has asked the processor for."""
    name = "numpy._core" if importlib.util.find_spec("numpy._core") else "numpy.core"  # before NumPy 2
    found = importlib.import_module(f"{name}._multiarray_umath").__cpu_features__
    return frozenset(feature.lower() for feature, there in found.items() if there)


@cache
def vector_bytes() -> int:
    """Bytes of the vectors that generated code works with."""
    known = features()
    return 64 if "avx512f" in known else 32 if "avx" in known else 16


@cache
def registers() -> int:
    """Vector registers."""
    arm = platform.machine().lower() in ("arm64", "aarch64")
    return 32 if arm or vector_bytes() == 64 else 16


@cache
def core_cache() -> int:
    """Bytes of a core's second-level cache."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text(encoding="ascii")
        return int(text.strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 1 << 20
