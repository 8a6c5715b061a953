"""The source of a function is believed if it gives the function's code."""

from __future__ import annotations

import ast
import linecache
import sys
import types
import warnings

from leafgrad.compile.run.source import made, tree_of


def step(a, b=time_zero if (time_zero := 1) else 0):
    return a + b


class Owner:
    def method(self):
        return self.__name, [x + 0 for x in (1, -0.0)]


def test_functions_and_methods_are_found():
    assert tree_of(step).name == "step"
    assert tree_of(Owner.method).name == "method"


def test_two_functions_of_one_name_are_told_apart():
    def first():
        def inner():
            return 1

        return inner

    def second():
        def inner():
            return 2

        return inner

    assert [tree_of(f()).body[0].value.value for f in (first, second)] == [1, 2]


def test_lambdas_are_told_apart():
    a, b = (lambda x: x + 1), (lambda x: (x + 2) * x)
    assert [ast.unparse(tree_of(f)).split("\n")[1].strip() for f in (a, b)] == ["return x + 1", "return (x + 2) * x"]


def test_no_generator_and_nothing_without_source_or_that_looks_at_frames():
    def generator():
        yield 1

    def frames():
        return sys._getframe(1)

    def warns():
        warnings.warn("slow", stacklevel=2)

    scope = {}
    exec("def f():\n    return 1", scope)
    assert [tree_of(f) for f in (generator, frames, warns, lambda: locals(), scope["f"])] == [None] * 5


def test_a_source_that_has_changed_since_is_not_believed(tmp_path):
    file = tmp_path / "steps.py"
    file.write_text("def f(x):\n    return x + 1\n")
    scope = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    file.write_text("def f(x):\n    return x + 2\n")
    linecache.checkcache()
    assert tree_of(scope["f"]) is None


def test_a_private_name_is_that_of_the_class():
    owner = Owner()
    vars(owner)["_Owner__name"] = 3
    assert made(tree_of(Owner.method), Owner.method, {})(owner) == (3, [1, -0.0])


def test_other_modules_are_not_asked(monkeypatch):
    """Of what a module answers that answers to any name, nothing depends."""
    strange = types.ModuleType("strange")
    strange.__getattr__ = lambda name: 5.0
    monkeypatch.setitem(sys.modules, "strange", strange)

    def function(x):
        return x

    assert tree_of(function).name == "function"
