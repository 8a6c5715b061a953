"""What plugins list: data that imports nothing. Targets are "module:attribute", imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

from leafgrad.errors import PluginError


@runtime_checkable
class Op(Protocol):
    """What the registry asks of an op; `leafgrad.op` makes the real ones."""

    @property
    def name(self) -> str:
        """The op's name, by which it is found."""

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Run the op."""


class BackendSpec(NamedTuple):
    """An array library bound to a device type.

    name: the backend's own name, as in `op.kernel("cupy")`.
    device_type: the device type it serves, as in `leafgrad.device("cuda:0")`; each has one backend.
    target: its `leafgrad.backends.Backend` class.
    """

    name: str
    device_type: str
    target: str


class ExecutorSpec(NamedTuple):
    """A way to run compiled graphs.

    name: as in `compile(step, executor=name)`.
    target: what the compiler calls.
    preferred: whether it is asked, by its `gains(graph)`, if it should run a graph for which none is named.
    """

    name: str
    target: str
    preferred: bool = False


class CommandSpec(NamedTuple):
    """A subcommand `python -m leafgrad NAME ...`.

    help: one line for the overview.
    target: a function that takes the remaining arguments, a list of str, and returns the exit status, an int.
    """

    name: str
    help: str
    target: str


def resolve(target: str) -> Any:
    """Import what "module:attribute" names; a PluginError if the module has no such attribute."""
    name, _, attribute = target.partition(":")
    module = import_module(name)
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise PluginError(f"target {target!r}: module {name!r} has no attribute {attribute!r}") from error


def flaw(entry: Any) -> str:
    """What is wrong with the fields of something that a plugin lists; empty if nothing is."""
    if not isinstance(entry, BackendSpec | ExecutorSpec | CommandSpec):
        name = getattr(entry, "name", None)
        return "" if isinstance(name, str) and name.isidentifier() else f"name: expected an identifier, got {name!r}"
    for field, value in zip(entry._fields, entry, strict=True):
        if field == "preferred" and not isinstance(value, bool):
            return f"preferred: expected True or False, got {value!r}"
        if field != "preferred" and not (isinstance(value, str) and value):
            return f"{field}: expected text, got {value!r}"
    module, _, attribute = entry.target.partition(":")
    if not (module and attribute.isidentifier()):
        return f"target: expected 'module:attribute', got {entry.target!r}"
    return ""
