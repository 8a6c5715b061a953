"""``torch._subclasses.fake_tensor``: tensors without elements, which are of the device ``meta`` here."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.absent import refused_class

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]

REMEDY = 'make tensors with device="meta"'
FakeTensor = refused_class("torch._subclasses.FakeTensor", REMEDY)
FakeTensorMode = refused_class("torch._subclasses.FakeTensorMode", REMEDY)


def is_fake(x: Any) -> bool:
    """False."""
    return False
