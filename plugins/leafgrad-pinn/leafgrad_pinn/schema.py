"""What a saved value has to be, said as checks: each gives the value, or a ValueError that names its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from leafgrad import Tensor

Check = Callable[[Any, str], Any]  # of a value and its place


class Misfit(ValueError):
    """A saved value that is not what it has to be, and its place."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where, self.problem = where, problem


def misfit(where: str, expected: str, got: Any) -> Misfit:
    return Misfit(where, f"expected {expected}, got {got!r:.60}")


@contextmanager
def making(where: str) -> Iterator[None]:
    """Whatever fails within is a fault of what stands at this place."""
    try:
        yield
    except Misfit:
        raise
    except Exception as error:
        raise Misfit(where, f"{type(error).__name__}: {error}") from error


def anything(value: Any, where: str) -> Any:
    return value


def number(value: Any, where: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise misfit(where, "a number", value)
    return value


def finite(value: Any, where: str) -> Any:
    if not math.isfinite(number(value, where)):
        raise misfit(where, "a finite number", value)
    return value


def constant(value: Any, where: str) -> Any:
    """What operations take beside tensors: None, and numbers of any kind."""
    if value is not None and not isinstance(value, (bool, int, float, complex)):
        raise misfit(where, "a number or nothing", value)
    return value


def count(least: int, most: int) -> Check:
    """A whole number in a range."""

    def check(value: Any, where: str) -> Any:
        if type(value) is not int or not least <= value <= most:
            raise misfit(
                where, f"a whole number from {least} to {most}, for which there are weights in the file", value
            )
        return value

    return check


def kind(expected: type, words: str) -> Check:
    """An object of a class."""

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, expected):
            raise misfit(where, words, value)
        return value

    return check


text = kind(str, "a string")
flag = kind(bool, "true or false")
tensor = kind(Tensor, "a tensor")


def one_of(*values: Any) -> Check:
    """One of a few values."""

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, str) or value not in values:
            raise misfit(where, f"one of {', '.join(map(str, values))}", value)
        return value

    return check


def array(ndim: int | None = None) -> Check:
    """An array of numbers of so many dimensions."""

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, np.ndarray) or value.ndim != (value.ndim if ndim is None else ndim):
            raise misfit(where, f"an array of {ndim} dimensions" if ndim else "an array", value)
        return value

    return check


def optional(check: Check) -> Check:
    """None, or what another check takes."""
    return lambda value, where: None if value is None else check(value, where)


def either(*checks: Check) -> Check:
    """What one of several checks takes."""

    def check(value: Any, where: str) -> Any:
        wrong: list[Misfit] = []
        for one in checks:
            try:
                return one(value, where)
            except Misfit as error:
                wrong.append(error)
        if inside := [error for error in wrong if error.where != where]:  # it is one of them, but for a part of it
            raise inside[-1]
        raise misfit(where, " or ".join(error.problem.split(", got ")[0].split(" ", 1)[1] for error in wrong), value)

    return check


def items(check: Check, length: int | None = None) -> Check:
    """A list or tuple of so many such items."""

    def whole(value: Any, where: str) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != (len(value) if length is None else length):
            raise misfit(where, "a list" if length is None else f"a list of {length}", value)
        return [check(item, f"{where}[{i}]") for i, item in enumerate(value)]

    return whole


def mapping(check: Check, **needed: Check) -> Check:
    """A dict with strings as keys, and such values; those ``needed`` are there, with checks of their own."""

    def whole(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise misfit(where, "a dict", value)
        if missing := [name for name in needed if name not in value]:
            raise misfit(f"{where}.{missing[0]}", "a value", "none")
        return {text(name, where): needed.get(name, check)(item, f"{where}.{name}") for name, item in value.items()}

    return whole


def record(checks: Mapping[str, Check], optional: tuple[str, ...] = ()) -> Check:
    """A dict with exactly these fields, of which some may be missing."""

    def whole(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise misfit(where, f"a dict of {', '.join(checks)}", value)
        missing = [name for name in checks if name not in value and name not in optional]
        unknown = [name for name in value if name not in checks]
        if missing or unknown:
            raise misfit(where, f"the fields {', '.join(checks)}", ", ".join(map(str, value)))
        return {name: checks[name](item, f"{where}.{name}") for name, item in value.items()}

    return whole
