"""What surrounds training: data loading, checkpoints, and DLPack."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafgrad.utils import data as data, dlpack as dlpack
else:

    def __getattr__(name: str) -> object:
        """What few programs need is imported when it is first asked for."""
        if name in ("data", "dlpack"):
            return import_module(f"leafgrad.utils.{name}")
        raise AttributeError(f"module 'leafgrad.utils' has no attribute {name!r}", name=name)
