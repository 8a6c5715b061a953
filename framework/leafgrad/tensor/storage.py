"""Memory: where the elements of a tensor lie, with what strides, and tensors made of strides."""

from __future__ import annotations

from contextlib import nullcontext
from mmap import ACCESS_COPY, ACCESS_WRITE, mmap
from typing import Any
from weakref import WeakValueDictionary

from leafgrad import backends, devices, dtypes, modes
from leafgrad.ops import dispatch
from leafgrad.ops.complex import view_as_complex, view_as_real
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.strided import strided
from leafgrad.tensor import arguments
from leafgrad.tensor.bits import as_dtype
from leafgrad.tensor.creation import DType, beside, empty
from leafgrad.tensor.formats import layout
from leafgrad.tensor.methods import attach
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import permuted, reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View, follow, is_own_leaf


@public(only="leafgrad")
class UntypedStorage:
    """The memory that a tensor and all of its views share: one object for one piece of memory, as long as it is held.

    Made by ``Tensor.untyped_storage`` and ``from_file``. ``storage[a:b]`` is a part of it, ``asarray(storage)`` a
    tensor of its bytes.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, which are read when they are asked for.

        Args:
            filename: where it is.
            shared: whether writes go into the file; otherwise they stay in memory.
            nbytes: how many bytes; 0: all.
        """
        with open(filename, "r+b" if shared else "rb") as file:
            held = mmap(file.fileno(), nbytes, access=ACCESS_WRITE if shared else ACCESS_COPY)
        return cls(backends.by_device_type("cpu").xp.frombuffer(held, "uint8"))

    def untyped(self) -> UntypedStorage:
        """Itself, as of a TypedStorage."""
        return self

    def __getitem__(self, at: Any) -> Any:
        found = self._flat()[at]
        return UntypedStorage(found) if isinstance(at, slice) else int(found)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        flat = self._flat()
        return flat.copy() if copy else flat

    def _flat(self) -> Any:
        """The bytes as an array."""
        return self._owner.ravel("K").view("uint8")

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self._owner.nbytes)

    size = nbytes

    def __len__(self) -> int:
        return self.nbytes()

    def element_size(self) -> int:
        """Bytes of one element: 1."""
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte, 0 if there is none."""
        return backends.backend_of(self._owner).address(self._owner) if self.nbytes() else 0

    def __repr__(self) -> str:
        return f"[UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    @property
    def device(self) -> devices.device:
        """Where the memory is."""
        return devices.of(self._owner)

    @property
    def is_cuda(self) -> bool:
        """Whether that is a CUDA device."""
        return self.device.type == "cuda"


@public(only="leafgrad")
class TypedStorage:
    """The memory of a tensor as elements of its dtype, from the first on. Made by ``Tensor.storage``."""

    def __init__(self, tensor: Tensor) -> None:
        base = tensor if tensor._base is None else tensor._base
        self.dtype = tensor.dtype
        self._base = base.detach()
        self._bytes = tensor.untyped_storage()

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._bytes

    def size(self) -> int:
        """How many elements there are."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._bytes.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte, 0 if there is none."""
        return self._bytes.data_ptr()

    def tolist(self) -> list[Any]:
        """The elements as they follow in memory."""
        elements: list[Any] = self.strided((self.size(),), (1,), 0).tolist()
        return elements

    def __getitem__(self, index: int | slice) -> Any:
        return self.tolist()[index]

    def strided(self, size: Any, stride: Any, storage_offset: int) -> Tensor:
        """A tensor of elements of this memory, as by ``as_strided``."""
        return as_strided(self._base, size, stride, storage_offset)

    @property
    def device(self) -> devices.device:
        """Where the memory is."""
        return self._bytes.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a CUDA device."""
        return self._bytes.is_cuda

    def __repr__(self) -> str:
        return f"[TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


_storages: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


@public(only="Tensor")
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory of this tensor, which all of its views have in common."""
    data = self._array("untyped_storage()")
    dispatch.expose(data)
    owner = dispatch.memory_of(data)
    found = _storages.get(id(owner))
    if found is None:
        found = _storages[id(owner)] = UntypedStorage(owner)
    return found


@public(only="Tensor")
def storage(self: Tensor) -> TypedStorage:
    """The memory of this tensor and all of its views, as elements of this tensor's dtype."""
    return TypedStorage(self)


@public(only="Tensor")
def data_ptr(self: Tensor) -> int:
    """The address of the first element, 0 if there is none. Who writes there, writes unseen by autograd."""
    if self.is_meta:
        return 0
    dispatch.expose(self._array("data_ptr()"))
    return address(self, "data_ptr()")


