"""Tensors of a recorded call that have one memory, since ``t.data = v``; the program then gives ``t`` another array."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from leafgrad import modes
from leafgrad.compile.record.symbol import Symbol
from leafgrad.ops import dispatch
from leafgrad.tensor.view import become


class Shared:
    """Groups of tensors that a call has given one memory, of which a write into one is a write into all."""

    def __init__(self) -> None:
        self.groups: list[list[weakref.ref[Any]]] = []

    def add(self, tensor: Any, value: Any) -> None:
        """``tensor`` has the memory of ``value`` from now on."""
        group = next((g for g in self.groups if any(ref() is value for ref in g)), None)
        if group is None:
            self.groups.append(group := [weakref.ref(value)])
        group.append(weakref.ref(tensor))

    def replace(self, tensor: Any, heir: Any) -> None:
        """``heir`` is in place of ``tensor``."""
        for group in self.groups:
            group[:] = [weakref.ref(heir) if ref() is tensor else ref for ref in group]

    def written(self, tensor: Any) -> None:
        """``tensor`` was written, so all of its group were."""
        for group in self.alive():
            if any(t is tensor for t in group):
                for t in group:
                    t._data = tensor._data

    def alive(self) -> list[list[Any]]:
        """The groups of which several are left."""
        found = [[t for ref in group if (t := ref()) is not None] for group in self.groups]
        return [group for group in found if len(group) > 1]


def owner(tensor: Any) -> Any:
    """The tensor whose memory ``tensor`` shows."""
    while tensor._view is not None:
        tensor = tensor._view.base
    return tensor


def can_share(inner: Any, value: Any) -> bool:
    """Whether a tensor, or what stands for it, may get the memory of ``value`` when the program has run.

    Both are of one kind; none has a base with a history in common; and no node keeps the memory of ``value``.
    """
    return (
        type(value._data) is Symbol
        and value is not inner
        and (inner._view is None or inner._view.detached)
        and value._view is None
        and (inner.shape, inner.dtype, inner.device) == (value.shape, value.dtype, value.device)
        and getattr(value._history, "out", None) is None
        and dispatch.INFERENCE_VERSION not in (inner._writes, value._writes)
        and not modes.DERIVATIVES.get()
    )


def set_memory(tensor: Any, data: Any) -> None:
    """Make a raw array the memory of a tensor from outside, which is no view any more."""
    tensor._history, tensor._view = tensor._node, None
    tensor._data = data


def heir_of(inner: Any) -> Any:
    """What has the memory of a tensor that is about to get another."""
    heir = dispatch.alias(inner._data, inner._history)
    if (view := inner._view) is not None:
        become(heir, view.base, view.path, detached=True)
        heir._view.root = view.root
    heir._writes = inner._writes
    return heir


def hand_over(tensors: Iterable[Any], base: Any, heir: Any) -> None:
    """Views of ``base``, among ``tensors``, are views of ``heir`` from now on."""
    for t in tensors:
        if t._view is not None and t._view._base is base:
            t._view.base = heir
