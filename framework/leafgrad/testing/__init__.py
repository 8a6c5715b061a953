"""Help for tests: comparing, random tensors, and a stand-in device, in ``leafgrad.testing.fake``."""

from leafgrad.testing.comparison import assert_close
from leafgrad.testing.making import make_tensor

__all__ = ["assert_close", "make_tensor"]
