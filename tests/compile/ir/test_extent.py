"""Numbers that depend on sizes."""

import copy
import math

import numpy as np
import pytest

from leafgrad.compile.ir.admitted import Extents
from leafgrad.compile.ir.extent import present


@pytest.fixture
def extents():
    return Extents([12, 5])


def test_sums_of_products_are_the_same_however_they_came_about(extents):
    n, m = extents.given
    assert repr(4 * (n + 2) - 8) == "(4*size0)"
    assert repr(math.prod((2, n, m)) + 3) == "(3 + 2*size0*size1)"
    assert 6 * n // 3 // n == 2
    assert (n * m) % m == 0
    assert n - n == 0
    assert type(n - n) is int
    assert len({n + m, m + n, hash}) == 2
    assert not extents.bounds.keys() - {(((0,), 1),), (((1,), 1),)}  # that neither is 0, by which it was divided
    assert repr(n // 5) == "size2"
    assert present(-(-n // 5)) == 3
    assert repr(n * 1.0) == "real4"


def test_they_are_ints_and_floats_to_those_who_ask(extents):
    n, _ = extents.given
    assert isinstance(n, int)
    assert isinstance(n * 1.0, float)
    assert type(n) is not int
    assert copy.deepcopy([n])[0] is n
    assert f"{n}" == "size0"
    assert not extents.bounds


USES = range, float, np.zeros, "ab".__mul__, lambda n: n & 1, lambda n: 2**n, lambda n: f"{n:,}"


@pytest.mark.parametrize("use", USES)
def test_use_as_a_number_binds_the_program_to_it(extents, use):
    n, _ = extents.given
    use(n)
    assert extents.bound
    assert [k for k in range(20) if extents.admit([k, 5])] == [12]


def test_arrays_do_not_compute_with_them(extents):
    with pytest.raises(TypeError):
        np.ones(3) * extents.given[0]


def test_those_of_another_program_are_others(extents):
    (n,) = Extents([12]).given
    assert n != extents.given[0]
    with pytest.raises(TypeError):
        n + extents.given[0]
