"""The pluggy manager, with a loader that survives broken plugins and registers each one whole or not at all.

Environment variables, read when third-party plugins load:
    LEAFGRAD_PLUGINS          which may load: see leafgrad.plugins.selection
    LEAFGRAD_STRICT_PLUGINS   "1": a failure is an error, not a warning: see leafgrad.plugins.failures
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pluggy

from leafgrad import forks
from leafgrad.errors import PluginError
from leafgrad.plugins import hookspecs
from leafgrad.plugins.failures import report, strict
from leafgrad.plugins.hookspecs import API_VERSION
from leafgrad.plugins.registry import Plugin, PluginClashError, Registry, UnknownNameError
from leafgrad.plugins.selection import VARIABLE, selection
from leafgrad.plugins.specs import (
    BackendSpec,
    CallbackSpec,
    CheckSpec,
    CommandSpec,
    ExecutorSpec,
    FormatSpec,
    ModuleSpec,
    Op,
    flaw,
)
from leafgrad.plugins.strangers import strangers

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "leafgrad"
CORE: Final = "leafgrad.plugins.builtin"
CORE_KEY: Final = ("core", "leafgrad")
HOOKS: Final = tuple(name for name in vars(hookspecs) if name.startswith("leafgrad_"))
ASKED: Final = frozenset(name for name in HOOKS if signature(getattr(hookspecs, name)).parameters)
"""Hooks with arguments, which are called where something is asked, not when a plugin is registered."""

Contribution = dict[str, list[Any]]
"""What one plugin lists, by hook."""


class HookManager(pluggy.PluginManager):
    """Looks for hooks among the names that a module has; what it imports when asked is left alone."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """The options of a hook's implementation; None of anything else."""
        later = isinstance(plugin, ModuleType) and name not in vars(plugin)
        return None if later else super().parse_hookimpl_opts(plugin, name)


