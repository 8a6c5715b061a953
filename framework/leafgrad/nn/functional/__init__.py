"""Layers, activations and losses as functions: ``from leafgrad.nn import functional as F``."""

from leafgrad.nn.functional.activation import *
from leafgrad.nn.functional.dropout import *
from leafgrad.nn.functional.linear import *
from leafgrad.nn.functional.loss import *
from leafgrad.nn.functional.normalization import *
from leafgrad.tensor.public import publish

publish(globals())