def address(x: Tensor, what: str) -> int:
    """The same, for ``what`` to compare: nobody writes there."""
    data = x._array(what)
    return backends.backend_of(data).address(data) if data.size else 0


@public(only="Tensor")
def storage_offset(self: Tensor) -> int:
    """How many elements lie in memory before the first one of this tensor."""
    dispatch.interrupt("t.storage_offset()")
    return offset(self)


def offset(x: Tensor) -> int:
    """The same, for what does not depend on it but on differences: a program takes tensors of any."""
    data = layout(x)
    while getattr(data, "level", 0):  # a sample lies in memory where the first one does
        data = data.array
    if isinstance(data, SymbolBase):  # of the device meta
        return 0
    address = backends.backend_of(data).address
    return int((address(data) - address(dispatch.memory_of(data))) // data.itemsize)


@public(only="Tensor")
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether another tensor has the same memory, offset, shape and strides.

    Args:
        tensor: another tensor.
    """
    other = arguments.expect_tensor(tensor, "tensor", "is_set_to")
    return (
        self.untyped_storage() is other.untyped_storage()
        and self.storage_offset() == other.storage_offset()
        and self.shape == other.shape
        and self.stride() == other.stride()
    )


# ---- strides ------------------------------------------------------------------------------------------------------


@public
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the same memory: element (i, j, …) is i * stride[0] + j * stride[1] + … behind ``storage_offset``.

    Elements may overlap; gradients of those that do add up. What lies in memory beyond the elements of ``input`` is
    reached through the tensor that ``input`` is a view of, and so are the gradients.

    Args:
        storage_offset: by default that of ``input``.
        size: the shape.

    Raises:
        RuntimeError: negative sizes or strides, or elements that lie outside the memory that ``input`` can reach.
    """
    shape = arguments.shape((size,), "as_strided", "size")
    steps = arguments.shape((stride,), "as_strided", "stride")
    if len(shape) != len(steps):
        raise RuntimeError(f"mismatch in length of strides and shape, got {list(steps)} and {list(shape)}")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"as_strided: Dimension size must be non-negative, got {list(shape)}")
    if any(s < 0 for s in steps):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    lead = offset(input) if storage_offset is None else input.storage_offset()
    if storage_offset is None and not input.numel() and 0 not in shape:
        raise RuntimeError("as_strided: storage_offset: expected one, since a tensor without elements has no place")
    start = lead if storage_offset is None else arguments.integer(storage_offset, "storage_offset", "as_strided")
    if start < 0:
        raise RuntimeError(f"as_strided: storage_offset: expected at least 0, got {start}")
    source = _reaching(input, start, start + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)), 0 in shape)
    if source is None:
        raise RuntimeError(
            f"as_strided: sizes {list(shape)}, strides {list(steps)}, storage offset {start} reach outside the "
            f"{input.numel()} elements of the tensor, of size {list(input.shape)}, stride {input.stride()} and storage "
            f"offset {lead}; clone() it first"
        )
    with modes.no_grad() if source.requires_grad and not input.requires_grad else nullcontext():  # as input was made
        out = strided(source, shape=shape, steps=steps, start=start - offset(source))
    return out


def _reaching(x: Tensor, first: int, last: int, nothing: bool) -> Tensor | None:
    """``x`` or its base, with the dimensions as they follow in memory, if elements ``first`` to ``last`` are in it."""
    order = dim_order(x)
    dense = x if order == tuple(range(x.ndim)) else permuted(x, order)
    lead = offset(x)
    if dense.is_contiguous() and (nothing or lead <= first <= last < lead + x.numel()):
        return dense
    inner = dispatch.inside(x)
    view = inner._view or x._view or dispatch.view_given(inner)  # what a trace is given need not be a view in it
    if view is None or is_own_leaf(inner):
        return None
    base = _inside(x, view)
    if base is not None and base.dtype is not x.dtype:
        base = _elements(base, x.dtype)
    return None if base is None else _reaching(base, first, last, nothing)


def _inside(x: Tensor, view: View) -> Tensor | None:
    """What ``x``, this view, is one of. Inside vmap that is at most the sample, beyond which others lie; else None."""
    if not (isinstance(x._data, SymbolBase) and x._data.level):
        return view.base
    steps = view.steps
    entered = max([k for k, (step, _) in enumerate(steps, 1) if step.inverse], default=0)
    return None if entered == len(steps) else follow(view.base, steps[:entered])