class Manager:
    """All plugins and what they brought.

    core: module with the core's own hook implementations, registered at the first look-up.
    """

    def __init__(self, core: str = CORE) -> None:
        self._core_module = core
        self._pluggy = HookManager(GROUP)
        self._pluggy.add_hookspecs(hookspecs)
        self._plugins: dict[tuple[str, str], Plugin] = {}  # by name and distribution
        self._clashes: list[PluginError] = []
        self._lock = forks.guard(threading.RLock())  # a child must not find plugins half loaded
        self._busy = self._loaded = False
        sources = (self._load_core, self.load)
        self.ops: Registry[Op] = Registry("op", sources, self._left_out)
        self.backends: Registry[BackendSpec] = Registry("backend", sources, self._left_out)
        self.devices: Registry[BackendSpec] = Registry("device type", sources, self._left_out)
        self.executors: Registry[ExecutorSpec] = Registry("executor", sources, self._left_out)
        self.commands: Registry[CommandSpec] = Registry("command", sources, self._left_out)
        self.modules: Registry[ModuleSpec] = Registry("module", sources, self._left_out)
        self.formats: Registry[FormatSpec] = Registry("file format", sources, self._left_out)
        self.suffixes: Registry[FormatSpec] = Registry("suffix", sources, self._left_out)
        self.callbacks: Registry[CallbackSpec] = Registry("callback", sources, self._left_out)
        self._registries: dict[str, tuple[Any, dict[str, Registry[Any]]]] = {
            "leafgrad_ops": (Op, {"name": self.ops}),
            "leafgrad_backends": (BackendSpec, {"name": self.backends, "device_type": self.devices}),
            "leafgrad_executors": (ExecutorSpec, {"name": self.executors}),
            "leafgrad_cli": (CommandSpec, {"name": self.commands}),
            "leafgrad_modules": (ModuleSpec, {"name": self.modules}),
            "leafgrad_formats": (FormatSpec, {"name": self.formats, "suffix": self.suffixes}),
            "leafgrad_callbacks": (CallbackSpec, {"name": self.callbacks}),
        }

    def load(self) -> None:
        """Load the third-party plugins that are installed, once.

        A plugin that fails is left out, and a name that two of them define belongs to neither, each with a
        PluginWarning: what is missing is an error where it is looked up. Raises PluginError if LEAFGRAD_PLUGINS
        contradicts itself, and for every failure under LEAFGRAD_STRICT_PLUGINS=1.
        """
        with self._lock:
            if self._loaded or self._busy:  # busy: a plugin being loaded looked something up
                return
            self._load_core()
            self._busy = True
            try:
                failures = [*self._load_entry_points(), *self._clashes, *self._misspelt()]
            finally:
                self._busy = False
            self._loaded = not (failures and strict())
        report(*failures)

    def register(self, plugin: object, name: str | None = None, *, replace: bool = False) -> Plugin:
        """Register a plugin, a module or an object with hook implementations, without an entry point.

        Args:
            plugin: the module or object.
            name: what to call it in errors and in `status`; by default its `__name__`.
            replace: in place of the one that the program registered under that name before, if it did, as where a cell
                of a notebook runs again. If anything is wrong with the new one, the former one stays.

        Raises:
            PluginError: anything about it is wrong; nothing of it is registered.
        """
        record = Plugin(str(name or getattr(plugin, "__name__", type(plugin).__name__)))
        with self._lock:
            self._load_core()
            former = self._pluggy.get_plugin(record.name) if replace else None
            if former is not None:
                self.unregister(record.name)
            try:
                self._register(lambda: plugin, record)
            except PluginError:
                if former is not None:
                    self._register(lambda: former, Plugin(record.name))
                raise
        return record

    def unregister(self, name: str) -> None:
        """Take back what the program registered under this name; what is at work with it goes on.

        Raises UnknownNameError if there is none, and PluginError if it is an installed one.
        """
        with self._lock:
            record = self._plugins.get((name, ""))
            if record is None:
                known = ", ".join(p.name for p in self._plugins.values() if not p.distribution) or "none"
                installed = any(p.name == name for p in self._plugins.values())
                if installed:
                    raise PluginError(f"plugin {name!r} is installed; LEAFGRAD_PLUGINS=-{name} excludes it")
                raise UnknownNameError(f"no plugin {name!r} was registered by the program: known are {known}")
            for _, registries in self._registries.values():
                for registry in registries.values():
                    registry.remove(record)
            self._pluggy.unregister(name=name)
            del self._plugins[name, ""]

    def status(self) -> list[Plugin]:
        """The plugins met so far, in order of loading. `load()` first for a complete list."""
        return list(self._plugins.values())

    def backend_for(self, device_type: str) -> BackendSpec:
        """The backend that serves a device type, as listed; UnknownNameError if no plugin lists one."""
        return self.backends.find(self.devices.find(device_type).name)

    def checks(self, op: Op, taken: Container[str] = ()) -> list[CheckSpec]:
        """What plugins check of an op, in the order that ``tryfirst`` and ``trylast`` say.

        Of one whose hook fails, or lists what is no CheckSpec or has a name that is taken, nothing, with a warning.
        """
        self.load()
        hook = "leafgrad_checks"
        callers = [plugin for plugin in self._plugins.values() if hook in plugin.hooks]
        found: dict[str, CheckSpec] = {}
        for record in sorted(callers, key=lambda record: rank(self._pluggy.get_plugin(record.name), hook)):
            try:
                plugin = self._pluggy.get_plugin(record.name)
                others = [other for other in self._pluggy.get_plugins() if other is not plugin]
                listed = [spec for specs in self._pluggy.subset_hook_caller(hook, others)(op=op) for spec in specs]
                for spec in listed:
                    if not isinstance(spec, CheckSpec) or flaw(spec) or spec.name in found or spec.name in taken:
                        wrong = flaw(spec) if isinstance(spec, CheckSpec) else "expected a CheckSpec"
                        raise PluginError(f"lists {spec!r}: {wrong or 'there is a check of that name'}")
                found |= {spec.name: spec for spec in listed}
            except Exception as error:
                what = str(error) if isinstance(error, PluginError) else f"failed: {type(error).__name__}: {error}"
                report(PluginError(f"{record}: {hook} of op {op.name!r} {what}"))
        return list(found.values())

    def owner(self, target: str) -> Plugin | None:
        """The plugin that lists something with this target; None if none does."""
        for _, registries in self._registries.values():
            for registry in registries.values():
                for entry, plugin in registry.owned():
                    if getattr(entry, "target", None) == target:
                        return plugin
        return None

    def _left_out(self) -> list[Plugin]:
        """The plugins that failed or may not load."""
        return [plugin for plugin in self._plugins.values() if plugin.status != "active"]

    def _load_core(self) -> None:
        """Register the core's own hooks. Its entry point, where installed, names the same module."""
        with self._lock:
            if self._busy or CORE_KEY in self._plugins:
                return
            self._busy = True
            try:
                self._register(lambda: import_module(self._core_module), Plugin(*CORE_KEY))
            finally:
                self._busy = False

    def _load_entry_points(self) -> list[PluginError]:
        """Load what is installed and allowed; return what went wrong, naming plugin and distribution."""
        chosen = selection()
        failures = []
        found = sorted(_installed(), key=lambda entry: entry.name)
        for entry in found:
            record = Plugin(entry.name, *_distribution(entry))
            key = record.name, record.distribution
            if entry.value == self._core_module:
                self._plugins[CORE_KEY].version = record.version
            elif key in self._plugins and self._plugins[key].status == "active":
                continue  # an earlier load, which another plugin stopped, got this far
            elif reason := chosen.blocks(entry.name):
                record.status, record.error = "blocked", f"{record} is {reason}"
                self._plugins[key] = record
            else:
                failures += self._guarded(entry, record)
        for name in sorted(chosen.names - {entry.name for entry in found}):
            failures.append(PluginError(f"{VARIABLE} names {name!r}, but no installed package has that plugin"))
        return failures

    def _guarded(self, entry: EntryPoint, record: Plugin) -> list[PluginError]:
        try:
            self._register(entry.load, record, installed=True)
        except PluginError as error:
            failure = error
        except (Exception, SystemExit) as error:  # a module may end in sys.exit(), as scripts do
            failure = PluginError(f"{record} failed to load: {type(error).__name__}: {error}")
            failure.__cause__ = error
        else:
            return []
        record.status, record.error = "failed", str(failure)
        self._plugins[record.name, record.distribution] = record
        return [failure]

    def _register(self, load: Callable[[], object], record: Plugin, *, installed: bool = False) -> None:
        """Register all that the plugin lists, or nothing; of an installed one, all names that are free."""
        start = time.perf_counter()
        plugin = load()
        version = getattr(plugin, "leafgrad_api_version", API_VERSION)
        if version != API_VERSION:
            raise PluginError(
                f"{record} was made for version {version!r} of leafgrad's plugin interface, this is version "
                f"{API_VERSION}; install a release of it that fits this leafgrad"
            )
        if name := self._pluggy.get_name(plugin) or (self._pluggy.has_plugin(record.name) and record.name):
            other = next(p for p in self._plugins.values() if p.name == name and p.status == "active")
            raise PluginClashError(f"{record}: {other} is registered already")
        try:
            self._pluggy.register(plugin, record.name)
            contribution = self._collect(plugin, record)
            self._check(contribution, record)
            if not installed:
                self._refuse_clashes(contribution, record)
                for mistake in self._mistakes(contribution, record):
                    raise mistake
        except (Exception, SystemExit) as error:
            if self._pluggy.get_plugin(record.name) is plugin:
                self._pluggy.unregister(plugin)
            if isinstance(error, PluginError):
                raise
            raise PluginError(f"{record} failed to register: {type(error).__name__}: {error}") from error
        for hook in contribution:
            for registry, name, entry in self._claims({hook: contribution[hook]}):
                self._enter(registry, name, entry, record, rank(plugin, hook))
        record.hooks = {hook: tuple(entry.name for entry in entries) for hook, entries in contribution.items()}
        record.load_time = time.perf_counter() - start
        self._plugins[record.name, record.distribution] = record

    def _misspelt(self) -> list[PluginError]:
        """What is wrong with the names that ops of installed plugins have rules for, now that all names are known."""
        failures = []
        for record in self._plugins.values():
            if record.installed and record.status == "active":
                names = [name for name in record.hooks.get("leafgrad_ops", ()) if self.ops.owners(name) == (record,)]
                listed = [self.ops.find(name) for name in names]
                found = list(self._mistakes({"leafgrad_ops": listed}, record))
                failures += found
                record.error = "; ".join(filter(None, (record.error, *map(str, found))))
        return failures

    def _mistakes(self, contribution: Contribution, record: Plugin) -> Iterator[PluginError]:
        """An error for each backend or executor that an op has a rule for, where the name is like a known one."""
        backends, executors = (
            {spec.name for spec in (*registry, *contribution.get(hook, ()))}
            for registry, hook in ((self.backends, "leafgrad_backends"), (self.executors, "leafgrad_executors"))
        )
        for op in contribution.get("leafgrad_ops", ()):
            for stranger in strangers(op, backends, executors):
                if stranger.near:
                    yield PluginError(f"{record}: op {op.name!r} has {stranger}")

    def _claims(self, contribution: Contribution) -> Iterator[tuple[Registry[Any], str, Any]]:
        """Each registry that an entry goes into, and the name it takes there."""
        for hook, entries in contribution.items():
            for entry in entries:
                for attribute, registry in self._registries[hook][1].items():
                    yield registry, getattr(entry, attribute), entry

    def _refuse_clashes(self, contribution: Contribution, record: Plugin) -> None:
        for registry, name, _ in self._claims(contribution):
            if owners := registry.owners(name):
                raise registry.clash(name, *owners, record)

    def _enter(self, registry: Registry[Any], name: str, entry: Any, record: Plugin, rank: int) -> None:
        """Give an installed plugin a name; of one that is taken, only the core and the program remain owners."""
        owners = registry.owners(name)
        if not owners:
            registry.add(name, entry, record, rank)
            return
        losers = (*owners, record) if all(owner.installed for owner in owners) else (record,)
        if len(losers) > 1:
            registry.contest(name, losers)
        clash = registry.clash(name, *owners, record)
        self._clashes.append(clash)
        for plugin in losers:
            plugin.error = "; ".join(filter(None, (plugin.error, str(clash))))

    def _collect(self, plugin: object, record: Plugin) -> Contribution:
        """Call the plugin's own hooks, after a check of their names."""
        callers = {caller.name for caller in self._pluggy.get_hookcallers(plugin) or ()}
        functions = {name for name in dir(plugin) if name.startswith("leafgrad_") and callable(getattr(plugin, name))}
        for name in sorted(callers | functions):
            if name not in HOOKS:
                from difflib import get_close_matches

                guess = get_close_matches(name, HOOKS, 1, cutoff=0.8)
                hint = f"did you mean {guess[0]}?" if guess else f"the hooks are {', '.join(HOOKS)}"
                raise PluginError(f"{record}: unknown hook {name!r}; {hint}")
            if name not in callers:
                raise PluginError(f"{record}: {name} is not marked as a hook; put @leafgrad.plugins.hookimpl above it")
        if not callers:
            raise PluginError(f"{record} implements no hook; expected at least one of {', '.join(HOOKS)}")
        others = [other for other in self._pluggy.get_plugins() if other is not plugin]
        contribution: Contribution = {}
        for name in sorted(callers):
            if name in ASKED:
                contribution[name] = []
                continue
            for listed in self._pluggy.subset_hook_caller(name, others)() or [None]:  # pluggy drops None
                if not isinstance(listed, list | tuple):
                    raise PluginError(f"{record}: expected {name} to return a list, got {type(listed).__name__}")
                contribution.setdefault(name, []).extend(listed)
        return contribution

    def _check(self, contribution: Contribution, record: Plugin) -> None:
        """PluginError for entries of the wrong kind, PluginClashError for a name that is listed twice."""
        for hook, entries in contribution.items():
            kind, _ = self._registries[hook] if entries else (object, None)
            for entry in {type(entry): entry for entry in entries}.values():  # to ask a protocol takes long
                if not isinstance(entry, kind) or isinstance(entry, type):
                    raise PluginError(f"{record}: expected {hook} to list {kind.__name__} objects, got {entry!r}")
            for entry in entries:
                if wrong := flaw(entry):
                    raise PluginError(f"{record}: {hook} lists {entry!r}: {wrong}")
        seen = set()
        for registry, name, _ in self._claims(contribution):
            if (registry.kind, name) in seen:
                raise registry.clash(name, record, record)
            seen.add((registry.kind, name))


def rank(plugin: object, hook: str) -> int:
    """Where what a hook lists stands: before others (-1) with ``@hookimpl(tryfirst=True)``, after them with trylast."""
    options = getattr(getattr(plugin, hook, None), f"{GROUP}_impl", None) or {}
    return int(bool(options.get("trylast"))) - int(bool(options.get("tryfirst")))


def _installed() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and needed only here

    return entry_points(group=GROUP)


def _distribution(entry: EntryPoint) -> tuple[str, str]:
    if entry.dist is None:
        return "unknown distribution", ""
    metadata = entry.dist.metadata  # read and parsed each time that it is asked for
    return metadata["Name"], metadata["Version"]
