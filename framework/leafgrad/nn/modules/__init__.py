"""PyTorch's places of the layers: ``leafgrad.nn.modules.batchnorm`` is ``leafgrad.nn.batchnorm``, and so on."""

from __future__ import annotations

import sys
from types import ModuleType

from leafgrad.nn import (
    activation,
    adaptive,
    attention,
    batchnorm,
    containers,
    convolution,
    dropout,
    embedding,
    lazy,
    linear,
    loss,
    margin_loss,
    module,
    normalization,
    padding,
    pooling,
    recurrent,
    resampling,
    transformer,
)
from leafgrad.nn.containers import *
from leafgrad.nn.linear import *
from leafgrad.nn.loss import *
from leafgrad.nn.module import *

PLACES: dict[str, ModuleType] = {
    "activation": activation,
    "adaptive": adaptive,
    "attention": attention,
    "batchnorm": batchnorm,
    "container": containers,
    "conv": convolution,
    "distance": margin_loss,
    "dropout": dropout,
    "flatten": linear,
    "fold": convolution,
    "instancenorm": batchnorm,
    "lazy": lazy,
    "linear": linear,
    "loss": loss,
    "module": module,
    "normalization": normalization,
    "padding": padding,
    "pixelshuffle": resampling,
    "pooling": pooling,
    "rnn": recurrent,
    "sparse": embedding,
    "transformer": transformer,
    "upsampling": resampling,
}

for _name, _module in PLACES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _module
