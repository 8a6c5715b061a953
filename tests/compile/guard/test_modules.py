"""What is read by names that stand in no code, through modules, or of objects of any kind: its changes are seen."""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import copyreg
import dataclasses
import datetime
import enum
import functools
import sys
import time
import types
from contextvars import ContextVar
from typing import NamedTuple

import pytest

import leafgrad
import leafgrad.nn.functional as F
from leafgrad import nn
from leafgrad.tensor.overrides import unwrapped

x = leafgrad.ones(2)
RELU, SCALE, INNER = ("".join(letters) for letters in (["re", "lu"], ["sc", "ale"], ["inn", "er"]))


class Zone(datetime.tzinfo):
    k = 2.0


class Held:
    def __init__(self):
        self.scale, self.inner = 2.0, types.ModuleType("inner")
        self.inner.scale = 2.0
        self.z = complex(-4, 0.0)
        self.chosen, self.relu = {0, 8}, nn.ReLU()
        self._compiled_scale = 2.0
        self.variable = ContextVar("variable", default=2.0)
        self.evaluated = leafgrad.no_grad()(lambda x: x)
        self.evaluated.k = 2.0
        self.given = types.SimpleNamespace(scale=2.0)
        type(self).through = staticmethod(functools.partial(scale_of, self.given))
        self.one_key, self.alias, self.slotted = {1: 1}, Typed[int], type("S", (), {"__slots__": ("a",)})()
        self.part, self.when = slice([2.0], None), datetime.datetime(2020, 1, 1, tzinfo=type("Z", (Zone,), {})())
        self.made = dataclasses.make_dataclass("Made", [("a", float, 2.0)], namespace={"held": [2.0]})


def scale_of(o, x):
    return x * o.scale


class Typed:
    k = 2.0
    __class_getitem__ = classmethod(types.GenericAlias)


Mode = enum.Enum("Mode", {"TRAIN": "train"}, type=str)


class Scaling(leafgrad.Tensor):
    __torch_function__ = unwrapped
    k = 2.0


class Kinds(enum.Flag):
    A = 1
    B = 2


class Unguarded(Held):
    unguarded = frozenset({"scale"})


def over_a_set(o, x):
    for value in o.chosen:
        x = x * 2 + value
    return x


def of_a_frame(o, x):
    try:
        raise ValueError
    except ValueError as error:
        return x * error.__traceback__.tb_frame.f_locals["o"].scale


def refill(o):
    o.chosen.clear()
    o.chosen.update((8, 0))


