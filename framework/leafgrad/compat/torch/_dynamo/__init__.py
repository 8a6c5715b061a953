"""``torch._dynamo``: marks for PyTorch's compiler. leafgrad's takes whole functions, and needs none of them."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.absent import refused_class
from leafgrad.compat.torch.compiler import allow_in_graph, compile, disable, is_compiling, reset

OptimizedModule = refused_class("torch._dynamo.OptimizedModule", "torch.compile gives what it is given")

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "disable",
    "disallow_in_graph",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
]


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """A decorator: ``torch.compile`` with this backend."""
    return compile(backend=backend)


def is_dynamo_supported() -> bool:
    """False."""
    return False


def explain(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Why a function compiles or does not.

    Raises:
        NotImplementedError: always: a compiled step has ``.explain()`` itself.
    """
    raise NotImplementedError("torch._dynamo.explain: call .explain() of what leafgrad.compile returned")


def graph_break(*args: Any, **kwargs: Any) -> None:
    """Has no effect."""


def mark_dynamic(t: Any, *args: Any, **kwargs: Any) -> None:
    """Has no effect: each shape gets a program of its own."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic


def disallow_in_graph(fn: Any) -> Any:
    """``fn``."""
    return fn


forbid_in_graph = disallow_in_graph
