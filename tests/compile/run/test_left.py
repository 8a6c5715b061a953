"""What a step leaves in containers stands there as without compiling: the same keys, in order, and the same values."""

from __future__ import annotations

import functools
import itertools
import types
from collections import Counter, OrderedDict, deque
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import leafgrad
from leafgrad import nn, optim


def pop(s, x, i):
    s.table["h"] = (x * i).detach()
    if i % 4 == 0:
        s.table.pop("h")


def clear(s, x, i):
    s.table["h"] = s.table["h"] + x if "h" in s.table else x * 1
    if i % 5 == 0:
        s.table.clear()


def cache(s, x, i):
    s.table[i // 3] = (s.w * x).sum().detach()
    if len(s.table) > 3:
        s.table.pop(next(iter(s.table)))


def reset(s, x, i):
    s.adagrad.zero_grad()
    (s.w * x).sum().backward()
    if i % 3 == 0:
        s.adagrad.state.clear()
        raise ValueError
    s.adagrad.step()


def seen(value):
    """A value, with the types of what is in it."""
    if isinstance(value, leafgrad.Tensor):
        return value.tolist()
    return [(key, seen(part)) for key, part in value.items()] if isinstance(value, dict) else value


def deleted(step, made=lambda step: step):
    """What stands in the dicts of a step after each of some calls."""
    w = nn.Parameter(leafgrad.ones(3))
    s, found = SimpleNamespace(table={}, w=w, adagrad=optim.Adagrad([w], 0.1)), []
    run = made(lambda x, i: step(s, x, i))
    for i in range(1, 16):
        try:
            run(leafgrad.ones(3), i)
        except ValueError:
            found.append("an error")
        found.append((seen(s.table), [seen(state) for state in s.adagrad.state.values()]))
    return found


@pytest.mark.parametrize("step", [pop, clear, cache, reset], ids=lambda step: step.__name__)
@pytest.mark.filterwarnings("ignore:.*traced again")
def test_what_a_step_deletes_does_not_come_back(step):
    assert deleted(step, leafgrad.compile) == deleted(step)


class Counting(dict):
    count = 0

    def __setitem__(self, key, value):
        self.count += 1
        super().__setitem__(key, -value)

    def update(self, *args):
        raise RuntimeError

    clear = update


class Hiding(dict):
    def items(self):
        return []

    def get(self, key, default=None):
        return default


class Newest(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.move_to_end(key, last=False)


class Empty(list):
    __slots__ = ("last",)

    def __iter__(self):
        return iter([])

    def __setitem__(self, key, value):
        raise RuntimeError


class Fixed(deque):
    def __setitem__(self, key, value):
        raise RuntimeError


class Members(set):
    def __iter__(self):
        return iter([])

    def update(self, *args):
        raise RuntimeError

    clear = update


class Slots:
    __slots__ = ("a", "b")

    def __getattr__(self, name):
        return 7


def count(s, k):
    s[k] = s.get(k, 0) + 1


def put(s, k):
    s[k] = k
    s["a"] = 2 * k


def append(s, k):
    s.append(k)


def keep(s, k):
    s.append(2)
    s.last = k


def set_slot(s, k):
    s.a = k


KEPT = {
    "counter": (Counter, count, dict.items),
    "dict": (Counting, put, lambda s: [*dict.items(s), s.count]),
    "items": (Hiding, put, dict.items),
    "ordered": (Newest, put, OrderedDict.items),
    "list": (Empty, append, list.copy),
    "deque": (Fixed, append, deque.copy),
    "set": (Members, set.add, lambda s: sorted(set.__iter__(s))),
    "list with slots": (Empty, keep, lambda s: [s.last]),
    "slots": (Slots, set_slot, lambda s: [s.a, s.b]),
}


def kept(make, act, shown, made=lambda step: step):
    """What is in a container after each of some calls that leave numbers there, with their types."""
    held, found = make(), []

    def step(x, k):
        act(held, k)
        return x * k

    run = made(step)
    for k in (5, 4, 5, 5, 3, 4):
        run(leafgrad.ones(1), k)
        parts = [part for parts in shown(held) for part in (parts if type(parts) is tuple else [parts])]
        found.append([(type(part), repr(part)) for part in parts])
    return found


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.filterwarnings("ignore:.*traced again")
def test_containers_of_classes_with_methods_of_their_own(name):
    assert kept(*KEPT[name], leafgrad.compile) == kept(*KEPT[name])


@pytest.mark.parametrize("kept", [False, True])
def test_keys_of_a_dict_that_a_step_makes_are_ordinary_numbers(kept):
    made = []

    @leafgrad.compile
    def step(x, k):
        result = {k: x * k, (k, 1): x}
        if kept:
            made.append({k: k})
        return result

    for k in (1, 2, 3, 3, 3, 2):
        result = step(leafgrad.ones(1), k)
        found = [k, *(key for table in (result, *made[-1:]) for key in table)]
        assert found == [k, k, (k, 1), *[k] * kept]
        assert {type(part) for key in found for part in (key if type(key) is tuple else [key])} == {int}


@pytest.mark.parametrize("held", ["the class", "a class above"])
def test_a_number_that_changes_in_a_class_is_what_it_is_uncompiled(held):
    def lives(compiler):
        base = type("Base", (), {"mean": 1.0})
        kind = base if held == "the class" else type("Below", (base,), {})

        def step(x):
            base.mean = 0.9 * kind.mean + 0.1 * x.abs().mean().item()
            return x / kind.mean

        compiled, found = compiler(step), []
        for i in range(6):
            y = compiled(leafgrad.ones(3) * (i + 1))
            found.append((y.tolist(), type(kind.mean), kind.mean, vars(base)["mean"]))
            [[float(j)] for j in range(300)]  # lest what was freed is found in its place
        return found

    assert lives(leafgrad.compile) == lives(lambda step: step)


class Turned(NamedTuple):
    a: float
    b: float

    def __iter__(self):
        return iter((self[1], self[0]))


class Counted(NamedTuple("Counted", [("a", float)])):
    def __new__(cls, a, n=0):
        made = super().__new__(cls, a)
        made.n = n
        return made


def test_tuples_of_classes_with_methods_of_their_own():
    o = SimpleNamespace(n=1, kept=None)

    def turned(x):
        return Turned(x * 1, 2.0)

    def counted(x):
        o.n += 1
        o.kept = Counted(o.n, o.n)
        return Counted(x * 1, o.n)

    first, second = leafgrad.compile(turned), leafgrad.compile(counted)
    for i in range(6):
        found = first(leafgrad.ones(1))
        assert (type(found), found.a.tolist(), found.b) == (Turned, [1.0], 2.0)
        found = second(leafgrad.ones(1))
        assert (type(found), type(found.n), found.n) == (Counted, int, i + 2)
        assert (type(o.kept[0]), type(o.kept.n), o.kept.a, o.kept.n) == (int, int, i + 2, i + 2)


def test_a_list_that_is_within_itself():
    def step(x):
        made = [x * 2]
        made.append(made)
        return made

    compiled = leafgrad.compile(step)
    for _ in range(4):
        found = compiled(leafgrad.ones(1))
        assert found[0].tolist() == [2.0]
        assert found[1] is found


def test_lengths_in_tuples_of_classes_with_methods_of_their_own():
    def step(pair):
        return pair.a * 10, pair.b.sum() + pair.a.shape[0]

    compiled = leafgrad.compile(step)
    for n in (3, 3, 3, 4, 5, 6, 4):
        pair = Turned(leafgrad.ones(n), leafgrad.arange(2.0 * n))
        assert [r.tolist() for r in compiled(pair)] == [r.tolist() for r in step(pair)]


class Told(Exception):
    pass


HOLDERS = {  # what keeps a number where nobody can put another one, and how it is found there
    "partial function": (lambda n: functools.partial(max, n), lambda held: held.args[0]),
    "slice": (lambda n: slice(0, n, (n,)), lambda held: held.step[0]),
    "frozen set": (lambda n: frozenset([n]), lambda held: next(iter(held))),
    "method": (lambda n: types.MethodType(lambda number: number, n), lambda held: held.__self__),
    "generator": (lambda n: (number for number in [n]), next),
    "repeat": (lambda n: itertools.repeat(n), next),
    "error": (lambda n: Told([n], (n,)), lambda held: held.args[1][0]),
}


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize("way", ["returned", "kept", "appended", "raised"])
def test_numbers_that_are_kept_are_ordinary_ones(kind, way):
    make, found = HOLDERS[kind]
    o = SimpleNamespace(n=0, held=None, held_all=[], w=leafgrad.zeros(1))

    def step(x):
        o.n += 1
        o.w += 1
        held = make(o.n)
        if way == "raised" and o.n > 5:
            raise Told(held)
        if way == "kept":
            o.held = held
        elif way == "appended":
            o.held_all.append(held)
        return x * o.n, held if way == "returned" else None

    compiled = leafgrad.compile(step)
    for i in range(1, 9):
        try:
            y, held = compiled(leafgrad.ones(1))
            assert y.item() == i
        except Told as error:
            held = error.args[0]
        held = o.held or held or (o.held_all or [None])[-1]
        number = i if held is None else found(held)
        assert (type(number), number, o.n, o.w.item()) == (int, i, i, i)
        assert len(o.held_all) == (i if way == "appended" else 0)


class Shown(NamedTuple):
    number: int
    held: leafgrad.Tensor


def test_a_tuple_that_does_not_show_what_it_holds():
    class Hiding(Shown):
        def __iter__(self):
            return iter((self.number,))

    o = SimpleNamespace(kept=None)

    def step(x):
        y = x * 2
        o.kept = Hiding(1, y)
        return y

    compiled = leafgrad.compile(step)
    for i in range(5):
        y = compiled(leafgrad.full((1,), float(i)))
        assert o.kept.held is y
        assert y.item() == 2.0 * i


@pytest.mark.parametrize("made", [lambda: [1.0], lambda: {"a": 1}], ids=["list", "dict"])
def test_what_is_put_where_an_equal_one_was_is_what_is_returned(made):
    o = SimpleNamespace(held=made())

    def step(x):
        o.held = made()
        return x * 2, o.held

    compiled = leafgrad.compile(step)
    for _ in range(8):
        assert compiled(leafgrad.ones(2))[1] is o.held
