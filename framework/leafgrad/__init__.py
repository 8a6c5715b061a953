"""leafgrad: PyTorch's autograd semantics on pluggable array backends, and whole training steps compiled."""

import functools as _functools
import sys as _sys
import typing as _typing
from math import e as e, inf as inf, nan as nan, pi as pi

# NumPy before all else: further inside, Python's stack gets and gives back a page of memory at many a call.
from leafgrad import backends as backends

__version__ = "0.1.0"

from leafgrad.compile import compile as compile, trace as trace
from leafgrad.devices import (
    device as device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from leafgrad.docstrings import show as _show
from leafgrad.dtypes import (
    bfloat16 as bfloat16,
    bool_,
    cdouble as cdouble,
    cfloat as cfloat,
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    complex64 as complex64,
    complex128 as complex128,
    contiguous_format as contiguous_format,
    double as double,
    dtype as dtype,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    float_,
    get_default_dtype as get_default_dtype,
    half as half,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int_,
    layout as layout,
    long as long,
    memory_format as memory_format,
    preserve_format as preserve_format,
    promote_types as promote_types,
    set_default_dtype as set_default_dtype,
    short as short,
    strided as strided,
    uint8 as uint8,
)
from leafgrad.lazy import attach as _attach
from leafgrad.modes import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from leafgrad.ops.define import op as op
from leafgrad.plugins.added import Finder as _Finder, missed as _missed
from leafgrad.tensor.methods import DECLARED as _DECLARED
from leafgrad.tensor.public import listed as _listed, publish as _publish, seen as _seen
from leafgrad.tensor.size import Size as Size
from leafgrad.tensor.tensor import Tensor as Tensor
from leafgrad.threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads

bool, float, int = bool_, float_, int_

_publish(globals())
for _kind in Tensor.__mro__:
    _show(vars(_kind), "leafgrad.Tensor")

if _typing.TYPE_CHECKING:
    from leafgrad import (
        autograd as autograd,
        compat as compat,
        distributed as distributed,
        distributions as distributions,
        func as func,
        linalg as linalg,
        nn as nn,
        optim as optim,
        plugins as plugins,
        profiler as profiler,
        random as random,
        rules as rules,
        special as special,
        utils as utils,
    )
    from leafgrad.autograd.anomaly import (
        is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
        is_anomaly_enabled as is_anomaly_enabled,
    )
    from leafgrad.autograd.explanation import explain as explain
    from leafgrad.compat.functions import *
    from leafgrad.compat.torch import (
        accelerator as accelerator,
        amp as amp,
        are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
        autocast as autocast,
        compiler as compiler,
        cpu as cpu,
        cuda as cuda,
        export as export,
        fx as fx,
        get_autocast_dtype as get_autocast_dtype,
        get_float32_matmul_precision as get_float32_matmul_precision,
        get_num_interop_threads as get_num_interop_threads,
        hub as hub,
        is_autocast_enabled as is_autocast_enabled,
        jit as jit,
        masked as masked,
        mps as mps,
        multiprocessing as multiprocessing,
        newaxis as newaxis,
        overrides as overrides,
        serialization as serialization,
        set_default_tensor_type as set_default_tensor_type,
        set_float32_matmul_precision as set_float32_matmul_precision,
        set_num_interop_threads as set_num_interop_threads,
        signal as signal,
        types as types,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
        use_deterministic_algorithms as use_deterministic_algorithms,
        version as version,
        xpu as xpu,
    )
    from leafgrad.func import vmap as vmap
    from leafgrad.nn.functional import (
        adaptive_avg_pool1d as adaptive_avg_pool1d,
        avg_pool1d as avg_pool1d,
        bilinear as bilinear,
        celu_ as celu_,
        channel_shuffle as channel_shuffle,
        conv1d as conv1d,
        conv2d as conv2d,
        conv3d as conv3d,
        conv_transpose1d as conv_transpose1d,
        conv_transpose2d as conv_transpose2d,
        conv_transpose3d as conv_transpose3d,
        cosine_similarity as cosine_similarity,
        hardshrink as hardshrink,
        max_pool1d as max_pool1d,
        max_pool2d as max_pool2d,
        max_pool3d as max_pool3d,
        pairwise_distance as pairwise_distance,
        pdist as pdist,
        pixel_shuffle as pixel_shuffle,
        pixel_unshuffle as pixel_unshuffle,
        prelu as prelu,
        relu_ as relu_,
        rrelu as rrelu,
        rrelu_ as rrelu_,
        selu_ as selu_,
        threshold as threshold,
        threshold_ as threshold_,
    )
    from leafgrad.tensor.functions import *
    from leafgrad.tensor.random import default_generator as default_generator
    from leafgrad.utils.serialization import *
else:
    _sys.meta_path.append(_Finder())

    def _made(name, value):
        _show({name: value}, __name__)
        return value

    globals().pop("tensor")  # the package, which the function of this name hides
    __getattr__, __dir__ = _attach(
        __name__,
        {
            **_listed(__name__),
            **dict.fromkeys(("cosine_similarity", "pairwise_distance"), "leafgrad.nn.functional"),
            **dict.fromkeys(("load", "save"), "leafgrad.utils.serialization"),
            **dict.fromkeys(("is_anomaly_check_nan_enabled", "is_anomaly_enabled"), "leafgrad.autograd.anomaly"),
            "default_generator": "leafgrad.tensor.random",
            "explain": "leafgrad.autograd.explanation",
            "vmap": "leafgrad.func",
        },
        find=_functools.partial(_seen, __name__),
        made=_made,
        declared=_DECLARED,
        beyond=lambda name: _missed(name, _sys.modules[__name__].__path__, _DECLARED),
    )
