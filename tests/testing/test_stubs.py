"""The generated stub of Tensor's methods is up to date, and complete."""

from __future__ import annotations

import ast
from importlib import import_module
from types import FunctionType

from leafgrad.tensor.later import MODULES
from leafgrad.tensor.methods import DECLARED, Methods
from leafgrad.tensor.operators import Operators
from leafgrad.testing import stubs


def written():
    """Method name -> parameter names, as the stub file has them."""
    classes = [n for n in ast.parse(stubs.PATH.read_text()).body if isinstance(n, ast.ClassDef)]
    (methods,) = [n for n in classes if n.name == "Methods"]
    return {
        n.name: [*(a.arg for a in n.args.args), *(a.arg for a in n.args.kwonlyargs)]
        for n in methods.body
        if isinstance(n, ast.FunctionDef)
    }


def test_the_stub_is_up_to_date():
    assert stubs.PATH.read_text() == stubs.stub(), "stale: run python -m leafgrad.testing.stubs"


def test_every_attached_method_is_in_it():
    for module in MODULES:
        import_module(module)
    attached = {
        name
        for name, value in (vars(Operators) | vars(Methods)).items()
        if isinstance(value, FunctionType | property) and name not in DECLARED
    }
    assert len(attached) > 300
    assert attached == written().keys()


def test_parameters_are_those_of_the_functions():
    found = written()
    assert found["sum"][:3] == ["self", "dim", "keepdim"]
    assert found["exp"] == ["self"]
    assert found["atan2"] == ["self", "other"]
    assert found["add_"] == found["add"] == ["self", "other", "alpha"]
    assert found["__iadd__"] == ["self", "other"]
    assert found["T"] == ["self"]


def test_builtins_are_spelled_out_where_a_method_hides_them():
    assert "builtins.int" in stubs.PATH.read_text()
    assert ": int" not in stubs.PATH.read_text()


def test_long_heads_break_as_the_formatter_breaks_them():
    short, middle, long = (
        stubs.layout("f", ["self", *[f"argument_{i}: Any" for i in range(n)]], "Any") for n in (2, 6, 8)
    )
    assert "\n" not in short
    assert middle.count("\n") == 2
    assert long.count("\n") == 10
    assert max(map(len, f"{short}\n{middle}\n{long}".split("\n"))) <= 116
