"""Python modules: their attributes, however they are reached, and imports inside the step."""

from __future__ import annotations

import math
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn

SETTINGS = "gain = 1.0\ntable = {'b': 0.0}\ndef scaled(x):\n    return x * gain + table['b']\n"
settings = None


def reset(module, k):
    module.gain, module.table["b"] = k, k * 10


@row
def attribute_of_a_module_in_a_closure(w):
    m = w.module("settings_a", SETTINGS)
    step = w.compile(lambda x: x * m.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def attribute_of_a_module_in_an_attribute(w):
    o = types.SimpleNamespace(config=w.module("settings_a", SETTINGS))
    step = w.compile(lambda x: x * o.config.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(o.config, k)
        w.call(step, points())


@row
def attribute_of_a_module_in_a_dict(w):
    table = {"config": w.module("settings_a", SETTINGS)}
    step = w.compile(lambda x: x * table["config"].gain)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(table["config"], k)
        w.call(step, points())


@row
def attribute_of_a_module_given_as_an_argument(w):
    m = w.module("settings_a", SETTINGS)
    step = w.compile(lambda x, config: x * config.gain)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points(), m)


@row
def attribute_of_a_global_module(w):
    def step(x):
        return x * settings.gain

    m = w.module("settings_a", SETTINGS)
    w.patch.setitem(globals(), "settings", m)
    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def function_of_a_module_reads_its_globals(w):
    m = w.module("settings_a", SETTINGS)
    step = w.compile(lambda x: m.scaled(x))
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def function_of_a_module_held_in_a_variable(w):
    m = w.module("settings_a", SETTINGS)
    scaled = m.scaled
    step = w.compile(lambda x: scaled(x))
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def import_inside(w):
    m = w.module("settings_a", SETTINGS)
    s = w.module("stepping", "def step(x):\n    import settings_a\n    return x * settings_a.gain\n")
    step = w.compile(s.step)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def import_of_a_name_inside(w):
    m = w.module("settings_a", SETTINGS)
    s = w.module("stepping", "def step(x):\n    from settings_a import gain, scaled\n    return scaled(x) * gain\n")
    step = w.compile(s.step)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def import_in_a_helper(w):
    m = w.module("settings_a", SETTINGS)
    h = w.module("helping", "def gain():\n    from settings_a import gain\n    return gain\n")
    step = w.compile(lambda x: x * h.gain())
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def import_by_importlib(w):
    m = w.module("settings_a", SETTINGS)
    source = "import importlib\ndef step(x):\n    return x * importlib.import_module('settings_a').gain\n"
    step = w.compile(w.module("stepping", source).step)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def import_through_sys_modules(w):
    m = w.module("settings_a", SETTINGS)
    source = "import sys\ndef step(x):\n    return x * sys.modules['settings_a'].gain\n"
    step = w.compile(w.module("stepping", source).step)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def module_replaced_in_sys_modules(w):
    step = w.module("stepping", "def step(x):\n    import settings_a\n    return x * settings_a.gain\n").step
    w.module("settings_a", SETTINGS)
    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        w.module("settings_a", SETTINGS).gain = k
        w.call(step, points())


@row
def import_that_fails_and_later_does_not(w):
    source = (
        "def step(x):\n    try:\n        import settings_late\n    except ImportError:\n        return x\n"
        "    return x * settings_late.gain\n"
    )
    step = w.compile(w.module("stepping", source).step)
    for _ in range(3):
        w.call(step, points())
    w.module("settings_late", "gain = 5.0")
    for _ in range(4):
        w.call(step, points())


@row
def reload_of_a_module(w):
    m = w.module("settings_a", SETTINGS)
    step = w.compile(lambda x: m.scaled(x))
    for k in w.turns(1.0, 2.0, 3.0):
        exec(compile(SETTINGS.replace("gain = 1.0", f"gain = {k}"), "settings_a.py", "exec"), vars(m))
        w.call(step, points())


@row
def package_with_a_module_inside(w):
    inner = w.module("pack.settings", SETTINGS)
    outer = w.module("pack", "")
    outer.settings = inner
    step = w.compile(w.module("stepping", "import pack\ndef step(x):\n    return pack.settings.scaled(x)\n").step)
    for k in w.turns(1.0, 2.0, 3.0):
        reset(inner, k)
        w.call(step, points())


@row
def getattr_of_a_module(w):
    m = w.module("settings_a", "table = {'gain': 1.0}\ndef __getattr__(name):\n    return table[name]\n")
    step = w.compile(lambda x: x * m.gain)
    for m.table["gain"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def module_read_by_a_method(w):
    m = w.module("settings_a", SETTINGS)

    class Net(nn.Module):
        def forward(self, x):
            return x * m.gain

    net = Net()
    step = w.compile(lambda x: net(x))
    for k in w.turns(1.0, 2.0, 3.0):
        reset(m, k)
        w.call(step, points())


@row
def state_written_into_a_module(w):
    m = w.module("settings_a", "calls = 0\ndef count():\n    global calls\n    calls += 1\n    return calls\n")
    step = w.compile(lambda x: x * m.count())
    for _ in range(7):
        w.call(step, points())
        w.see("calls", m.calls)


@row
def class_held_in_an_attribute(w):
    o = types.SimpleNamespace(act=nn.Tanh)
    step = w.compile(lambda x: o.act()(x))
    for o.act in w.turns(nn.Tanh, nn.Sigmoid, nn.Softplus):
        w.call(step, points())


@row
def class_held_in_a_variable(w):
    act = nn.Tanh

    def step(x):
        return act()(x)

    step = w.compile(step)
    for value in w.turns(nn.Tanh, nn.Sigmoid, nn.Softplus):
        act = value
        w.call(step, points())


@row
def class_held_in_a_dict(w):
    table = {"act": nn.Tanh}
    step = w.compile(lambda x: table["act"]()(x))
    for table["act"] in w.turns(nn.Tanh, nn.Sigmoid, nn.Softplus):
        w.call(step, points())


@row
def class_given_as_an_argument(w):
    step = w.compile(lambda x, act: act()(x))
    for act in w.turns(nn.Tanh, nn.Sigmoid, nn.Softplus):
        w.call(step, points(), act)


@row
def class_of_the_user_with_a_constructor(w):
    class Scale:
        default = 1.0

        def __init__(self):
            self.k = self.default

        def __call__(self, x):
            return x * self.k

    o = types.SimpleNamespace(act=Scale)
    step = w.compile(lambda x: o.act()(x))
    for k in w.turns(1.0, 2.0, 3.0):
        Scale.default = k
        w.call(step, points())


@row
def function_of_leafgrad_is_replaced(w):
    original = leafgrad.nn.functional.softplus
    step = w.compile(lambda x: leafgrad.nn.functional.softplus(x))
    for f in w.turns(original, leafgrad.sin, leafgrad.cos):
        w.patch.setattr(leafgrad.nn.functional, "softplus", f)
        w.call(step, points())


@row
def constant_of_math_is_replaced(w):
    m = w.module("stepping", "import math\ndef step(x):\n    return x * math.pi\n")

    step = w.compile(m.step)
    for pi in w.turns(math.pi, 3.0, 4.0):
        w.patch.setattr(math, "pi", pi)
        w.call(step, points())
