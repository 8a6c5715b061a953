"""Classes that are no Tensors answer to functions of tensors by ``__torch_function__``, as in PyTorch."""

from __future__ import annotations

import subprocess
import sys

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compat.torch import overrides
from leafgrad.compat.torch._C import _disabled_torch_function_impl as unwrapped


class Scaled:
    """A multiple of the unit matrix, which knows a few functions."""

    def __init__(self, factor):
        self.factor = factor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        functions = known() | MORE
        if func not in functions:
            return NotImplemented
        assert all(issubclass(t, Scaled) for t in types)
        return functions[func](*args, **(kwargs or {}))


def value(x):
    return x.factor if isinstance(x, Scaled) else x


MORE = {}


def known():
    """What it answers to: methods are other objects once some class of tensors is asked."""
    return {
        leafgrad.matmul: lambda input, other: value(input) * value(other),
        leafgrad.Tensor.matmul: lambda input, other: value(input) * value(other),
        leafgrad.sum: lambda input, dim=None, keepdim=False: ("sum", input.factor, dim, keepdim),
        leafgrad.cat: lambda tensors, dim=0: ("cat", len(tensors), dim),
        nn.functional.relu: lambda input, inplace=False: Scaled(max(input.factor, 0)),
    }


def test_functions_and_methods_ask_the_class():
    x = leafgrad.ones(2, 2)
    for found in (leafgrad.matmul(Scaled(3), x), leafgrad.matmul(x, Scaled(3)), x.matmul(Scaled(3))):
        assert found.tolist() == [[3, 3], [3, 3]]
    assert leafgrad.matmul(input=x, other=Scaled(2)).sum().item() == 8
    assert leafgrad.sum(Scaled(3), 1, keepdim=True) == ("sum", 3, 1, True)
    assert leafgrad.cat([x, Scaled(1)], dim=1) == ("cat", 2, 1)
    assert nn.functional.relu(Scaled(-1)).factor == 0


def test_nobody_is_asked_whether_it_is_a_tensor():
    assert not leafgrad.is_tensor(Scaled(1))
    assert leafgrad.is_tensor(leafgrad.ones(1))


def test_what_no_class_knows_is_an_error_that_names_them():
    with pytest.raises(TypeError, match="exp: expected a Tensor, got Scaled, whose __torch_function__"):
        leafgrad.exp(Scaled(1))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        leafgrad.matmul(1, leafgrad.ones(2))


def test_subclasses_are_asked_before_their_bases_and_what_they_raise_passes():
    class Finer(Scaled):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ValueError(f"{[t.__name__ for t in types]}")

    with pytest.raises(ValueError, match=r"\['Finer', 'Scaled'\]"):
        leafgrad.matmul(Scaled(1), Finer(2))
    with pytest.raises(ValueError, match="Finer"):
        leafgrad.stack([leafgrad.ones(1), Finer(2)])


def test_a_class_that_changes_nothing_is_a_wrong_argument():
    class Plain:
        __torch_function__ = unwrapped

    with pytest.raises(TypeError, match="must be Tensor, not Plain"):
        leafgrad.matmul(Plain(), leafgrad.ones(2))
    assert not overrides.has_torch_function((Plain(),))


def test_functions_of_others_can_ask_too():
    def double(x):
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(double, (x,), x)
        return x * 2

    MORE[double] = lambda x: Scaled(x.factor * 2)
    assert double(Scaled(3)).factor == 6
    assert double(leafgrad.ones(1)).item() == 2
    assert overrides.has_torch_function_variadic(1, Scaled(1))
    assert not overrides.has_torch_function_unary(leafgrad.ones(1))
    assert overrides.is_tensor_like(Scaled(1))


OPERATORS = {
    "x = x ** d": "__pow__",
    "x = d + x": "add",
    "x = d - x": "__rsub__",
    "x = x == d": "__eq__",
    "x += d": "add_",
}


def test_operators_ask_the_first_class_that_there_is():
    script = """if True:
        import leafgrad, os
        class Any:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__
        for text, name in OPERATORS.items():
            if not os.fork():
                scope = {"x": leafgrad.tensor([1, 2]), "d": Any()}
                exec(text, scope)
                print(text, name, scope["x"], flush=True)
                os._exit(scope["x"] != name)
            assert os.wait()[1] == 0
    """
    script = script.replace("OPERATORS", repr(OPERATORS))
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_comparisons_of_a_class_that_nobody_has_compared_yet():
    code = (
        "import leafgrad as lg\nclass Sub(lg.Tensor): pass\nprint(lg.Tensor.__eq__, Sub.__eq__(lg.ones(1), 1).tolist())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[True]" in run.stdout
