"""The module of DataParallel."""

from __future__ import annotations

from leafgrad.compat.torch.nn.parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
