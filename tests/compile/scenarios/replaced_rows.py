"""Functions and methods that are replaced."""

from __future__ import annotations

from compile.scenarios.harness import points, row
from compile.scenarios.steps import put

import leafgrad
from leafgrad import nn


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


def replaced_in(kind, name):
    """A row in which a method of a class of the library is replaced, and put back."""

    def script(w):
        net = nn.Linear(3, 3)
        optimizer = leafgrad.optim.SGD(net.parameters(), lr=0.01)

        def train(x):
            loss = (net(x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        step, first = w.compile(train), vars(kind)[name]

        def louder(self, *args, **kwargs):
            result = first(self, *args, **kwargs)
            return result if result is None else result * 2

        def nothing(self, *args, **kwargs):
            return leafgrad.ones(3)

        for f in w.turns(first, louder, nothing):
            w.patch.setattr(kind, name, f)
            w.call(step, points())

    script.__name__ = f"{name.strip('_')}_of_{kind.__name__}"
    row(script)


for owner, method in (
    (nn.Linear, "forward"), (nn.Linear, "__call__"), (leafgrad.optim.SGD, "step"), (leafgrad.optim.SGD, "zero_grad"),
    (leafgrad.Tensor, "backward"), (leafgrad.Tensor, "mean"), (leafgrad.Tensor, "__pow__"),
):  # fmt: skip
    replaced_in(next(kind for kind in owner.__mro__ if method in vars(kind)), method)


@row
def class_of_a_network_is_assigned(w):
    class Doubled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    net = nn.Linear(3, 3)
    step = w.compile(lambda x: net(x))
    for kind in w.turns(nn.Linear, Doubled, nn.Linear):
        net.__class__ = kind
        w.call(step, points())


def special_method_added(name, *results):
    def script(w):
        class Made:
            pass

        o = Made()
        step = w.compile(lambda x: x * 2 if o else x * 3)
        for result in w.turns(None, *results):
            if result is None:
                w.patch.delattr(Made, name, raising=False)
            else:
                setattr(Made, name, lambda self, result=result: result)
            w.call(step, points())

    script.__name__ = f"{name.strip('_')}_added_to_a_class"
    row(script)


special_method_added("__bool__", False, True)
special_method_added("__len__", 0, 2)


@row
def match_args_replaced(w):
    class Pair:
        __match_args__ = ("gain", "shift")

        def __init__(self):
            self.gain, self.shift = 2.0, 3.0

    o = Pair()

    def step(x):
        match o:
            case Pair(a, b):
                return x * a + b

    step = w.compile(step)
    for names in w.turns(("gain", "shift"), ("shift", "gain"), ("gain", "gain")):
        Pair.__match_args__ = names
        w.call(step, points())


@row
def positional_pattern(w):
    class Pair:
        __match_args__ = ("gain",)

    o = Pair()

    def step(x):
        match o:
            case Pair(a):
                return x * a

    step = w.compile(step)
    for k in w.turns(2.0, 3.0, 4.0):
        o.gain = k
        w.call(step, points())
