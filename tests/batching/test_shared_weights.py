"""Gradients by weights that all samples share: one product, and never one for each sample."""

from __future__ import annotations

import tracemalloc

import pytest

import leafgrad
from leafgrad import compile as compiled
from leafgrad.autograd import grad
from leafgrad.func import grad as func_grad, hessian, jacrev, vmap

F64 = leafgrad.float64
LAYERS = {
    "x @ w": (lambda x, w: leafgrad.tanh(x @ w), lambda x, w: leafgrad.tanh(x @ w)),
    "w @ x": (lambda x, w: leafgrad.tanh(w @ x), lambda x, w: leafgrad.tanh(x @ w.T)),
    "linear": (leafgrad.nn.functional.linear, lambda x, w: x @ w.T),
    "rows": (lambda x, w: leafgrad.tanh(x.reshape(2, -1) @ w[: w.shape[0] // 2]).sum(0), None),
    "twice": (lambda x, w: leafgrad.tanh(x @ w) @ w, lambda x, w: leafgrad.tanh(x @ w) @ w),
    "batch of matrices": (lambda x, w: (x.reshape(2, 1, -1) @ w.reshape(2, w.shape[0] // 2, -1)).sum(), None),
}


def case(n=5, size=6):
    leafgrad.manual_seed(0)
    return leafgrad.randn(n, size, dtype=F64), leafgrad.randn(size, size, dtype=F64).requires_grad_()


@pytest.mark.parametrize("how", [lambda f: f, compiled])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name, how):
    layer, whole = LAYERS[name]
    x, w = case()
    expected = sum(grad((layer(row, w) ** 2).sum(), w)[0] for row in x)
    step = how(lambda w, x: grad((vmap(layer, in_dims=(0, None))(x, w) ** 2).sum(), w)[0])
    for _ in range(3):
        assert (step(w, x) - expected).abs().max().item() < 1e-12
    if whole is not None:
        assert (grad((whole(x, w) ** 2).sum(), w)[0] - expected).abs().max().item() < 1e-12


def test_gradients_through_nested_batches_and_of_gradients():
    x, w = case()
    z = leafgrad.stack([x, x * 0.5, x.cos()])
    both = vmap(vmap(LAYERS["x @ w"][0], in_dims=(0, None)), in_dims=(0, None))
    whole = leafgrad.tanh(z @ w)
    assert (grad((both(z, w) ** 2).sum(), w)[0] - grad((whole**2).sum(), w)[0]).abs().max().item() < 1e-12

    def twice(run):
        (first,) = grad((run() ** 2).sum(), w, create_graph=True)
        return grad((first**2).sum(), w)[0]

    found, expected = twice(lambda: both(z, w)), twice(lambda: leafgrad.tanh(z @ w))
    assert (found - expected).abs().max().item() < 1e-10


def test_each_sample_still_has_a_gradient_of_its_own():
    x, w = case()
    own = vmap(func_grad(lambda w, x: leafgrad.tanh(x @ w).sum()), in_dims=(None, 0))(w.detach(), x)
    for row, g in zip(x, own, strict=True):
        assert (g - grad(leafgrad.tanh(row @ w).sum(), w)[0]).abs().max().item() < 1e-12
    rows = vmap(jacrev(lambda w, x: leafgrad.tanh(x @ w)), in_dims=(None, 0))(w.detach(), x)
    assert rows.shape == (5, 6, 6, 6)


def test_what_is_written_after_a_product_does_not_change_it():
    def product(x, y):
        z = x @ y
        x *= 2
        return z

    x = leafgrad.stack([leafgrad.eye(2), leafgrad.ones(2, 2)])
    assert vmap(product)(x.clone(), x).tolist() == (x @ x).tolist()


@pytest.mark.parametrize("how", [lambda f: f, compiled])
@pytest.mark.parametrize("name", ["x @ w", "w @ x", "linear", "hessian"])
def test_no_array_has_a_matrix_for_each_sample(name, how):
    n, size = 1000, 64
    x, w = case(n, size)
    layer = LAYERS["x @ w" if name == "hessian" else name][0]
    directions = 1
    if name == "hessian":
        first, x, directions = x[:4], x[:, :4], 4

        def laplacian(x, w):
            return hessian(lambda x: layer(x @ first, w).sum())(x).diagonal().sum()

        each = vmap(laplacian, in_dims=(0, None))
    else:
        each = vmap(layer, in_dims=(0, None))
    step = how(lambda w, x: grad((each(x, w) ** 2).sum(), w)[0])
    step(w, x)
    tracemalloc.start()
    step(w, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < directions * 8 * n * size * 24  # bytes; a matrix for each sample takes size, 64, where this has 24
