"""Plugins: the hooks they implement, the loader, and look-up of what they bring.

Third-party plugins load at the first look-up of a name that the core does not know, or by `load()`; never at
import.
"""

from __future__ import annotations

from collections.abc import Iterator

from leafgrad.plugins.hookspecs import API_VERSION, hookimpl
from leafgrad.plugins.manager import Manager, PluginClashError, PluginWarning
from leafgrad.plugins.registry import Plugin, UnknownNameError
from leafgrad.plugins.specs import BackendSpec, CommandSpec, ExecutorSpec, Op, resolve

__all__ = [
    "API_VERSION",
    "BackendSpec",
    "CommandSpec",
    "ExecutorSpec",
    "Plugin",
    "PluginClashError",
    "PluginWarning",
    "UnknownNameError",
    "backend",
    "backend_for",
    "backends",
    "command",
    "commands",
    "executor",
    "executors",
    "hookimpl",
    "load",
    "op",
    "ops",
    "register",
    "resolve",
    "status",
]

_MANAGER = Manager()

load = _MANAGER.load
register = _MANAGER.register
status = _MANAGER.status
backend_for = _MANAGER.backend_for


def op(name: str) -> Op:
    """The op of this name; UnknownNameError, a LookupError, if no plugin defines it."""
    return _MANAGER.ops.find(name)


def backend(name: str) -> BackendSpec:
    """The backend of this name ("numpy"), as listed: nothing is imported."""
    return _MANAGER.backends.find(name)


def executor(name: str) -> ExecutorSpec:
    """The executor of this name, as listed: nothing is imported."""
    return _MANAGER.executors.find(name)


def ops() -> Iterator[Op]:
    """All ops, those of third-party plugins included."""
    load()
    return iter(_MANAGER.ops)


def command(name: str) -> CommandSpec:
    """The subcommand of this name, as listed: nothing is imported."""
    return _MANAGER.commands.find(name)


def backends() -> Iterator[BackendSpec]:
    """The backends met so far, as listed. `load()` first for a complete list."""
    return iter(_MANAGER.backends)


def executors() -> Iterator[ExecutorSpec]:
    """The executors met so far, as listed. `load()` first for a complete list."""
    return iter(_MANAGER.executors)


def commands() -> Iterator[CommandSpec]:
    """The subcommands met so far, as listed. `load()` first for a complete list."""
    return iter(_MANAGER.commands)
