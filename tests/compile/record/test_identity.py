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


class Model:
    """Steps that count themselves, and compare what has no equals."""

    def __init__(self):
        self.net = leafgrad.nn.Sequential(leafgrad.nn.Linear(3, 2), leafgrad.nn.Linear(2, 1))
        self.head, self.mode, self.skipped, self.id, self.steps = self.net[1], Mode.A, None, 3, 0

    def weight(self, x, n):
        self.steps += 1
        return x * sum(n for p in self.net.parameters() if p is not self.head.weight) * self.steps

    def module(self, x, n):
        self.steps += 1
        return x * sum(n for m in self.net.modules() if m is not self.net and m is not self.skipped) * self.steps

    def member(self, x, n):
        self.steps += 1
        mode = self.mode
        return x * self.steps * (n if mode is self.mode else 1.0)

    def tensors(self, x, n, y=None):
        self.steps += 1
        y = x if y is None else y
        return x * self.steps * (n if y is x else 1.0)

    def name(self, x, n):
        self.steps += 1
        held = Held()
        held.id = self.id
        return x * self.steps * n * held.id


@pytest.mark.parametrize("way", ["weight", "module", "member", "tensors", "name"])
def test_numbers_are_followed_beside_what_has_no_equals(way):
    one, other = Model(), Model()
    step, expected = leafgrad.compile(getattr(one, way)), getattr(other, way)
    for i in range(9):
        assert step(ones, float(i)).item() == expected(ones, float(i)).item()
    assert ": closed; 1 program" in step.explain().summary


@pytest.mark.parametrize("way", ["attribute", "stored", "set", "nonlocal", "rebound", "property", "builtin"])
def test_numbers_that_come_into_places_of_other_things_are_seen(way):
    known, o = 3.5, Held()
    held = o

    class Asked:
        @property
        def last(self):
            return known

    def attribute(n, of):
        return n is of.last

    def stored(n, of):
        of.last = known
        return n is of.last

    def by_name(n, of):
        vars(of)["last"] = known
        return n is of.last

    def inner(n):
        nonlocal held
        held = known
        return n is held

    def rebound(n, of):
        of = known
        return n is of

    def builtin(n, of):
        import builtins as names

        return names.id(n) == names.id(known)

    ask = {
        "attribute": attribute, "stored": stored, "set": by_name, "nonlocal": lambda n, of: inner(n),
        "rebound": rebound, "property": lambda n, of: attribute(n, Asked()), "builtin": builtin,
    }[way]  # fmt: skip

    def start():
        o.last = known if way == "attribute" else o

    step = leafgrad.compile(lambda x, n: x * (2.0 if ask(n, o) else 3.0))
    for n in (*map(float, range(8)), known, 1.0, known):
        start()
        assert step(ones, n).item() == (2.0 if n is known else 3.0)


def test_a_number_that_comes_into_the_place_of_nothing_is_seen_at_once():
    known, o = 3.5, Held()
    o.steps, o.last = 0, None

    def step(x, n):
        o.steps += 1
        return x * o.steps * (2.0 if n is o.last else 3.0)

    compiled = leafgrad.compile(step)
    for i, n in enumerate((0.0, 1.0, 2.0, 3.0, 4.0, known, 5.0, known, known, 2.0)):
        o.last = known if i >= 7 else None
        assert compiled(ones, n).item() == (i + 1) * (2.0 if i >= 7 and n is known else 3.0)
