"""Compiled methods and modules: subclasses, copies, classes of steps, and descriptors."""

from __future__ import annotations

import copy
import functools
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


@row
def method_of_a_class(w):
    class Model:
        def __init__(self, k):
            self.k = k

        @w.compile
        def step(self, x):
            return x * self.k

    models = [Model(1.0), Model(2.0), Model(3.0)]
    w.watch(models)
    for i in w.turns(0, 1, 2):
        w.call(models[i].step, points())


@row
def method_of_one_object_that_changes(w):
    class Model:
        k = 1.0

        @w.compile
        def step(self, x):
            return x * self.k

    model = w.watch(Model())
    for model.k in w.turns(1.0, 2.0, 3.0):
        w.call(model.step, points())


@row
def bound_method(w):
    class Model:
        k = 1.0

        def step(self, x):
            return x * self.k

    model = Model()
    step = w.compile(model.step)
    for model.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def override_that_calls_the_compiled_method(w):
    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 1.0

        @w.compile
        def forward(self, x):
            return x * self.k

    class Derived(Base):
        def forward(self, x):
            return super().forward(x) + 100

    models = {cls: cls() for cls in (Base, Derived)}
    w.watch(models)
    for cls in w.turns(Derived, Base, Derived):
        w.call(models[cls], points())


@row
def compiled_override(w):
    class Base(nn.Module):
        k = 1.0

        def forward(self, x):
            return x * self.k

    class Derived(Base):
        @w.compile
        def forward(self, x):
            return super().forward(x) + 100

    model = w.watch(Derived())
    for Base.k in w.turns(1.0, 2.0, 3.0):
        w.call(model, points())


@row
def compiled_method_called_by_a_compiled_override(w):
    class Base:
        k = 1.0

        @w.compile
        def step(self, x):
            return x * self.k

    class Derived(Base):
        @w.compile
        def step(self, x):
            return super().step(x) + 100

    model = w.watch(Derived())
    for model.k in w.turns(1.0, 2.0, 3.0):
        w.call(model.step, points())


@row
def method_that_a_subclass_overrides(w):
    class Base:
        @w.compile
        def step(self, x):
            return self.act(x) + 1

        def act(self, x):
            return x.sin()

    class Derived(Base):
        def act(self, x):
            return x.cos()

    models = {cls: cls() for cls in (Base, Derived)}
    for cls in w.turns(Base, Derived, Base):
        w.call(models[cls].step, points())


@row
def method_of_a_copy(w):
    class Model:
        def __init__(self):
            self.k = 1.0

        @w.compile
        def step(self, x):
            return x * self.k

    model = w.watch(Model())
    for k in w.turns(1.0, 2.0, 3.0):
        other = copy.copy(model)
        other.k = k
        w.call(other.step, points())
        w.call(model.step, points())


@row
def deep_copy_of_a_trainer(w):
    class Trainer:
        def __init__(self):
            self.net = nn.Linear(3, 1)
            self.sgd = optim.SGD(self.net.parameters(), lr=0.1)

        @w.compile
        def step(self, x):
            self.sgd.zero_grad()
            loss = self.net(x).square().mean()
            loss.backward()
            self.sgd.step()
            return loss

    first = w.watch(Trainer())
    for i in range(3):
        w.call(first.step, points() + i)
    second = w.watch(copy.deepcopy(first))
    for i in range(4):
        w.call((first, second)[i % 2].step, points())


