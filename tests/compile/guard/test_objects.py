"""Objects and classes: what is read of them is read again once it has changed, whatever way that is."""

from __future__ import annotations

import functools
from typing import ClassVar

import pytest

import leafgrad
from leafgrad import nn, optim

ones = leafgrad.ones(1)


def seen(read, change):
    """Whether a compiled step sees that what it reads has changed."""
    step = leafgrad.compile(lambda x: x * read())
    before = [step(ones).item() for _ in range(7)]
    change()
    return step(ones).item() == float(read()) != before[-1]


def function_with_attributes():
    def function():
        pass

    return function


class Plain:
    pass


OWNERS = {
    "object": Plain,
    "layer": lambda: nn.Dropout(0.5),
    "optimizer": lambda: optim.SGD([leafgrad.ones(1, requires_grad=True)]),
    "function": function_with_attributes,
    "partial function": lambda: functools.partial(len),
    "static method": lambda: staticmethod(len),
    "tensor": lambda: leafgrad.ones(1),
    "parameter": lambda: nn.Parameter(ones),
}


@pytest.mark.parametrize("owner", OWNERS)
def test_another_dict_may_be_put_in_place_of_all_attributes(owner):
    o = OWNERS[owner]()
    o.k = 2.0
    assert seen(lambda: o.k, lambda: setattr(o, "__dict__", {**vars(o), "k": 5.0}))
    assert seen(lambda: hasattr(o, "late"), lambda: setattr(o, "__dict__", {**vars(o), "late": 1}))


def test_a_tensor_without_attributes_gets_a_dict_of_some():
    o = leafgrad.ones(1)
    assert seen(lambda: hasattr(o, "late"), lambda: setattr(o, "__dict__", {"late": 1}))


def test_numbers_that_are_counted_stand_in_another_dict():
    o = Plain()
    o.n = 0

    def count(x):
        o.n += 1
        return x * o.n

    step = leafgrad.compile(count)
    assert [step(ones).item() for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    o.__dict__ = {"n": 100}
    assert [step(ones).item() for _ in range(3)] == [101, 102, 103]
    assert o.n == 103


def spelled(*parts):
    """A name that stands in no code."""
    return "".join(parts)


def function():
    def has_defaults(a=2.0, *, b=3.0):
        """ab"""

    return has_defaults


def kind():
    class Kind:
        """ab"""

        __slots__ = ["a"]
        __config__: ClassVar = {"k": 2.0}
        count: int

    return Kind


SPECIAL = {  # who has what is read, its name, what is made of it, and what changes
    "defaults": (function, "__defaults__", lambda v: v[0], lambda o: setattr(o, "__defaults__", (5.0,))),
    "keywords": (function, "__kwdefaults__", lambda v: v["b"], lambda o: o.__kwdefaults__.update(b=5.0)),
    "text": (function, "__doc__", len, lambda o: setattr(o, "__doc__", "abcdef")),
    "globals": (function, "__globals__", lambda v: "late" in v, lambda o: o.__globals__.update(late=1)),
    "types": (function, "__annotations__", len, lambda o: o.__annotations__.update(late=1)),
    "text of a class": (kind, "__doc__", len, lambda o: setattr(o, "__doc__", "abcdef")),
    "name of a class": (kind, "__name__", len, lambda o: setattr(o, "__name__", "Other")),
    "slots": (kind, "__slots__", len, lambda o: o.__slots__.append("b")),
    "attribute": (kind, "__config__", lambda v: v["k"], lambda o: o.__config__.update(k=5.0)),
    "types of a class": (kind, "__annotations__", len, lambda o: o.__annotations__.update(late=float)),
}


@pytest.mark.parametrize("case", SPECIAL)
def test_special_attributes_by_names_that_stand_in_no_code(case):
    make, name, made_of, change = SPECIAL[case]
    o, names = make(), [name]
    try:
        assert seen(lambda: made_of(getattr(o, names[0])), lambda: change(o))
    finally:
        globals().pop("late", None)


def test_what_is_in_special_attributes_of_a_class():
    o = kind()
    assert seen(lambda: len(o.__slots__), lambda: o.__slots__.append("b"))


@pytest.mark.parametrize("name", ["__qualname__", "__module__"])
def test_the_names_of_a_class_in_texts(name):
    o = kind()
    assert seen(lambda: len(repr(o)), lambda: setattr(o, name, "another"))


def test_steps_that_compute_names_stay_closed():
    class Layers(nn.Module):
        rate: float | None = None

        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(1, 1), nn.Tanh()

        def forward(self, x):
            for name in ("first", "second"):
                x = getattr(self, name)(x)
            return x

    layers = Layers()
    step = leafgrad.compile(lambda x: layers(x), closed=True)
    assert [step(ones).item() for _ in range(4)] == [layers(ones).item()] * 4