def _elements(x: Tensor, dtype: dtypes.dtype) -> Tensor | None:
    """The memory of ``x``, if it has no gaps, as elements of another dtype; parts of complex numbers with history."""
    dense = permuted(x, dim_order(x))
    if not dense.is_contiguous():
        return None
    flat = reshaped(dense, (x.numel(),))
    if dtype is x.dtype.to_real():
        return reshaped(view_as_real(flat), (2 * x.numel(),))
    if x.dtype is dtype.to_real():
        return view_as_complex(reshaped(flat, (x.numel() // 2, 2)))
    return as_dtype(flat, dtype)


@public(only="Tensor")
def new_empty_strided(
    self: Tensor, size: Any, stride: Any, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Arbitrary elements with these strides, of this tensor's dtype and device unless others are given.

    Args:
        size: the shape.
    """
    place = self.device if device is None else device
    return beside(
        self, empty_strided(size, stride, dtype=dtype or self.dtype, device=place, requires_grad=requires_grad)
    )


@public(only="leafgrad")
def empty_strided(
    size: Any, stride: Any, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of shape ``size`` with the strides ``stride``, in elements, whose elements are arbitrary.

    Args:
        size: the shape.
    """
    shape = arguments.shape((size,), "empty_strided", "size")
    steps = arguments.shape((stride,), "empty_strided", "stride")
    if len(shape) != len(steps):
        raise RuntimeError(f"empty_strided: mismatch in length of strides and shape, got {steps} and {shape}")
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    out = as_strided(empty(count, dtype=dtype, device=device), shape, steps).detach()
    return out._set_grad(True) if requires_grad else out


@public(only="leafgrad")
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of shape ``size`` with its dimensions in memory in the order ``physical_layout``, outermost first.

    Args:
        size: the shape.
        physical_layout: the dimensions, from the outermost in memory to the innermost.
    """
    shape = arguments.shape((size,), "empty_permuted", "size")
    order = arguments.shape((physical_layout,), "empty_permuted", "physical_layout")
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(
            f"empty_permuted: physical_layout: expected each of the {len(shape)} dimensions once, got {list(order)}"
        )
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    out = permuted(empty([shape[d] for d in order], dtype=dtype, device=device), back).detach()
    return out._set_grad(True) if requires_grad else out


@public(only="Tensor")
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions as they follow in memory, outermost first."""
    steps = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda d: (-steps[d], d)))


# ---- sizes and kinds ----------------------------------------------------------------------------------------------


def _on(kind: str) -> property:
    return property(lambda self: self.device.type == kind, doc=f"Whether the tensor is on a device of type {kind!r}.")


for _kind in ("cpu", "meta", "mps", "xpu", "mtia", "xla", "ipu", "maia", "vulkan"):
    attach(f"is_{_kind}", _on(_kind))


def _never(what: str) -> property:
    return property(lambda self: False, doc=f"Whether the tensor is {what}; there are none.")


for _name, _what in (
    ("is_sparse", "sparse"),
    ("is_sparse_csr", "sparse, by rows"),
    ("is_quantized", "quantized"),
    ("is_mkldnn", "in the memory format of oneDNN"),
    ("is_nested", "nested"),
):
    attach(_name, _never(_what))


@public
def get_device(input: Tensor) -> int:
    """The index of the device, -1 for the CPU."""
    return -1 if input.device.type == "cpu" else input.device.resolve()[1]


@public
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed


@public(only="Tensor")
def is_shared(self: Tensor) -> bool:
    """Whether the tensor is in memory that processes share: always False."""
    return False


@public(only="Tensor")
def is_pinned(self: Tensor, device: Any = "cuda") -> bool:
    """Whether the tensor is in page-locked memory, from which devices of the type of ``device`` copy by themselves."""
    backend = pinning(device)
    return backend is not None and self.device.type == "cpu" and bool(backend.is_pinned(self._array("is_pinned()")))


@public(only="Tensor")
def pin_memory(self: Tensor, device: Any = "cuda") -> Tensor:
    """A copy in page-locked memory, without history; itself if it is there. ``to(device, non_blocking=True)`` of it
    does not wait.

    Args:
        device: of the type that copies from there.

    Raises:
        RuntimeError: there is no such device, it copies from no such memory, or the tensor is not on the CPU.
    """
    backend = pinning(device)
    if backend is None or self.device.type != "cpu":
        where = f"a device of type {devices.device('cuda' if device is None else device).type!r}, which is not there"
        where = where if backend is None else f"a tensor on the CPU, got one on {self.device}"
        raise RuntimeError(f"pin_memory: expected {where}")
    if self.is_pinned(device):
        return self
    return dispatch.alias(backend.pin(self._array("pin_memory()")))


def pinning(device: Any) -> Any:
    """The backend of the type of ``device``; None where there is no such device."""
    try:
        return backends.by_device_type(devices.device("cuda" if device is None else device).type)
    except (ImportError, RuntimeError):
        return None
