"""Functions and methods that are replaced."""

from __future__ import annotations

from compile.scenarios.harness import points, row
from compile.scenarios.steps import put

import leafgrad


@row
def global_function_replaced(w):
    space = {}
    exec("def helper(x):\n    return x * 2\ndef gained(x):\n    return helper(x)", space)
    gained, first = space["gained"], space["helper"]
    step = w.compile(lambda x: gained(x))
    for f in w.turns(first, leafgrad.sin, leafgrad.cos):
        space["helper"] = f
        w.call(step, points())


@row
def method_replaced_on_an_instance(w):
    class Net:
        def act(self, x):
            return x.sin()

    net = Net()
    step = w.compile(lambda x: net.act(x))
    for f in w.turns(None, leafgrad.cos, leafgrad.tanh):
        put(vars(net), "act", f)
        w.call(step, points())


@row
def method_replaced_on_a_base_class(w):
    class Base:
        def act(self, x):
            return x.sin()

    class Net(Base):
        pass

    net = Net()
    step = w.compile(lambda x: net.act(x))
    for f in w.turns(Base.act, lambda self, x: x.cos(), lambda self, x: x * 2):
        Base.act = f
        w.call(step, points())


@row
def method_added_in_a_derived_class(w):
    class Base:
        def act(self, x):
            return x.sin()

    class Net(Base):
        pass

    net = Net()
    step = w.compile(lambda x: net.act(x))
    for f in w.turns(None, lambda self, x: x.cos(), None):
        if f:
            Net.act = f
        elif "act" in vars(Net):
            del Net.act
        w.call(step, points())


@row
def staticmethod_and_classmethod_replaced(w):
    class Net:
        @staticmethod
        def act(x):
            return x.sin()

        @classmethod
        def gain(cls):
            return 2.0

    step = w.compile(lambda x: Net.act(x) * Net().gain())
    for act, k in w.turns((leafgrad.sin, 2.0), (leafgrad.cos, 2.0), (leafgrad.cos, 3.0)):
        Net.act, Net.gain = staticmethod(act), classmethod(lambda cls, k=k: k)
        w.call(step, points())
