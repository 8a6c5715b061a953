"""Names to things, and which plugin brought each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name it is registered under."""


T = TypeVar("T", bound=Named)


class UnknownNameError(LookupError, RuntimeError):
    """No plugin defines the name that was asked for."""


@dataclass
class Plugin:
    """One plugin and what became of it.

    name: its entry-point name.
    distribution, version: the installed package that brought it; empty if the program registered it itself.
    status: "active", "blocked" (excluded by LEAFGRAD_PLUGINS) or "failed".
    hooks: the hooks it implements, once active.
    error: why it failed, or what blocked it.
    """

    name: str
    distribution: str = ""
    version: str = ""
    status: Literal["active", "blocked", "failed"] = "active"
    hooks: tuple[str, ...] = ()
    error: str = ""

    def __str__(self) -> str:
        origin = f"{self.distribution} {self.version}".rstrip() or "no distribution"
        return f"plugin {self.name!r} ({origin})"


class Registry(Generic[T]):
    """Things of one kind by name. An unknown name is looked for in more and more plugins before it is an
    error.

    kind: what the things are called in errors.
    sources: functions that load further plugins, called in turn at the first look-up of a name still unknown.
    """

    def __init__(self, kind: str, sources: Sequence[Callable[[], object]]) -> None:
        self._kind = kind
        self._sources = sources
        self._entries: dict[str, tuple[T, Plugin]] = {}

    def find(self, name: str) -> T:
        """The thing of this name; UnknownNameError lists the known names if there is none."""
        for load in self._sources:
            if name in self._entries:
                break
            load()
        if name not in self._entries:
            known = ", ".join(sorted(self._entries)) or "none"
            raise UnknownNameError(f"unknown {self._kind} {name!r}: known are {known}")
        return self._entries[name][0]

    def owner(self, name: str) -> Plugin | None:
        """The plugin that brought `name`, as far as plugins are loaded."""
        return self._entries[name][1] if name in self._entries else None

    def add(self, entries: Iterable[T], plugin: Plugin) -> None:
        """Enter things whose names are known to be free."""
        self._entries.update({entry.name: (entry, plugin) for entry in entries})

    def __iter__(self) -> Iterator[T]:
        """The things registered so far, in the order they came."""
        return (entry for entry, _ in list(self._entries.values()))
