"""What the pages in docs/reference say: which public names there are, and in which order.

A page holds fenced blocks. The first line of a block names a package or class, the others public names of it.

    ```{api} leafgrad
    sin sinh
    ```

Their examples are in `leafgrad.docstrings`, from where docstrings have them, too. All else that the reference
shows comes from signatures and docstrings. Other names of the same function, and those that write into their input
(``sin_``), need no entry: they are shown with the function.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from leafgrad.docstrings import known

BLOCK = re.compile(r"^```\{api\} (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Packages of which every public name has an entry.
PACKAGES = """
    leafgrad leafgrad.linalg leafgrad.special leafgrad.nn leafgrad.nn.functional leafgrad.nn.init leafgrad.optim
    leafgrad.optim.lr_scheduler leafgrad.autograd leafgrad.autograd.functional leafgrad.func leafgrad.distributions
    leafgrad.utils.data leafgrad.nn.utils leafgrad.distributed leafgrad.profiler leafgrad.plugins leafgrad.testing
""".split()
# Those whose functions are methods of tensors, too.
METHODS_OF = ("leafgrad", "leafgrad.special", "leafgrad.linalg", "leafgrad.nn.functional")
# What is there for old scripts alone, from ``leafgrad.compat``, is described in docs/pytorch.md.
COMPATIBILITY = ("leafgrad.compat", "leafgrad.utils.pickles", "leafgrad.utils.pytorch_file")


@dataclass(frozen=True)
class Entry:
    """A public name in the reference, and its example."""

    package: str
    name: str
    example: str

    @property
    def path(self) -> str:
        return f"{self.package}.{self.name}"

    @property
    def value(self) -> Any:
        return getattr(resolve(self.package), self.name)


def entries(text: str) -> Iterator[Entry]:
    """The entries of a page."""
    for block in BLOCK.finditer(text):
        yield from of_block(block[1], block[2])


def of_block(package: str, text: str) -> Iterator[Entry]:
    """The entries of a block of names."""
    for name in text.split():
        yield Entry(package, name, known(package)[name] + "\n")


def resolve(path: str) -> Any:
    """A package, module or class by its path."""
    package, _, name = path.rpartition(".")
    return import_module(path) if not name[:1].isupper() else getattr(import_module(package), name)


@cache
def public(path: str) -> dict[str, Any]:
    """The public functions and classes of a package by name, without what stands for PyTorch's own alone."""
    package = import_module(path)
    names = getattr(package, "__all__", None) or dir(package)
    found = {name: getattr(package, name) for name in names if not name.startswith("_")}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) or callable(value)
        if (module := str(getattr(value, "__module__", ""))).startswith("leafgrad.") or module == "leafgrad"
        if not module.startswith(COMPATIBILITY) and not isinstance(value, types.ModuleType)
    }


def function_of(method: str) -> str | None:
    """The path of the function that a method of tensors is, or is in place."""
    for name in (method, method.removesuffix("_")):
        for package in METHODS_OF:
            if name in public(package) and not isinstance(public(package)[name], type):
                return f"{package}.{name}"
    return None


def origin(value: Any) -> Any:
    """What is the same for all names of one function."""
    return inspect.unwrap(value) if isinstance(value, types.FunctionType) else value


def pages() -> list[Path]:
    return sorted((Path(__file__).resolve().parent.parent / "reference").glob("*.md"))
