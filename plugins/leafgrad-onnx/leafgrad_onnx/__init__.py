"""ONNX files: ``export`` writes what a function computes, derivatives inside; ``load`` makes a Module of a file.

It is ``leafgrad.onnx`` where the package is installed, and ``torch.onnx`` where leafgrad stands in for PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from leafgrad.plugins import CheckSpec, CommandSpec, ModuleSpec, hookimpl
from leafgrad_onnx.errors import OnnxError, OnnxExporterError, OnnxLoadError

if TYPE_CHECKING:
    from leafgrad.ops.op import Op
    from leafgrad_onnx.exporter import TrainingMode, export, is_in_onnx_export
    from leafgrad_onnx.module import OnnxModule, load
else:
    LATER = {
        "TrainingMode": "exporter", "export": "exporter", "is_in_onnx_export": "exporter", "OnnxModule": "module",
        "load": "module",
    }  # fmt: skip

    def __getattr__(name: str) -> object:
        """What needs the package onnx is imported when it is first asked for."""
        if name not in LATER:
            raise AttributeError(f"module 'leafgrad_onnx' has no attribute {name!r}", name=name)
        module = import_module(f"leafgrad_onnx.{LATER[name]}")
        for each in (n for n, where in LATER.items() if where == LATER[name]):
            globals()[each] = getattr(module, each)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "OnnxError",
    "OnnxExporterError",
    "OnnxLoadError",
    "OnnxModule",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "load",
]

leafgrad_api_version = 1


@hookimpl
def leafgrad_modules() -> list[ModuleSpec]:
    """``leafgrad.onnx``, and ``torch.onnx`` where leafgrad stands in for PyTorch."""
    return [ModuleSpec("onnx", target="leafgrad_onnx")]


@hookimpl
def leafgrad_cli() -> list[CommandSpec]:
    """``leafgrad onnx export|check|show``."""
    return [CommandSpec("onnx", help="write, check and show ONNX files", target="leafgrad_onnx.cli:main")]


@hookimpl
def leafgrad_checks(op: Op) -> list[CheckSpec]:
    """Of ops that say themselves how they are written: whether that is what they compute."""
    rule = op.lowering.get("onnx")
    theirs = rule is not None and not rule.__module__.startswith(f"{__name__}.")
    return [CheckSpec("onnx", target="leafgrad_onnx.checking:check")] if theirs else []
