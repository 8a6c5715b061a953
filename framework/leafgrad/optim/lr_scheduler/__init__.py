"""Learning rates that change from epoch to epoch (or step to step).

A schedule multiplies the learning rate that it finds, so several on one optimizer act together; only ``LambdaLR``,
``CosineAnnealingWarmRestarts``, ``CyclicLR`` and ``OneCycleLR`` set it. Call the schedule's ``step()`` after the
optimizer's.
"""

from leafgrad.optim.lr_scheduler.combine import ChainedScheduler, SequentialLR
from leafgrad.optim.lr_scheduler.cycle import CyclicLR, OneCycleLR
from leafgrad.optim.lr_scheduler.formula import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from leafgrad.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from leafgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from leafgrad.optim.lr_scheduler.restarts import CosineAnnealingWarmRestarts
from leafgrad.optim.lr_scheduler.scheduler import LRScheduler
from leafgrad.tensor.public import publish as _publish

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_publish(globals())
