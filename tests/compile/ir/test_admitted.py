"""Which sizes answer as those with which a program was made."""

import operator
import random

import pytest

from leafgrad.compile.ir.admitted import Extents, Settled, divided, outcome
from leafgrad.compile.ir.extent import present
from leafgrad.errors import CompileError

OPERATORS = operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod
COMPARISONS = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge


def made(seed, sizes):
    """What some maker computes of sizes, and all that it asked of them."""
    draw = random.Random(seed)
    known, asked = [*sizes, 1, 2, 3, 8, 64, -1], []
    for _ in range(draw.randint(3, 25)):
        function, a, b = draw.choice(OPERATORS), draw.choice(known), draw.choice(known)
        try:
            known.append(function(a, b))
        except ZeroDivisionError:
            asked.append(None)
        compare, a, b = draw.choice(COMPARISONS), draw.choice(known), draw.choice(known)
        asked += [compare(a, b)] * draw.randint(0, 1)
        asked += [bool(a)] if draw.random() < 0.1 else []
        asked += [a / b > 1.5] if draw.random() < 0.1 and b else []
    return known, asked


def test_what_is_made_with_extents_is_what_is_made_at_any_sizes_that_they_admit():
    draw, admitted = random.Random(0), 0
    for seed in range(2000):
        sizes = [draw.randint(1, 130) for _ in range(draw.randint(1, 2))]
        extents = Extents(sizes)
        known, asked = made(seed, extents.given)
        assert ([*map(present, known)], asked) == made(seed, sizes)
        extents.sealed = True
        for _ in range(8):
            others = [max(0, n + draw.choice([-1, 1, draw.randint(-99, 99)])) for n in sizes]
            if extents.admit(others):
                admitted += 1
                settled = Settled(extents.values(others))
                assert ([*map(settled, known)], asked) == made(seed, others)
    assert admitted > 1000


def test_answers_are_bounds_of_the_size():
    extents = Extents([100])
    (n,) = extents.given
    assert 8 * n > 256
    assert n != 128
    assert n // 64 == 1
    assert [k for k in range(200) if extents.admit([k])] == [*range(64, 128)]
    assert not extents.bound


def test_sizes_that_are_equal_are_taken_for_one():
    extents = Extents([7, 9, 7])
    first, other, again = extents.given
    assert first is again
    assert first is not other
    assert extents.admit([5, 9, 5])
    assert not extents.admit([5, 9, 6])


def test_what_a_maker_that_fails_or_needs_the_number_has_asked_does_not_count():
    extents = Extents([7])
    (n,) = extents.given
    assert extents.tried(lambda: [n > 5]) == [True]
    assert extents.tried(lambda: [*range(n)]) is None
    assert extents.tried(lambda: n > 6 and n / 0) is None
    assert [k for k in range(20) if extents.admit([k])] == [*range(6, 20)]


def test_nothing_is_asked_when_all_is_made():
    extents = Extents([7])
    (n,) = extents.given
    extents.sealed = True
    for act in (lambda: n == 7, lambda: n + 1, lambda: range(n), lambda: bool(n)):
        with pytest.raises(CompileError, match="asks what they are when it runs"):
            act()


@pytest.mark.parametrize("function", COMPARISONS)
@pytest.mark.parametrize("factor", [-3, -1, 1, 4])
def test_bounds_are_those_of_a_comparison(function, factor):
    for limit in range(-9, 10):
        for answer in (True, False):
            low, high, other = divided(*outcome(function, answer, limit), factor)
            for k in range(-30, 31):
                assert (low <= k <= high and k != other) is (function(factor * k, limit) is answer)
