"""leafgrad-cuda: compiled steps as CUDA kernels."""

from __future__ import annotations

from leafgrad.plugins import CommandSpec, ExecutorSpec, hookimpl

__version__ = "0.1.0"


@hookimpl
def leafgrad_executors() -> list[ExecutorSpec]:
    """``"cuda"``, and ``"cuda-emulated"``, which runs the same kernels on the processor."""
    return [
        ExecutorSpec("cuda", target="leafgrad_cuda.executor:CudaExecutor", preferred="cuda"),
        ExecutorSpec("cuda-emulated", target="leafgrad_cuda.executor:EmulatedExecutor"),
    ]


@hookimpl
def leafgrad_cli() -> list[CommandSpec]:
    """``leafgrad cuda``."""
    return [CommandSpec("cuda", help="compiled steps as CUDA kernels: predict", target="leafgrad_cuda.predict:main")]
