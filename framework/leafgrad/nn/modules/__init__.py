"""PyTorch's place of the layers. That of each, such as ``nn.modules.conv``, the finder of stand-ins makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leafgrad.lazy import attach
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
