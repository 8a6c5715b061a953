"""leafgrad: PyTorch's autograd semantics on pluggable array backends, and whole training steps compiled."""

from importlib import import_module as _import_module
from math import e as e, inf as inf, nan as nan, pi as pi
from sys import modules as _modules
from typing import TYPE_CHECKING as _TYPE_CHECKING

# NumPy before all else: further inside, Python's stack gets and gives back a page of memory at many a call.
from leafgrad import backends as backends

__version__ = "0.1.0"

from leafgrad import autograd as autograd, random as random
from leafgrad.autograd.anomaly import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled,
)
from leafgrad.compile import compile as compile, trace as trace
from leafgrad.devices import (
    device as device,
    get_default_device as get_default_device,
    set_default_device as set_default_device,
)
from leafgrad.dtypes import (
    bfloat16 as bfloat16,
    bool_,
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
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
from leafgrad.tensor.conversions import *
from leafgrad.tensor.creation import *
from leafgrad.tensor.data import *
from leafgrad.tensor.formats import *
from leafgrad.tensor.indexing import *
from leafgrad.tensor.joining import *
from leafgrad.tensor.kinds import *
from leafgrad.tensor.later import FUNCTIONS as _OF_TENSOR
from leafgrad.tensor.matmul import *
from leafgrad.tensor.methods import DECLARED as _DECLARED
from leafgrad.tensor.out import take_out as _take_out
from leafgrad.tensor.pointwise import *
from leafgrad.tensor.protocols import *
from leafgrad.tensor.public import publish as _publish
from leafgrad.tensor.random import *
from leafgrad.tensor.rearranging import *
from leafgrad.tensor.reductions import *
from leafgrad.tensor.sampling import *
from leafgrad.tensor.shapes import *
from leafgrad.tensor.size import Size as Size
from leafgrad.tensor.tensor import Tensor as Tensor
from leafgrad.tensor.view import *
from leafgrad.threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads

bool, float, int = bool_, float_, int_

_publish(globals())
_take_out(globals())

if _TYPE_CHECKING:
    from leafgrad import (
        compat as compat,
        distributed as distributed,
        distributions as distributions,
        func as func,
        linalg as linalg,
        nn as nn,
        optim as optim,
        rules as rules,
        special as special,
        utils as utils,
    )
    from leafgrad.func import vmap as vmap
    from leafgrad.nn.functional import cosine_similarity as cosine_similarity, pairwise_distance as pairwise_distance
    from leafgrad.tensor.cholesky import *
    from leafgrad.tensor.closeness import *
    from leafgrad.tensor.counting import *
    from leafgrad.tensor.derived import *
    from leafgrad.tensor.einsum import *
    from leafgrad.tensor.elimination import lu_unpack as lu_unpack
    from leafgrad.tensor.extremes import *
    from leafgrad.tensor.gathering import *
    from leafgrad.tensor.grids import *
    from leafgrad.tensor.interop import *
    from leafgrad.tensor.matrices import *
    from leafgrad.tensor.placing import *
    from leafgrad.tensor.printing import *
    from leafgrad.tensor.sorting import *
    from leafgrad.tensor.storage import *
    from leafgrad.tensor.window_functions import *
    from leafgrad.utils.serialization import *
else:
    _modules["sys"].meta_path.append(_Finder())
    _LATER = ("compat", "distributed", "distributions", "func", "linalg", "nn", "optim", "rules", "special", "utils")
    _OF_NN = ("cosine_similarity", "pairwise_distance")
    _FUNCTIONS = {**_OF_TENSOR, **dict.fromkeys(("load", "save"), "leafgrad.utils.serialization")}

    def __getattr__(name: str) -> object:
        """What not every program needs is imported when it is first asked for."""
        if name in _LATER:
            return _import_module(f"leafgrad.{name}")
        if name in _OF_NN:
            globals()[name] = function = getattr(_import_module("leafgrad.nn.functional"), name)
            return function
        if name == "vmap":
            globals()[name] = found = _import_module("leafgrad.func").vmap
            return found
        if name in _FUNCTIONS:
            found = {"__name__": __name__, name: getattr(_import_module(_FUNCTIONS[name]), name)}
            _publish(found)
            _take_out(found)
            return globals().setdefault(name, found[name])
        if name in _DECLARED:
            return _DECLARED[name]
        if (added := _missed(name, _modules[__name__].__path__, _DECLARED)) is not None:
            return added
        this = _modules[__name__]  # among whose names Python looks for one that was meant
        raise AttributeError(f"module 'leafgrad' has no attribute {name!r}", name=name, obj=this)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER, *_OF_NN, *_FUNCTIONS, *_DECLARED, "vmap"})
