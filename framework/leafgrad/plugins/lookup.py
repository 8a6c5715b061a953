"""Look-up of what plugins bring, by the one manager of the process."""

from __future__ import annotations

from collections.abc import Iterator

from leafgrad.plugins import specs
from leafgrad.plugins.failures import PluginWarning as PluginWarning, report as report
from leafgrad.plugins.hookspecs import API_VERSION as API_VERSION, hookimpl as hookimpl
from leafgrad.plugins.manager import Manager
from leafgrad.plugins.registry import (
    Plugin as Plugin,
    PluginClashError as PluginClashError,
    UnknownNameError as UnknownNameError,
)
from leafgrad.plugins.specs import BackendSpec, CallbackSpec, CommandSpec, ExecutorSpec, FormatSpec, ModuleSpec, Op

_MANAGER = Manager()

load = _MANAGER.load
register = _MANAGER.register
unregister = _MANAGER.unregister
status = _MANAGER.status
backend_for = _MANAGER.backend_for
checks = _MANAGER.checks
specs.owner_of = _MANAGER.owner


def op(name: str) -> Op:
    """The op of this name; UnknownNameError, a LookupError, if no plugin defines it, PluginClashError if several do.

    Args:
        name: of the op.
    """
    return _MANAGER.ops.find(name)


def backend(name: str) -> BackendSpec:
    """The backend of this name ("numpy"), as listed: nothing is imported.

    Args:
        name: of the backend.
    """
    return _MANAGER.backends.find(name)


def executor(name: str) -> ExecutorSpec:
    """The executor of this name, as listed: nothing is imported.

    Args:
        name: of the executor.
    """
    return _MANAGER.executors.find(name)


def ops() -> Iterator[Op]:
    """All ops, those of third-party plugins included."""
    load()
    return iter(_MANAGER.ops)


def command(name: str) -> CommandSpec:
    """The subcommand of this name, as listed: nothing is imported.

    Args:
        name: of the subcommand.
    """
    return _MANAGER.commands.find(name)


def module(name: str) -> ModuleSpec:
    """The module of this name in leafgrad that a plugin brings, as listed: nothing is imported.

    Args:
        name: of the module.
    """
    return _MANAGER.modules.find(name)


def format_of(suffix: str) -> FormatSpec:
    """The file format with this suffix, as listed: nothing is imported.

    Args:
        suffix: as ".npz".
    """
    return _MANAGER.suffixes.find(suffix)


def callback(name: str) -> CallbackSpec:
    """The callback of this name, as listed: nothing is imported.

    Args:
        name: of the callback.
    """
    return _MANAGER.callbacks.find(name)


def backends() -> Iterator[BackendSpec]:
    """The backends met so far, as listed. `load()` first for a complete list."""
    return iter(_MANAGER.backends)


def executors() -> Iterator[ExecutorSpec]:
    """The executors met so far, as listed. `load()` first for a complete list."""
    return iter(_MANAGER.executors)


def commands() -> Iterator[CommandSpec]:
    """The subcommands met so far, as listed. `load()` first for a complete list."""
    return iter(_MANAGER.commands)
