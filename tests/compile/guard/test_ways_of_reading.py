"""Ways of reading x owners x changes: what a compiled step reads, by whatever way, and what changes, however."""

from __future__ import annotations

import abc
import builtins
import collections
import dataclasses
import enum
import functools
import math
import operator
import os
import random
import tempfile
import time
import types

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim

QUICK = 30  # programs of each kind, drawn at random; the slow test has many more


class Plain:
    def __init__(self):
        self.v = 2.0


class Slots:
    __slots__ = ("v",)

    def __init__(self):
        self.v = 2.0


@dataclasses.dataclass
class Data:
    v: float = 2.0


class Property:
    def __init__(self):
        self.held = 2.0

    @property
    def v(self):
        return self.held

    @v.setter
    def v(self, value):
        self.held = value


class Computed:
    def __init__(self):
        self.__dict__["held"] = {"v": 2.0}

    def __getattr__(self, name):
        if name in self.held:
            return self.held[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        self.held[name] = value

    def __delattr__(self, name):
        del self.held[name]


class Wrapper:
    def __init__(self):
        self.__dict__["held"] = Plain()

    def __getattr__(self, name):
        return getattr(self.held, name)

    def __setattr__(self, name, value):
        setattr(self.held, name, value)

    def __delattr__(self, name):
        delattr(self.held, name)


class Asking:
    def __init__(self):
        self.v = 2.0

    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = 2.0


class Descent(optim.SGD):
    def __init__(self):
        super().__init__([leafgrad.ones(2, requires_grad=True)], lr=0.1)
        self.v = 2.0


class Meta(type):
    pass


def given(make):
    """An owner to which the attribute is given from outside."""

    def owner():
        made = make()
        made.v = 2.0
        return made

    return owner


def fresh(kind):
    """An object of a new class, which may be changed."""
    return lambda: type(kind.__name__, (kind,), {"__slots__": ()} if kind is Slots else {})()


OWNERS = {
    **{
        kind.__name__: fresh(kind) for kind in (Plain, Slots, Data, Property, Computed, Wrapper, Asking, Layer, Descent)
    },
    "module": given(lambda: types.ModuleType("settings")),
    "namespace": given(types.SimpleNamespace),
    "class": lambda: type("K", (Plain,), {"v": 2.0}),
    "class of a metaclass": lambda: type("M", (Meta,), {})("K", (), {"v": 2.0}),
    "object of a base class": lambda: type("B", (type("A", (), {"v": 2.0}),), {})(),
    "function": given(lambda: types.FunctionType((lambda: None).__code__, globals())),
    "partial": given(lambda: functools.partial(int)),
    "tensor": given(lambda: leafgrad.ones(2)),
    "parameter": given(lambda: nn.Parameter(leafgrad.ones(2))),
    "list of modules": given(lambda: nn.ModuleList([nn.Linear(2, 2)])),
    "dict of its own class": given(lambda: type("D", (dict,), {})()),
    "exception": given(lambda: type("E", (ValueError,), {})("a")),
}
WAYS = (
    "o.v",
    "getattr(o, 'v', 1.5)",
    "getattr(o, name, 1.5)",
    "vars(o).get('v', 1.5)",
    "o.__dict__.get(name, 1.5)",
    "sum(x for _, x in sorted(o.__dict__.items()) if isinstance(x, float))",
    "2.0 if hasattr(o, 'v') else 1.5",
    "2.0 if 'v' in dir(o) else 1.5",
    "operator.attrgetter('v')(o)",
    "sorted([o], key=lambda q: q.v)[0].v",
    "sum(q.v for q in (o,))",
    "(lambda *a, **k: k['q'].v)(q=o)",
    "given.v",
    "object.__getattribute__(o, 'v')",
    "float('{0.v}'.format(o))",
    "2.5 if o.v > 2.2 else 1.5",
    "2.5 if o.v else 1.5",
    "2.5 if o.v is name else int(o.v)",
    "getattr(type(o), 'v', 1.5) if isinstance(getattr(type(o), 'v', 1.5), float) else 1.5",
    "functools.reduce(lambda a, b: b.v, [0.0, o])",
)
CHANGES = {
    "another number": lambda o: setattr(o, "v", 3.0),
    "zero": lambda o: setattr(o, "v", 0.0),
    "an int": lambda o: setattr(o, "v", 2),
    "a bool": lambda o: setattr(o, "v", True),
    "a tensor": lambda o: setattr(o, "v", leafgrad.tensor(4.0)),
    "gone": lambda o: delattr(o, "v"),
    "in its class": lambda o: setattr(type(o), "v", 5.0),
    "a property of its class": lambda o: setattr(type(o), "v", property(lambda _: 6.0)),
    "__getattribute__": lambda o: setattr(
        type(o), "__getattribute__", lambda s, n: 7.0 if n == "v" else object.__getattribute__(s, n)
    ),
    "in its dict": lambda o: vars(o).__setitem__("v", 9.0),
    "another class": lambda o: setattr(o, "__class__", type("S", (type(o),), {"v": property(lambda _: 11.0)})),
}

FILLED = {"a": 1.0, "b": 2.0, "c": 3.0}
CONTAINERS = {
    "dict": lambda: dict(FILLED),
    "OrderedDict": lambda: collections.OrderedDict(FILLED),
    **{
        f"own {kind.__name__}": (lambda kind=kind: type("Own", (kind,), {})(dict(FILLED)))
        for kind in (dict, collections.Counter, collections.UserDict, collections.ChainMap)
    },
}
ENTRIES = (
    "o['a']",
    "o.get(name, 9.0)",
    "sum(o.values())",
    "sum(v * (i + 1) for i, (_, v) in enumerate(o.items()))",
    "2.0 if 'a' in o else 3.0",
    "float(len(o))",
    "o[next(iter(o))]",
    "o[sorted(o)[-1]]",
    "max(o.values())",
    "(lambda **q: q.get('a', 7.0))(**o)",
    "({**o, 'z': 1.0}).get('a', 7.0)",
    "2.0 if o else 3.0",
    "2.0 if o == {'a': 1.0, 'b': 2.0, 'c': 3.0} else 3.0",
    "operator.itemgetter('b')(o)",
    "dict(o).get('a', 7.0)",
    "float(len(str(o)))",
)
MUTATIONS = {
    "another number": lambda o: o.__setitem__("a", 4.0),
    "an int": lambda o: o.__setitem__("a", 1),
    "a new key": lambda o: o.__setitem__("d", 10.0),
    "gone": lambda o: o.__delitem__("a"),
    "another order": lambda o: o.__setitem__("a", o.pop("a")),
    "empty": lambda o: o.clear(),
    "exchanged": lambda o: o.update(a=o["b"], b=o["a"]),
    "a tensor": lambda o: o.__setitem__("a", leafgrad.tensor(3.0)),
    "__getitem__": lambda o: setattr(type(o), "__getitem__", lambda s, k: 8.0),
    "__contains__": lambda o: setattr(type(o), "__contains__", lambda s, k: False),
    "__iter__": lambda o: setattr(type(o), "__iter__", lambda s: iter(["b"])),
    "__len__": lambda o: setattr(type(o), "__len__", lambda s: 0),
    "another class": lambda o: setattr(o, "__class__", type("S", (type(o),), {"__getitem__": lambda s, k: 11.0})),
}
SHARED = {"module", "namespace", "function", "partial", "tensor", "parameter", "list of modules"}  # classes of all
KINDS = {"attributes": (OWNERS, WAYS, CHANGES), "items": (CONTAINERS, ENTRIES, MUTATIONS)}
HOLDERS = (
    "def read(given=o):\n    return {}\n",
    "def make(o):\n    def read(given=o):\n        return {}\n    return read\nread = make(o)\n",
    "class Holder:\n    def __init__(self):\n        self.o = o\n    def read(self):\n"
    "        o = given = self.o\n        return {}\nread = Holder().read\n",
)


def outcome(function, x):
    try:
        return repr(function(x).tolist())
    except Exception as error:
        return type(error).__name__


def outcomes(make, way, holder, changes, compiled):
    """What calls give before and after each change; None if the first cannot be made."""
    o = make()
    space = {"o": o, "name": "a" if way in ENTRIES else "v", "operator": operator, "functools": functools}
    exec(holder.format(way) + "def step(x):\n    return x * read()\n", space)
    step = leafgrad.compile(space["step"], executor="numpy") if compiled else space["step"]
    x = leafgrad.ones(2)
    found = [outcome(step, x) for _ in range(4)]
    for i, change in enumerate(changes):
        try:
            change(o)
        except Exception:
            if not i:
                return None
        found += [outcome(step, x) for _ in range(3)]
    return found


def check(kind, seed, count):
    """Assert that ``count`` random products give compiled what they give in eager mode."""
    draw = random.Random(seed)
    owners, ways, changes = KINDS[kind]
    tried = 0
    while tried < count:
        owner, way, holder = draw.choice([*owners]), draw.choice(ways), draw.choice(HOLDERS)
        names = draw.choice([*changes]), draw.choice([*changes])
        if owner in SHARED:
            names = tuple(n for n in names if "class" not in n and not n.startswith("__")) or ("another number",)
        made = [outcomes(owners[owner], way, holder, [changes[n] for n in names], compiled) for compiled in (0, 1)]
        if made[0] is not None:
            tried += 1
            assert made[1] == made[0], f"{way} of {owner}, then {names}, held as\n{holder}"


@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_is_seen(kind):
    check(kind, 0, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_is_seen_by_all_ways(kind, seed):
    check(kind, seed, 20 * QUICK)


class Renamed:
    fetch = staticmethod(getattr)

    def __init__(self):
        self.v, self.done = 2.0, 0


FETCH, PUT, KIND = getattr, setattr, type
FUNCTIONS = {"fetch": getattr, "has": hasattr, "raw": object.__getattribute__, "put": object.__setattr__}


@pytest.mark.parametrize(
    "read",
    [
        lambda o, names: FETCH(o, names[0]),
        lambda o, names: FUNCTIONS["fetch"](o, names[0]),
        lambda o, names: FUNCTIONS["raw"](o, names[0]),
        lambda o, names: Renamed.fetch(o, names[0]),
        lambda o, names: functools.partial(FETCH, o)(names[0]),
        lambda o, names: functools.reduce(FETCH, names[:1], o),
        lambda o, names: sum(map(functools.partial(FETCH, o), names[:1])),
        lambda o, names: 3.0 if FUNCTIONS["has"](o, names[2]) else FETCH(o, names[0]),
        lambda o, names: (PUT(o, names[1], o.v), 1.0)[1],
        lambda o, names: (FUNCTIONS["put"](o, names[1], o.v), 1.0)[1],
        lambda o, names: (object.__setattr__(o, names[1], o.v), 1.0)[1],
    ],
)
def test_functions_that_read_any_attribute_by_other_names(read):
    def found(compiler):
        o, names, results = Renamed(), ["v", "done", "late"], []
        step = compiler(lambda x: x * read(o, names))
        for i in range(10):
            if i == 4:
                o.v = 5.0
            if i == 7:
                o.late = 1
            o.done = 0
            results.append((step(leafgrad.ones(1)).item(), o.done))
        return results

    assert found(leafgrad.compile) == found(lambda function: function)


class Aliased(Renamed):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    put = __setitem__ = __setattr__


@pytest.mark.parametrize(
    "take",
    [
        lambda o: o.put,
        lambda o: o.__setitem__,
        lambda o: o.__setattr__,
        lambda o: functools.partial(Aliased.put, o),
        lambda o: functools.partial(functools.partial(Aliased.__setattr__, o)),
        lambda o: {"put": o.__setattr__}["put"],
        lambda o: lambda name, value: o.__setitem__(name, value),
        lambda o: lambda name, value: o.put(name, value),
        lambda o: lambda name, value: [*map(o.put, [name], [value])],
    ],
)
def test_a_method_that_writes_the_attribute_that_it_is_given_by_other_names(take):
    def found(compiler):
        o, names, results = Aliased(), ["done"], []
        taken = take(o)
        step = compiler(lambda x: (x * o.v, taken(names[0], o.v))[0])
        for i in range(8):
            if i == 4:
                o.v = 5.0
            o.done = 0
            results.append((step(leafgrad.ones(1)).item(), o.done))
        return results

    assert found(leafgrad.compile) == found(lambda function: function)


def test_type_by_another_name_sees_no_number_that_changes():
    step = leafgrad.compile(lambda x, n: x * n if KIND(n) is int else -x)
    assert [step(leafgrad.ones(1), n).item() for n in range(8)] == [*map(float, range(8))]


def test_type_by_another_name_sees_no_number_that_the_step_changes():
    def found(compiler):
        o = Renamed()
        o.count, o.held = 1, [1.0]

        def step(x):
            o.count += 1
            o.held.append(2.0)
            return x * (2 if KIND(o.count) is int else 3) * o.count * (5 if KIND(o.held) is list else 7)

        step = compiler(step)
        return [step(leafgrad.ones(1)).item() for _ in range(8)], o.count, o.held

    assert found(leafgrad.compile) == found(lambda function: function)


class Slotted:
    __slots__ = ("v",)

    def __init__(self):
        self.v = 1.0

    def __repr__(self):
        return f"{self.v}"


def namespace():
    return types.SimpleNamespace(v=1.0)


def in_a_class(call):
    return type("Holder", (), {"call": call})()


TAKEN = {  # what there is, what is taken of it, what the step does with that, and what changes between calls
    "attribute": (namespace, lambda o: o.__getattribute__, lambda t: t("v"), lambda o: setattr(o, "v", 2.0)),
    "slot": (
        Slotted, lambda o: functools.partial(Slotted.v.__get__, o), lambda t: t(), lambda o: setattr(o, "v", 2.0)
    ),
    "array": (lambda: np.ones(1), lambda o: o.__getitem__, lambda t: float(t(0)), lambda o: o.fill(2.0)),
    "deque": (lambda: collections.deque([1.0]), lambda o: o.__len__, lambda t: t(), lambda o: o.append(2.0)),
    "bytes": (lambda: bytearray(1), lambda o: o.__getitem__, lambda t: t(0), lambda o: o.__setitem__(0, 2)),
    "of a class": (lambda: {"v": 1.0}, lambda o: in_a_class(o.get), lambda t: t.call("v"), lambda o: o.update(v=2.0)),
    "sets an item": (dict, lambda o: o.__setitem__, lambda t: t("v", 5.0) or 1.0, lambda o: o.clear()),
    "sets an attribute": (
        namespace, lambda o: o.__setattr__, lambda t: t("v", 5.0) or 1.0, lambda o: setattr(o, "v", 0.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_read_and_written_by_something_in_c_that_was_kept(case):
    """No call of a method-wrapper is seen, so what it belongs to is guarded."""
    make, take, act, change = TAKEN[case]

    def found(compiler):
        o = make()
        taken, results = take(o), []
        step = compiler(lambda x: x * act(taken))
        for i in range(8):
            if i == 6:
                change(o)
            results.append((step(leafgrad.ones(1)).item(), repr(o)))
        return results

    assert found(leafgrad.compile) == found(lambda function: function)


def test_a_field_of_a_named_tuple_that_its_class_replaces():
    pair = collections.namedtuple("Pair", "v w")
    held = pair(1.0, 2.0)
    step = leafgrad.compile(lambda x: x * held.v)
    assert [step(leafgrad.ones(1)).item() for _ in range(6)] == [1.0] * 6
    pair.v = property(lambda self: 8.0)
    assert step(leafgrad.ones(1)).item() == 8.0


class Kept:
    """What a case reads; its attributes are its own."""

    def __init__(self, **kept):
        vars(self).update(kept)


Registered = abc.ABCMeta("Registered", (), {})


def enum_value():
    mode = enum.Enum("Mode", {"A": {"scale": 2.0}})
    return lambda: mode.A.value["scale"], lambda: mode.A.value.update(scale=5.0)


def class_attribute_between_underscores():
    kind = type("Kind", (), {"__config__": {"k": 2.0}})
    o = kind()
    return lambda: o.__config__["k"], lambda: kind.__config__.update(k=5.0)


def key_of_a_dict():
    layers = {nn.Dropout(0.5): 1.0}
    return lambda: next(iter(layers)).p, lambda: vars(next(iter(layers))).update(p=0.25)


def function_in_c_called_from_c():
    folder = tempfile.mkdtemp()
    return lambda: len(next(map(os.listdir, [folder]))), lambda: os.mkdir(os.path.join(folder, "new"))


def function_in_c_in_a_partial():
    end = time.perf_counter() + 0.5
    return lambda: functools.partial(time.perf_counter)() < end, lambda: time.sleep(0.6)


def name_that_a_library_gets():
    return lambda: 2.0 if hasattr(math, "late") else 1.0, lambda: setattr(math, "late", 1)


def name_that_builtins_get():
    def read():
        try:
            return late_builtin
        except NameError:
            return 1.0

    return read, lambda: setattr(builtins, "late_builtin", 2.0)


def attribute_of_a_named_tuple():
    held = type("Own", (collections.namedtuple("Pair", "v"),), {})(1.0)
    held.k = 2.0
    return lambda: held.k, lambda: setattr(held, "k", 5.0)


def attribute_that_is_deleted():
    kind = type("Kind", (), {"c": None})
    o = kind()
    o.a, o.b, o.c = (leafgrad.ones(1) for _ in range(3))
    return lambda: o.a + o.b + (0 if o.c is None else o.c), lambda: delattr(o, "c")


def class_in_a_union():
    kind = type("Kind", (), {})
    o, either = kind(), Registered | Plain
    return lambda: isinstance(o, either), lambda: Registered.register(kind)


def base_of_an_array():
    whole = np.ones(6)
    o = Kept(part=whole[:2])
    return lambda: float(o.part.base[5]), lambda: whole[4:].fill(5.0)


def fields_of_an_array():
    array = np.array([(1.0, 2.0)], [("a", "f8"), ("b", "f8")])
    return lambda: float(array["a"][0]), lambda: setattr(array.dtype, "names", ("b", "a"))


def factory_of_a_dict():
    held = collections.defaultdict(lambda: 2.0)
    return lambda: (held["k"], held.clear())[0], lambda: setattr(held, "default_factory", lambda: 5.0)


def special_method_in_c():
    kind = type("Kind", (), {"__getitem__": [2.0].__getitem__})
    return lambda: kind()[0], lambda: kind.__getitem__.__self__.__setitem__(0, 7.0)


@pytest.mark.parametrize(
    "case",
    [
        enum_value,
        class_attribute_between_underscores,
        key_of_a_dict,
        function_in_c_called_from_c,
        function_in_c_in_a_partial,
        name_that_a_library_gets,
        name_that_builtins_get,
        attribute_of_a_named_tuple,
        attribute_that_is_deleted,
        class_in_a_union,
        base_of_an_array,
        fields_of_an_array,
        factory_of_a_dict,
        special_method_in_c,
    ],
)
def test_what_is_read_is_read_again_once_it_has_changed(case):
    read, change = case()
    step = leafgrad.compile(lambda x: x * read())
    try:
        before = [step(leafgrad.ones(1)).item() for _ in range(7)]
        change()
        assert step(leafgrad.ones(1)).item() == float(read()) != before[-1]
    finally:
        vars(math).pop("late", None)
        vars(builtins).pop("late_builtin", None)


def test_an_argument_that_is_a_key_of_a_dict():
    w, v = leafgrad.ones(1), leafgrad.ones(1)
    rates = {w: 5.0}
    step = leafgrad.compile(lambda p: p * rates.get(p, 1.0))
    assert [step(v).item() for _ in range(6)] == [1.0] * 6
    assert step(w).item() == 5.0
