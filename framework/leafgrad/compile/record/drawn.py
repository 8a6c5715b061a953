"""Numbers that Python code draws, as by ``random.random()`` or ``np.random.rand()``: a program's are drawn before it.

A call is first recorded to see what it draws; later calls draw that in advance, and their numbers are arguments.
"""

from __future__ import annotations

import functools
import random
from typing import Any, NamedTuple

from leafgrad.backends import by_device_type
from leafgrad.backends.contract import GeneratorClass
from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.compile.ir.keys import same
from leafgrad.compile.record.numbers import Numbers
from leafgrad.compile.record.symbolic import NUMBERS
from leafgrad.compile.record.watch import unwatched

MOST = 64  # numbers that a call may draw
PYTHON = GeneratorClass(
    frozenset(
        "random uniform triangular randint randrange getrandbits gauss normalvariate lognormvariate expovariate "
        "vonmisesvariate gammavariate betavariate paretovariate weibullvariate".split()
    ),
    random.Random.getstate,
    random.Random.setstate,
)


@functools.cache
def kinds() -> dict[type, GeneratorClass]:
    """The classes of generators that are known."""
    return {random.Random: PYTHON, **by_device_type("cpu").drawing()}


class Source:
    """A generator of numbers."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator
        self.kind = kinds()[type(generator)]

    def get_state(self) -> Any:
        """Where it is in its stream."""
        return self.kind.get_state(self.generator)

    def set_state(self, state: Any) -> None:
        """Go on from there."""
        self.kind.set_state(self.generator, state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and other.generator is self.generator

    def __hash__(self) -> int:
        return id(self.generator)


def source_of_draws(value: Any) -> Source | None:
    """The generator that a function draws from as one of its methods, such as ``random.random``; else None.

    Nothing stands for a generator itself: code in C that is given it would read it as one.
    """
    generator = attribute_of(value, "__self__") if callable(value) else None
    kind = kinds().get(type(generator))
    return Source(generator) if kind is not None and value.__name__ in kind.names else None


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
        return Source(self.function.__self__)

    def is_like(self, other: Draw) -> bool:
        """Whether both draw the same, if from one generator."""
        alike = self.source.kind is other.source.kind and self.function.__name__ == other.function.__name__
        return alike and same(self.args, other.args) and same(self.kwargs, other.kwargs)

    def __str__(self) -> str:
        given = [*map(repr, self.args), *[f"{name}={value!r}" for name, value in self.kwargs.items()]]
        return f"{self.function.__name__}({', '.join(given)})"


class Draws:
    """What one recorded call draws.

    Args:
        expected: what calls draw, with the number that this one will get and its name among the arguments; None if
            nobody knows.

    Attributes:
        made: what it has drawn.
        strange: whether it drew something else, or what no program can.
        moved: whether it drew the same from another generator.
    """

    def __init__(self, numbers: Numbers, expected: list[tuple[Draw, Any, str]] | None) -> None:
        self.numbers, self.expected = numbers, expected
        self.made: list[Draw] = []
        self.strange = self.moved = False

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
        if expected is not None and draw.is_like(expected) and draw.source != expected.source:
            self.moved = True
            return value
        if expected is None or not draw.is_like(expected) or not same(value, number):
            self.strange = True
            return value
        return self.numbers.given(value, name, str(draw))

    @property
    def lost(self) -> str | None:
        """Why no program can draw the same."""
        if self.expected is None and not self.strange:
            return "it draws random numbers" if self.made else None
        if self.strange or len(self.made) != len(self.expected or ()):
            return "it does not draw the same kinds of random numbers at each call"
        return "it draws from another generator than before" if self.moved else None


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
