"""``torch.__config__``: with what leafgrad computes."""

from __future__ import annotations

import platform

import leafgrad
from leafgrad.threads import get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The versions of leafgrad and Python, and the machine."""
    return f"leafgrad {leafgrad.__version__}\n  - Python {platform.python_version()}\n  - {platform.platform()}\n"


def parallel_info() -> str:
    """How many threads a product may use."""
    return f"leafgrad\n  - get_num_threads() : {get_num_threads()}\n"
