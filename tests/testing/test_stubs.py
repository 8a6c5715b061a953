"""The generated stub of Tensor's methods is up to date, and complete."""

from __future__ import annotations

import ast
from importlib import import_module
from types import FunctionType

import pytest

from leafgrad.tensor import public
from leafgrad.tensor.methods import DECLARED, Methods
from leafgrad.tensor.operators import Operators
from leafgrad.testing import stubs

FILES = stubs.written()


def written():
    """Method name -> parameter names, as the stub file has them."""
    classes = [n for n in ast.parse(stubs.PATH.read_text()).body if isinstance(n, ast.ClassDef)]
    (methods,) = [n for n in classes if n.name == "Methods"]
    return {
        n.name: [*(a.arg for a in n.args.args), *(a.arg for a in n.args.kwonlyargs)]
        for n in methods.body
        if isinstance(n, ast.FunctionDef)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_written_is_up_to_date(path):
    assert path.read_text() == FILES[path], "stale: run python -m leafgrad.testing.stubs"


@pytest.mark.parametrize("room", stubs.ROOMS)
def test_public_functions_are_declared_once(room):
    module = import_module(f"leafgrad.{room}".rstrip("."))
    names = {name.rpartition(".")[2] for name in public.FUNCTIONS if name.rpartition(".")[0] == room}
    stub = ast.parse((stubs.FOLDER / stubs.ROOMS[room]).read_text())
    exported = {a.name for n in ast.walk(stub) if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    exported |= {n.targets[0].id for n in stub.body if isinstance(n, ast.Assign)}
    assert exported == names == set(public.listed(module.__name__))
    for name in names:
        assert getattr(module, name) is getattr(module, name)  # wrapped once


def test_every_attached_method_is_in_it():
    stubs.declare_all()
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
