"""What plugins add to leafgrad itself: modules, and methods of Tensor.

``leafgrad.fft`` is looked for among the plugins' modules when leafgrad has no such name. Methods cannot be looked for
when they are missed, since a class that does so reads every attribute more slowly. So a package lists them beside its
plugin, and reading the list imports nothing:

    [project.entry-points."leafgrad.methods"]
    heat_gauss = "leafgrad_heat"
"""

from __future__ import annotations

import _imp
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec as ImportSpec
from types import ModuleType
from typing import Any, Final, cast

PACKAGE: Final = "leafgrad"
PUBLISHED: Final = {
    "fft": "leafgrad-fft", "onnx": "leafgrad-onnx", "sparse": "leafgrad-sparse",
    **dict.fromkeys(("digamma", "igamma", "igammac", "lgamma"), "leafgrad-special"),
}  # fmt: skip
"""Modules and functions of PyTorch's that packages of this repository bring."""
METHODS: Final = "[leafgrad.methods]"


class Finder:
    """Finds ``leafgrad.NAME`` where a plugin brings that module. It stands last, so it is asked where others fail."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ImportSpec | None:
        """How to import it; a ModuleNotFoundError that names the package where that is known and missing."""
        package, _, name = fullname.rpartition(".")
        if package != PACKAGE or name.startswith("_"):
            return None
        from leafgrad import plugins

        _imp.release_lock()  # Python holds it here, and a thread that loads the plugins needs it
        try:
            plugins.module(name)
        except plugins.UnknownNameError as error:
            if name in PUBLISHED:
                raise ModuleNotFoundError(f"{fullname}: {lacking(name)}", name=fullname) from error
            return None
        finally:
            _imp.acquire_lock()
        return ImportSpec(fullname, cast(Any, self))

    def create_module(self, spec: ImportSpec) -> None:
        """The usual one, which the plugin's takes the place of."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the plugin's module, and let it be the one of this name."""
        from leafgrad import plugins

        name = module.__name__
        sys.modules[name] = plugins.resolve(plugins.module(name.rpartition(".")[2]).target)


def lacking(name: str) -> str:
    """What to say of what a package of this repository would bring."""
    return brought_by(PUBLISHED[name])


def brought_by(package: str) -> str:
    """The same of a package."""
    return f"the package {package} brings it; pip install {package}, or in a checkout ./plugins/{package}"


def missed(name: str, own: Sequence[str], declared: dict[str, Any]) -> Any:
    """What a plugin adds to leafgrad under a name; None if nothing.

    Args:
        own: the folders of leafgrad's modules, which the import system finds.
        declared: the functions that ops declare as methods.
    """
    if name.startswith("_") or "." in name or name in modules_in(own):
        return None
    from leafgrad import plugins

    plugins.load()
    if name in declared:
        return declared[name]
    try:
        return import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{PACKAGE}.{name}":
            raise
        if name in PUBLISHED:
            raise AttributeError(f"module 'leafgrad' has no attribute {name!r}: {lacking(name)}", name=name) from None
        return None


_known: dict[str, frozenset[str]] = {}


def modules_in(folders: Sequence[str]) -> frozenset[str]:
    """The names of the modules in folders."""
    found: set[str] = set()
    for folder in folders:
        if folder not in _known:
            names = os.listdir(folder) if os.path.isdir(folder) else []
            _known[folder] = frozenset(name.partition(".")[0] for name in names)
        found |= _known[folder]
    return frozenset(found)


def listed_methods() -> list[str]:
    """The methods of Tensor that installed packages list whose names begin with leafgrad."""
    found = []
    for folder in dict.fromkeys(sys.path):
        try:
            names = [n for n in os.listdir(folder or ".") if n.startswith(PACKAGE) and n.endswith(".dist-info")]
        except OSError:  # no folder, an archive for instance
            continue
        for name in names:
            found += listed_in(os.path.join(folder, name, "entry_points.txt"))
    return found


def listed_in(path: str) -> list[str]:
    """The names in the section for methods of a file of entry points."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    if METHODS not in lines:
        return []
    section = lines[lines.index(METHODS) + 1 :]
    end = next((i for i, line in enumerate(section) if line.startswith("[")), len(section))
    return [name.strip() for name, equals, _ in (line.partition("=") for line in section[:end]) if equals]
