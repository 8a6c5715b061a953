"""SciPy's special functions, imported when one is first computed: that takes longer than all of leafgrad."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def special() -> Any:
    """scipy.special."""
    from scipy import special as module

    return module
