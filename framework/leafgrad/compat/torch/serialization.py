"""``torch.serialization``: ``save`` and ``load``, and whom ``load`` trusts."""

from typing import Any

from leafgrad.utils.serialization import load, save
from leafgrad.utils.trust import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

DEFAULT_PROTOCOL = 2  # of pickles, none of which is written
MAP_LOCATION = FILE_LIKE = Any

__all__ = [
    "DEFAULT_PROTOCOL", "FILE_LIKE", "MAP_LOCATION", "add_safe_globals", "clear_safe_globals", "get_safe_globals",
    "load", "safe_globals", "save",
]  # fmt: skip
