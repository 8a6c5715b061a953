"""The module of DistributedDataParallel."""

from __future__ import annotations

from leafgrad.compat.torch.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
