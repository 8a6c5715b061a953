"""Names of ``torch.func`` that leafgrad has not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["functionalize"]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the results of ``func``, which may write in place: transforms take such functions as they are."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): expected remove to be 'mutations' or 'mutations_and_views', got "
            f"{remove!r}"
        )
    return functools.wraps(func)(lambda *args, **kwargs: func(*args, **kwargs))
