"""Devices, under PyTorch's names."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from leafgrad import backends, modes
from leafgrad.backends.place import place


class device:
    """Where tensors live: ``device("cpu")``, ``device("cuda:0")``, ``device("cuda", 1)``.

    Attributes:
        type: the device type, which names a backend.
        index: the number of the device, or None for the default one.

    Raises:
        TypeError: ``type`` is neither a string nor a device.
        RuntimeError: the string is not of the form ``type`` or ``type:index``.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        elif not isinstance(type, str):
            raise TypeError(f"device: type: expected a string such as 'cpu' or 'cuda:0', got {type!r}")
        name, colon, number = type.partition(":")
        if not name or (colon and not number.isdecimal()) or (colon and index is not None):
            raise RuntimeError(f"Invalid device string: {type!r}; expected a form such as 'cpu' or 'cuda:0'")
        self.type = name
        self.index = int(number) if colon else index

    def resolve(self) -> tuple[str, int]:
        """Device type and index after loading the backend; RuntimeError if there is no such device."""
        backend, index = backends.by_device_type(self.type), self.index or 0
        if backend.one_device and not index:
            return self.type, 0
        count = backend.device_count()
        if index >= count:
            raise RuntimeError(f"device {self}: expected an index below {count}, the number of {self.type} devices")
        return self.type, index

    def __enter__(self) -> device:
        """Within it, tensors are made on this device unless another one is given."""
        DEFAULTS.set((*DEFAULTS.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        DEFAULTS.set(DEFAULTS.get()[:-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (")" if self.index is None else f", index={self.index})")


_CPU = device("cpu")
# The default device of this thread, then those of the contexts that it is in.
DEFAULTS: ContextVar[tuple[device, ...]] = ContextVar("leafgrad_default_devices", default=(_CPU,))


@modes.setting("the default device")
def _default() -> tuple[device, bool]:
    chosen = DEFAULTS.get()[-1]
    return chosen, chosen is _CPU  # a CPU that was chosen wins over devices of what is given


def given(asked: Any, otherwise: device | None = None) -> device:
    """The device asked for; if that is None the default one; where none was chosen as such, ``otherwise`` if given."""
    if asked is not None:
        return asked if isinstance(asked, device) else device(asked)
    default = DEFAULTS.get()[-1]
    return default if otherwise is None or default is not _CPU else otherwise


def get_default_device() -> device:
    """Where tensors are made unless a device is given: the CPU at the start."""
    default = DEFAULTS.get()[-1]
    return device(default.type, default.resolve()[1]) if default.type == "cuda" else default


def set_default_device(place: Any) -> None:
    """Make tensors on ``place``, in this thread, unless another device is given; None for the CPU.

    Args:
        place: a device, its name, or None.

    Raises:
        RuntimeError: there is no such device.
    """
    default = _CPU if place is None else device(place)
    default.resolve()
    DEFAULTS.set((default, *DEFAULTS.get()[1:]))


def of(array: Any) -> device:
    """The device of a raw array."""
    return at(*place(array))


def at(kind: str, index: int) -> device:
    """The device of that type and index, as ``Tensor.device`` gives it."""
    return _CPU if kind == "cpu" else device(kind, None if kind == "meta" else index)