READ = {
    "a function of leafgrad, by a computed name": (
        lambda o, x: getattr(F, RELU)(x),
        lambda o, patch: patch.setattr(F, "relu", lambda x: x * 9),
    ),
    "a function of leafgrad that a layer calls": (
        lambda o, x: o.relu(x),
        lambda o, patch: patch.setattr(F, "relu", lambda x, inplace=False: x * 9),
    ),
    "a module by a computed name, and in it another": (
        lambda o, x: x * getattr(getattr(o, INNER), SCALE),
        lambda o, patch: patch.setattr(o.inner, "scale", 5.0),
    ),
    "an attribute of a tensor": (
        lambda o, x: x * getattr(x, SCALE, 1.0),
        lambda o, patch: patch.setattr(x, "scale", 3.0, raising=False),
    ),
    "an attribute of all layers": (
        lambda o, x: x * getattr(o.relu, SCALE),
        lambda o, patch: patch.setattr(nn.Module, "scale", 5.0),
    ),
    "a list that all tensors have": (
        lambda o, x: x * x.zoom[0],
        lambda o, patch: leafgrad.Tensor.zoom.__setitem__(0, 5.0),
    ),
    "the sign of a complex zero": (
        lambda o, x: x * (o.z**0.5).imag,
        lambda o, patch: patch.setattr(o, "z", complex(-4, -0.0)),
    ),
    "the order of a set": (over_a_set, lambda o, patch: refill(o)),
    "a name as compiled methods have": (
        lambda o, x: x * o._compiled_scale,
        lambda o, patch: patch.setattr(o, "_compiled_scale", 5.0),
    ),
    "what a class says is unguarded": (lambda o, x: x * o.scale, lambda o, patch: patch.setattr(o, "scale", 5.0)),
    "what is in a slice": (lambda o, x: x * o.part.start[0], lambda o, patch: o.part.start.__setitem__(0, 5.0)),
    "the zone of a time": (
        lambda o, x: x * o.when.tzinfo.k,
        lambda o, patch: patch.setattr(type(o.when.tzinfo), "k", 5.0),
    ),
    "a class that a library made": (lambda o, x: x * o.made.held[0], lambda o, patch: o.made.held.__setitem__(0, 5.0)),
    "a context variable, called by C": (
        lambda o, x: x * functools.partial(o.variable.get)(),
        lambda o, patch: o.variable.set(5.0),
    ),
    "an attribute of a function behind a decorator": (
        lambda o, x: x * o.evaluated.k,
        lambda o, patch: patch.setattr(o.evaluated, "k", 5.0),
    ),
    "what a partial is given that is a static method": (
        lambda o, x: type(o).through(x),
        lambda o, patch: patch.setattr(o.given, "scale", 5.0),
    ),
    "a list among the builtins": (eval("lambda o, x: x * zoom[0]"), lambda o, patch: builtins.zoom.__setitem__(0, 5.0)),
    "a key that is equal": (
        lambda o, x: x * (2.0 if type(next(iter(o.one_key))) is int else 3.0),
        lambda o, patch: patch.setattr(o, "one_key", {1.0: 1}),
    ),
    "a class among the builtins": (
        eval("lambda o, x: x * Zoomed.k"),
        lambda o, patch: patch.setattr(builtins.Zoomed, "k", 5.0),
    ),
    "the class of an alias": (lambda o, x: x * o.alias.k, lambda o, patch: patch.setattr(Typed, "k", 5.0)),
    "slots that are named": (
        lambda o, x: x * len(type(o.slotted).__slots__),
        lambda o, patch: patch.setattr(type(o.slotted), "__slots__", ("a", "b"), raising=False),
    ),
    "a frame": (of_a_frame, lambda o, patch: patch.setattr(o, "scale", 5.0)),
}


@pytest.mark.parametrize("way", READ)
def test_what_changes_is_seen(way, monkeypatch):
    read, change = READ[way]
    monkeypatch.setattr(nn.Module, "scale", 2.0, raising=False)
    monkeypatch.setattr(leafgrad.Tensor, "zoom", [2.0], raising=False)
    monkeypatch.setattr(builtins, "zoom", [2.0], raising=False)
    monkeypatch.setattr(builtins, "Zoomed", type("Zoomed", (), {"k": 2.0}), raising=False)
    o = Unguarded()
    step = leafgrad.compile(lambda x: read(o, x))
    before = [step(x).tolist() for _ in range(4)]
    assert before == [read(o, x).tolist()] * 4
    change(o, monkeypatch)
    expected = read(o, x).tolist()
    assert expected != before[0]
    assert [step(x).tolist() for _ in range(4)] == [expected] * 4


def test_what_is_written_by_a_computed_name_is_written_at_each_call(monkeypatch):
    monkeypatch.setattr(sys, "scale", 3.0, raising=False)

    def write(x):
        setattr(sys, SCALE, 3.0)
        return x

    step = leafgrad.compile(write)
    for value in (3.0, 3.0, 3.0, 3.0, 8.0, 8.0):
        sys.scale = value
        step(x)
        assert sys.scale == 3.0


