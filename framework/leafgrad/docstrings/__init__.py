"""One example for each public name, which its docstring shows, and the reference, and which runs as a test.

``PACKAGE.txt`` has those of a package or class: paragraphs of a name and, below it, an example as at Python's prompt.
Other names of the same function need none.
"""

from __future__ import annotations

import inspect
import os
import re
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

FOLDER = os.path.dirname(__file__)  # pathlib is slow to import
HEADING = "Example:\n"
ARGUMENTS = re.compile(r"^Args:\n((?:    .*\n?)+)", re.MULTILINE)
ARGUMENT = re.compile(r"^    (\S.*?):.*(?:\n     .*)*", re.MULTILINE)
SECTION = re.compile(r"^(Attributes|Returns|Raises):\n", re.MULTILINE)
NAMES = re.compile(r"\w+")
DOCUMENTED = (types.FunctionType, property, type)


@cache
def known(package: str) -> dict[str, str]:
    """Name -> example, of a package or class; empty if it has none."""
    try:
        with open(f"{FOLDER}/{package}.txt", encoding="utf-8") as file:
            paragraphs = file.read().strip("\n").split("\n\n")
    except FileNotFoundError:
        return {}
    return {name: example for name, _, example in (paragraph.partition("\n") for paragraph in paragraphs)}


def show(namespace: Mapping[str, Any], package: str) -> None:
    """Put the examples into the docstrings of what a package's or class's ``namespace`` holds."""
    examples = known(package)
    for name in namespace.keys() & examples.keys():
        value = getattr(namespace[name], "__func__", namespace[name])  # of a bound method
        while isinstance(value, DOCUMENTED) or hasattr(value, "__wrapped__"):
            doc = (value.__doc__ if not isinstance(value, type) else with_arguments(value)) or ""
            if HEADING not in doc and (doc or isinstance(value, property)):  # else it is that of another name
                value.__doc__ = indented(doc, examples[name])
            value = getattr(value, "__wrapped__", None)  # what is behind a door


def shown(package: str) -> Callable[[str, Any], Any]:
    """What gives a value of a package, found when it is first asked for, its example."""

    def made(name: str, value: Any) -> Any:
        show({name: value}, package)
        return value

    return made


def with_arguments(kind: type) -> str | None:
    """The docstring of a class, with what a base says of the arguments that its constructor takes, too."""
    doc, takes = kind.__doc__, getattr(inspect.unwrap(getattr(kind, "__init__", kind)), "__code__", None)
    if doc is None or "Args:\n" in doc or takes is None:
        return doc
    for base in kind.__mro__[1:]:
        if found := ARGUMENTS.search(inspect.cleandoc(base.__doc__ or "")):
            said = [each[0] for each in ARGUMENT.finditer(found[1]) if {*NAMES.findall(each[1])} & {*takes.co_varnames}]
            doc = inspect.cleandoc(doc)
            at = own.start() if (own := SECTION.search(doc)) else len(doc)
            return "\n\n".join([doc[:at].rstrip(), "\n".join(["Args:", *said]), doc[at:]]).rstrip()
    return doc


def indented(doc: str, example: str) -> str:
    """The docstring with an example at its end, indented as its last line is, that of the quotation marks."""
    before, _, last = doc.rpartition("\n")
    margin = last if before and not last.strip() else ""
    inner = f"\n{margin}    "
    return f"{doc.rstrip()}\n\n{margin}{HEADING[:-1]}{inner}{example.replace(chr(10), inner)}\n".lstrip("\n")
