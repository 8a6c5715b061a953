"""One example for each public name, which its docstring shows, and the reference, and which runs as a test.

``PACKAGE.txt`` has those of a package or class: paragraphs of a name and, below it, an example as at Python's prompt.
Between the two may stand what arguments are, ``argument: text``, where the docstring in the source does not tell.
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
PROMPT = re.compile(r"(?m)^(?=>>> )")
ARGUMENT_LINE = re.compile(r"^(.+?): (.+)$", re.MULTILINE)
SECTION = re.compile(r"^(Attributes|Returns|Raises):\n", re.MULTILINE)
NAMES = re.compile(r"\w+")
# What an argument of this name is wherever it is taken, for docstrings that do not say it themselves.
SHARED = {
    "inplace": "whether the result is written into the input.",
    "device": "where tensors are made; None: where the input is, or on the default device.",
    "requires_grad": "whether operations on the result are recorded for gradients.",
    "generator": "where random numbers come from; None: the default generator.",
    "reduction": '"none": the losses one by one. "mean" or "sum": one number.',
    "size_average, reduce": "deprecated, in favour of ``reduction``.",
    "keepdim": "whether dimensions that are reduced stay, of size 1.",
    "training": "whether it behaves as in training; otherwise as in evaluation.",
    "dtype": "that of the result; None: that of the input, or the default.",
    "memory_format": "how the result lies in memory; ``preserve_format``: as the input does.",
    "dim": "where it works, a negative number counted from the last; of several dimensions, a tuple; None: of all.",
    "kernel_size": "the size of a window; a number, or one for each dimension.",
    "stride": "from one window to the next; a number, or one for each dimension.",
    "dilation": "from one element of a window to the next.",
    "ceil_mode": "whether a window that sticks out at the end counts.",
    "return_indices": "whether the places of the largest elements are returned, too.",
    "in_channels": "the channels of the input.",
    "out_channels": "the channels of the result.",
    "output_size": "the size of the result in each dimension; one number for all, None: as in the input.",
    "optimizer": "whose learning rates are set.",
    "last_epoch": "the epoch to go on after; -1: from the beginning.",
    "cache_size": "1: the last result is kept, so that its inverse is exact; 0: nothing is.",
    "create_graph": "whether the derivatives can be differentiated in turn.",
    "strict": "whether it is an error that an output does not depend on an input; otherwise zeros are given.",
    "equal_nan": "whether nan equals nan.",
    "atol, rtol": "the difference that is let pass: ``atol + rtol * abs(other)``.",
    "margin": "how far apart the scores have to be.",
    "periodic": "whether the window is one period, for spectra; otherwise it is symmetric.",
    "window_length": "how many numbers.",
    "start_dim, end_dim": "the first and the last of the dimensions that become one.",
    "check_errors": "whether a matrix that fails is an error, or only told in ``info``.",
    "has_aux": "whether ``func`` returns a pair, the second of which is passed on.",
    "validate_args": "whether arguments and values are checked; None: as ``set_default_validate_args`` says.",
}
NAMED = {names: frozenset(names.split(", ")) for names in SHARED}
SHARED_NAMES = frozenset().union(*NAMED.values())
DOCUMENTED = (types.FunctionType, property, type)


@cache
def known(package: str) -> dict[str, str]:
    """Name -> example, of a package or class; empty if it has none."""
    return {name: PROMPT.split(text, 1)[-1] for name, text in paragraphs_of(package).items()}


def described(package: str, name: str) -> dict[str, str]:
    """Argument -> what it is, where that stands with the example."""
    lines = PROMPT.split(paragraphs_of(package)[name], 1)[:-1]
    return dict(ARGUMENT_LINE.findall(lines[0])) if lines else {}


@cache
def paragraphs_of(package: str) -> dict[str, str]:
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
        if isinstance(value, DOCUMENTED) or hasattr(value, "__wrapped__"):
            own = value.__doc__ if not isinstance(value, type) else with_arguments(value)
            doc = with_shared(value, own, described(package, name)) or ""
            if HEADING not in doc and (doc or isinstance(value, property)):  # else it is that of another name
                value.__doc__ = indented(doc, examples[name])


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
            return with_section(inspect.cleandoc(doc), "\n".join(["Args:", *said]))
    return doc


def with_shared(value: Any, doc: str | None, own_words: Mapping[str, str]) -> str | None:
    """The docstring of a function or class, with what is said elsewhere of arguments that it does not describe.

    That is in ``own_words``, or else in ``SHARED``.
    """
    makers = (
        [vars(kind).get(name) for name in ("__init__", "__new__") for kind in value.__mro__]
        if isinstance(value, type)
        else [value]
    )
    code = next((found.__code__ for found in map(plain, makers) if hasattr(found, "__code__")), None)
    if not doc or code is None or HEADING in doc or (not own_words and SHARED_NAMES.isdisjoint(code.co_varnames)):
        return doc
    takes = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    if "dtype" not in takes:
        takes.discard("device")  # it is no factory, which alone has them both
    told = {name for names in own_words for name in names.split(", ")}
    shared = {n: text for n, text in SHARED.items() if takes >= NAMED[n] and told.isdisjoint(NAMED[n])}
    shared = {**own_words, **shared}
    if not shared:
        return doc
    doc = inspect.cleandoc(doc)
    own = ARGUMENTS.search(doc)
    said = {name for each in ARGUMENT.finditer(own[1]) for name in NAMES.findall(each[1])} if own else set()
    lines = [f"    {name}: {text}" for name, text in shared.items() if said.isdisjoint(name.split(", "))]
    if not lines:
        return doc
    if own:
        return "\n".join([doc[: own.end()].rstrip(), *lines, doc[own.end() :]]).rstrip()
    return with_section(doc, "\n".join(["Args:", *lines]))


def plain(function: Any) -> Any:
    """What is behind all doors; ``inspect.unwrap`` is slow to import a package with."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def with_section(doc: str, section: str) -> str:
    """A clean docstring with its arguments, before what comes after them."""
    at = own.start() if (own := SECTION.search(doc)) else len(doc)
    return "\n\n".join([doc[:at].rstrip(), section, doc[at:]]).rstrip()


def indented(doc: str, example: str) -> str:
    """The docstring with an example at its end, indented as its last line is, that of the quotation marks."""
    before, _, last = doc.rpartition("\n")
    margin = last if before and not last.strip() else ""
    inner = f"\n{margin}    "
    return f"{doc.rstrip()}\n\n{margin}{HEADING[:-1]}{inner}{example.replace(chr(10), inner)}\n".lstrip("\n")
