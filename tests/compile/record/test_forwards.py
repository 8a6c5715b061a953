"""Parameters of users' ops that change: what a step computes is of what they were when it called the op."""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import enum
import functools
import itertools
import pathlib
import re

import numpy as np
import pytest

import leafgrad
from leafgrad import op
from leafgrad.compile.record.forwards import changes
from leafgrad.errors import TraceError
from leafgrad.ops.signature import as_now

EXECUTORS = ["replay", "numpy", "native"]


@op("elementwise")
def scaled(xp, x, *, by):
    """x times a number, the sum of some, or what an object or a function says."""
    if isinstance(by, Pair):
        return x * sum(by.a)
    if callable(by) and not isinstance(by, type):
        return x * by(3.0)
    return x * (by.k if hasattr(by, "k") else sum(by.values()) if isinstance(by, dict) else np.sum(by))


@op("elementwise")
def horner(xp, x, *, terms):
    """By the order of a dict."""
    out = x
    for name in terms:
        out = out * x + terms[name]
    return out


class Held:
    k = 0.0


class Slotted:
    __slots__ = ("k",)


class Config:
    k = 0.0


Pair = collections.namedtuple("Pair", "a")


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: tuple = ()


class Mode(enum.Enum):
    TWO = 2


def lists(held):
    by = []
    for k in (1.0, 2.0, 3.0):
        by.append(k)
        yield by


def dicts(held):
    by = {}
    for k in "ab":
        by[k] = len(by) + 1.0
        yield by


def objects(held):
    for _ in range(3):
        held.k += 1.0
        yield held


def slotted(held):
    by = Slotted()
    for _ in range(3):
        held.k += 1.0
        by.k = held.k
        yield by


def arrays(held):
    for _ in range(2):
        held.array += 1
        yield held.array


def functions(held):
    held.k += 1.0
    yield lambda x: x * held.k


def variables(held):
    k = held.k = held.k + 1.0

    def by(x):
        return x * k

    yield by
    k += 1.0
    yield by


def ordered(held):
    by = collections.OrderedDict(a=1.0)
    for _ in range(2):
        by["a"] += 1.0
        yield by


def classes(held):
    for _ in range(2):
        held.k += 1.0
        Config.k = held.k
        yield Config


def tuples(held):
    by = Pair([1.0])
    for _ in range(2):
        by.a.append(2.0)
        yield by


def grown(held):
    for _ in range(2):
        held.list.append(1.0)
        yield held.list


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "kinds", [lists, dicts, objects, slotted, arrays, functions, variables, ordered, classes, tuples, grown]
)
def test_a_parameter_that_is_changed_in_the_step(kinds, executor):
    def found(compiler):
        held = Held()
        held.array, held.list = np.zeros(2, np.float32), []

        def body(x):
            return [scaled(x * 2, by=by) for by in kinds(held)]

        step = compiler(body)
        return [[t.tolist() for t in step(leafgrad.ones(2) * i)] for i in range(6)]

    assert found(lambda f: leafgrad.compile(f, executor=executor)) == found(lambda f: f)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_parameter_that_is_changed_between_calls(executor):
    by = np.ones(3, np.float32)
    step = leafgrad.compile(lambda x: scaled(x, by=by), executor=executor)
    for i in range(6):
        by[0] = i
        assert step(leafgrad.ones(())).item() == i + 2


@pytest.mark.parametrize("executor", EXECUTORS)
def test_dicts_in_two_orders(executor):
    def step(x):
        return horner(x, terms={"a": 1, "b": 2}), horner(x, terms={"b": 2, "a": 1})

    compiled = leafgrad.compile(step, executor=executor)
    for _ in range(4):
        assert [t.item() for t in compiled(leafgrad.tensor(3.0))] == [32, 34]


def test_a_closed_step_says_which_parameter_it_is():
    step = leafgrad.compile(lambda x: scaled(x, by=Held()), closed=True)
    step(leafgrad.ones(2))
    with pytest.raises(TraceError, match=re.escape("op 'scaled', whose parameter 'by' has a Held")):
        step(leafgrad.ones(2))


def test_what_does_not_change():
    constants = [
        1, 2.5, 1j, "s", b"s", None, True, (1, [2, {"k": {3}}]), slice(1, 2), range(3), Mode.TWO, int, len,
        leafgrad.float32, np.float32(1), np.dtype("f4"), frozenset([1]), leafgrad.Generator(), lambda x: x + 1,
        np.tanh, np.sum, Frozen(1.0, (2, 3)), functools.partial(pow, 2), pathlib.Path(), "abc".join,
    ]  # fmt: skip
    assert changes({"a": constants}) is None
    k = 1
    for value in [
        Frozen([1.0]),
        functools.partial(pow, [2]),
        lambda x: x + k,
        Held,
        Held(),
        Slotted(),
        np.zeros(2),
        bytearray(2),
        leafgrad.ones(2),
        [].append,
        iter([1]),
    ]:
        assert changes({"a": ({"k": [value]},)}) is not None


def test_tuples_with_attributes_are_given_as_they_are():
    class Named(tuple):
        pass

    by = Named([2.0])
    by.k = 3.0
    y = scaled(leafgrad.ones(1, requires_grad=True), by=by)
    assert (y.item(), y.grad_fn is None, as_now({"by": by})["by"].k) == (3, False, 3)
    assert changes({"by": by}) == "whose parameter 'by' has a Named"


HOLDERS = {
    "a tuple of lists": (([0.0],), lambda held: held[0].__setitem__(0, held[0][0] + 1) or held[0][0]),
    "an iterator": (itertools.count(1.0), next),
    "NumPy's generator": (np.random.default_rng(0), lambda held: held.normal()),
    "a deque": (collections.deque([1.0], maxlen=9), lambda held: held.append(1.0) or len(held)),
    "an array of Python's": (array.array("d", [0.0]), lambda held: held.append(1.0) or len(held)),
    "an object": (Held(), lambda held: setattr(held, "k", held.k + 1) or held.k),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_forward_that_holds_what_changes_runs_once_a_call(kind):
    made, take = HOLDERS[kind]

    def found(compiler):
        held = copy.deepcopy(made)

        @op("elementwise")
        def counted(xp, x):
            return x * take(held)

        step = compiler(lambda x: counted(x) + 1)
        return [step(leafgrad.ones(2)).tolist() for _ in range(4)]

    assert found(leafgrad.compile) == found(lambda step: step)
