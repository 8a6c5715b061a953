"""When two programs are one: what they do with their inputs, and nothing else, tells them apart."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.compile.ir.keys import same

X = leafgrad.ones(2, 3)
BASE = (lambda x: (x * 2.0).sum(dim=0), (X,))
OTHERS = {
    "op": (lambda x: (x / 2.0).sum(dim=0), (X,)),
    "number": (lambda x: (x * 3.0).sum(dim=0), (X,)),
    "kind of number": (lambda x: (x * 2).sum(dim=0), (X,)),
    "parameter": (lambda x: (x * 2.0).sum(dim=1), (X,)),
    "shape": (lambda x: (x * 2.0).sum(dim=0), (leafgrad.ones(4, 3),)),
    "dtype": (lambda x: (x * 2.0).sum(dim=0), (X.double(),)),
    "more": (lambda x: (x * 2.0).sum(dim=0) + 1, (X,)),
    "results": (lambda x: ((y := x * 2.0).sum(dim=0), y), (X,)),
    "another result": (lambda x: (x * 2.0, (x * 2.0).sum(dim=0))[0], (X,)),
}


def test_graphs_that_do_the_same_are_equal():
    a, b = (leafgrad.trace(BASE[0], x) for x in (X, leafgrad.zeros(2, 3)))
    assert a == b
    assert len({a, b}) == 1
    assert (
        [a.numbers[id(v)] for v in a.values()] == [b.numbers[id(v)] for v in b.values()] == list(range(len(a.values())))
    )


@pytest.mark.parametrize("what", OTHERS)
def test_other_programs_are_not(what):
    function, given = OTHERS[what]
    a, b = leafgrad.trace(BASE[0], *BASE[1]), leafgrad.trace(function, *given)
    assert a != b
    assert len({a, b}) == 2


def test_operands_in_another_order():
    a, b = (leafgrad.trace(f, X, X * 2) for f in (lambda x, y: x - y * y, lambda x, y: (y * y) - x))
    assert a != b


def test_numbers_are_the_same_to_their_type_and_sign():
    assert same((1, 0.0, float("nan"), "a"), (1, 0.0, float("nan"), "a"))
    for a, b in (
        (1, 1.0),
        (1, True),
        (complex(1, 0.0), complex(1, -0.0)),
        (slice(1), slice(True)),
        (0.0, -0.0),
        ((1,), [1]),
        ({"a": 1}, {"a": 2}),
        (object(), object()),
    ):
        assert not same(a, b)


class Hiding(tuple):
    __slots__ = ()

    def __iter__(self):
        return iter(self[:1])


def test_a_tuple_is_what_it_holds_whatever_it_shows():
    assert same(Hiding((1, X)), Hiding((1, X)))
    assert not same(Hiding((1, X)), Hiding((1, leafgrad.ones(2, 3))))
    assert not same(Hiding((1, 2)), Hiding((1, 3)))
