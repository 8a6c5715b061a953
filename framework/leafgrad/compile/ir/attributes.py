"""Attributes of objects, read so that no code of the user's class hears of it."""

from __future__ import annotations

from typing import Any


def attribute_of_class(kind: type, name: str) -> Any:
    """An attribute of a class, or None, without asking its metaclass."""
    try:
        return type.__getattribute__(kind, name)
    except Exception:  # of a user's descriptor, say
        return None


def attribute_of(value: Any, name: str) -> Any:
    """An attribute of an object, or None, without asking ``__getattr__`` or ``__getattribute__`` of its class."""
    try:
        return object.__getattribute__(value, name)
    except Exception:  # of a user's property, say
        return None
