"""Names that are found when they are first asked for: what few programs need, and what PyTorch has beside it.

A name of a module that attached itself here is looked for, in this order, in the modules that it says hold it, among
its own submodules, and in ``leafgrad.compat.torch``, which mirrors PyTorch's modules: so ``leafgrad.cuda``,
``leafgrad.autocast`` and ``import leafgrad.utils.data.dataloader`` give what the stand-in for PyTorch gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

TOP = __name__.partition(".")[0]
HELPERS = {"TYPE_CHECKING", "attach"}
_later: dict[str, Mapping[str, str]] = {}
_borrowed: dict[str, set[str]] = {}


def calling(module: str, name: str) -> Callable[..., Any]:
    """A function that calls another one, whose module is imported at the first call."""

    def function(*args: Any) -> Any:
        return getattr(import_module(module), name)(*args)

    function.__name__ = name
    return function


def attach(
    package: str,
    names: Mapping[str, str] | None = None,
    *,
    find: Callable[[str, str], Any] = lambda module, name: getattr(import_module(module), name),
    made: Callable[[str, Any], Any] = lambda name, value: value,
    declared: Mapping[str, Any] | None = None,
    beyond: Callable[[str], Any] = lambda name: None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module. Give them where type checkers do not look: those know all names.

    Args:
        package: the module's ``__name__``.
        names: name -> the module that has it.
        find: the value that such a module has under a name.
        made: what becomes of such a name's value, or PyTorch's, before it is kept.
        declared: names and their values that others add to.
        beyond: what has a name that is nowhere else; None if nothing.

    Raises:
        AttributeError: when a name is asked for that is nowhere; with one that may have been meant.
        ImportError: when a module that should have the name cannot be imported, or has not come so far.
    """
    held, later, live = vars(sys.modules[package]), names or {}, {} if declared is None else declared
    _later[package] = later
    borrowed = _borrowed[package] = set()

    def __getattr__(name: str) -> Any:
        try:
            if name in later:
                return held.setdefault(name, made(name, find(later[name], name)))
            if PathFinder.find_spec(f"{package}.{name}", held.get("__path__", ())):
                return import_module(f"{package}.{name}")
        except AttributeError as error:  # which would pass for a name that is not there
            raise ImportError(f"{package}.{name}: {error}", name=later.get(name, package)) from error
        if name in live:
            return live[name]
        if not name.startswith("_"):
            stand_in = import_module(f"{TOP}.compat.stand_in")
            if name in stand_in.lent(package):
                borrowed.add(name)
                mirror = import_module(f"{TOP}.compat.torch{package.removeprefix(TOP)}")
                return held.setdefault(name, made(name, getattr(mirror, name)))
            if stand_in.files(f"{package}.{name}"):
                return import_module(f"{package}.{name}")
            if (found := beyond(name)) is not None:
                return found
        raise absent(f"module {package!r} has no attribute {name!r}", name, __dir__)

    def __dir__() -> list[str]:
        stand_in = import_module(f"{TOP}.compat.stand_in")
        return sorted({*own(package), *live, *stand_in.lent(package), *stand_in.modules(package)} - HELPERS)

    return __getattr__, __dir__


def own(package: str) -> set[str]:
    """The names of a module that attached itself, without those of PyTorch's that it has not itself."""
    from pkgutil import iter_modules  # slow to import, and seldom needed

    held = vars(sys.modules[package])
    rooms = [room.name for room in iter_modules(held.get("__path__", ())) if not room.name.startswith("_")]
    return ({*held} - _borrowed[package]) | {*_later[package], *rooms}


def absent(message: str, name: str, names: Callable[[], Iterable[str]]) -> AttributeError:
    """The error for a name that is not there, which asks whether one of ``names()`` was meant.

    Python itself asks only where there are fewer than 750 of them, and only where it prints the error.
    """
    if not name.startswith("_"):
        from difflib import get_close_matches

        known = [n for n in names() if not n.startswith("_")]
        if close := [n for n in known if n.lower() == name.lower()] or get_close_matches(name, known, 1, 0.8):
            message += f". Did you mean: {close[0]!r}?"
    return AttributeError(message, name=name, obj=None)  # no object: Python shall not ask again


class Beside:
    """Finds modules that PyTorch has and this package has under the stand-in's names only: the last of all finders."""

    @staticmethod
    def find_spec(fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """How to make ``leafgrad.cuda``; None for all else."""
        if fullname.startswith(f"{TOP}.") and not fullname.startswith(f"{TOP}.compat") and "._" not in fullname:
            found: ModuleSpec | None = import_module(f"{TOP}.compat.stand_in").beside(fullname)
            return found
        return None


if Beside not in sys.meta_path:
    sys.meta_path.append(Beside)