@row
def deep_copy_of_a_compiled_module(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.k = nn.Linear(3, 1), 1.0

        @w.compile
        def forward(self, x):
            return self.layer(x) * self.k

    net = Net()
    other = copy.deepcopy(net)
    w.watch(net, other)
    for k in w.turns(1.0, 2.0, 3.0):
        other.k = k
        with leafgrad.no_grad():
            other.layer.weight.add_(k)
        w.call(net, points())
        w.call(other, points())


@row
def static_method_and_class_method(w):
    class Model:
        k = 1.0

        @staticmethod
        @w.compile
        def plain(x):
            return x * Model.k

        @classmethod
        def of_the_class(cls, x):
            return x + cls.k

    step = w.compile(Model.of_the_class)
    for Model.k in w.turns(1.0, 2.0, 3.0):
        w.call(Model.plain, points())
        w.call(step, points())


@row
def method_assigned_to_a_class_later(w):
    class Model:
        k = 1.0

    def step(self, x):
        return x * self.k

    Model.step = w.compile(step)
    model = Model()
    for model.k in w.turns(1.0, 2.0, 3.0):
        w.call(model.step, points())


@row
def method_compiled_in_the_constructor(w):
    class Model:
        def __init__(self, k):
            self.k = k
            self.step = w.compile(self._step)

        def _step(self, x):
            return x * self.k

    models = [Model(1.0), Model(2.0)]
    for i, k in w.turns((0, 1.0), (1, 2.0), (1, 3.0)):
        models[i].k = k
        w.call(models[i].step, points())


@row
def module_compiled_as_it_is(w):
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    step = w.compile(net)
    for k in w.turns(1.0, 2.0, 3.0):
        with leafgrad.no_grad():
            net[0].weight.fill_(k)
        w.call(step, points())


@row
def module_inside_a_module_is_compiled(w):
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    net[0].forward = w.compile(net[0].forward)
    for k in w.turns(1.0, 2.0, 3.0):
        with leafgrad.no_grad():
            net[0].weight.fill_(k / 20)
        w.call(net, points())


@row
def forward_replaced_on_the_instance(w):
    class Net(nn.Module):
        def forward(self, x):
            return x.sin()

    net = Net()
    step = w.compile(net)
    for f in w.turns(None, leafgrad.cos, leafgrad.tanh):
        vars(net).pop("forward", None)
        if f:
            net.forward = f
        w.call(step, points())


@row
def partial_of_a_method(w):
    class Model:
        k = 1.0

        def step(self, x, power):
            return x**power * self.k

    model = Model()
    step = w.compile(functools.partial(model.step, power=2))
    for model.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def property_that_is_compiled_inside(w):
    class Model:
        k = 1.0

        @property
        def doubled(self):
            return self._doubled()

        @w.compile
        def _doubled(self):
            return points() * self.k * 2

    model = Model()
    for model.k in w.turns(1.0, 2.0, 3.0):
        w.call(lambda: model.doubled)


@row
def many_objects_of_a_class(w):
    class Model:
        def __init__(self, i):
            self.p = nn.Parameter(leafgrad.full((3,), float(i)))

        @w.compile
        def step(self, x):
            return (self.p * x).sum()

    for i in range(12):
        model = Model(i)
        w.call(model.step, points()).backward()
        w.see("gradient", model.p.grad)


@row
def mixin_that_changes_the_order(w):
    class Scale:
        def act(self, x):
            return x * 2

    class Shift:
        def act(self, x):
            return x + 1

    class Base:
        @w.compile
        def step(self, x):
            return self.act(x)

    first = type("First", (Base, Scale, Shift), {})()
    second = type("Second", (Base, Shift, Scale), {})()
    for which in w.turns(first, second, first):
        w.call(which.step, points())


@row
def super_with_cooperation(w):
    class Base:
        k = 1.0

        def act(self, x):
            return x * self.k

    class Shift(Base):
        def act(self, x):
            return super().act(x) + self.shift

    o = Shift()
    o.shift = 1.0
    step = w.compile(lambda x: o.act(x))
    for Base.k, o.shift in w.turns((1.0, 1.0), (2.0, 1.0), (2.0, 3.0)):
        w.call(step, points())


@row
def same_step_on_two_threads_of_data(w):
    o = types.SimpleNamespace(i=0)
    data = [points() * i for i in range(4)]
    step = w.compile(lambda: data[o.i] * 2)
    for o.i in w.turns(0, 1, 2):
        w.call(step)


@row
def method_of_tensors_replaced(w):
    before = leafgrad.Tensor.tanh
    step = w.compile(lambda x: x.tanh() * 2)
    for k in w.turns(1.0, 2.0, 3.0):
        w.patch.setattr(leafgrad.Tensor, "tanh", before if k == 1.0 else lambda x, k=k: x * k)
        w.call(step, points())


@row
def operator_of_tensors_replaced(w):
    before = leafgrad.Tensor.__mul__
    step = w.compile(lambda x: x * 2)
    for k in w.turns(1.0, 2.0, 3.0):
        w.patch.setattr(leafgrad.Tensor, "__mul__", before if k == 1.0 else lambda x, y, k=k: before(x, k))
        w.call(step, points())
