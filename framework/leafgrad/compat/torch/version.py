"""``torch.version``: the PyTorch whose names and behaviour leafgrad has, and leafgrad's own version."""

from __future__ import annotations

import leafgrad

__all__ = ["__version__", "cuda", "git_version", "hip"]

__version__ = f"2.13.0+leafgrad.{leafgrad.__version__}"
cuda: str | None = None  # no CUDA toolkit is built in
hip: str | None = None
git_version = "unknown"
