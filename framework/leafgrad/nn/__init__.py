"""Neural networks: modules, and the layers and losses built on them."""

from leafgrad.nn import functional as functional, init as init, utils as utils
from leafgrad.nn.activation import *
from leafgrad.nn.containers import *
from leafgrad.nn.dropout import *
from leafgrad.nn.embedding import *
from leafgrad.nn.linear import *
from leafgrad.nn.loss import *
from leafgrad.nn.module import *
from leafgrad.nn.normalization import *
from leafgrad.nn.parameter import *
from leafgrad.tensor.public import publish as _publish

_publish(globals())
