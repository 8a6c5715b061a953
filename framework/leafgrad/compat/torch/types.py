"""``torch.types``: names for annotations."""

from __future__ import annotations

import os
from typing import TypeAlias

from leafgrad.devices import device
from leafgrad.dtypes import dtype as _dtype
from leafgrad.tensor.size import Size
from leafgrad.tensor.tensor import Tensor as Tensor

__all__ = [
    "Device",
    "FileLike",
    "Number",
    "Tensor",
    "_TensorOrTensors",
    "_bool",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_size",
]

_int, _float, _bool, _device = int, float, bool, device
Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]
