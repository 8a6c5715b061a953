"""``torch.xpu``: there is none, as there is no ``torch.mps``."""

from leafgrad.compat.torch.mps import device_count, empty_cache, is_available, manual_seed

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed"]
