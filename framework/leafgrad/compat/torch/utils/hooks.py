"""``torch.utils.hooks``: what registering a hook returns."""

from __future__ import annotations

from leafgrad.tensor.handle import RemovableHandle

__all__ = ["RemovableHandle"]
