"""The pluggy manager, with a loader that survives broken plugins and registers each one whole or not at all.

Environment variables, read when third-party plugins load:
    LEAFGRAD_PLUGINS          "none", or a comma list of entry-point names: only these load
    LEAFGRAD_STRICT_PLUGINS   "1": a plugin that fails to load is an error, not a warning
"""

from __future__ import annotations

import difflib
import os
import threading
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pluggy

from leafgrad.errors import PluginError
from leafgrad.plugins import hookspecs
from leafgrad.plugins.hookspecs import API_VERSION
from leafgrad.plugins.registry import Plugin, Registry, UnknownNameError
from leafgrad.plugins.specs import BackendSpec, CommandSpec, ExecutorSpec, Op

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "leafgrad"
CORE: Final = "leafgrad.plugins.builtin"
HOOKS: Final = tuple(name for name in vars(hookspecs) if name.startswith("leafgrad_"))

Contribution = dict[str, list[Any]]
"""What one plugin lists, by hook."""


class PluginWarning(UserWarning):
    """A plugin was left out; the message names it, its distribution and the reason."""


class PluginClashError(PluginError):
    """A plugin misspells a hook or defines a name that is taken: raised where other failures only warn."""


class Manager:
    """All plugins and what they brought.

    core: module with the core's own hook implementations, registered at the first look-up.
    """

    def __init__(self, core: str = CORE) -> None:
        self._core_module = core
        self._pluggy = pluggy.PluginManager(GROUP)
        self._pluggy.add_hookspecs(hookspecs)
        self._plugins: dict[str, Plugin] = {}
        self._lock = lock = threading.RLock()
        if hasattr(os, "register_at_fork"):  # a child must not find plugins half loaded, by a thread that it has not
            os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
        self._busy = self._loaded = False
        sources = (self._load_core, self.load)
        self.ops: Registry[Op] = Registry("op", sources)
        self.backends: Registry[BackendSpec] = Registry("backend", sources)
        self.executors: Registry[ExecutorSpec] = Registry("executor", sources)
        self.commands: Registry[CommandSpec] = Registry("command", sources)
        self._registries: dict[str, tuple[Registry[Any], Any]] = {
            "leafgrad_ops": (self.ops, Op),
            "leafgrad_backends": (self.backends, BackendSpec),
            "leafgrad_executors": (self.executors, ExecutorSpec),
            "leafgrad_cli": (self.commands, CommandSpec),
        }

    def load(self) -> None:
        """Load the third-party plugins that are installed, once.

        A plugin that fails is left out with a PluginWarning, or a PluginError under
        LEAFGRAD_STRICT_PLUGINS=1. Raises PluginClashError for misspelt hooks and names defined twice, after
        all others are loaded.
        """
        with self._lock:
            if self._loaded or self._busy:  # busy: a plugin being loaded looked something up
                return
            self._load_core()
            self._busy = True
            try:
                failures = self._load_entry_points()
            finally:
                self._busy = False
            strict = os.environ.get("LEAFGRAD_STRICT_PLUGINS", "") not in ("", "0")
            errors = [error for error in failures if strict or isinstance(error, PluginClashError)]
            self._loaded = not errors
        for error in failures:
            if error not in errors:
                warnings.warn(str(error), PluginWarning, stacklevel=2)
        if errors:
            kind = PluginClashError if isinstance(errors[0], PluginClashError) else PluginError
            raise kind("\n".join(map(str, errors))) from errors[0]

    def register(self, plugin: object, name: str | None = None) -> Plugin:
        """Register a plugin, a module or an object with hook implementations, without an entry point.

        name: what to call it in errors and in `status`; by default its `__name__`.
        Raises PluginError, and registers nothing of it, if anything about it is wrong.
        """
        record = Plugin(str(name or getattr(plugin, "__name__", type(plugin).__name__)))
        with self._lock:
            self._load_core()
            self._register(plugin, record)
        return record

    def status(self) -> list[Plugin]:
        """The plugins met so far, in order of loading. `load()` first for a complete list."""
        return list(self._plugins.values())

    def backend_for(self, device_type: str) -> BackendSpec:
        """The backend that serves a device type, as listed; UnknownNameError if no plugin lists one."""
        for load in (self._load_core, self.load):
            load()
            for spec in self.backends:
                if spec.device_type == device_type:
                    return spec
        known = ", ".join(sorted(spec.device_type for spec in self.backends)) or "none"
        raise UnknownNameError(f"unknown device type {device_type!r}: known are {known}")

    def _load_core(self) -> None:
        """Register the core's own hooks. Its entry point, where installed, names the same module."""
        with self._lock:
            if self._busy or "core" in self._plugins:
                return
            self._busy = True
            try:
                self._register(import_module(self._core_module), Plugin("core", "leafgrad"))
            finally:
                self._busy = False

    def _load_entry_points(self) -> list[PluginError]:
        """Load what is installed and allowed; return what went wrong, naming plugin and distribution."""
        failures = []
        allowed = _allowed()
        found = sorted(_installed(), key=lambda entry: entry.name)
        for entry in found:
            record = Plugin(entry.name, *_distribution(entry))
            present = self._plugins.get(entry.name)
            if entry.value == self._core_module:
                self._plugins["core"].version = record.version
            elif present and present.status == "active" and present.distribution == record.distribution:
                continue  # an earlier load, which another plugin stopped, got this far
            elif allowed is not None and entry.name not in allowed:
                record.status, record.error = "blocked", "not in LEAFGRAD_PLUGINS"
                self._plugins[entry.name] = record
            else:
                failures += self._guarded(entry, record)
        for name in sorted((allowed or set()) - {entry.name for entry in found}):
            failures.append(PluginError(f"LEAFGRAD_PLUGINS names {name!r}, but no installed package has that plugin"))
        return failures

    def _guarded(self, entry: EntryPoint, record: Plugin) -> list[PluginError]:
        try:
            self._register(entry.load(), record)
        except PluginError as error:
            failure = error
        except Exception as error:
            failure = PluginError(f"{record} failed to load: {type(error).__name__}: {error}")
            failure.__cause__ = error
        else:
            return []
        record.status, record.error, record.hooks = "failed", str(failure), ()
        self._plugins[entry.name] = record
        return [failure]

    def _register(self, plugin: object, record: Plugin) -> None:
        """Register all that `plugin` lists, or nothing."""
        version = getattr(plugin, "leafgrad_api_version", API_VERSION)
        if version != API_VERSION:
            raise PluginError(
                f"{record} was made for version {version!r} of leafgrad's plugin interface, this is version "
                f"{API_VERSION}; install a release of it that fits this leafgrad"
            )
        if self._pluggy.is_registered(plugin) or self._pluggy.has_plugin(record.name):
            other = self._plugins[self._pluggy.get_name(plugin) or record.name]
            raise PluginClashError(f"{record}: {other} is registered already")
        try:
            self._pluggy.register(plugin, record.name)
            contribution = self._collect(plugin, record)
            self._check(contribution, record)
        except Exception as error:
            if self._pluggy.get_plugin(record.name) is plugin:
                self._pluggy.unregister(plugin)
            if isinstance(error, PluginError):
                raise
            raise PluginError(f"{record} failed to register: {type(error).__name__}: {error}") from error
        for hook, entries in contribution.items():
            self._registries[hook][0].add(entries, record)
        record.hooks = tuple(contribution)
        self._plugins[record.name] = record

    def _collect(self, plugin: object, record: Plugin) -> Contribution:
        """Call the plugin's own hooks, after a check of their names."""
        callers = {caller.name for caller in self._pluggy.get_hookcallers(plugin) or ()}
        functions = {name for name in dir(plugin) if name.startswith("leafgrad_") and callable(getattr(plugin, name))}
        for name in sorted(callers | functions):
            if name not in HOOKS:
                guess = difflib.get_close_matches(name, HOOKS, 1, cutoff=0.8)
                hint = f"did you mean {guess[0]}?" if guess else f"the hooks are {', '.join(HOOKS)}"
                raise PluginClashError(f"{record}: unknown hook {name!r}; {hint}")
            if name not in callers:
                raise PluginClashError(
                    f"{record}: {name} is not marked as a hook; put @leafgrad.plugins.hookimpl above it"
                )
        if not callers:
            raise PluginError(f"{record} implements no hook; expected at least one of {', '.join(HOOKS)}")
        others = [other for other in self._pluggy.get_plugins() if other is not plugin]
        contribution: Contribution = {}
        for name in sorted(callers):
            for listed in self._pluggy.subset_hook_caller(name, others)() or [None]:  # pluggy drops None
                if not isinstance(listed, list | tuple):
                    raise PluginError(f"{record}: expected {name} to return a list, got {type(listed).__name__}")
                contribution.setdefault(name, []).extend(listed)
        return contribution

    def _check(self, contribution: Contribution, record: Plugin) -> None:
        """PluginError for entries of the wrong kind, PluginClashError for names that are taken."""
        for hook, entries in contribution.items():
            registry, kind = self._registries[hook]
            for entry in entries:
                if not isinstance(entry, kind) or isinstance(entry, type):
                    raise PluginError(f"{record}: expected {hook} to list {kind.__name__} objects, got {entry!r}")
                if not isinstance(entry.name, str) or (kind is Op and not entry.name.isidentifier()):
                    raise PluginError(f"{record}: {hook} lists an invalid name, {entry.name!r}")
            _check_free(kind.__name__, ((entry.name, registry.owner(entry.name)) for entry in entries), record)
        owners = {spec.device_type: self.backends.owner(spec.name) for spec in self.backends}
        listed = [spec.device_type for spec in contribution.get("leafgrad_backends", ())]
        _check_free("device type", ((device, owners.get(device)) for device in listed), record)


def _check_free(what: str, names: Iterable[tuple[str, Plugin | None]], record: Plugin) -> None:
    seen = set()
    for name, owner in names:
        owner = record if name in seen else owner
        if owner is not None:
            raise PluginClashError(
                f"{what} {name!r} is defined twice: by {owner} and by {record}; "
                "uninstall one of them, or exclude it with LEAFGRAD_PLUGINS"
            )
        seen.add(name)


def _allowed() -> set[str] | None:
    """Names in LEAFGRAD_PLUGINS; None if every plugin may load."""
    value = os.environ.get("LEAFGRAD_PLUGINS", "").strip()
    if not value:
        return None
    return set() if value == "none" else {name.strip() for name in value.split(",")} - {""}


def _installed() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and needed only here

    return entry_points(group=GROUP)


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    return (entry.dist.name, entry.dist.version) if entry.dist else ("unknown distribution", "")
