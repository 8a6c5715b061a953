"""Anomaly detection: find the operation whose backward makes NaN, and the line that ran it forward."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from leafgrad import backends, modes
from leafgrad.errors import TraceError
from leafgrad.ops import dispatch
from leafgrad.ops.messages import warn
from leafgrad.ops.node import GraphNode, SymbolBase, TensorBase

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]

CHECK_NAN: ContextVar[bool] = ContextVar("leafgrad_check_nan", default=True)
modes.setting("detect_anomaly(check_nan=...)")(CHECK_NAN.get)


class set_detect_anomaly:
    """Turn anomaly detection on or off for this thread; as a context manager it restores the former state.

    While it is on, each recorded operation remembers the line that ran it, and a backward pass that produces NaN
    is a RuntimeError that names both. It makes everything slower, and waits for the device at each node.

    Args:
        mode: whether operations remember their line.
        check_nan: whether a NaN in the backward pass is an error.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = is_anomaly_enabled(), CHECK_NAN.get()
        switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        switch(*self._before)


class detect_anomaly(set_detect_anomaly):
    """Turn anomaly detection on within a ``with`` block: see ``set_detect_anomaly``. Warns that it is slow.

    >>> with detect_anomaly():
    ...     loss.backward()
    """

    def __init__(self, check_nan: bool = True) -> None:
        warn("Anomaly Detection has been enabled. It makes every operation slower: switch it on for debugging only.")
        self._wanted = check_nan

    def __enter__(self) -> None:
        super().__init__(True, self._wanted)


def switch(on: bool, check_nan: bool) -> None:
    flags = modes.get()
    modes.FLAGS.set(flags | modes.ANOMALY if on else flags & ~modes.ANOMALY)
    CHECK_NAN.set(check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on now, in this thread."""
    return bool(modes.get() & modes.ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return CHECK_NAN.get()


def check_nan(node: Any, pulled: Any) -> None:
    """A RuntimeError if a gradient that ``node`` passes on has a NaN in it."""
    if not CHECK_NAN.get():
        return
    for edge, g in pulled:
        if g is not None and has_nan(g):
            where = getattr(node, "where", "")
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {position(node, edge)}th output."
                + (f" The forward line was {where}" if where else " It ran forward before anomaly detection was on.")
            )


def has_nan(g: Any) -> bool:
    data = g._data if isinstance(g, TensorBase) else g
    if isinstance(data, SymbolBase) and not data.level and (tracer := modes.tracer()):
        data = tracer.reveal(dispatch.alias(data), "anomaly detection")
    if isinstance(data, SymbolBase):
        raise TraceError("anomaly detection looks at values, which a traced function has none of; turn it off there")
    backend = backends.backend_of(data)
    return bool(backend.item(backend.wrap(backend.xp.isnan(data).any())))


def position(node: GraphNode, edge: GraphNode) -> int:
    return next(i for i, e in enumerate(node.edges) if e is edge)
