"""A stand-in device, stricter than a GPU under CuPy: what runs here has no hidden transfer and no stray NumPy
call.

`register()` makes the devices "fake:0" and "fake:1" known. Their arrays wrap NumPy arrays that nobody can
reach: NumPy refuses them, they refuse NumPy's arrays and scalars and each other's devices, their namespace
has only what CuPy 14.2 has, and everything that would make the host wait for a GPU is counted:

    with no_sync():             # AssertionError if anything inside synchronises
        step()
"""

from leafgrad.testing.fake.array import FakeArray, no_sync, sync_count
from leafgrad.testing.fake.backend import FakeBackend, on_host, register

__all__ = ["FakeArray", "FakeBackend", "no_sync", "on_host", "register", "sync_count"]
