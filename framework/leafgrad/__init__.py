"""leafgrad: PyTorch's autograd semantics on pluggable array backends."""

from leafgrad import autograd as autograd
from leafgrad import nn as nn
from leafgrad import optim as optim
from leafgrad.autograd import forward as func
from leafgrad.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from leafgrad import linalg as linalg
from leafgrad.compile import compile, trace
from leafgrad.devices import device
from leafgrad.dtypes import bool_ as bool
from leafgrad.dtypes import (
    double,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    set_default_dtype,
    short,
    uint8,
)
from leafgrad.dtypes import float_ as float
from leafgrad.dtypes import int_ as int
from leafgrad.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from leafgrad.ops.define import op
from leafgrad.tensor import view as _view
from leafgrad.tensor.creation import *
from leafgrad.tensor.data import *
from leafgrad.tensor.einsum import *
from leafgrad.tensor.matmul import *
from leafgrad.tensor.matrices import *
from leafgrad.tensor.extremes import *
from leafgrad.tensor.pointwise import *
from leafgrad.tensor.printing import *
from leafgrad.tensor.public import publish as _publish
from leafgrad.tensor.random import *
from leafgrad.tensor.reductions import *
from leafgrad.tensor.shapes import *
from leafgrad.tensor.joining import *
from leafgrad.tensor.rearranging import *
from leafgrad.tensor.sorting import *
from leafgrad.tensor import indexing as _indexing
from leafgrad.tensor.gathering import *
from leafgrad.tensor.conversions import *
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils.checkpoint import *

_publish(globals())
