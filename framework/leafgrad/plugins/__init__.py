"""Plugins: the hooks they implement, the loader, and look-up of what they bring.

Third-party plugins load at the first look-up of a name that the core does not know, or by `load()`; never at
import. The loader itself, and pluggy with it, is imported when one of its names is first asked for.
"""

from typing import TYPE_CHECKING

from leafgrad.docstrings import shown
from leafgrad.lazy import attach

CONTRACTS = {
    "Backend": "leafgrad.backends.contract:Backend",
    "Executor": "leafgrad.compile.run.executor:Executor",
    "Preferred": "leafgrad.compile.run.executor:Preferred",
    "Program": "leafgrad.compile.run.executor:Program",
}
"""What a plugin's classes must do, by name; imported when it is asked for."""
SPECS = "BackendSpec CallbackSpec CheckSpec CommandSpec ExecutorSpec FormatSpec ModuleSpec resolve".split()
"""What a plugin lists, and how its targets are imported."""

if TYPE_CHECKING:
    from leafgrad.backends.contract import Backend
    from leafgrad.compile.run.executor import Executor, Preferred, Program
    from leafgrad.plugins.lookup import (
        API_VERSION,
        Plugin,
        PluginClashError,
        PluginWarning,
        UnknownNameError,
        backend,
        backend_for,
        backends,
        callback,
        checks,
        command,
        commands,
        executor,
        executors,
        format_of,
        hookimpl,
        load,
        module,
        op,
        ops,
        register,
        report,
        status,
        unregister,
    )
    from leafgrad.plugins.specs import (
        BackendSpec,
        CallbackSpec,
        CheckSpec,
        CommandSpec,
        ExecutorSpec,
        FormatSpec,
        ModuleSpec,
        resolve,
    )
__all__ = [
    "API_VERSION",
    "Backend",
    "BackendSpec",
    "CallbackSpec",
    "CheckSpec",
    "CommandSpec",
    "Executor",
    "ExecutorSpec",
    "FormatSpec",
    "ModuleSpec",
    "Plugin",
    "PluginClashError",
    "PluginWarning",
    "Preferred",
    "Program",
    "UnknownNameError",
    "backend",
    "backend_for",
    "backends",
    "callback",
    "checks",
    "command",
    "commands",
    "executor",
    "executors",
    "format_of",
    "hookimpl",
    "load",
    "module",
    "op",
    "ops",
    "register",
    "report",
    "resolve",
    "status",
    "unregister",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(
        __name__,
        names={
            **dict.fromkeys(__all__, "leafgrad.plugins.lookup"),
            **dict.fromkeys(SPECS, "leafgrad.plugins.specs"),
            **{name: contract.partition(":")[0] for name, contract in CONTRACTS.items()},
        },
        made=shown(__name__),
    )
