"""Names that appear later, vanish and come back: attributes, globals, cells, keys."""

from __future__ import annotations

import types

from compile.scenarios.harness import points, row
from compile.scenarios.steps import put

import leafgrad
from leafgrad import nn


@row
def getattr_with_a_default(w):
    o = types.SimpleNamespace()
    step = w.compile(lambda x: x * getattr(o, "gain", 1.0))
    for k in w.turns(None, 2.0, 3.0):
        put(vars(o), "gain", k)
        w.call(step, points())


@row
def getattr_with_a_default_that_vanishes(w):
    o = types.SimpleNamespace()
    step = w.compile(lambda x: x * getattr(o, "gain", 1.0))
    for k in w.turns(2.0, None, 3.0):
        put(vars(o), "gain", k)
        w.call(step, points())


@row
def hasattr_of_an_object(w):
    o = types.SimpleNamespace()
    step = w.compile(lambda x: x * 2 if hasattr(o, "gain") else x * 3)
    for k in w.turns(None, 2.0, None):
        put(vars(o), "gain", k)
        w.call(step, points())


@row
def hasattr_of_a_class_read_through_its_object(w):
    class Holder:
        pass

    o = Holder()
    step = w.compile(lambda x: x * 2 if hasattr(o, "gain") else x * 3)
    for k in w.turns(None, 2.0, None):
        if k:
            Holder.gain = k
        elif "gain" in vars(Holder):
            del Holder.gain
        w.call(step, points())


@row
def attribute_error_caught(w):
    o = types.SimpleNamespace()

    def step(x):
        try:
            return x * o.gain
        except AttributeError:
            return x + 100

    step = w.compile(step)
    for k in w.turns(None, 2.0, None):
        put(vars(o), "gain", k)
        w.call(step, points())


@row
def attribute_error_raised_on_some_calls(w):
    o = types.SimpleNamespace(gain=1.0)
    step = w.compile(lambda x: x * o.gain)
    for k in w.turns(1.0, None, 2.0):
        put(vars(o), "gain", k)
        w.call(step, points())


def with_a_global(x):
    try:
        return x * LATE_GAIN
    except NameError:
        return x + 100


@row
def global_that_appears(w):
    step = w.compile(with_a_global)
    for k in w.turns(None, 2.0, 3.0):
        put(globals(), "LATE_GAIN", k)
        w.call(step, points())
    put(globals(), "LATE_GAIN", None)


@row
def global_that_vanishes(w):
    step = w.compile(with_a_global)
    for k in w.turns(2.0, None, 3.0):
        put(globals(), "LATE_GAIN", k)
        w.call(step, points())
    put(globals(), "LATE_GAIN", None)


@row
def global_that_hides_a_builtin(w):
    space = {}
    exec("def gained(x):\n    return x * max(1.0, 2.0)", space)
    gained = space["gained"]
    step = w.compile(lambda x: gained(x))
    for k in w.turns(None, min, None):
        put(space, "max", k)
        w.call(step, points())


@row
def cell_that_is_set_later(w):
    def step(x):
        try:
            return x * gain
        except NameError:
            return x + 100

    compiled = w.compile(step)
    for _ in range(3):
        w.call(compiled, points())
    gain = 2.0
    for _ in range(3):
        w.call(compiled, points())
    gain = 3.0
    w.call(compiled, points())
    del gain
    w.call(compiled, points())


@row
def key_error_caught(w):
    table = {}

    def step(x):
        try:
            return x * table["gain"]
        except KeyError:
            return x + 100

    step = w.compile(step)
    for k in w.turns(None, 2.0, None):
        put(table, "gain", k)
        w.call(step, points())


@row
def get_of_a_dict(w):
    table = {}
    step = w.compile(lambda x: x * table.get("gain", 1.0))
    for k in w.turns(None, 2.0, 3.0):
        put(table, "gain", k)
        w.call(step, points())


@row
def key_in_a_dict(w):
    table = {}
    step = w.compile(lambda x: x * 2 if "gain" in table else x * 3)
    for k in w.turns(None, 2.0, None):
        put(table, "gain", k)
        w.call(step, points())


@row
def key_in_a_dict_under_a_computed_name(w):
    table, o = {"gain_1": 2.0}, types.SimpleNamespace(i=0)
    step = w.compile(lambda x: x * table.get(f"gain_{o.i}", 1.0))
    for o.i in w.turns(0, 1, 2):
        w.call(step, points())


@row
def setdefault_of_a_dict(w):
    table = {}
    step = w.compile(lambda x: x * table.setdefault("gain", 1.0))
    for k in w.turns(None, 2.0, None):
        put(table, "gain", k)
        w.call(step, points())


@row
def none_or_a_number(w):
    o = types.SimpleNamespace(gain=None)
    step = w.compile(lambda x: x if o.gain is None else x * o.gain)
    for o.gain in w.turns(None, 2.0, 3.0):
        w.call(step, points())


