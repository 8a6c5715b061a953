"""Layers, activations and losses as functions: ``from leafgrad.nn import functional as F``."""

from typing import TYPE_CHECKING

from leafgrad.docstrings import shown as _shown
from leafgrad.lazy import attach
from leafgrad.nn.functional.activation import *
from leafgrad.nn.functional.attention import *
from leafgrad.nn.functional.average_pooling import *
from leafgrad.nn.functional.classification import *
from leafgrad.nn.functional.convolution import *
from leafgrad.nn.functional.distance import *
from leafgrad.nn.functional.dropout import *
from leafgrad.nn.functional.embedding import *
from leafgrad.nn.functional.fractional_pooling import *
from leafgrad.nn.functional.linear import *
from leafgrad.nn.functional.loss import *
from leafgrad.nn.functional.margin import *
from leafgrad.nn.functional.multi_head import *
from leafgrad.nn.functional.normalization import *
from leafgrad.nn.functional.padding import *
from leafgrad.nn.functional.pooling import *
from leafgrad.nn.functional.resampling import *
from leafgrad.nn.functional.sampling import *
from leafgrad.nn.functional.sequence_loss import *
from leafgrad.tensor.public import publish as _publish

_publish(globals(), asking=True, out="avg_pool2d avg_pool3d gelu hardshrink linear logsigmoid softplus softshrink")

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, made=_shown(__name__))
