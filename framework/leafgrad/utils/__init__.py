"""What surrounds training: data loading, checkpoints, interrupts, and DLPack."""

from typing import TYPE_CHECKING

from leafgrad.lazy import attach

if TYPE_CHECKING:
    from leafgrad.utils import checkpoint as checkpoint, data as data, dlpack as dlpack
    from leafgrad.utils.checkpoints import Checkpoints as Checkpoints
    from leafgrad.utils.interrupts import Interrupts as Interrupts
    from leafgrad.utils.training import Training as Training
else:
    __getattr__, __dir__ = attach(
        __name__, {name: f"leafgrad.utils.{name.lower()}" for name in ("Checkpoints", "Interrupts", "Training")}
    )
