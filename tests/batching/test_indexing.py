"""Indexing under vmap: random arrays of indices, some of them batches, against loops over the samples."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import func
from leafgrad.ops import index as ops
from leafgrad.ops.geometry import index_axes, index_shape

TESTS = "ops.geometry"


class Case:
    """A random array, index arrays for some of its dimensions, and values, each a batch somewhere or shared by all."""

    def __init__(self, rng):
        self.rng, self.size = rng, int(rng.integers(1, 4))
        self.shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 5)))
        chosen = rng.permutation(len(self.shape))[: rng.integers(1, len(self.shape) + 1)]
        self.dims = tuple(sorted(int(d) for d in chosen))
        common = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
        arrays = [self.part(common, ones=True) for _ in self.dims]
        self.out = index_shape(self.shape, arrays, self.dims)
        bounds = [self.shape[d] for d in self.dims]
        drawn = [self.draw(self.shape), self.draw(self.part(self.out)), *map(self.draw, arrays, bounds)]
        self.args, self.places = zip(*drawn, strict=True)

    def part(self, shape, ones=False):
        """The last few of the sizes."""
        shape = shape[self.rng.integers(0, len(shape) + 1) :] if self.rng.random() < 0.4 else shape
        return tuple(1 if ones and self.rng.random() < 0.2 else n for n in shape)

    def draw(self, shape, bound=None):
        place = None
        if self.rng.random() < 0.55:
            at = int(self.rng.integers(0, len(shape) + 1))
            shape = (*shape[:at], self.size, *shape[at:])
            place = at - (len(shape) if self.rng.random() < 0.5 else 0)
        array = self.rng.normal(size=shape) if bound is None else self.rng.integers(-bound, bound, shape)
        return leafgrad.tensor(array), place

    def key(self, at):
        key = [slice(None)] * len(self.shape)
        for d, indices in zip(self.dims, at, strict=True):
            key[d] = indices
        return tuple(key)


def read(case, x, v, *at):
    return ops.index(x, *at, dims=case.dims)


def add(case, x, v, *at):
    return ops.index_sum(v.expand(case.out), *at, shape=case.shape, dims=case.dims)


def put(case, x, v, *at):
    return ops.index_put(x, 0 * v + 7, *at, dims=case.dims)


def get(case, x, v, *at):
    return x[case.key(at)]


def write(case, x, v, *at):
    """All of ``v`` is one value: some of it may go to one place."""
    y = x + 0 * (v.sum() + sum([a.sum() for a in at]))
    y[case.key(at)] = v.sum()
    return y


def slope(case, x, v, *at):
    return func.grad(lambda x: (leafgrad.sin(x[case.key(at)])).sum() * v.sum())(x)


def slope_of_sum(case, x, v, *at):
    return func.grad(lambda v: (leafgrad.sin(add(case, x, v, *at)) * x).sum())(v)


@pytest.mark.parametrize("function", [read, add, put, get, write, slope, slope_of_sum], ids=lambda f: f.__name__)
def test_random_index_arrays(function):
    rng = np.random.default_rng(0)
    for _ in range(150):
        case = Case(rng)
        if all(p is None for p in case.places):
            continue
        found = func.vmap(lambda *args, case=case: function(case, *args), case.places)(*case.args)
        for k in range(case.size):
            own = [a if p is None else a.select(p, k) for a, p in zip(case.args, case.places, strict=True)]
            wanted = function(case, *own)
            assert found[k].shape == wanted.shape
            np.testing.assert_allclose(found[k].numpy(), wanted.numpy(), rtol=1e-13, atol=1e-14)


def test_an_index_without_dimensions_has_no_say_in_where_others_stand():
    x = leafgrad.arange(24.0).reshape(2, 3, 4)
    i, at, v = leafgrad.tensor([1, 0, 1]), leafgrad.tensor([0, 3]), leafgrad.arange(6.0).reshape(3, 2)

    def replaced(x, i, v):
        y = x.clone() + 0 * i
        y[i, :, at] = v
        return y

    found = func.vmap(lambda i: x[i, :, at])(i)
    written = func.vmap(replaced, (None, 0, None))(x, i, v)
    for k, own in enumerate(i):
        assert leafgrad.equal(found[k], x[own, :, at])
        assert leafgrad.equal(written[k], replaced(x, own, v))


def test_axes_are_those_of_numpy():
    rng = np.random.default_rng(1)
    for _ in range(200):
        case = Case(rng)
        arrays = [np.zeros(rng.integers(1, 4, rng.integers(1, 3)), int)] + [np.zeros((), int)] * (len(case.dims) - 1)
        x = np.zeros(case.shape)
        shapes = [a.shape for a in arrays]
        assert index_shape(case.shape, shapes, case.dims) == x[case.key(arrays)].shape
        axes = index_axes(x.ndim, case.dims, arrays[0].ndim)
        assert sorted(axes) == [*range(-arrays[0].ndim, 0), *[d for d in range(x.ndim) if d not in case.dims]]


PARTS = {
    "select_scatter": lambda x, y: leafgrad.select_scatter(x, y, 0, 1),
    "slice_scatter": lambda x, y: leafgrad.slice_scatter(x, y[None], 0, 2, 3),
    "diagonal_scatter": leafgrad.diagonal_scatter,
}


@pytest.mark.parametrize("replaced", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_parts_are_replaced_by_batches_or_in_them(replaced, dims):
    x, y = leafgrad.randn(4, 3, 2, dtype=leafgrad.float64), leafgrad.randn(4, 2, dtype=leafgrad.float64)
    x, y = (t[0] if d is None else t for t, d in zip((x, y), dims, strict=True))
    x.requires_grad_()
    y.requires_grad_()
    each = [replaced(x if dims[0] is None else x[i], y if dims[1] is None else y[i]) for i in range(4)]
    found = func.vmap(replaced, in_dims=dims)(x, y)
    assert leafgrad.equal(found, leafgrad.stack(each))
    weights = leafgrad.randn(4, 3, 2, dtype=leafgrad.float64)
    got, wanted = (leafgrad.autograd.grad((made * weights).sum(), (x, y)) for made in (found, leafgrad.stack(each)))
    assert all(map(leafgrad.allclose, got, wanted))
