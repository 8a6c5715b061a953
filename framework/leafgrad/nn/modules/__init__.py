"""PyTorch's places of the layers: ``leafgrad.nn.modules.batchnorm`` is ``leafgrad.nn.batchnorm``, and so on."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from leafgrad.lazy import attach
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
from leafgrad.nn.activation import *
from leafgrad.nn.adaptive import *
from leafgrad.nn.attention import *
from leafgrad.nn.batchnorm import *
from leafgrad.nn.containers import *
from leafgrad.nn.convolution import *
from leafgrad.nn.dropout import *
from leafgrad.nn.embedding import *
from leafgrad.nn.lazy import *
from leafgrad.nn.lazy_convolution import *
from leafgrad.nn.linear import *
from leafgrad.nn.loss import *
from leafgrad.nn.margin_loss import *
from leafgrad.nn.module import *
from leafgrad.nn.normalization import *
from leafgrad.nn.padding import *
from leafgrad.nn.parameter_containers import *
from leafgrad.nn.pooling import *
from leafgrad.nn.recurrent import *
from leafgrad.nn.recurrent_cells import *
from leafgrad.nn.resampling import *
from leafgrad.nn.transformer import *

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
