"""Tensors from data: Python numbers and sequences, NumPy arrays, other tensors, pickles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad import backends, devices, dtypes, modes
from leafgrad.backends.place import place as place_of
from leafgrad.ops import create, dispatch, messages
from leafgrad.tensor.creation import DType, kind
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

COPY = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than leafgrad.tensor(sourceTensor)."
)


@public(only="leafgrad")
def tensor(data: Any, *, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf with a copy of ``data``.

    Args:
        data: a number, real or complex, nested sequences of such (and of tensors of one element), a NumPy array, a
            tensor.
        dtype: by default float32 (the default dtype) for Python floats, int64 for ints, bool for bools, and the
            data's own for arrays and tensors.
        device: by default the CPU, or the device of the tensor given.
        requires_grad: record operations on it.

    Raises:
        ValueError: ragged sequences. TypeError, RuntimeError: something that is no number.
    """
    if isinstance(data, Tensor):
        messages.warn(COPY)
        out = data.detach().to(devices.given(device, data.device), kind(dtype, data.dtype), copy=True)
    else:
        out = copied(data, dtype, device)
    return out._set_grad(True) if requires_grad else out


def copied(data: Any, dtype: DType, device: Any) -> Tensor:
    """A tensor with a copy of data that is not a tensor."""
    values, found = plain(data)
    target = kind(dtype, found)
    if found is not None and found.is_complex and not target.is_complex:
        if type(values) in backends.BACKENDS:
            return copied(values, found, device).to(target)  # which warns
        raise RuntimeError(
            f"tensor: data: value cannot be converted to type {target} without overflow, got complex numbers; take "
            "their real parts"
        )
    given = type(values) in backends.BACKENDS  # an array, else Python data
    origin = place_of(values) if given else ("cpu", 0)
    place = devices.given(device, devices.at(*origin)).resolve()
    flags = modes.get()
    tracer = modes.tracer()
    if tracer and _has_arrays(values):
        tracer.import_array("leafgrad.tensor(array)")
    elif tracer:
        recorded: Tensor = dispatch.create(create.constant, place, value=_frozen(values), dtype=target.name)
        return recorded
    source = backends.by_device_type(origin[0])
    array = source.asarray(values, target.name, origin[1])
    if place != origin:
        array = backends.by_device_type(place[0]).from_host(source.to_host(array), place[1])
    out: Tensor = dispatch.alias(dispatch.copied(array) if given and place == origin else array)
    if flags & modes.INFERENCE:
        out._writes = dispatch.INFERENCE_VERSION
    return out


def plain(data: Any, depth: int = 0) -> tuple[Any, dtypes.dtype | None]:
    """``data`` with its tensors replaced by numbers, and the dtype in which its parts meet (None if it has none)."""
    python = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.get_default_dtype()}
    python[complex] = python[float].to_complex()
    number: Any = data.__class__  # what a compiled step follows says which it is
    if number in python:
        return number(data), python[number]
    if isinstance(data, Tensor):
        if data.numel() != 1:
            raise ValueError(
                "tensor: data: only one element tensors can be converted to Python scalars, got one of shape "
                f"{tuple(data.shape)}; join tensors with leafgrad.stack"
            )
        return data.item(), data.dtype
    if isinstance(data, (list, tuple, range)):
        kinds = set(map(type, data))
        if kinds <= python.keys():
            return (list(data) if type(data) is range else data), _met([python[k] for k in kinds])
        parts = [plain(part, depth + 1) for part in data]
        return [values for values, _ in parts], _met([d for _, d in parts if d is not None])
    if type(data) in backends.BACKENDS or hasattr(data, "dtype"):
        return data, dtypes.of(data)
    if hasattr(data, "__array__"):
        return plain(data.__array__(), depth)
    for number, dtype in python.items():
        if isinstance(data, number):  # of a class of its own, such as an IntEnum
            return number(data), dtype
    if isinstance(data, str):
        error = ValueError if depth else TypeError
        raise error(f"tensor: data: expected numbers or sequences of numbers, got the string {data!r}")
    if isinstance(data, Sequence):
        return plain(list(data), depth)
    raise RuntimeError(f"tensor: data: Could not infer dtype of {type(data).__name__}; expected numbers or sequences")


