"""Public functions and methods: what one declaration makes, and that PyTorch has all of them."""

from __future__ import annotations

import functools
import re

import pytest

import leafgrad
from leafgrad import Tensor
from leafgrad.tensor import methods, public
from leafgrad.tensor.listed import FUNCTIONS, METHODS
from leafgrad.tensor.methods import Methods
from leafgrad.testing.stubs import declare_all


@pytest.fixture
def declared(monkeypatch):
    """The decorator; what a test declares is gone afterwards."""
    before = dict(vars(Methods))
    monkeypatch.setattr(public, "FUNCTIONS", dict(public.FUNCTIONS))
    monkeypatch.setattr(methods, "CLAIMS", {owner: dict(claims) for owner, claims in methods.CLAIMS.items()})
    yield public.public
    for name in vars(Methods).keys() - before.keys():
        delattr(Methods, name)


def twice_of(input: Tensor) -> Tensor:
    """Twice the input. (...) -> (...)"""
    return input * 2


def seen(name, package="leafgrad"):
    return public.seen(package, __name__, name)


def test_one_declaration_makes_functions_and_methods(declared):
    assert declared(also="double_of special.twice_of", out="cast", inplace=True)(twice_of) is twice_of
    x = leafgrad.tensor([1.0, 2.0])
    for name in ("twice_of", "double_of"):
        assert seen(name)(x).tolist() == getattr(x, name)().tolist() == [2, 4]
        out = leafgrad.empty(2, dtype=leafgrad.float64)
        assert seen(name)(x, out=out) is out
        assert out.tolist() == [2, 4]
        y = x.clone()
        assert getattr(y, f"{name}_")() is y
        assert y.tolist() == [2, 4]
    assert seen("twice_of", "leafgrad.special")(x).tolist() == [2, 4]
    assert seen("twice_of").__module__ == "leafgrad"
    with pytest.raises(TypeError, match=r"double_of\(\): argument 'out' must be Tensor, not int"):
        seen("double_of")(x, out=3)


@pytest.mark.parametrize(("only", "function"), [("leafgrad", True), ("Tensor", False)])
def test_it_may_be_one_of_them_alone(declared, only, function):
    declared(only=only)(twice_of)
    assert ("twice_of" in public.FUNCTIONS) is function
    assert hasattr(Tensor, "twice_of") is not function


def test_a_function_of_a_room_is_no_method(declared):
    declared(name="linalg.twice_of")(twice_of)
    assert seen("twice_of", "leafgrad.linalg")(leafgrad.ones(1)).tolist() == [2]
    assert not hasattr(Tensor, "twice_of")


def test_out_of_exactly_its_dtype(declared):
    declared(out="exact")(twice_of)
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype leafgrad\.float32"):
        seen("twice_of")(leafgrad.ones(1), out=leafgrad.empty(1, dtype=leafgrad.float64))


def test_a_name_is_declared_once(declared):
    with pytest.raises(TypeError, match=r"Tensor already has a method 'exp'"):
        declared(name="exp", only="Tensor")(twice_of)
    declared(only="leafgrad")(twice_of)
    with pytest.raises(TypeError, match=r"leafgrad already has a function 'twice_of'"):
        declared(only="leafgrad")(twice_of)


def test_what_is_listed_is_there():
    for table, kind in ((FUNCTIONS, leafgrad), (METHODS, Tensor)):
        for names in table.values():
            for name in names.split():
                functools.reduce(getattr, name.split("."), kind)


def test_a_module_whose_import_was_cut_is_imported_again(declared, import_cut_once):
    import_cut_once("@cut.public\ndef twice_of(input):\n    return input * 2", public=declared)
    assert leafgrad.tensor(2.0).twice_of() == 4
    with pytest.raises(TypeError, match="leafgrad already has a function 'twice_of'"):
        declared(twice_of)
    with pytest.raises(TypeError, match="Tensor already has a method 'twice_of'"):
        declared(only="Tensor")(twice_of)


def test_pytorch_has_all_of_them():
    torch = pytest.importorskip("torch")
    declare_all()
    for name, found in public.FUNCTIONS.items():
        theirs = functools.reduce(lambda held, part: getattr(held, part, None), name.split("."), torch)
        assert theirs is not None, name
        overloads = getattr(getattr(torch.ops.aten, name.replace(".", "_"), None), "overloads", list)()
        if found.out:
            assert re.search(r"\bout\b|_out\b|\bOut", f"{theirs.__doc__} {overloads}"), name
    missing = [name for names in METHODS.values() for name in names.split() if not hasattr(torch.Tensor, name)]
    assert missing == ["__array_namespace__", "to_device", "_repr_html_"]  # of the array API, and for notebooks
