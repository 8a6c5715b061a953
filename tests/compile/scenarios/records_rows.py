"""Objects of fixed layout and special kinds: data classes, tuples, enums, weak references, keys."""

from __future__ import annotations

import dataclasses
import enum
import types
import weakref
from typing import NamedTuple, TypedDict

from compile.scenarios.harness import points, row

import leafgrad


@row
def dataclass(w):
    @dataclasses.dataclass
    class Config:
        gain: float = 1.0
        powers: list = dataclasses.field(default_factory=lambda: [1])

    o = Config()
    step = w.compile(lambda x: x ** o.powers[0] * dataclasses.asdict(o)["gain"] + len(dataclasses.fields(o)))
    for o.gain, o.powers in w.turns((1.0, [1]), (2.0, [1]), (2.0, [2])):
        w.call(step, points())


@row
def frozen_dataclass_replaced(w):
    @dataclasses.dataclass(frozen=True)
    class Config:
        gain: float

    o = types.SimpleNamespace(config=Config(1.0))
    step = w.compile(lambda x: x * o.config.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        o.config = dataclasses.replace(o.config, gain=k)
        w.call(step, points())


@row
def frozen_dataclass_as_argument(w):
    @dataclasses.dataclass(frozen=True, slots=True)
    class Config:
        gain: float

    step = w.compile(lambda x, config: x * config.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points(), Config(k))


@row
def object_as_argument_whose_attribute_changes(w):
    o = types.SimpleNamespace(gain=1.0)
    step = w.compile(lambda x, config: x * config.gain)
    for o.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, points(), o)


@row
def other_object_as_argument(w):
    step = w.compile(lambda x, config: x * config.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points(), types.SimpleNamespace(gain=k))


@row
def dataclass_slots(w):
    @dataclasses.dataclass(slots=True)
    class Config:
        gain: float

    o = Config(1.0)
    step = w.compile(lambda x: x * o.gain)
    for o.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


class Pair(NamedTuple):
    k: float
    b: float


@row
def namedtuple(w):
    o = types.SimpleNamespace(pair=Pair(1.0, 0.0))
    step = w.compile(lambda x: x * o.pair.k + o.pair.b)
    for pair in w.turns((1.0, 0.0), (2.0, 0.0), (2.0, 1.0)):
        o.pair = Pair(*pair)
        w.call(step, points())


@row
def namedtuple_as_argument(w):
    step = w.compile(lambda pair: pair.k * pair.b)
    for k in w.turns(1.0, 2.0, 3.0):
        w.call(step, Pair(k, points()))


@row
def module_whose_name_begins_with_namedtuple(w):
    m = w.module("namedtuple_gains", "gains = [2.0]\ndef scaled(x):\n    return x * gains[0]\n")
    step = w.compile(lambda x: m.scaled(x))
    for m.gains[0] in w.turns(2.0, 5.0, 7.0):
        w.call(step, points())


@row
def enum_member(w):
    class Mode(enum.Enum):
        SIN = "sin"
        COS = "cos"

    o = types.SimpleNamespace(mode=Mode.SIN)
    step = w.compile(lambda x: getattr(x, o.mode.value)() if o.mode is not Mode.COS else x.cos() * 2)
    for o.mode in w.turns(Mode.SIN, Mode.COS, Mode.SIN):
        w.call(step, points())


@row
def enum_with_attributes(w):
    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 2

    Level.LOW.gain = 1.0
    Level.HIGH.gain = 10.0
    o = types.SimpleNamespace(level=Level.LOW)
    step = w.compile(lambda x: x * o.level.gain + o.level)
    for i, o.level in enumerate(w.turns(Level.LOW, Level.HIGH, Level.LOW)):
        Level.HIGH.gain = 10.0 + i
        w.call(step, points())


@row
def flags_of_an_enum(w):
    class Terms(enum.Flag):
        DATA = 1
        RESIDUAL = 2

    o = types.SimpleNamespace(on=Terms.DATA)
    step = w.compile(lambda x: (x if Terms.DATA in o.on else 0) + (x.exp() if Terms.RESIDUAL in o.on else 0) + x)
    for o.on in w.turns(Terms.DATA, Terms.DATA | Terms.RESIDUAL, Terms.RESIDUAL):
        w.call(step, points())


class Options(TypedDict, total=False):
    gain: float


@row
def typed_dict(w):
    options: Options = {"gain": 1.0}
    step = w.compile(lambda x: x * options["gain"])
    for k in w.turns(1.0, 2.0, 3.0):
        options["gain"] = k
        w.call(step, points())


@row
def number_with_attributes(w):
    class Gain(float):
        pass

    o = types.SimpleNamespace(k=Gain(2.0))
    o.k.offset = 0.0
    step = w.compile(lambda x: x * o.k + o.k.offset)
    for offset in w.turns(0.0, 1.0, 2.0):
        o.k.offset = offset
        w.call(step, points())


@row
def weak_reference(w):
    class Holder:
        k = 1.0

    o = Holder()
    ref = weakref.ref(o)
    step = w.compile(lambda x: x * ref().k)
    for k in w.turns(1.0, 2.0, 3.0):
        o.k = k
        w.call(step, points())


@row
def weak_reference_that_dies(w):
    class Holder:
        k = 2.0

    o = types.SimpleNamespace(held=Holder())
    ref = weakref.ref(o.held)
    step = w.compile(lambda x: x * ref().k if ref() is not None else x * 100)
    for i in range(8):
        w.call(step, points())
        if i == 4:
            o.held = None


@row
def weak_proxy(w):
    class Holder:
        k = 1.0

    o = Holder()
    proxy = weakref.proxy(o)
    step = w.compile(lambda x: x * proxy.k)
    for k in w.turns(1.0, 2.0, 3.0):
        o.k = k
        w.call(step, points())


@row
def weak_value_dictionary(w):
    class Holder:
        def __init__(self, k):
            self.k = k

    o, table = types.SimpleNamespace(held=None), weakref.WeakValueDictionary()
    step = w.compile(lambda x: x * table["a"].k if "a" in table else x - 1)
    for k in w.turns(1.0, None, 3.0):
        o.held = None if k is None else Holder(k)
        if k is not None:
            table["a"] = o.held
        w.call(step, points())


@row
def weak_key_dictionary(w):
    net = leafgrad.nn.Linear(3, 1)
    table = weakref.WeakKeyDictionary({net: 1.0})
    step = w.compile(lambda x: net(x) * table[net])
    for k in w.turns(1.0, 2.0, 3.0):
        table[net] = k
        w.call(step, points())


@row
def vars_and_dict_of_an_object(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: x * vars(o)["k"] + o.__dict__.get("b", 0.0) + len(vars(o)))
    for k in w.turns({"k": 1.0}, {"k": 2.0}, {"k": 2.0, "b": 5.0}):
        vars(o).clear()
        vars(o).update(k)
        w.call(step, points())


@row
def objects_in_a_set(w):
    class Term:
        def __init__(self, k):
            self.k = k

    one = Term(1.0)
    terms = {one, Term(2.0)}
    step = w.compile(lambda x: x * sum(term.k for term in terms))
    for one.k in w.turns(1.0, 3.0, 5.0):
        w.call(step, points())


@row
def objects_as_keys(w):
    class Term:
        def __init__(self, k):
            self.k = k

    term = Term(1.0)
    table = {term: 2.0}
    step = w.compile(lambda x: x * sum(key.k * v for key, v in table.items()))
    for term.k in w.turns(1.0, 3.0, 5.0):
        w.call(step, points())
