"""Helpers of transformers that models of others use."""

from __future__ import annotations

from leafgrad.nn.transformer import copies as _get_clones, named_activation as _get_activation_fn

__all__ = ["_get_activation_fn", "_get_clones"]
