"""``torch.testing``."""

from leafgrad.testing import assert_close, make_tensor

__all__ = ["assert_close", "make_tensor"]
