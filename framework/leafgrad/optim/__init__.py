"""Optimizers and learning-rate schedules."""

from typing import TYPE_CHECKING

from leafgrad.lazy import attach
from leafgrad.optim import lr_scheduler as lr_scheduler, swa_utils as swa_utils
from leafgrad.optim.adadelta import Adadelta
from leafgrad.optim.adafactor import Adafactor
from leafgrad.optim.adagrad import Adagrad
from leafgrad.optim.adam import Adam, AdamW
from leafgrad.optim.adamax import Adamax
from leafgrad.optim.asgd import ASGD
from leafgrad.optim.lbfgs import LBFGS
from leafgrad.optim.muon import Muon
from leafgrad.optim.nadam import NAdam
from leafgrad.optim.optimizer import Optimizer
from leafgrad.optim.radam import RAdam
from leafgrad.optim.rmsprop import RMSprop
from leafgrad.optim.rprop import Rprop
from leafgrad.optim.sgd import SGD
from leafgrad.tensor.public import publish as _publish

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]

_publish(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
