"""Which functions are the same, though they are made anew."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import leafgrad as lg
from leafgrad_pinn.remembered import Remembered


class Asked:
    """What is asked for functions."""

    shift = 0

    def moved(self, u):
        return u + self.shift


def helper(u):
    return inner(u)


def inner(u):
    return lg.square(u)


def made(part):
    return lambda u: part(u)


def times(k):
    return lambda u: k * u.x


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (lambda: times(2.0), lambda: times(3.0), True),
        (lambda: times(0.0), lambda: times(3.0), False),
        (lambda: times(1), lambda: times(2), False),
        (lambda: times(np.ones(3)), lambda: times(np.ones(3)), True),
        (lambda: times(np.ones(3)), lambda: times(np.zeros(3)), False),
        (lambda: times(lg.ones(3)), lambda: times(lg.zeros(3)), False),
        (lambda: made(float), lambda: made(float), True),
        (lambda: made(Asked), lambda: made(Asked), False),
        (lambda: made(helper), lambda: made(helper), True),
        (lambda: made(lg.sin), lambda: made(lg.sin), True),
        (lambda: made(lg.sin), lambda: made(lg.cos), False),
        (lambda: made(times(True)), lambda: made(times(True)), True),
        (lambda: made(times("a")), lambda: made(times("b")), False),
        (lambda: made([].append), lambda: made([].append), False),
        (lambda: times({}), lambda: times({}), False),
        (lambda: partial(times, 2), lambda: partial(times, 2), False),
        (lambda: Asked().moved, lambda: Asked().moved, False),
    ],
)
def test_functions_are_the_same_if_all_is_that_they_are_made_of(one, other, same):
    remembered, asked = Remembered(), Asked()
    assert not remembered.has(asked, one())
    remembered.add(asked, one())
    assert remembered.has(asked, other()) == same
    assert not remembered.has(Asked(), other())


def test_what_a_function_finds_by_name_is_a_part_of_it_at_any_depth(monkeypatch):
    remembered, asked = Remembered(), Asked()
    for name, value in (("inner", lg.sin), ("helper", lg.cos)):
        remembered.add(asked, made(helper))
        assert remembered.has(asked, made(helper))
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, value)
            assert not remembered.has(asked, made(helper))
    by_module = made(lambda u: lg.square(u))
    remembered.add(asked, by_module)
    monkeypatch.setattr(lg, "square", lambda u: u.mean())
    assert not remembered.has(asked, by_module)


def test_variables_without_a_value_yet_are_taken():
    remembered, asked = Remembered(), Asked()

    def early(u):
        return u if late is None else late(u)

    remembered.add(asked, early)
    assert remembered.has(asked, early)
    late = lg.sin
    assert not remembered.has(asked, early)


def test_attributes_are_no_global_names(monkeypatch):
    remembered, asked = Remembered(), Asked()
    monkeypatch.setitem(globals(), "x", [1])
    remembered.add(asked, times(2.0))
    assert remembered.has(asked, times(2.0))


def test_nothing_keeps_what_was_asked():
    remembered, asked = Remembered(), Asked()
    remembered.add(asked, times(2.0))
    del asked
    assert not remembered.parts
