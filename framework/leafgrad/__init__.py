"""leafgrad: PyTorch's autograd semantics on pluggable array backends."""

from leafgrad import autograd as autograd
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
from leafgrad.mode import (
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
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor
