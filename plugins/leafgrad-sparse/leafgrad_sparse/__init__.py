"""Sparse matrices with derivatives of any order, by scipy.sparse and, on CUDA devices, cupyx.scipy.sparse."""

from __future__ import annotations

from leafgrad.ops.op import Op
from leafgrad.plugins import ModuleSpec, hookimpl
from leafgrad_sparse.matrix import SparseMatrix, from_coo, from_dense, from_scipy
from leafgrad_sparse.ops import OPS

__all__ = ["SparseMatrix", "from_coo", "from_dense", "from_scipy"]

leafgrad_api_version = 1


@hookimpl
def leafgrad_ops() -> list[Op]:
    """The ops of this package."""
    return [*OPS]


@hookimpl
def leafgrad_modules() -> list[ModuleSpec]:
    """``leafgrad.sparse``."""
    return [ModuleSpec("sparse", target="leafgrad_sparse")]
