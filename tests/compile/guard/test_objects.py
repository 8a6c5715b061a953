"""Objects and classes: what is read of them is read again once it has changed, whatever way that is."""

from __future__ import annotations

import functools

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
