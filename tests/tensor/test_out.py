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


HALVES = {"sum": 1.2e5, "nansum": 1.2e5, "mean": 4e4, "nanmean": 4e4, "prod": 6.4e13, "logsumexp": 40001.0986}


@pytest.mark.parametrize("name", HALVES)
def test_reductions_compute_in_the_dtype_of_out(t, name):
    x = t.full((3,), 40000.0, dtype=t.float16)
    for function in (getattr(t, name), leafgrad.compile(getattr(t, name)) if t is leafgrad else getattr(t, name)):
        for dtype in (t.float32, t.float64):
            out = t.empty((), dtype=dtype)
            function(x, 0, out=out)
            assert out.item() == pytest.approx(HALVES[name])


def test_sums_and_products_are_cast_to_the_dtype_of_out(t):
    large = t.tensor([2**62, 2**62, 2**62])
    assert t.sum(large, 0, out=t.empty((), dtype=t.float64)).item() == 3 * 2.0**62
    assert t.cumsum(large, 0, out=t.empty(3, dtype=t.float64))[-1].item() == 3 * 2.0**62
    assert t.prod(t.tensor([2**62, 4]), 0, out=t.empty((), dtype=t.float64)).item() == 2.0**64
    floats = t.tensor([1.5, 2.5])
    for name in ("sum", "prod", "cumsum", "cumprod"):
        out = t.empty(2 if name.startswith("cum") else (), dtype=t.int32)
        assert getattr(t, name)(floats, 0, out=out).tolist() in (3, 2, [1, 3], [1, 2])
        with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype .*, but got .* instead"):
            getattr(t, name)(floats, 0, dtype=t.float64, out=out)


def test_means_of_complex_numbers_lose_their_imaginary_part(t):
    z = t.tensor([1 + 2j, 3 + 4j])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert t.mean(z, 0, dtype=t.float32).item() == 2
    if t is leafgrad:  # PyTorch warns once
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            assert leafgrad.mean(z, 0, out=leafgrad.empty(())).item() == 2


WITHOUT_DERIVATIVE = {
    "eq": lambda t, x, out: t.eq(x, 2.0, out=out),
    "lt": lambda t, x, out: t.lt(x, x + 1, out=out),
    "logical_and": lambda t, x, out: t.logical_and(x, x, out=out),
    "signbit": lambda t, x, out: t.signbit(x, out=out),
    "nonzero": lambda t, x, out: t.nonzero(x, out=t.zeros(0, dtype=t.int64)),
    "searchsorted": lambda t, x, out: t.searchsorted(x, x, out=out.long()),
    "bucketize": lambda t, x, out: t.bucketize(x, x, out=out.long()),
    "histc": lambda t, x, out: t.histc(x, 3, out=out.float()),
    "argmin": lambda t, x, out: t.argmin(x, 0, keepdim=True, out=out.long()[:1]),
}


@pytest.mark.parametrize("name", WITHOUT_DERIVATIVE)
def test_results_without_derivative_are_written_though_arguments_require_grad(t, name):
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    call = WITHOUT_DERIVATIVE[name]
    out = t.zeros(3, dtype=t.bool)
    assert not call(t, x, out).requires_grad
    assert call(t, x, out).tolist() == call(t, x.detach(), out).tolist()


def test_isin_all_and_any_of_what_requires_grad():
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    assert leafgrad.isin(x, x, out=leafgrad.zeros(2, dtype=leafgrad.bool)).tolist() == [True, True]
    for function in (leafgrad.all, leafgrad.any):
        assert function(x, out=leafgrad.zeros((), dtype=leafgrad.bool)).item()


@pytest.mark.parametrize("call", [lambda t, x, out: t.exp(x, out=out), lambda t, x, out: t.add(1, x, out=out)])
def test_a_result_with_a_derivative_is_not_written(t, call):
    out = t.zeros(2)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(t, t.ones(2, requires_grad=True), out)
    assert out.tolist() == [0, 0]
    with t.no_grad():
        assert call(t, t.ones(2, requires_grad=True), out) is out


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x, **more: t.nn.functional.gelu(x, **more),
        lambda t, x, **more: t.nn.functional.hardshrink(x, **more),
        lambda t, x, **more: t.nn.functional.softshrink(x, **more),
        lambda t, x, **more: t.nn.functional.softplus(x, **more),
        lambda t, x, **more: t.nn.functional.logsigmoid(x, **more),
        lambda t, x, **more: t.nn.functional.linear(x, x, **more),
        lambda t, x, **more: t.nn.functional.avg_pool2d(x[None], 2, **more),
        lambda t, x, **more: t.nn.functional.avg_pool3d(x[None, None].expand(1, 2, 4, 4), 2, **more),
        lambda t, x, **more: t.narrow_copy(x, 0, 1, 2, **more),
    ],
)
def test_functions_of_layers_and_copies(t, call):
    x, out = t.arange(16.0).reshape(4, 4) / 16, t.zeros(0)
    assert call(t, x, out=out) is out
    assert out.tolist() == call(t, x).tolist()
    with pytest.raises(RuntimeError):
        call(t, x, out=t.zeros(0, dtype=t.float64))


def test_eigenvalues_go_into_it(t):
    x, kind = t.tensor([[2.0, 0.0], [0.0, 3.0]]), t.complex64
    values, vectors = t.zeros(0, dtype=kind), t.zeros(0, dtype=kind)
    assert t.linalg.eig(x, out=(values, vectors))[1] is vectors
    assert values.tolist() == t.linalg.eigvals(x, out=t.zeros(0, dtype=t.complex128)).tolist() == [2, 3]
