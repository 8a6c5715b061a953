"""``torch._subclasses``: there are none."""

from leafgrad.compat.torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
