"""Which names code gives to ``getattr`` and its like."""

import dataclasses
import random

import pytest

from leafgrad.compile.record.attribute_names import names_given

WRITTEN = {
    "getattr(o, 'v')": {"v"},
    "getattr(f(o), 'v', o.x + 1)": {"v"},
    "getattr(o.m(n), 'v', n[0:1]) + hasattr(o[n], 'w')": {"v", "w"},
    "getattr(getattr(o, 'y'), 'x')": {"x", "y"},
    "getattr(o, 'x', 3 if n else 4)": {"x"},
    "getattr(o, 'x', getattr(o, 'y')) if hasattr(o, 'x') else o.y": {"x", "y"},
    "object.__setattr__(o, 'x', n)": {"x"},
    "delattr(-o, 'y')": {"y"},
    "n.v": set(),
}
COMPUTED = (
    "getattr(o, n)",
    "getattr(o, 'a' + n)",
    "getattr(o, f'a{n}')",
    "getattr(o, 'v' if n else n)",
    "getattr(o, n and 'v')",
    "getattr(o if n else n, 'v')",
    "getattr('v', o)",
    "getattr(o, *n)",
    "getattr(o, 'not a name')",
    "getattr(o, ('v', 'w'))",
    "map(getattr, o, 'v')",
    "f(getattr, 'v')",
    "f(getattr)(o, 'v')",
    "[getattr][0](o, 'v')",
    "getattr.__call__(o, n)",
    "(getattr if n else f)(o, n)",
    "(lambda: 0)(g := getattr)",
    "object.__setattr__(n, 'x', o)",
    "getattr(getattr(o, n), 'v')",
)


def code_of(expression):
    return eval(f"lambda o, n, f: {expression}").__code__


@pytest.mark.parametrize("expression", WRITTEN)
def test_names_that_stand_in_the_code(expression):
    assert names_given(code_of(expression)) == WRITTEN[expression]


@pytest.mark.parametrize("expression", COMPUTED)
def test_names_that_are_computed(expression):
    assert names_given(code_of(expression)) is None


class Own:
    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Computing:
    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __getattribute__(self, name):
        name = f"_{name}"
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name[1:], value)

    def __delattr__(self, other, name):
        delattr(other, name)

    def other(self, name):
        return getattr(self, name)


@pytest.mark.parametrize(("kind", "expected"), [(Own, set()), (Computing, None)])
def test_a_method_may_ask_its_own_object_for_the_name_that_it_was_given(kind, expected):
    methods = [held for held in vars(kind).values() if callable(held)]
    assert [names_given(method.__code__) for method in methods] == [expected] * len(methods)


def test_a_frozen_dataclass_computes_no_names():
    @dataclasses.dataclass(frozen=True)
    class Settings:
        a: int
        b: list = dataclasses.field(default_factory=list)

    assert names_given(Settings.__init__.__code__) == {"a", "b"}


class Thing:
    """Whatever is done with it gives a thing, true or not; it notes the names of attributes that are asked for."""

    def __init__(self, draw, asked):
        self.__dict__.update(draw=draw, asked=asked)

    def __bool__(self):
        return self.draw.random() < 0.5

    def __getitem__(self, _):
        return self

    def __call__(self, *_):
        return self

    def __getattr__(self, name):
        self.asked.add(name)
        return self


FORMS = (
    "getattr({}, {})",
    "getattr({}, {}, {})",
    "getattr(o, {})",
    "getattr(o, 'v', {})",
    "o.__getattribute__({})",
    "f(getattr)({}, {})",
    "({} if {} else {})",
    "({} or {})",
    "({}, {})[0]",
    "f({})",
    "f({}, {})",
    "o.m({})",
)


def expression(draw, depth):
    if not depth or draw.random() < 0.3:
        return draw.choice(["o", "n", "'v'", "'w'", "1"])
    form = draw.choice(FORMS)
    return form.format(*[expression(draw, depth - 1) for _ in range(form.count("{}"))])


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_no_name_that_was_computed_is_taken_for_one_in_the_code():
    draw, found = random.Random(0), 0
    for _ in range(1500):
        written = expression(draw, 4)
        if names_given(code_of(written)) is None:
            continue
        found += 1
        asked = set()

        def read(o, name, *_, asked=asked):
            asked.add(name)
            return Thing(draw, asked)

        function = eval(f"lambda o, n, f: {written}", {"getattr": read})
        thing = Thing(draw, asked)
        for _ in range(4):
            try:
                function(thing, "computed", lambda *given: given[-1])
            except AttributeError as error:  # of ``o.__getattribute__``
                asked.add(error.name)
            except TypeError:
                pass
        assert "computed" not in asked, written
    assert found > 300
