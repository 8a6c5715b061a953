"""What surrounds training: data loading, checkpoints, interrupts, event files, pictures of graphs, and DLPack."""

from typing import TYPE_CHECKING

from leafgrad.lazy import attach

if TYPE_CHECKING:
    from leafgrad.pictures import graph as graph
    from leafgrad.utils import checkpoint as checkpoint, data as data, dlpack as dlpack, tensorboard as tensorboard
    from leafgrad.utils.checkpoints import Checkpoints as Checkpoints
    from leafgrad.utils.interrupts import Interrupts as Interrupts
    from leafgrad.utils.training import Training as Training
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "Checkpoints": "leafgrad.utils.checkpoints",
            "Interrupts": "leafgrad.utils.interrupts",
            "Training": "leafgrad.utils.training",
            "graph": "leafgrad.pictures",
        },
    )
