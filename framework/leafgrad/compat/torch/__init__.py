"""What ``torch`` has and leafgrad has not, or not under the same name.

The modules below this one mirror PyTorch's. They hold what programs commonly call or set and what has an honest
answer here; anything else stays missing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module

from leafgrad.compat.absent import DTYPES, LAYOUTS, Operators, chalf, complex32, refused_class, uint16, uint32, uint64
from leafgrad.compat.checks import FUNCTIONS as CHECKS
from leafgrad.compat.copies import FUNCTIONS as COPIES
from leafgrad.compat.foreach import FUNCTIONS as FOREACH
from leafgrad.compat.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_device_module,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    set_default_tensor_type,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_num_interop_threads,
    use_deterministic_algorithms,
)
from leafgrad.compat.torch.amp import (
    autocast,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
)
from leafgrad.compat.torch.compiler import compile
from leafgrad.compat.torch.jit import ScriptFunction, ScriptModule
from leafgrad.compat.torch.version import __version__
from leafgrad.dtypes import contiguous_format
from leafgrad.tensor import lapack
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.door import asks
from leafgrad.tensor.storage import UntypedStorage
from leafgrad.tensor.tensor import Tensor

# Functions of torch.nn.functional that are torch's as well.
OF_FUNCTIONAL = (
    "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d hardshrink max_pool1d max_pool2d max_pool3d pdist pixel_shuffle pixel_unshuffle "
    "prelu relu_ rrelu rrelu_ selu_ threshold threshold_"
).split()

# Those of functions.py, which needs leafgrad.nn, and of copies.py.
OF_FUNCTIONS = (
    "_assert adaptive_max_pool1d alpha_dropout asarray batch_norm binary_cross_entropy_with_logits constant_pad_nd "
    "cosine_embedding_loss ctc_loss dropout embedding feature_alpha_dropout feature_dropout fill group_norm "
    "hinge_embedding_loss i0 instance_norm is_storage kl_div layer_norm margin_ranking_loss "
    "mvlgamma poisson_nll_loss polygamma range rms_norm scalar_tensor set_anomaly_enabled set_flush_denormal "
    "triplet_margin_loss typename"
).split()

# Those of parts.py, which needs leafgrad.nn, too.
OF_PARTS = (
    "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short "
    "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _log_softmax_backward_data "
    "_softmax_backward_data _standard_gamma affine_grid_generator alpha_dropout_ conv_tbc dropout_ "
    "feature_alpha_dropout_ feature_dropout_ frobenius_norm grid_sampler grid_sampler_2d grid_sampler_3d gru_cell "
    "lstm_cell rnn_relu_cell rnn_tanh_cell"
).split()

# Methods of Tensor that are functions as well.
IN_PLACE = (
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_ "
    "ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ "
    "fill_ fix_ floor_ frac_ gcd_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ "
    "rad2deg_ reciprocal_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ "
    "zero_ is_inference"
).split()

trace = asks(lapack.trace)
newaxis = None
has_lapack = True
has_cuda = has_cudnn = has_mkl = has_mps = has_openmp = has_spectral = False
legacy_contiguous_format = contiguous_format
StorageBase = UntypedStorage
OutOfMemoryError = MemoryError
ops = Operators()
SymBool, SymFloat, SymInt = (
    refused_class(f"torch.{name}", "sizes are Python's numbers") for name in ("SymBool", "SymFloat", "SymInt")
)
Stream, Event = (refused_class(f"torch.{name}", "operations run one after the other") for name in ("Stream", "Event"))
PyTorchFileReader = refused_class("torch.PyTorchFileReader", "read files with torch.load")
PyTorchFileWriter = refused_class("torch.PyTorchFileWriter", "write files with torch.save")

__all__ = [
    *CHECKS,
    *COPIES,
    *DTYPES,
    *FOREACH,
    *IN_PLACE,
    *LAYOUTS,
    *OF_FUNCTIONAL,
    *OF_FUNCTIONS,
    *OF_PARTS,
    "Event",
    "OutOfMemoryError",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "ScriptFunction",
    "ScriptModule",
    "StorageBase",
    "Stream",
    "SymBool",
    "SymFloat",
    "SymInt",
    "__version__",
    "are_deterministic_algorithms_enabled",
    "autocast",
    "chalf",
    "complex32",
    "compile",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "has_cuda",
    "has_cudnn",
    "has_lapack",
    "has_mkl",
    "has_mps",
    "has_openmp",
    "has_spectral",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "legacy_contiguous_format",
    "newaxis",
    "ops",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "trace",
    "uint16",
    "uint32",
    "uint64",
    "use_deterministic_algorithms",
]


def as_function(method: Callable[..., object]) -> Callable[..., object]:
    """A method of Tensor as a function, whose first argument may be anything."""

    @functools.wraps(method)
    def function(input: Tensor, *args: object, **kwargs: object) -> object:
        return method(expect_tensor(input, "input", method.__name__), *args, **kwargs)

    return function


def __getattr__(name: str) -> object:
    """What is of ``leafgrad.nn`` is imported when it is first asked for."""
    if name in OF_FUNCTIONAL:
        return getattr(import_module("leafgrad.nn.functional"), name)
    if name in OF_FUNCTIONS:
        return getattr(import_module("leafgrad.compat.functions"), name)
    if name in OF_PARTS:
        return import_module("leafgrad.compat.parts").FUNCTIONS[name]
    if name in IN_PLACE:
        return as_function(getattr(Tensor, name))
    for table in (CHECKS, COPIES, DTYPES, FOREACH, LAYOUTS):
        if name in table:
            return table[name]
    raise AttributeError(f"module 'leafgrad.compat.torch' has no attribute {name!r}", name=name)
