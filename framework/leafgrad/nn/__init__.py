"""Neural networks: modules, and the layers and losses built on them."""

from typing import TYPE_CHECKING

from leafgrad.docstrings import shown as _shown
from leafgrad.lazy import attach
from leafgrad.nn import functional as functional, init as init, modules as modules, utils as utils
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
from leafgrad.nn.parameter import *
from leafgrad.nn.parameter_containers import *
from leafgrad.nn.pooling import *
from leafgrad.nn.recurrent import *
from leafgrad.nn.recurrent_cells import *
from leafgrad.nn.resampling import *
from leafgrad.nn.transformer import *
from leafgrad.tensor.public import publish as _publish

_publish(globals())

if TYPE_CHECKING:
    from leafgrad.nn import parallel as parallel
    from leafgrad.nn.parallel import DataParallel as DataParallel
else:
    __getattr__, __dir__ = attach(__name__, {"DataParallel": "leafgrad.nn.parallel"}, made=_shown(__name__))
