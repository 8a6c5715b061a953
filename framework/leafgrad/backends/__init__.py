"""Array libraries behind one contract. This is the only room that names one."""

from typing import TYPE_CHECKING

from leafgrad.backends.communicator import Communicator, is_same
from leafgrad.backends.contract import (
    BACKENDS,
    Backend,
    DeviceMemory,
    Generator,
    backend_of,
    backend_of_type,
    by_device_type,
    several_devices,
)
from leafgrad.backends.numpy import NumpyBackend
from leafgrad.lazy import attach

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendSpec",
    "Communicator",
    "DeviceMemory",
    "Generator",
    "NumpyBackend",
    "backend_of",
    "backend_of_type",
    "by_device_type",
    "is_same",
    "several_devices",
]

if TYPE_CHECKING:
    from leafgrad.plugins.specs import BackendSpec
else:
    __getattr__, __dir__ = attach(__name__, {"BackendSpec": "leafgrad.plugins.specs"})
