"""The dtypes that ONNX and leafgrad have in common, by ONNX's numbers."""

from __future__ import annotations

from typing import Final

NUMBER: Final = {
    "float32": 1, "uint8": 2, "int8": 3, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "bfloat16": 16,
}  # fmt: skip
NAME: Final = {number: name for name, number in NUMBER.items()}
