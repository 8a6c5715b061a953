"""What surrounds training: data loading, checkpoints, interrupts, and DLPack."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafgrad.utils import checkpoint as checkpoint, data as data, dlpack as dlpack
    from leafgrad.utils.checkpoints import Checkpoints as Checkpoints
    from leafgrad.utils.interrupts import Interrupts as Interrupts
    from leafgrad.utils.training import Training as Training
else:

    def __getattr__(name: str) -> object:
        """What few programs need is imported when it is first asked for."""
        if name in ("checkpoint", "data", "dlpack"):
            return import_module(f"leafgrad.utils.{name}")
        if name in ("Checkpoints", "Interrupts", "Training"):
            return getattr(import_module(f"leafgrad.utils.{name.lower()}"), name)
        raise AttributeError(f"module 'leafgrad.utils' has no attribute {name!r}", name=name)
