"""What ``torch`` has and leafgrad has not, or not under the same name.

The modules below this one mirror PyTorch's. They hold what programs commonly call or set and what has an honest
answer here; anything else stays missing.
"""

from __future__ import annotations

from importlib import import_module

from leafgrad.compat.absent import cdouble, cfloat, complex64, complex128, uint16, uint32, uint64
from leafgrad.compat.copies import FUNCTIONS as COPIES
from leafgrad.compat.foreach import FUNCTIONS as FOREACH
from leafgrad.compat.settings import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    get_num_interop_threads,
    set_default_tensor_type,
    set_float32_matmul_precision,
    set_num_interop_threads,
    use_deterministic_algorithms,
)
from leafgrad.compat.torch.amp import autocast, get_autocast_dtype, is_autocast_enabled
from leafgrad.compat.torch.compiler import compile
from leafgrad.compat.torch.version import __version__
from leafgrad.tensor.matrices import trace

# Functions of torch.nn.functional that are torch's as well.
OF_FUNCTIONAL = (
    "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d hardshrink max_pool1d max_pool2d max_pool3d pdist pixel_shuffle pixel_unshuffle "
    "prelu relu_ rrelu rrelu_ selu_ threshold threshold_"
).split()

# Those of functions.py, which needs leafgrad.nn, and of copies.py.
OF_FUNCTIONS = (
    "_assert adaptive_max_pool1d alpha_dropout asarray batch_norm binary_cross_entropy_with_logits constant_pad_nd "
    "cosine_embedding_loss ctc_loss digamma dropout embedding feature_alpha_dropout feature_dropout fill group_norm "
    "hinge_embedding_loss i0 igamma igammac instance_norm is_storage kl_div layer_norm lgamma margin_ranking_loss "
    "mvlgamma poisson_nll_loss polygamma range rms_norm scalar_tensor set_anomaly_enabled set_flush_denormal "
    "triplet_margin_loss typename"
).split()

newaxis = None

__all__ = [
    *COPIES,
    *FOREACH,
    *OF_FUNCTIONAL,
    *OF_FUNCTIONS,
    "__version__",
    "are_deterministic_algorithms_enabled",
    "autocast",
    "cdouble",
    "cfloat",
    "compile",
    "complex64",
    "complex128",
    "get_autocast_dtype",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_autocast_enabled",
    "newaxis",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "trace",
    "uint16",
    "uint32",
    "uint64",
    "use_deterministic_algorithms",
]


def __getattr__(name: str) -> object:
    """What is of ``leafgrad.nn`` is imported when it is first asked for."""
    if name in OF_FUNCTIONAL:
        return getattr(import_module("leafgrad.nn.functional"), name)
    if name in OF_FUNCTIONS:
        return getattr(import_module("leafgrad.compat.functions"), name)
    if name in COPIES or name in FOREACH:
        return (COPIES | FOREACH)[name]
    raise AttributeError(f"module 'leafgrad.compat.torch' has no attribute {name!r}", name=name)
