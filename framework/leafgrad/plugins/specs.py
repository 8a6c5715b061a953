"""What plugins list: data that imports nothing. Targets are "module:attribute", imported when first used."""

from __future__ import annotations

import re
import sys
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

    Args:
        name: the backend's own name, as in `op.kernel("cupy")`.
        device_type: the device type it serves, as in `leafgrad.device("cuda:0")`; each has one backend.
        target: its `leafgrad.backends.Backend` class.
    """

    name: str
    device_type: str
    target: str


class ExecutorSpec(NamedTuple):
    """A way to run compiled graphs.

    Args:
        name: as in `compile(step, executor=name)`.
        target: what the compiler calls.
        preferred: whether it is asked, by its `gains(graph)`, if it should run a graph for which none is named; a type
            of devices, as ``"cuda"``, for graphs on these alone, and nothing of it is imported for others.
    """

    name: str
    target: str
    preferred: bool | str = False


class CommandSpec(NamedTuple):
    """A subcommand `python -m leafgrad NAME ...`.

    Args:
        name: what follows ``leafgrad``.
        help: one line for the overview.
        target: a function that takes the remaining arguments, a list of str, and returns the exit status, an int, or
            exits with one, as ``argparse`` does.
    """

    name: str
    help: str
    target: str


class ModuleSpec(NamedTuple):
    """A module that appears in leafgrad: ``leafgrad.NAME``, and ``torch.NAME`` where leafgrad stands in for PyTorch.

    Args:
        name: one that leafgrad has not.
        target: "package.module", without an attribute.
    """

    name: str
    target: str


class FormatSpec(NamedTuple):
    """A file format for ``leafgrad.save`` and ``load``.

    Args:
        name: as in errors.
        suffix: that of its files, as ".npz".
        target: a class, called without arguments, with two methods. ``write(file, arrays, text)`` takes a binary file,
            a dict of the host's arrays by name, and a string to keep beside them; ``read(file)`` returns the last two,
            None for a file that has no such string. A ValueError says what is wrong with a file.
    """

    name: str
    suffix: str
    target: str


class CallbackSpec(NamedTuple):
    """What a ``leafgrad.utils.Training`` tells what it does.

    Args:
        name: as in ``Training(..., callbacks=("csv",))``.
        target: a class, called with the folder of the training. Its objects have those of these methods that they
            need: ``on_start(training)``, ``on_note(training, terms)`` with the terms by name as floats,
            ``on_save(training)``, ``on_end(training)``.
    """

    name: str
    target: str


class CheckSpec(NamedTuple):
    """What ``leafgrad.testing.check_op`` checks of an op, beside its own checks.

    Args:
        name: as in ``check_op(..., checks=["onnx"])``.
        target: a function, called as ``check(op, args, params)`` for each sample. It raises an AssertionError that says
            what was expected and what came, or unittest.SkipTest where it cannot try the sample.
    """

    name: str
    target: str


def resolve(target: str) -> Any:
    """Import what "module:attribute" names, or "module".

    Args:
        target: as in a spec.

    Raises:
        PluginError: the module has no such attribute, or is a third party's and cannot be imported; the message names
            the plugin and its distribution.
    """
    name, _, attribute = target.partition(":")
    try:
        module = import_module(name)
        return getattr(module, attribute) if attribute else module
    except (Exception, SystemExit) as error:  # a module that ends the process is as broken as one that fails
        owner = owner_of(target)
        if isinstance(error, AttributeError) and error.name == attribute and error.obj is sys.modules.get(name):
            whose = "" if owner is None else f"{owner}: its "
            raise PluginError(f"{whose}target {target!r}: module {name!r} has no attribute {attribute!r}") from error
        if owner is None or owner.distribution == "leafgrad":
            raise
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(f"{owner}: its target {target!r} cannot be imported: {reason}") from error


def owner_of(target: str) -> Any:
    """The plugin that listed a target; None as long as there are none. The manager of the process tells."""
    return None


SPECS = BackendSpec | ExecutorSpec | CommandSpec | ModuleSpec | FormatSpec | CallbackSpec | CheckSpec


def flaw(entry: Any) -> str:
    """What is wrong with the fields of something that a plugin lists; empty if nothing is."""
    if not isinstance(entry, SPECS):
        name = getattr(entry, "name", None)
        return "" if isinstance(name, str) and name.isidentifier() else f"name: expected an identifier, got {name!r}"
    for field, value in zip(entry._fields, entry, strict=True):
        if field == "preferred" and isinstance(value, bool):
            continue
        if not (isinstance(value, str) and value):
            wanted = "True, False or a type of devices" if field == "preferred" else "text"
            return f"{field}: expected {wanted}, got {value!r}"
    module, _, attribute = entry.target.partition(":")
    if isinstance(entry, ModuleSpec):
        plain = entry.name.isidentifier() and all(part.isidentifier() for part in entry.target.split("."))
        return "" if plain else f"expected a name and 'package.module', got {entry.name!r} and {entry.target!r}"
    if isinstance(entry, FormatSpec) and not re.fullmatch(r"\.[a-z0-9]+", entry.suffix):
        return f"suffix: expected one such as '.npz', got {entry.suffix!r}"
    if not (module and attribute.isidentifier()):
        return f"target: expected 'module:attribute', got {entry.target!r}"
    return ""
