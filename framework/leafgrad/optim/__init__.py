"""Optimizers and learning-rate schedules."""

from leafgrad.optim import lr_scheduler as lr_scheduler
from leafgrad.optim.adam import Adam, AdamW
from leafgrad.optim.lbfgs import LBFGS
from leafgrad.optim.optimizer import Optimizer
from leafgrad.optim.sgd import SGD
from leafgrad.tensor.public import publish as _publish

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]

_publish(globals())
