"""The base of dropout."""

from __future__ import annotations

from leafgrad.nn.dropout import Dropping as _DropoutNd

__all__ = ["_DropoutNd"]
