"""Every way of reading, of everything that owns what is read, changed in every way: a product, not a list of cases."""

from __future__ import annotations

import operator
import sys
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn

# ---- who owns "gain": something to hold, and how to set and take away what it owns ---------------------------------


class Slotted:
    __slots__ = ("gain", "name")


class Plain:
    pass


def owner_instance(w):
    return Plain()


def owner_slots(w):
    return Slotted()


def owner_class(w):
    return type("Made", (), {})


def owner_base(w):
    """A class whose base has it."""
    return type("Derived", (type("Base", (), {}),), {})


def owner_module(w):
    return w.module("owner_of_gain", "name = 'gain'")


def owner_network(w):
    return nn.Linear(2, 2)


def owner_optimizer(w):
    return leafgrad.optim.SGD([nn.Parameter(points())], lr=0.1)


def owner_generator(w):
    return types.SimpleNamespace()


def owner_function(w):
    return lambda: None


def owner_tensor(w):
    return points()


# ---- how it is read, by a name in the code or by one that is computed ------------------------------------------------


def by_attribute(o, key):
    return lambda x: x * o.gain


def by_getattr(o, key):
    return lambda x: x * getattr(o, key[0])


def by_getattr_and_default(o, key):
    return lambda x: x * getattr(o, key[0], 5.0)


def by_hasattr(o, key):
    return lambda x: x * (o.gain if hasattr(o, key[0]) else 7.0)


def by_vars(o, key):
    return lambda x: x * vars(o)[key[0]]


def by_dict(o, key):
    return lambda x: x * o.__dict__[key[0]]


def by_get_of_dict(o, key):
    return lambda x: x * o.__dict__.get(key[0], 5.0)


def by_getattribute(o, key):
    return lambda x: x * object.__getattribute__(o, key[0])


def by_attrgetter(o, key):
    return lambda x: x * operator.attrgetter(key[0])(o)


def by_default(o, key):
    def step(x, o=o):
        return x * o.gain

    return step


def by_closure_of_a_closure(o, key):
    def inner():
        return o.gain

    return lambda x: x * inner()


def by_pattern(o, key):
    def step(x):
        match o:
            case object(gain=gain):
                return x * gain
        return x

    return step


def by_descriptor(o, key):
    class Reads:
        def __get__(self, instance, kind):
            return o.gain

    class Has:
        value = Reads()

    has = Has()
    return lambda x: x * has.value


def by_special_method(o, key):
    class Callable:
        def __call__(self):
            return o.gain

        def __len__(self):
            return int(o.gain)

    c = Callable()
    return lambda x: x * c() * len(c)


def by_class_body(o, key):
    def step(x):
        class Local:
            gain = o.gain

        return x * Local.gain

    return step


def by_callee_in_c(o, key):
    return lambda x: x * sum(map(operator.attrgetter("gain"), [o]))


def by_key_of_sort(o, key):
    return lambda x: x * max([o], key=lambda each: each.gain).gain


def by_f_string(o, key):
    return lambda x: x * float(f"{o.gain}")


def by_import(o, key):
    sys.modules["module_of_gain"] = o

    def step(x):
        import module_of_gain

        return x * module_of_gain.gain

    return step


OWNERS = {n.removeprefix("owner_"): f for n, f in list(globals().items()) if n.startswith("owner_")}
WAYS = {n.removeprefix("by_"): f for n, f in list(globals().items()) if n.startswith("by_")}
NO_DICT = {"vars", "dict", "get_of_dict"}  # which an object with __slots__ lacks, and a derived class has without it
MISSING = {"getattr_and_default", "hasattr", "get_of_dict", "pattern"}  # what these do where there is nothing


def is_meant(way, owner):
    """Whether there is such a way of reading from such an owner."""
    if way in NO_DICT and owner in ("slots", "base"):
        return False
    if way == "getattribute" and owner in ("class", "base"):
        return False
    return way != "import" or owner == "module"


def put_gain(owner, o, value):
    held = o.__mro__[1] if owner == "base" else o
    if value is not None:
        held.gain = value
    elif hasattr(held, "gain"):
        delattr(held, "gain")


def add(way, owner, change):
    values = {"numbers": (2.0, 3.0, 4.0), "vanishes": (2.0, None, 3.0), "appears": (None, 2.0, 3.0)}[change]

    def script(w):
        o, key = OWNERS[owner](w), ["gain"]
        put_gain(owner, o, values[0])
        made = WAYS[way](o, key)
        if way == "import":
            w.patch.setitem(sys.modules, "module_of_gain", o)
        step = w.compile(made) if owner != "function" else w.compile_only(made)
        for value in w.turns(*values):
            put_gain(owner, o, value)
            w.call(step, points())

    script.__name__ = f"{way}_of_{owner}_{change}"
    row(script)


for one_way in WAYS:
    for one_owner in OWNERS:
        if is_meant(one_way, one_owner):
            for one_change in ("numbers", "vanishes", "appears") if one_way in MISSING else ("numbers",):
                add(one_way, one_owner, one_change)
