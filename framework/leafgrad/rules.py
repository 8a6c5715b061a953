"""What gradient rules may call beside ops: leafgrad's functions of tensors, for all that a rule is given.

A rule is run with arrays in an ordinary backward pass, with tensors under ``create_graph=True``, with symbols in a
trace and with batches in vmap. The functions of this module take each of these and return the same kind:

    from leafgrad import rules

    smoothmax.vjp(x=lambda g, x, *, dim: rules.unsqueeze(g, dim) * rules.softmax(x, dim))
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leafgrad import backends
from leafgrad.ops import dispatch
from leafgrad.ops.node import SymbolBase, TensorBase

# The modules of leafgrad.tensor whose functions compute with tensors.
SUBJECTS = frozenset(
    "blas comparison complex_numbers differences einsum exponents gathering joining lapack pointwise rearranging "
    "reductions shapes statistics".split()
)
LIKE = frozenset(("full_like", "ones_like", "zeros_like"))
# Functions of these modules that make no tensor, or one whose shape depends on values.
UNFIT = frozenset(
    "argwhere broadcast_shapes can_cast combinations is_complex is_conj is_floating_point is_neg is_same_size "
    "masked_select nonzero numel repeat_interleave result_type unique".split()
)


@functools.cache
def carried(name: str) -> Callable[..., Any]:
    """The public function ``name`` for every carrier."""
    function = getattr(sys.modules["leafgrad"], name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        raw = False

        def tensor(value: Any) -> Any:
            nonlocal raw
            if isinstance(value, (tuple, list)):
                return type(value)(map(tensor, value))
            if isinstance(value, TensorBase) or not (isinstance(value, SymbolBase) or type(value) in backends.BACKENDS):
                return value
            raw = True
            return dispatch.alias(dispatch.array(value))  # NumPy's reductions give scalars

        found = function(*map(tensor, args), **{k: tensor(v) for k, v in kwargs.items()})
        return data(found) if raw else found

    return call


def data(found: Any) -> Any:
    """The raw value of a Tensor, or of each of several."""
    if isinstance(found, tuple):
        return getattr(type(found), "_make", tuple)(map(data, found))
    return found._data if isinstance(found, TensorBase) else found


def fits(name: str) -> bool:
    """Whether a public name is a function for rules."""
    if name.startswith("_") or name in UNFIT:
        return False
    found = getattr(sys.modules["leafgrad"], name, None)  # some names are imported when asked for
    if not inspect.isfunction(found):
        return False
    room, _, subject = inspect.unwrap(found).__module__.rpartition(".")
    return name in LIKE or room == "leafgrad.ops" or (room == "leafgrad.tensor" and subject in SUBJECTS)


if TYPE_CHECKING:
    from leafgrad.tensor.functions import *
else:

    def __getattr__(name: str) -> Callable[..., Any]:
        if not fits(name):
            alike = difflib.get_close_matches(name, __dir__(), 3)
            hint = f"; near are {', '.join(alike)}" if alike else ""
            raise AttributeError(
                f"module 'leafgrad.rules' has no function {name!r}; see dir(leafgrad.rules){hint}", name=name
            )
        return carried(name)

    def __dir__() -> list[str]:
        return sorted(filter(fits, dir(sys.modules["leafgrad"])))
