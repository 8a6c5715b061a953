"""All rows of the op table, and their samples as tensors."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

import leafgrad

HERE = Path(__file__).parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILES = [load(path) for path in sorted((HERE / "ops").glob("*_rows.py"))]
ROWS = [row for file in FILES for row in file.ROWS]
ELSEWHERE = {op: where for file in FILES for op, where in getattr(file, "ELSEWHERE", {}).items()}


def tensors(args, device, requires_grad=False):
    """``args`` with NumPy arrays as tensors on ``device``; floating ones may require grad."""
    return tuple(
        leafgrad.tensor(a, device=device, requires_grad=requires_grad and a.dtype.kind == "f")
        if isinstance(a, np.ndarray)
        else a
        for a in args
    )


def outputs(result):
    return result if isinstance(result, tuple) else (result,)