def _met(kinds: list[dtypes.dtype]) -> dtypes.dtype | None:
    met: dtypes.dtype | None = None
    for d in kinds:
        met = d if met is None else dtypes.promote_types(met, d)
    return met


def _has_arrays(values: Any) -> bool:
    return any(map(_has_arrays, values)) if isinstance(values, (list, tuple)) else hasattr(values, "dtype")


def _frozen(values: Any) -> Any:
    return tuple(map(_frozen, values)) if isinstance(values, (list, tuple)) else values


@public(only="leafgrad")
def as_tensor(data: Any, dtype: DType = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, sharing memory and history where dtype and device allow; otherwise a copy."""
    if isinstance(data, Tensor):
        return data.to(devices.given(device, data.device), kind(dtype, data.dtype))
    if isinstance(data, backends.by_device_type("cpu").array_type):
        shared = from_numpy(data)
        return shared.to(devices.given(device, shared.device), kind(dtype, shared.dtype))
    return copied(data, dtype, device)


@public(only="leafgrad")
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the memory of a NumPy array: writes to one are seen by the other.

    Raises:
        TypeError: it is not a NumPy array, has masked elements, or is of a dtype that tensors do not have.
        ValueError: its bytes are in foreign order.
    """
    host = backends.by_device_type("cpu")
    if not issubclass(type(ndarray), host.array_type):
        raise TypeError(f"from_numpy: expected np.ndarray, got {type(ndarray).__name__}; use leafgrad.tensor(...)")
    if tracer := modes.tracer():
        tracer.import_array("leafgrad.from_numpy")
    dtypes.of(ndarray)  # an error if tensors do not have it
    if not ndarray.dtype.isnative:
        raise ValueError("from_numpy: expected native byte order; write array.astype(array.dtype.newbyteorder('='))")
    ndarray = host.wrap(ndarray)  # of a class of its own, as np.matrix, * might be something else
    if not ndarray.flags.writeable:
        messages.warn(
            "The given NumPy array is not writable, and a tensor that shares its memory cannot be written in place. "
            "Copy the array, or use leafgrad.tensor(array)"
        )
    dispatch.expose(ndarray)
    out: Tensor = dispatch.alias(ndarray)
    return out


def _wrapped(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What a function of NumPy made of this tensor's elements, as a tensor: ``np.sqrt(x)``."""
    return from_numpy(array)


attach("__array_wrap__", _wrapped)


@public(only="Tensor")
def new_tensor(
    input: Tensor, data: Any, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A copy of ``data`` as a leaf, of this tensor's dtype and device unless others are given."""
    place = input.device if device is None else device
    return tensor(data, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad)


# ---- pickles ------------------------------------------------------------------------------------------------------


def _reduce(self: Tensor) -> tuple[Any, ...]:
    """For pickle and copy: class, elements as a NumPy array, device, requires_grad; then the attributes.

    The class Tensor is None, since ``leafgrad.compat`` may show it under another name.
    """
    data = self._array("pickling")
    host = backends.backend_of(data).to_host(data)
    kind = None if type(self) is Tensor else type(self)
    return _rebuild, (kind, host, str(self.device), self.requires_grad), self.__dict__ or None


def _rebuild(cls: type[Tensor] | None, array: Any, device: str, requires_grad: bool) -> Tensor:
    if tracer := modes.tracer():
        tracer.import_array("a copy of a tensor")
        dispatch.expose(array)  # which the tensor that was copied has, too
    made = dispatch.alias(array) if device == "cpu" else copied(array, None, device)
    out: Tensor = dispatch.alias(made._data, kind=cls)
    return out._set_grad(requires_grad)


attach("__reduce__", _reduce)
