"""Steps that ask which object something is: equal numbers, strings and tuples are others to them."""

from __future__ import annotations

import enum
import operator

import pytest

import leafgrad
import leafgrad.nn.functional as F
from leafgrad.compile.record.identity import asks_identity
from leafgrad.compile.record.watch import Watch, watching

ones = leafgrad.ones(1)
KINDS = {
    "string": lambda: "".join(["ab", "cd"]),
    "float": lambda: float("2.5"),
    "bytes": lambda: bytes(bytearray(b"abc")),
    "tuple": lambda: tuple(map(float, (1, 2))),
    "list": lambda: [1.0],
}


class Mode(enum.Enum):
    A = 1


class Held:
    pass


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["is", "is_", "by another name", "mapped"])
def test_which_of_two_equal_objects_there_is(kind, way):
    one, other = KINDS[kind](), KINDS[kind]()
    o, same = Held(), operator.is_
    ask = {
        "is": lambda a, b: a is b,
        "is_": lambda a, b: operator.is_(a, b),
        "by another name": lambda a, b: same(a, b),
        "mapped": lambda a, b: next(map(same, [a], [b])),
    }[way]
    given = leafgrad.compile(lambda x, a: x * (2.0 if ask(a, one) else 3.0))
    found = leafgrad.compile(lambda x: x * (2.0 if ask(o.held, one) else 3.0))
    for held in (one, one, one, one, other, one):
        o.held = held
        expected = 2.0 if held is one else 3.0
        assert [given(ones, held).item(), found(ones).item()] == [expected, expected]
    assert ": closed" in given.explain().summary
    assert ": closed" in found.explain().summary


def test_numbers_that_change_are_not_followed_where_one_may_be_another():
    known = 3.5
    step = leafgrad.compile(lambda x, n: x * (2.0 if n is known else 3.0))
    assert [step(ones, float(i)).item() for i in range(8)] == [3.0] * 8
    assert step(ones, known).item() == 2.0


def test_which_nan_there_is():
    one, other = float("nan"), float("nan")
    o, held = Held(), {one: 2.0}
    for read in (lambda: 2.0 if o.held in [one] else 3.0, lambda: held.get(o.held, 3.0)):
        o.held = one
        step = leafgrad.compile(lambda x, read=read: x * read())
        assert [step(ones).item() for _ in range(4)] == [2.0] * 4
        o.held = other
        assert step(ones).item() == 3.0
    step = leafgrad.compile(lambda x, n: x * 2 if n != n else x)
    assert [step(ones, float("nan")).item() for _ in range(9)] == [2.0] * 9
    assert "changes from call to call" in step.explain()


def test_who_compares_with_classes_functions_and_members_asks_for_nothing():
    def plain(kind, mode, act):
        return kind is leafgrad.Tensor, mode is Mode.A, Mode.A is mode, act is not F.relu, None is act, mode is True

    def asks(a, b):
        return a is b

    for function, args, expected in ((plain, (leafgrad.Tensor, Mode.A, F.relu), False), (asks, (1, 2), True)):
        watch = Watch()
        with watching(watch):
            function(*args)
        assert asks_identity(watch.codes) == expected
