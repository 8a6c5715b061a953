"""Learning rates that change from epoch to epoch (or step to step).

A schedule multiplies the learning rate that it finds, so several on one optimizer act together; only ``LambdaLR``
and ``OneCycleLR`` set it. Call the schedule's ``step()`` after the optimizer's.
"""

from leafgrad.optim.lr_scheduler.cycle import OneCycleLR
from leafgrad.optim.lr_scheduler.formula import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    StepLR,
)
from leafgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from leafgrad.tensor.public import publish as _publish

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "StepLR",
]

_publish(globals())
