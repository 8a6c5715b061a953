"""Names to things, and which plugin brought each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

from leafgrad.errors import PluginError

T = TypeVar("T")

FEW: Final = 20  # names that an error lists


class UnknownNameError(LookupError, RuntimeError):
    """No plugin defines the name that was asked for."""


class PluginClashError(PluginError):
    """Two plugins define the name that was asked for, or that is being registered."""


@dataclass
class Plugin:
    """One plugin and what became of it.

    Args:
        name: its entry-point name.
        distribution, version: the installed package that brought it; empty if the program registered it itself.
        status: "active", "blocked" (excluded by LEAFGRAD_PLUGINS) or "failed".
        hooks: the hooks it implements, once active, and what each lists, by name.
        error: why it failed, what blocked it, or which of its names others define too.
        load_time: how long its import and registration took, in seconds.
    """

    name: str
    distribution: str = ""
    version: str = ""
    status: Literal["active", "blocked", "failed"] = "active"
    hooks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""
    load_time: float = 0.0

    @property
    def installed(self) -> bool:
        """Whether it is a package of its own, neither the core nor registered by the program."""
        return self.distribution not in ("", "leafgrad")

    def __str__(self) -> str:
        origin = f"{self.distribution} {self.version}".rstrip() or "no distribution"
        return f"plugin {self.name!r} ({origin})"


def near(name: str, known: Sequence[str]) -> str:
    """The known names in a sentence; where they are many, the five that are most like ``name``."""
    if len(known) <= FEW:
        return ", ".join(known) or "none"
    from difflib import get_close_matches  # names are looked up often, and are wrong seldom

    alike = get_close_matches(name, known, 5, cutoff=0)
    return f"{', '.join(alike)} and {len(known) - len(alike)} others"


SYNONYMS = {("gpu", "cuda")}  # what others call it, and its name here


def meant_by(name: str, known: Iterable[str]) -> str:
    """A question for the known name that is most like one; "" if none is."""
    from difflib import get_close_matches

    alike = [k for k in known if (name, k) in SYNONYMS] or get_close_matches(name, known, 1, cutoff=0.6)
    return f"; did you mean {alike[0]!r}?" if alike else ""


class Registry(Generic[T]):
    """Things of one kind by name. An unknown name is looked for in more and more plugins before it is an
    error.

    kind: what the things are called in errors.
    sources: functions that load further plugins, called in turn at the first look-up of a name still unknown.
    left_out: tells which plugins did not load: an unknown name may be one of theirs.
    """

    def __init__(
        self, kind: str, sources: Sequence[Callable[[], object]], left_out: Callable[[], Sequence[Plugin]]
    ) -> None:
        self.kind = kind
        self._sources = sources
        self._left_out = left_out
        self._entries: dict[str, tuple[T, Plugin]] = {}
        self._contested: dict[str, tuple[Plugin, ...]] = {}
        self._ranks: dict[str, int] = {}

    def find(self, name: str) -> T:
        """The thing of this name; UnknownNameError lists the known names, or those alike, if there is none.

        Raises PluginClashError if several installed plugins define it.
        """
        for load in self._sources:
            if self.owners(name):
                break
            load()
        if name in self._contested:
            raise self.clash(name, *self._contested[name])
        if name not in self._entries:
            known = near(name, sorted(self._entries))
            meant = meant_by(name, self._entries)
            left_out = "".join(f"; left out: {plugin.error}" for plugin in self._left_out())
            raise UnknownNameError(f"unknown {self.kind} {name!r}: known are {known}{meant}{left_out}")
        return self._entries[name][0]

    def owners(self, name: str) -> tuple[Plugin, ...]:
        """The plugins that define `name`, as far as plugins are loaded: none, one, or those that contest it."""
        return (self._entries[name][1],) if name in self._entries else self._contested.get(name, ())

    def add(self, name: str, entry: T, plugin: Plugin, rank: int = 0) -> None:
        """Enter a thing under a name that is known to be free: before others of its kind if ``rank`` is lower."""
        self._entries[name] = entry, plugin
        self._ranks[name] = rank

    def remove(self, plugin: Plugin) -> None:
        """Take out all that a plugin brought."""
        self._entries = {name: found for name, found in self._entries.items() if found[1] is not plugin}

    def contest(self, name: str, plugins: tuple[Plugin, ...]) -> None:
        """Leave a name to nobody, because several plugins define it."""
        self._entries.pop(name, None)
        self._contested[name] = plugins

    def clash(self, name: str, *plugins: Plugin) -> PluginClashError:
        """The error that names the plugins which define `name`, in order of loading."""
        by = " and ".join(f"by {plugin}" for plugin in plugins)
        installed = [plugin.name for plugin in plugins if plugin.installed]
        remedy = f"uninstall one of them, or set LEAFGRAD_PLUGINS=-{installed[-1]}" if installed else "rename one"
        return PluginClashError(f"{self.kind} {name!r} is defined twice: {by}; {remedy}")

    def owned(self) -> list[tuple[T, Plugin]]:
        """The things registered so far, each with the plugin that brought it."""
        return list(self._entries.values())

    def __iter__(self) -> Iterator[T]:
        """The things registered so far, in the order they came, but for those whose hook comes first or last."""
        ranked = sorted(self._entries, key=lambda name: self._ranks[name])
        return (self._entries[name][0] for name in ranked)
