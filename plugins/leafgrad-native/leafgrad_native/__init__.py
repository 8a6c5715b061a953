"""leafgrad-native: compiled steps as C."""

from __future__ import annotations

from leafgrad.plugins import ExecutorSpec, hookimpl

__version__ = "0.1.0"


@hookimpl(trylast=True)  # it gains by most programs, so those that gain by some are asked before
def leafgrad_executors() -> list[ExecutorSpec]:
    """The executor ``"native"``."""
    return [ExecutorSpec("native", target="leafgrad_native.executor:NativeExecutor", preferred=True)]
