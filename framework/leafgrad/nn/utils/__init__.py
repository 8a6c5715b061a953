"""Beside the layers: gradients clipped, parameters as one vector, sequences of different lengths."""

from typing import TYPE_CHECKING

from leafgrad.lazy import attach
from leafgrad.nn.utils import (
    parametrizations as parametrizations,
    parametrize as parametrize,
    prune as prune,
    rnn as rnn,
)
from leafgrad.nn.utils.clip_grad import *
from leafgrad.nn.utils.convert_parameters import *
from leafgrad.nn.utils.skip_init import *
from leafgrad.nn.utils.weight_norm import *
from leafgrad.tensor.public import publish as _publish

_publish(globals())

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
