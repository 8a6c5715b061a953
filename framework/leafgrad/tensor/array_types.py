"""What the Python array API standard asks of dtypes, and what it lets one ask about an implementation."""

from __future__ import annotations

from typing import Any

from leafgrad import backends, devices, dtypes
from leafgrad.dtypes import dtype
from leafgrad.ops import promotion
from leafgrad.tensor.tensor import Tensor

Kind = str | dtype | tuple[Any, ...]


def _dtype_of(value: Any) -> Any:
    """The dtype of a tensor; anything else as it is."""
    return value.dtype if isinstance(value, Tensor) else value


def isdtype(dtype: dtype, kind: Kind) -> bool:
    """Whether ``dtype`` is of a kind such as "integral" or "real floating", or one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, dtypes.dtype):
        return dtype is kind
    floating, integer = dtype.is_floating_point, dtype.category == 1
    kinds = {
        "bool": dtype is dtypes.bool_,
        "signed integer": integer and dtype is not dtypes.uint8,
        "unsigned integer": dtype is dtypes.uint8,
        "integral": integer,
        "real floating": floating,
        "complex floating": dtype.is_complex,
        "numeric": floating or integer or dtype.is_complex,
    }
    if kind not in kinds:
        raise ValueError(f"isdtype: kind: expected one of {', '.join(kinds)}, got {kind!r}")
    return kinds[kind]


def finfo(type: dtype | Tensor, /) -> dtypes.finfo:
    """The limits of a floating dtype, or of that of a tensor."""
    return dtypes.finfo(_dtype_of(type))


def iinfo(type: dtype | Tensor, /) -> dtypes.iinfo:
    """The limits of an integer dtype, or of that of a tensor."""
    return dtypes.iinfo(_dtype_of(type))


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether promotion of the two gives ``to``: no larger dtype is needed to hold both."""
    return dtypes.promote_types(_dtype_of(from_), to) is to


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype in which tensors, dtypes and Python numbers meet; numbers count only for their kind.

    Raises:
        ValueError: there is neither a tensor nor a dtype among them.
    """
    given = [_dtype_of(value) for value in arrays_and_dtypes]
    kinds = [value for value in given if isinstance(value, dtypes.dtype)]
    if not kinds:
        raise ValueError("result_type: expected at least one tensor or dtype, got none")
    found = kinds[0]
    for kind in kinds[1:]:
        found = dtypes.promote_types(found, kind)
    for number in given:
        if not isinstance(number, dtypes.dtype):
            weak = promotion.result_type((number,))
            found = weak if weak.category > found.category else found
    return found


class Info:
    """What ``__array_namespace_info__()`` gives."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on an implementation: indexing by masks, shapes that depend on values, dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> devices.device:
        """Where new tensors are."""
        return devices.at("cpu", 0)

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """The dtypes that new tensors have unless others are given."""
        real = dtypes.get_default_dtype()
        both = {"real floating": real, "complex floating": real.to_complex()}
        return {**both, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: Kind | None = None) -> dict[str, dtype]:
        """All dtypes by name, or those of a ``kind``, as in ``isdtype``."""
        return {d.name: d for d in dtypes.ALL if kind is None or isdtype(d, kind)}

    def devices(self) -> list[devices.device]:
        """The devices of all backends that are loaded."""
        loaded = dict.fromkeys(backends.BACKENDS.values())
        return [devices.at(b.device_type, i) for b in loaded for i in range(b.device_count())]


def __array_namespace_info__() -> Info:
    """What this implementation can do, and its dtypes and devices."""
    return Info()
