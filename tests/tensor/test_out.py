"""``out=``."""

from __future__ import annotations

import functools
import warnings

import pytest

import leafgrad
from leafgrad.tensor.public import FUNCTIONS
from leafgrad.testing.stubs import declare_all

X = leafgrad.arange(6.0).view(2, 3)

CALLS = {
    "exp": (X,), "add": (X, 1), "mul": (X, X), "sum": (X, 0), "mm": (X, X.t()), "cat": ((X, X),), "stack": ((X, X),),
    "where": (X > 2, X, -X), "cumsum": (X, 0), "linspace": (0, 1, 3), "zeros": (2, 2), "ones": (2,), "eye": (2,),
    "full": ((2,), 3.0), "arange": (3,), "clamp": (X, 1, 2), "norm": (X,), "mean": (X, 1), "softmax": (X, 0),
    "take": (X, leafgrad.tensor([1, 5])), "masked_select": (X, X > 2), "outer": (X[0], X[1]), "tril": (X,),
    "index_select": (X, 0, leafgrad.tensor([1])), "logsumexp": (X, 0), "lt": (X, 2), "std": (X, 0), "pow": (X, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_written(name):
    function, args = getattr(leafgrad, name), CALLS[name]
    expected = function(*args)
    out = leafgrad.empty(expected.shape)
    memory = out.data_ptr()
    assert function(*args, out=out) is out
    assert out.tolist() == expected.tolist()
    assert out.data_ptr() == memory
    empty = leafgrad.empty(0)
    assert function(*args, out=empty) is empty
    assert empty.shape == expected.shape


def test_another_dtype_than_the_results_is_refused_where_pytorch_refuses_it():
    for call in (
        lambda out: leafgrad.tril(X, out=out),
        lambda out: leafgrad.softmax(X, 0, out=out),
        lambda out: leafgrad.linalg.inv(leafgrad.eye(2), out=out),
        lambda out: leafgrad.zeros(2, dtype=leafgrad.float32, out=out),
    ):
        with pytest.raises(RuntimeError, match="dtype"):
            call(leafgrad.empty(0, dtype=leafgrad.float64))
    assert leafgrad.zeros(2, out=leafgrad.empty(2, dtype=leafgrad.float64)).dtype is leafgrad.float64


def test_functions_of_the_other_modules():
    out = leafgrad.empty(2, 2)
    assert leafgrad.linalg.inv(leafgrad.eye(2) * 2, out=out) is out
    assert out.tolist() == [[0.5, 0], [0, 0.5]]
    assert leafgrad.special.expit(leafgrad.zeros(2, 2), out=out).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_all_of_them_are_there():
    declare_all()
    taking = [name for name, found in FUNCTIONS.items() if found.out]
    assert len(taking) > 250
    for name in taking:
        assert functools.reduce(getattr, name.split("."), leafgrad).__globals__["_door"].into


def test_several_results():
    values, indices = leafgrad.empty(0), leafgrad.empty(0, dtype=leafgrad.int64)
    found = leafgrad.max(X, 0, out=(values, indices))
    assert found.values is values
    assert found.indices is indices
    assert (values.tolist(), indices.tolist()) == ([3, 4, 5], [1, 1, 1])
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype leafgrad.int64"):
        leafgrad.max(X, 0, out=(values, leafgrad.empty(0)))
    with pytest.raises(TypeError, match="expected 2 tensors, got 1"):
        leafgrad.sort(X, out=(values,))


def test_dtypes():
    assert leafgrad.exp(X, out=leafgrad.empty(2, 3, dtype=leafgrad.float64)).dtype is leafgrad.float64
    assert leafgrad.arange(3, out=leafgrad.empty(0, dtype=leafgrad.int32)).dtype is leafgrad.int32
    with pytest.raises(RuntimeError, match=r"can't be cast to the desired output type leafgrad.int64"):
        leafgrad.exp(X, out=leafgrad.empty(2, 3, dtype=leafgrad.int64))
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype leafgrad.int64"):
        leafgrad.argmax(X, 0, out=leafgrad.empty(0))


def test_another_shape_warns():
    out = leafgrad.empty(5)
    with pytest.warns(UserWarning, match=r"resized since it had shape \[5\]"):
        leafgrad.exp(X, out=out)
    assert out.tolist() == leafgrad.exp(X).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leafgrad.exp(X, out=leafgrad.empty(0))


def test_a_view_is_written_through():
    x = leafgrad.zeros(4, 3)
    leafgrad.add(X, 1, out=x[1:3])
    assert x.tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6], [0, 0, 0]]
    leafgrad.add(x, x, out=x)
    assert x[1].tolist() == [2, 4, 6]


def test_nothing_is_recorded():
    leaf = leafgrad.ones(2, 3, requires_grad=True)
    for call in (
        lambda: leafgrad.exp(leaf, out=leafgrad.empty(2, 3)),
        lambda: leafgrad.exp(X, out=leaf),
        lambda: leafgrad.cat((X, leaf), out=leafgrad.empty(0)),
    ):
        with pytest.raises(RuntimeError, match=r"out=... arguments don't support automatic differentiation"):
            call()
    with leafgrad.no_grad():
        assert not leafgrad.exp(leaf, out=leafgrad.empty(2, 3)).requires_grad


@pytest.mark.parametrize("call", [lambda out: leafgrad.relu(X, out=out), lambda out: leafgrad.flip(X, (0,), out=out)])
def test_some_do_not_take_it(call):
    with pytest.raises(TypeError, match="out"):
        call(leafgrad.empty(2, 3))


def test_it_must_be_a_tensor():
    with pytest.raises(TypeError, match=r"exp\(\): argument 'out' must be Tensor, not int"):
        leafgrad.exp(X, out=5)
    assert leafgrad.exp(X, out=None).shape == X.shape
