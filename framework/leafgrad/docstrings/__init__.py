"""One example for each public name, which its docstring shows, and the reference, and which runs as a test.

``PACKAGE.txt`` has those of a package or class: paragraphs of a name and, below it, an example as at Python's prompt.
Other names of the same function need none.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

HEADING = "Example:\n"


@cache
def known(package: str) -> dict[str, str]:
    """Name -> example, of a package or class; empty if it has none."""
    path = Path(__file__).with_name(f"{package}.txt")
    if not path.is_file():
        return {}
    paragraphs = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
    return {name: example for name, _, example in (paragraph.partition("\n") for paragraph in paragraphs)}


def show(namespace: Mapping[str, Any], package: str) -> None:
    """Put the examples into the docstrings of what a package's or class's ``namespace`` holds."""
    examples = known(package)
    for name in namespace.keys() & examples.keys():
        value = getattr(namespace[name], "__func__", namespace[name])  # of a bound method
        while hasattr(value, "__wrapped__") or isinstance(value, types.FunctionType | property | type):
            if HEADING not in (value.__doc__ or ""):  # else it is that of another name
                value.__doc__ = indented(value.__doc__ or "", examples[name])
            value = getattr(value, "__wrapped__", None)  # what is behind a door


def shown(package: str) -> Callable[[str, Any], Any]:
    """What gives a value of a package, found when it is first asked for, its example."""

    def made(name: str, value: Any) -> Any:
        show({name: value}, package)
        return value

    return made


def indented(doc: str, example: str) -> str:
    """The docstring with an example at its end, indented as its other lines."""
    rest = [line for line in doc.split("\n")[1:] if line.strip()]
    margin = min((line[: len(line) - len(line.lstrip())] for line in rest), default="", key=len)
    text = "".join(f"\n{margin}    {line}" for line in example.split("\n"))
    return f"{doc.rstrip()}\n\n{margin}{HEADING[:-1]}{text}\n".lstrip("\n")
