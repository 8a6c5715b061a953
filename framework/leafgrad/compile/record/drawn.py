"""Numbers that Python code draws from Python's generator, as by ``random.random()``: a program's are drawn before it.

A call is first recorded to see what it draws; later calls draw that in advance, and their numbers are arguments.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from leafgrad.compile.record.guide import same
from leafgrad.compile.record.symbolic import NUMBERS, Numbers
from leafgrad.compile.record.watch import unwatched

MOST = 64  # numbers that a call may draw


class Source(NamedTuple):
    """A generator that is one for the whole process, with what it has in common with others."""

    get_state: Callable[[], Any]
    set_state: Callable[[Any], None]


PYTHON = Source(random.getstate, random.setstate)
NAMES = (
    "random uniform triangular randint randrange getrandbits gauss normalvariate lognormvariate expovariate "
    "vonmisesvariate gammavariate betavariate paretovariate weibullvariate"
)
SOURCES = {id(f): (f, f"random.{name}", PYTHON) for name in NAMES.split() for f in [getattr(random, name)]}
"""The functions that draw one number, by id, with their names and what they draw from."""


def draws_numbers(value: Any) -> bool:
    """Whether a value is a function that draws numbers."""
    return id(value) in SOURCES and SOURCES[id(value)][0] is value


def source_of_draws(function: Any) -> Source:
    """The generator that such a function draws from."""
    return SOURCES[id(function)][2]


class Draw(NamedTuple):
    """A call of such a function."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self) -> Any:
        return self.function(*self.args, **self.kwargs)

    @property
    def source(self) -> Source:
        """The generator that it draws from."""
        return source_of_draws(self.function)

    def is_like(self, other: Draw) -> bool:
        """Whether both draw the same."""
        return self.function is other.function and same(self.args, other.args) and same(self.kwargs, other.kwargs)

    def __str__(self) -> str:
        given = [*map(repr, self.args), *[f"{name}={value!r}" for name, value in self.kwargs.items()]]
        return f"{SOURCES[id(self.function)][1]}({', '.join(given)})"


class Draws:
    """What one recorded call draws.

    Args:
        expected: what calls draw, with the number that this one will get and its name among the arguments; None if
            nobody knows.

    Attributes:
        made: what it has drawn.
        strange: whether it drew something else, or what no program can.
    """

    def __init__(self, numbers: Numbers, expected: list[tuple[Draw, Any, str]] | None) -> None:
        self.numbers, self.expected = numbers, expected
        self.made: list[Draw] = []
        self.strange = False

    def draw(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next number."""
        if not {*map(type, (*args, *kwargs.values()))} <= {*NUMBERS}:
            self.strange = True
            return function(*args, **kwargs)
        draw, k = Draw(function, args, kwargs), len(self.made)
        with unwatched():
            value = draw()
        self.made.append(draw)
        self.strange |= type(value) not in NUMBERS or len(self.made) > MOST
        if self.strange or self.expected is None:
            return value
        expected, number, name = self.expected[k] if k < len(self.expected) else (None, None, "")
        if expected is None or not draw.is_like(expected) or not same(value, number):
            self.strange = True
            return value
        return self.numbers.given(value, name, str(draw))

    @property
    def lost(self) -> str | None:
        """Why no program can draw the same."""
        if self.expected is None:
            return "it draws random numbers" if self.made else None
        if self.strange or len(self.made) != len(self.expected):
            return "it does not draw the same kinds of random numbers at each call"
        return None


class Drawer:
    """Stands for a function that draws, while a call is recorded."""

    def __init__(self, real: Any, drawn: Draws) -> None:
        self.real, self.drawn = real, drawn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.drawn.numbers.apart:  # of another thread, or later
            return self.real(*args, **kwargs)
        return self.drawn.draw(self.real, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)