@row
def none_or_a_tensor(w):
    o = types.SimpleNamespace(shift=None)
    step = w.compile(lambda x: x if o.shift is None else x + o.shift)
    for shift in w.turns(None, 2.0, None):
        o.shift = None if shift is None else leafgrad.full((3,), shift)
        w.call(step, points())


@row
def none_or_a_module(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = None

        def forward(self, x):
            return x * 2 if self.head is None else self.head(x)

    net = Net()
    step = w.compile(net)
    for head in w.turns(None, nn.Tanh, None):
        net.head = head and head()
        w.call(step, points())


@row
def attribute_made_at_the_first_call(w):
    class Net(nn.Module):
        def forward(self, x):
            if not hasattr(self, "scale"):
                self.scale = 1 / x.shape[0]
            return x * self.scale

    net = Net()
    step = w.compile(net)
    for i in range(7):
        w.call(step, points())
        if i in (2, 3):
            net.scale = 5.0
        if i == 5:
            del net.scale


@row
def tensor_made_at_the_first_call_and_kept(w):
    o = types.SimpleNamespace(shift=None)

    def step(x):
        if o.shift is None:
            o.shift = x * 2
        return x + o.shift

    step = w.compile(step)
    for i in range(8):
        w.call(step, points() + i)
        if i == 4:
            o.shift = None


@row
def value_cached_by_key(w):
    cache, o = {}, types.SimpleNamespace(n=3)

    def step():
        if o.n not in cache:
            cache[o.n] = leafgrad.linspace(0, 1, o.n)
        return cache[o.n] * 2

    step = w.compile(step)
    for o.n in w.turns(3, 4, 5):
        w.call(step)


@row
def entry_of_a_class_dict_is_looked_for(w):
    class Registry:
        pass

    step = w.compile(lambda x: x * (2 if "gain" in vars(Registry) else 1))
    for k in w.turns(None, 2.0, None):
        if k:
            Registry.gain = k
        elif "gain" in vars(Registry):
            del Registry.gain
        w.call(step, points())


@row
def method_that_appears_on_a_class(w):
    class Net(nn.Module):
        def forward(self, x):
            return self.extra(x) if hasattr(self, "extra") else x

    net = Net()
    step = w.compile(net)
    for i in range(8):
        w.call(step, points())
        if i in (1, 4):
            Net.extra = lambda self, x, i=i: x * (2 + i)
        if i == 6:
            del Net.extra


@row
def key_of_a_module_dict(w):
    heads = nn.ModuleDict({"a": nn.Tanh()})
    step = w.compile(lambda x: heads["b"](x) if "b" in heads else heads["a"](x))
    for i in range(8):
        w.call(step, points())
        if i == 2:
            heads["b"] = nn.Sigmoid()
        if i == 5:
            heads.pop("b")


@row
def parameter_registered_later(w):
    net = nn.Linear(3, 1)
    step = w.compile(lambda x: net(x) * getattr(net, "gain", 1.0))
    for i in range(8):
        w.call(step, points())
        if i == 0:
            net.register_parameter("gain", nn.Parameter(leafgrad.tensor(2.0)))
        if i == 4:
            del net.gain


@row
def count_of_attributes(w):
    class Thing:
        pass

    plain, loose = Thing(), types.SimpleNamespace(first=1.0)
    step = w.compile(lambda x: x * len(vars(plain)) + len(loose.__dict__))
    for k in w.turns(None, 2.0, 3.0):
        put(vars(plain), "gain", k)
        put(vars(loose), "gain", k)
        w.call(step, points())


@row
def order_of_attributes(w):
    o = types.SimpleNamespace(first=1.0, second=2.0)
    step = w.compile(lambda x: x * next(iter(vars(o).values())))
    for name in w.turns("first", "second", "first"):
        setattr(o, name, vars(o).pop(name))
        w.call(step, points())


@row
def attribute_of_a_layer_by_a_computed_name(w):
    layer, names = nn.Linear(3, 3), ["ga", "in"]
    step = w.compile(lambda x: x * getattr(layer, "".join(names)))
    for layer.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def what_a_function_is_made_of(w):
    def helper(k=1.0):
        return k

    def with_cell():
        return k

    k = 1.0
    step = w.compile(
        lambda x: (
            x * helper.__defaults__[0]
            + with_cell.__closure__[0].cell_contents
            + len(helper.__doc__ or "")
            + len(helper.__name__)
        )
    )
    for turn in w.turns(1, 2, 3):
        helper.__defaults__, helper.__doc__, helper.__name__ = (float(turn),), "x" * turn, "helper" * turn
        with_cell.__closure__[0].cell_contents = turn / 2
        w.call(step, points())


@row
def what_a_class_is_made_of(w):
    class Thing:
        def gain(self, k=1.0):
            return k

    step = w.compile(lambda x: x * Thing.gain.__defaults__[0] + len(Thing.__name__) + len(Thing.__doc__ or ""))
    for turn in w.turns(1, 2, 3):
        Thing.gain.__defaults__, Thing.__name__, Thing.__doc__ = (float(turn),), "Thing" * turn, "x" * turn
        w.call(step, points())
