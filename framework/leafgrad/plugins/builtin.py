"""What the core itself brings, through the same hooks as any plugin. The one module that names everything."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from leafgrad.plugins.hookspecs import hookimpl
from leafgrad.plugins.specs import BackendSpec, CallbackSpec, CommandSpec, ExecutorSpec, FormatSpec, Op


@hookimpl
def leafgrad_ops() -> list[Op]:
    """Every op in the modules of `leafgrad.ops`, each once however many names it has there."""
    from leafgrad import ops
    from leafgrad.ops.op import Op as CoreOp

    found: dict[int, Op] = {}
    for module in iter_modules(ops.__path__, "leafgrad.ops."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, CoreOp):
                found[id(value)] = value
    return list(found.values())


@hookimpl
def leafgrad_backends() -> list[BackendSpec]:
    """NumPy on "cpu", CuPy on "cuda", nothing but shapes on "meta"."""
    return [
        BackendSpec("numpy", "cpu", "leafgrad.backends.numpy:NumpyBackend"),
        BackendSpec("cupy", "cuda", "leafgrad.backends.cupy:CupyBackend"),
        BackendSpec("meta", "meta", "leafgrad.compile.run.meta:MetaBackend"),
    ]


@hookimpl
def leafgrad_executors() -> list[ExecutorSpec]:
    """ "numpy" for graphs on the CPU, "replay" for all."""
    return [
        ExecutorSpec("numpy", "leafgrad.compile.numpy.executor:NumpyExecutor"),
        ExecutorSpec("replay", "leafgrad.compile.ir.replay:ReplayExecutor"),
    ]


@hookimpl
def leafgrad_cli() -> list[CommandSpec]:
    """Scripts, PyTorch's too; what there is; and tools for authors of plugins."""
    return [
        CommandSpec("check", "check an op, or all ops of a plugin", "leafgrad.cli.check:main"),
        CommandSpec("new-plugin", "write a plugin to start from", "leafgrad.cli.new_plugin:main"),
        CommandSpec("ops", "all ops, and what each can do", "leafgrad.cli.ops:main"),
        CommandSpec("plugins", "the plugins that are installed, and what became of them", "leafgrad.cli.plugins:main"),
        CommandSpec("stubs", "tell editors and type checkers what plugins add", "leafgrad.cli.stubs:main"),
        CommandSpec("run", "run a script, with --as-torch one that was written for PyTorch", "leafgrad.cli.run:main"),
        CommandSpec("info", "versions, plugins, devices and executors", "leafgrad.cli.info:main"),
    ]


@hookimpl
def leafgrad_formats() -> list[FormatSpec]:
    """NumPy's archives of arrays."""
    return [FormatSpec("npz", ".npz", "leafgrad.backends.npz:Npz")]


@hookimpl
def leafgrad_callbacks() -> list[CallbackSpec]:
    """The terms that a training notes: a table, and curves."""
    return [
        CallbackSpec("csv", "leafgrad.utils.loggers:CsvLogger"),
        CallbackSpec("tensorboard", "leafgrad.utils.loggers:TensorBoardLogger"),
    ]
