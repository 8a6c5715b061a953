"""Objects and classes: attributes however they are stored, found, computed or replaced."""

from __future__ import annotations

import abc
import types
from typing import ClassVar

from compile.scenarios.harness import points, row


@row
def slots(w):
    class Point:
        __slots__ = ("x", "y")

    o = Point()
    o.x = o.y = 1.0
    step = w.compile(lambda x: x * o.x + o.y)
    for o.x, o.y in w.turns((1.0, 1.0), (2.0, 1.0), (2.0, 3.0)):
        w.call(step, points())


@row
def slots_and_attributes_in_a_subclass(w):
    class Base:
        __slots__ = ("k",)

    class Derived(Base):
        pass

    o = Derived()
    o.k, o.extra = 1.0, 2.0
    step = w.compile(lambda x: x * o.k + o.extra)
    for o.k, o.extra in w.turns((1.0, 2.0), (3.0, 2.0), (3.0, 4.0)):
        w.call(step, points())


@row
def class_attribute(w):
    class Settings:
        gain = 1.0

    step = w.compile(lambda x: x * Settings.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        Settings.gain = k
        w.call(step, points())


@row
def class_attribute_read_through_an_object(w):
    class Settings:
        gain = 1.0

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        Settings.gain = k
        w.call(step, points())


@row
def object_attribute_in_front_of_the_class_attribute(w):
    class Settings:
        gain = 1.0

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for k in w.turns(None, 2.0, None):
        vars(o).pop("gain", None)
        if k:
            o.gain = k
        w.call(step, points())


@row
def attribute_of_a_base_class(w):
    class Base:
        gain = 1.0

    class Derived(Base):
        pass

    o = Derived()
    step = w.compile(lambda x: x * o.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        Base.gain = k
        w.call(step, points())


@row
def attribute_of_a_metaclass(w):
    class Meta(type):
        gain = 1.0

    class Settings(metaclass=Meta):
        pass

    step = w.compile(lambda x: x * Settings.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        Meta.gain = k
        w.call(step, points())


@row
def property_of_a_metaclass(w):
    class Meta(type):
        store: ClassVar = {"gain": 1.0}

        @property
        def gain(cls):
            return cls.store["gain"]

    class Settings(metaclass=Meta):
        pass

    step = w.compile(lambda x: x * Settings.gain)
    for Meta.store["gain"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def property_that_reads_state(w):
    class Settings:
        base = 1.0

        @property
        def gain(self):
            return 2 * self.base

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for o.base in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def property_that_counts(w):
    class Settings:
        def __init__(self):
            self.asked = 0

        @property
        def gain(self):
            self.asked += 1
            return float(self.asked)

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for _ in range(7):
        w.call(step, points())


@row
def property_with_a_setter_in_the_step(w):
    class Settings:
        def __init__(self):
            self._gain = 1.0

        @property
        def gain(self):
            return self._gain

        @gain.setter
        def gain(self, value):
            self._gain = value

    o = Settings()

    def step(x):
        o.gain = o.gain * 2
        return x * o.gain

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def descriptor_with_state(w):
    class Scheduled:
        def __init__(self):
            self.table = {"gain": 1.0}

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, o, owner=None):
            return self.table[self.name]

    schedule = Scheduled()

    class Settings:
        gain = schedule

    schedule.name = "gain"
    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for schedule.table["gain"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def getattr_of_the_class(w):
    class Settings:
        def __init__(self):
            self.table = {"gain": 1.0}

        def __getattr__(self, name):
            try:
                return self.table[name]
            except KeyError:
                raise AttributeError(name) from None

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for o.table["gain"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def getattribute_of_the_class(w):
    table = {"gain": 1.0}

    class Settings:
        def __getattribute__(self, name):
            return table[name] if name in table else object.__getattribute__(self, name)

    o = Settings()
    step = w.compile(lambda x: x * o.gain)
    for table["gain"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def proxy_object(w):
    target = types.SimpleNamespace(gain=1.0)

    class Proxy:
        def __getattr__(self, name):
            return getattr(target, name)

    o = Proxy()
    step = w.compile(lambda x: x * o.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        target.gain = k
        w.call(step, points())


@row
def operators_of_an_object(w):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __mul__(self, x):
            return x * self.k

        def __getitem__(self, i):
            return self.k + i

        def __len__(self):
            return int(self.k)

        def __bool__(self):
            return self.k > 1.5

        def __contains__(self, i):
            return i < self.k

        def __float__(self):
            return self.k

    o = Scale(1.0)
    step = w.compile(lambda x: (o * x + o[1] + len(o) + float(o)) * (2 if o else 1) + (2 in o))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def comparison_and_hash_of_an_object(w):
    class Key:
        def __init__(self, name):
            self.name = name

        def __eq__(self, other):
            return self.name == other.name

        def __hash__(self):
            return hash(self.name)

    key, table = Key("a"), {Key("a"): 1.0, Key("b"): 2.0}
    step = w.compile(lambda x: x * table[key])
    for name in w.turns("a", "b", "a"):
        key.name = name
        w.call(step, points())


@row
def callable_object(w):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

    o = Scale(1.0)
    step = w.compile(o)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def class_of_an_object_is_assigned(w):
    class Sine:
        def __call__(self, x):
            return x.sin()

    class Cosine:
        def __call__(self, x):
            return x.cos()

    o = Sine()
    step = w.compile(lambda x: o(x))
    for cls in w.turns(Sine, Cosine, Sine):
        o.__class__ = cls
        w.call(step, points())


@row
def bases_of_a_class_are_assigned(w):
    class One:
        k = 1.0

    class Two:
        k = 2.0

    class Derived(One):
        pass

    o = Derived()
    step = w.compile(lambda x: x * o.k)
    for base in w.turns(One, Two, One):
        Derived.__bases__ = (base,)
        w.call(step, points())


@row
def isinstance_of_what_is_replaced(w):
    class Sine: ...

    class Cosine: ...

    o = types.SimpleNamespace(kind=Sine())
    step = w.compile(lambda x: x.sin() if isinstance(o.kind, Sine) else x.cos())
    for cls in w.turns(Sine, Cosine, Sine):
        o.kind = cls()
        w.call(step, points())


@row
def isinstance_by_a_registry(w):
    class Smooth(abc.ABC):
        @abc.abstractmethod
        def smooth(self): ...

    class Sine: ...

    o = Sine()
    step = w.compile(lambda x: x.sin() if isinstance(o, Smooth) else x.cos())
    for i in range(8):
        w.call(step, points())
        if i == 3:
            Smooth.register(Sine)
