"""Tensors from and for other libraries, by DLPack and from buffers. Memory is shared."""

from __future__ import annotations

from typing import Any

from leafgrad import backends, devices, dtypes
from leafgrad.ops import dispatch
from leafgrad.tensor import arguments
from leafgrad.tensor.data import from_numpy
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

# DLPack's numbers of device types: CPU, CUDA, CUDA managed.
DEVICE_TYPES = {1: "cpu", 2: "cuda", 13: "cuda"}


def export(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule that shares this tensor's memory, for the ``from_dlpack`` of another library.

    Raises:
        BufferError: the tensor requires grad, is bfloat16, or its device has no DLPack. AssertionError: a stream for
            the CPU.
    """
    data = self._array("__dlpack__()")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    dispatch.expose(data)
    if self.dtype is dtypes.bfloat16:
        raise BufferError("__dlpack__: NumPy exports no bfloat16; export tensor.view(leafgrad.int16), the same bits")
    make = getattr(data, "__dlpack__", None)
    if make is None:
        raise BufferError(f"__dlpack__: arrays on {self.device} have no DLPack; copy the tensor with .cpu()")
    if self.device.type == "cpu":
        if stream not in (None, -1):
            raise AssertionError(f"__dlpack__: stream should be None on cpu, got {stream!r}")
        stream = None
    return make(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def export_device(self: Tensor) -> tuple[int, int]:
    """DLPack's numbers for the type and index of the device: (1, 0) for the CPU, (2, index) for CUDA."""
    ask = getattr(self._array("__dlpack__()"), "__dlpack_device__", None)
    if ask is None:
        raise ValueError(f"__dlpack_device__: DLPack knows no device {self.device}")
    kind, index = ask()
    return int(kind), int(index)


class Capsule:
    """A bare DLPack capsule as an object that exports it, once."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # a capsule does not say; NumPy refuses what is elsewhere


@public(only="leafgrad")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of an array of another library, through DLPack.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a DLPack capsule.
        device: where the tensor is to be; by default where the array is.
        copy: True always copies, False never does, None does where ``device`` asks for it.

    Raises:
        TypeError: it is neither, or its dtype is none of leafgrad's. RuntimeError: its device is unknown.
        ValueError: ``copy=False``, and a copy is needed. BufferError: the other library refuses.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            "from_dlpack: ext_tensor: expected an object with __dlpack__, or a capsule, got "
            f"{type(ext_tensor).__name__}"
        )
    kind = int(ext_tensor.__dlpack_device__()[0])
    if kind not in DEVICE_TYPES:
        raise RuntimeError(
            f"from_dlpack: expected a device type of {list(DEVICE_TYPES)}, as DLPack has them, got {kind}"
        )
    array = backends.by_device_type(DEVICE_TYPES[kind]).xp.from_dlpack(ext_tensor)
    dtypes.of(array)
    out: Tensor = from_numpy(array) if DEVICE_TYPES[kind] == "cpu" else dispatch.alias(array)
    if device is not None and devices.device(device).resolve() != out.device.resolve():
        if copy is False:
            raise ValueError(f"from_dlpack: copy=False, but getting from {out.device} to {device} takes a copy")
        return out.to(device)
    return out.clone() if copy else out


@public(only="leafgrad")
def frombuffer(
    buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A one-dimensional CPU tensor that shares the memory of a ``bytearray``, ``memoryview`` or other buffer.

    Args:
        buffer: contiguous memory.
        dtype: what its bytes are.
        count: how many elements to take; -1 for all.
        offset: bytes to skip.
        requires_grad: record operations on it.

    Raises:
        TypeError: ``buffer`` is no contiguous memory. ValueError: it is empty, too short, or no whole elements.
    """
    kind = dtypes.check(dtype)
    skipped = arguments.integer(offset, "offset", "frombuffer")
    wanted = arguments.integer(count, "count", "frombuffer")
    left = size_of(buffer) - skipped
    needed = max(wanted, 1) * kind.itemsize
    if wanted == 0 or skipped < 0 or left < needed or (wanted < 0 and left % kind.itemsize):
        raise ValueError(
            f"frombuffer: expected at least {needed} bytes after offset {skipped}, in whole elements of {kind}, and a "
            f"count above 0 or -1; got {left} bytes and count {wanted}"
        )
    array = backends.by_device_type("cpu").xp.frombuffer(buffer, kind.name, max(wanted, -1), skipped)
    return from_numpy(array)._set_grad(requires_grad)


def strided(buffer: Any, *, dtype: dtypes.dtype, size: Any, stride: Any, offset: int) -> Tensor:
    """A CPU tensor in the memory of a buffer: ``size``, and ``stride`` and ``offset`` counted in elements.

    Raises:
        ValueError, TypeError: it is not within the buffer.
    """
    steps = tuple(n * dtype.itemsize for n in stride)
    ndarray = backends.by_device_type("cpu").xp.ndarray
    return from_numpy(ndarray(tuple(size), dtype.name, buffer, offset * dtype.itemsize, steps))


def size_of(buffer: Any) -> int:
    """The bytes of contiguous memory; TypeError if it is something else."""
    try:
        memory = memoryview(buffer)
    except TypeError:
        memory = None
    if memory is None or not memory.contiguous:
        kind = "memory with gaps" if memory else type(buffer).__name__
        raise TypeError(f"frombuffer: buffer: expected contiguous memory, such as a bytearray or an array, got {kind}")
    return memory.nbytes


attach("__dlpack__", export)
attach("__dlpack_device__", export_device)