def test_which_lists_are_one_may_matter():
    a, b = [1.0], [1.0]

    def same(x, given, other):
        return x * (2.0 if given is other else 1.0)

    def known(x, given):
        return x * (2.0 if given is a else 1.0)

    of_two, of_one = leafgrad.compile(same), leafgrad.compile(known)
    for given, other in [(a, a)] * 4 + [(a, b), (b, b), (b, a)]:
        assert of_two(x, given, other).tolist() == same(x, given, other).tolist()
        assert of_one(x, given).tolist() == known(x, given).tolist()


def test_keys_of_arguments_are_told_apart_by_their_types():
    def step(x, d):
        for key in d:
            x = x * (2.0 if type(key) is int else 3.0)
        return x

    compiled = leafgrad.compile(step)
    for key in [1] * 4 + [1.0, True, 1]:
        d = {key: 0.5, 2: 0.5}
        assert compiled(x, d).tolist() == step(x, d).tolist()


def test_attributes_that_a_library_class_reads_are_seen():
    class Own(collections.ChainMap):
        pass

    held = Own({"a": 1.0})
    step = leafgrad.compile(lambda x: x * (2.0 if held == {"a": 1.0} else 3.0))
    assert [step(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    held.maps[0].clear()
    assert step(x).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "step",
    [lambda x: x * iter_clock(), lambda x: contextlib.chdir(".").__enter__() or x],
    ids=["a clock", "an effect of contextlib"],
)
def test_what_c_calls_or_contexts_do_leaves_a_step_open(step):
    compiled = leafgrad.compile(step)
    for _ in range(4):
        compiled(x)
    assert "open" in compiled.explain().summary


def iter_clock():
    from time import perf_counter

    return next(iter(perf_counter, None))


class Pair(NamedTuple):
    a: float
    b: float


class Scaled(Pair):
    k = 2.0


def test_classes_and_attributes_of_named_tuples_are_read(monkeypatch):
    step = leafgrad.compile(lambda x, pair: x * pair.k * pair.a)
    assert [step(x, Scaled(1.0, 2.0)).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    monkeypatch.setattr(Scaled, "k", 5.0)
    assert step(x, Scaled(1.0, 2.0)).tolist() == [5.0, 5.0]
    for k in (1.0, 2.0, 3.0, 4.0):
        own = Scaled(1.0, 2.0)
        own.k = k
        assert step(x, own).tolist() == [k, k]


def test_comparisons_of_other_things_leave_a_step_closed():
    def step(x, batch):
        kind = type(batch["x"])
        right = kind is leafgrad.Tensor and F.relu is not F.gelu and batch["mode"] is Mode.TRAIN and Kinds.A in FLAGS
        return x * batch["x"] * (2.0 if right else 3.0)

    compiled = leafgrad.compile(step, closed=True)
    for _ in range(4):
        assert compiled(x, {"x": x, "mode": Mode.TRAIN}).tolist() == [2.0, 2.0]


FLAGS = Kinds.A | Kinds.B


def test_what_lies_of_itself_leaves_a_step_open():
    class Liar(type):
        def __eq__(cls, other):
            raise RuntimeError("no")

        __hash__ = type.__hash__

    o = Liar("O", (), {"k": 2.0})
    step = leafgrad.compile(lambda x: x * o.k)
    assert [step(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4


def test_the_class_of_a_tensor_that_is_given_is_read(monkeypatch):
    step = leafgrad.compile(lambda t: t.as_subclass(leafgrad.Tensor) * type(t).k)
    t = leafgrad.ones(2).as_subclass(Scaling)
    assert [step(t).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    monkeypatch.setattr(Scaling, "k", 5.0)
    assert step(t).tolist() == [5.0, 5.0]


def test_builtins_of_their_own_that_globals_have():
    own = {"RATE": 2.0, "map": map, "next": next}
    scope = {"__builtins__": own}
    exec("def direct(x): return x * RATE\ndef nested(x):\n    def rate(): return RATE\n    return x * rate()", scope)
    direct, nested = leafgrad.compile(scope["direct"]), leafgrad.compile(scope["nested"])
    for rate in (2.0, 5.0):
        own["RATE"] = rate
        assert [step(x).tolist() for step in (direct, nested) for _ in range(4)] == [[rate, rate]] * 8
    scope["__builtins__"] = {**own, "RATE": 7.0}  # for functions that are made from now on
    assert [direct(x).tolist(), nested(x).tolist()] == [[5.0, 5.0], [7.0, 7.0]]


def test_functions_that_statements_call(monkeypatch):
    def step(x):
        import math

        class Kind:
            rate = math.floor(2.5)

        return x * Kind.rate

    compiled, imports, builds = leafgrad.compile(step), builtins.__import__, builtins.__build_class__
    assert [compiled(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    other = types.SimpleNamespace(floor=lambda value: 5.0)
    monkeypatch.setattr(builtins, "__import__", lambda name, *a: other if name == "math" else imports(name, *a))
    assert compiled(x).tolist() == [5.0, 5.0]
    made = types.SimpleNamespace(rate=7.0)
    monkeypatch.setattr(
        builtins, "__build_class__", lambda f, name, *a: made if name == "Kind" else builds(f, name, *a)
    )
    assert compiled(x).tolist() == [7.0, 7.0]


class Pair:
    """What is copied, and what a copy is of some other class."""

    scale = 2.0


class Other(Pair):
    scale = 5.0


TABLES = {
    "copyreg": (copyreg.dispatch_table, lambda o: (Other, ())),
    "deepcopy": (copy._deepcopy_dispatch, lambda o, memo: Other()),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_way_to_copy_objects_of_a_class_is_registered(table, monkeypatch):
    o, (held, way) = Pair(), TABLES[table]
    step = leafgrad.compile(lambda x: x * copy.deepcopy(o).scale)
    assert [step(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    monkeypatch.setitem(held, Pair, way)
    assert step(x).tolist() == [5.0, 5.0]


KEYS = {"time": time, "kind": datetime.datetime, "name": "".join(["__sub", "classes__"])}
FUNCTIONS = {  # in C, that give something else at each call
    "of a module": lambda get: get(time, "perf_counter"),
    "of its dict": lambda get: vars(time)["perf_counter"],
    "of a module that was imported": lambda get: sys.modules["time"].perf_counter,
    "of a module in a dict": lambda get: KEYS["time"].perf_counter,
    "of a class": lambda get: KEYS["kind"].now,
    "of a class, by a string": lambda get: get(KEYS["kind"], "now"),
    "of classes": lambda get: Pair.__subclasses__,
    "of classes, by a computed name": lambda get: get(Pair, KEYS["name"]),
}


@pytest.mark.parametrize("way", FUNCTIONS)
def test_what_is_called_by_something_in_c(way):
    function = FUNCTIONS[way]

    def step(x):
        return x * len([next(iter(function(getattr), None))])

    compiled = leafgrad.compile(step)
    assert [compiled(x).tolist() for _ in range(3)] == [[1.0, 1.0]] * 3
    assert ": open" in compiled.explain().summary


def test_attributes_of_a_function_that_was_put_into_a_library(monkeypatch):
    def function():
        pass

    function.rate = 2.0
    monkeypatch.setattr(sys, "late", function, raising=False)
    step = leafgrad.compile(lambda x: x * sys.late.rate)
    assert [step(x).tolist() for _ in range(4)] == [[2.0, 2.0]] * 4
    function.rate = 5.0
    assert step(x).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("read", [lambda m: getattr(m, "late", 1.0), lambda m: 2.0 if hasattr(m, "late") else 1.0])
def test_a_module_that_gets_a_getattr(read):
    module = types.ModuleType("settings")
    step = leafgrad.compile(lambda x: x * read(module))
    assert [step(leafgrad.ones(1)).item() for _ in range(5)] == [1.0] * 5
    module.__getattr__ = lambda name: 5.0
    assert step(leafgrad.ones(1)).item() == read(module)
