"""The hooks a plugin may implement. Each returns a list; none of them registers anything itself.

Those that take nothing are called once, when the plugin is registered; one that takes an argument is called for each.

A plugin is a module (or an object) under the entry-point group `leafgrad`:

    # pyproject.toml of the plugin
    [project.entry-points.leafgrad]
    special = "leafgrad_special"

    # leafgrad_special.py
    from leafgrad.plugins import hookimpl

    leafgrad_api_version = 1        # optional: refuse to load where the hooks mean something else

    @hookimpl
    def leafgrad_ops():
        from leafgrad_special.bessel import j0, j1
        return [j0, j1]
"""

from __future__ import annotations

from typing import Final

import pluggy

from leafgrad.plugins.specs import (
    BackendSpec,
    CallbackSpec,
    CheckSpec,
    CommandSpec,
    ExecutorSpec,
    FormatSpec,
    ModuleSpec,
    Op,
)

API_VERSION: Final = 1
"""Version of the hooks below. It changes when a plugin written for the old ones could go wrong."""

hookspec = pluggy.HookspecMarker("leafgrad")
hookimpl = pluggy.HookimplMarker("leafgrad")
"""Marks a plugin's function as the implementation of the hook of the same name."""


@hookspec
def leafgrad_ops() -> list[Op]:
    """Ops, found by `leafgrad.plugins.op(NAME)` afterwards. Names are unique among all plugins.

    Example:

        @hookimpl
        def leafgrad_ops():
            return [j0, j1]         # functions decorated with @leafgrad.op
    """
    raise NotImplementedError


@hookspec
def leafgrad_backends() -> list[BackendSpec]:
    """Array libraries, each with the device type it serves. Both names are unique among all plugins.

    Example:

        @hookimpl
        def leafgrad_backends():
            return [BackendSpec("cupy", device_type="cuda", target="leafgrad.backends.cupy:CupyBackend")]
    """
    raise NotImplementedError


@hookspec
def leafgrad_executors() -> list[ExecutorSpec]:
    """Ways to run a compiled graph.

    Example:

        @hookimpl
        def leafgrad_executors():
            return [ExecutorSpec("native", target="leafgrad_native.executor:NativeExecutor", preferred=True)]
    """
    raise NotImplementedError


@hookspec
def leafgrad_cli() -> list[CommandSpec]:
    """Subcommands of `python -m leafgrad`.

    Example:

        @hookimpl
        def leafgrad_cli():
            return [CommandSpec("plot", help="draw a training log", target="leafgrad_plot.cli:main")]
    """
    raise NotImplementedError


@hookspec
def leafgrad_modules() -> list[ModuleSpec]:
    """Modules that appear in leafgrad, and in its stand-in for PyTorch; imported when they are first asked for.

    Example:

        @hookimpl
        def leafgrad_modules():
            return [ModuleSpec("fft", target="leafgrad_fft")]       # leafgrad.fft, torch.fft
    """
    raise NotImplementedError


@hookspec
def leafgrad_formats() -> list[FormatSpec]:
    """File formats for `leafgrad.save` and `load`, by the suffix of the file.

    Example:

        @hookimpl
        def leafgrad_formats():
            return [FormatSpec("npz", suffix=".npz", target="leafgrad.backends.npz:Npz")]
    """
    raise NotImplementedError


@hookspec
def leafgrad_callbacks() -> list[CallbackSpec]:
    """What is told of the course of a `leafgrad.utils.Training`: loggers.

    Example:

        @hookimpl
        def leafgrad_callbacks():
            return [CallbackSpec("csv", target="leafgrad.utils.loggers:CsvLogger")]
    """
    raise NotImplementedError


@hookspec
def leafgrad_checks(op: Op) -> list[CheckSpec]:
    """What `leafgrad.testing.check_op` checks of this op beside its own checks; asked each time that an op is checked.

    Example:

        @hookimpl
        def leafgrad_checks(op):
            return [CheckSpec("onnx", target="leafgrad_onnx.checking:check")] if "onnx" in op.lowering else []
    """
    raise NotImplementedError
