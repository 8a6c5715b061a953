"""What the walk reads of objects: all that code can have read, and nothing that its user would hear of."""

from __future__ import annotations

import functools
from typing import Protocol, runtime_checkable

import pytest

import leafgrad

TESTS = "compile.ir.attributes"


@runtime_checkable
class Late(Protocol):
    late: int


class Plain:
    pass


class Asked:
    """Notes the names that are asked for, and has every one of them from then on."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        self.asked.append(name)
        self.__dict__[name] = 2.0
        return 2.0


class Table:
    def __init__(self, **held):
        self.__dict__["table"] = held

    def __getattr__(self, name):
        return self.__dict__["table"][name]  # a KeyError for others

    def __call__(self, x):
        return x * self.table["rate"]


class Unit(str):
    factor = 10.0


ones = leafgrad.ones(1)


def test_a_protocol_reads_attributes_of_any_name():
    o = Plain()
    step = leafgrad.compile(lambda x: x * 2 if isinstance(o, Late) else x * 3)
    for late in (False, True, False):
        if late:
            o.late = 1
        else:
            vars(o).pop("late", None)
        assert [step(ones).item() for _ in range(4)] == [2.0 if late else 3.0] * 4


def test_a_function_is_registered_for_a_method_later():
    class Owner:
        @functools.singledispatchmethod
        def scaled(self, kind, x):
            return x

    owner, kind = Owner(), Plain()
    step = leafgrad.compile(lambda x: owner.scaled(kind, x))
    assert [step(ones).item() for _ in range(4)] == [1.0] * 4
    vars(Owner)["scaled"].register(Plain, lambda self, kind, x: x * 7)
    assert [step(ones).item() for _ in range(4)] == [7.0] * 4


def test_a_partial_function_stays_what_it_is():
    inner = functools.partial(lambda x, held: x * held[0], held=[2.0])
    o = Plain()
    o.scaled = inner
    step = leafgrad.compile(lambda x: o.scaled(x) if not hasattr(o.scaled, "off") else x)
    assert [step(ones).item() for _ in range(4)] == [2.0] * 4
    outer = functools.partial(inner)
    assert outer.func is inner.func  # as Python does where the inner one has no attributes
    inner.off = True
    assert [step(ones).item() for _ in range(4)] == [1.0] * 4


def test_nobody_asks_an_object_for_names_that_its_code_does_not():
    asked, table, log = Asked(), Table(rate=2.0), []

    def reads(x):
        return x * asked.rate * table.rate

    def breaks(x):
        log.append(float(x.sum()))
        return table(x) * asked.rate

    for function in (reads, breaks):
        step = leafgrad.compile(function)
        assert {step(ones).item() for _ in range(12)} == {4.0}
    assert asked.asked == ["rate"]
    assert sorted(vars(asked)) == ["asked", "rate"]


@pytest.mark.parametrize("others", [{}, {"n": 1}])
@pytest.mark.parametrize("attributes", [False, True])
def test_a_key_that_equals_the_one_before_is_another_key(attributes, others):
    o = Plain()
    held = vars(o) if attributes else {}

    def reads(x):
        for key in vars(o) if attributes else held:
            x = x * getattr(key, "factor", 1.0)
        return x

    step = leafgrad.compile(reads)
    for key, expected in (("m", 1.0), (Unit("m"), 10.0), ("m", 1.0)):
        held.clear()
        held.update({key: 1, **others})
        assert [step(ones).item() for _ in range(4)] == [expected] * 4


class Held:
    @property
    def read(self):
        return 1.0

    @staticmethod
    def static():
        return 1.0

    @classmethod
    def of_class(cls):
        return 1.0


def nine(*_):
    return 9.0


ANEW = {
    "property": (lambda part: Held().read, lambda part: vars(Held)["read"].__init__(nine)),
    "staticmethod": (lambda part: Held.static(), lambda part: vars(Held)["static"].__init__(nine)),
    "classmethod": (lambda part: Held().of_class(), lambda part: vars(Held)["of_class"].__init__(nine)),
    "partial": (lambda part: part(), lambda part: part.__setstate__((part.func, (9.0,), {}, None))),
}


@pytest.mark.parametrize("kind", ANEW)
def test_what_is_made_anew_in_place_is_another(kind):
    read, change = ANEW[kind]
    part = functools.partial(lambda value: value, 1.0)
    step = leafgrad.compile(lambda x: x * read(part), executor="numpy")
    for _ in range(4):
        assert step(leafgrad.ones(1)).item() == 1.0
    assert "closed" in step.explain().summary
    change(part)
    assert step(leafgrad.ones(1)).item() == 9.0
