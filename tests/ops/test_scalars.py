"""What stands for an int, and for a number."""

from __future__ import annotations

import enum

import numpy as np
import pytest

import leafgrad
from leafgrad.ops.scalars import as_int, as_ints, as_number


class Level(enum.IntEnum):
    HIGH = 2


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2), np.array(2), leafgrad.tensor(2), Level.HIGH])
def test_what_stands_for_an_int(value):
    assert as_int(value) == 2
    assert as_ints(value) == (2,)


@pytest.mark.parametrize("value", [2.0, np.float32(2), True, np.True_, "2", None, [2], np.array([2]), np.array([1, 2])])
def test_what_stands_for_no_int(value):
    assert as_int(value) is None
    assert as_ints(value) is value


@pytest.mark.parametrize("value", [2, 2.5, True, 2j])
def test_numbers_of_numpy_are_as_pythons(value):
    for given in (value, np.array(value)[()]):
        assert as_number(given) == value
        assert type(as_number(given)) is type(value)
    assert as_number("2") is as_number(np.ones(2)) is None
