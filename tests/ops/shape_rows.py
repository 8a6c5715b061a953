"""Ops that make, rearrange, pick and sort."""

from __future__ import annotations

import numpy as np
from op_table import Row, uniform

from leafgrad.ops import (
    binomial,
    combine,
    create,
    diagonals,
    gamma,
    histogram,
    index,
    poisson,
    random,
    shape,
    sort,
    strided,
)
from leafgrad.tensor import inplace, view

CUBE = [((2, 3, 4),)]
MATRIX = [((3, 4),)]


def numpy_key(at):
    return tuple(slice(*part) if isinstance(part, tuple) else part for part in at)


def placed(x, at, shape, value=0.0):
    out = np.full(shape, value)
    out[numpy_key(at)] = x
    return out


def undiagonal(x, shape, offset, dims):
    out = np.zeros(shape)
    for place in np.ndindex(x.shape):
        key = list(place[:-1])
        i = place[-1]
        for d, k in sorted([(dims[0], i + max(-offset, 0)), (dims[1], i + max(offset, 0))]):
            key.insert(d, k)
        out[tuple(key)] = x[place]
    return out


def sum_to(x, shape):
    axes = [i for i, n in enumerate((1,) * (x.ndim - len(shape)) + shape) if n != x.shape[i]]
    return x.sum(tuple(axes), keepdims=True).reshape(shape)


def strides(x, shape, steps, start):
    places = start + sum(i * step for i, step in zip(np.indices(shape), steps, strict=True))
    return x.reshape(-1)[places]


def windows(x, dim, size, step):
    return np.lib.stride_tricks.sliding_window_view(x, size, dim)[(*[slice(None)] * dim, slice(None, None, step))]


def transposed(forward, whole):
    """The transpose of a linear function of arrays of shape ``whole``, from its matrix."""

    def apply(x):
        columns = [forward(e.reshape(whole)) for e in np.eye(int(np.prod(whole)))]
        return np.array([(column * x).sum() for column in columns]).reshape(whole)

    return apply


SHAPES = [
    Row(strided.windows, windows, shapes=CUBE, params=[
        {"dim": 2, "size": 2, "step": 1}, {"dim": 1, "size": 2, "step": 1}, {"dim": 2, "size": 1, "step": 3}]),
    Row(strided.unwindow,
        lambda x, shape, dim, size, step: transposed(lambda a: windows(a, dim, size, step), shape)(x),
        shapes=[((2, 3, 2),)], params=[
            {"shape": (2, 4), "dim": 1, "size": 2, "step": 1}, {"shape": (2, 8), "dim": 1, "size": 2, "step": 3}]),
    Row(strided.strided, strides, shapes=CUBE, params=[
        {"shape": (3, 2), "steps": (1, 1), "start": 4}, {"shape": (), "steps": (), "start": 23},
        {"shape": (2, 3), "steps": (0, 8), "start": 1}]),
    Row(strided.unstrided,
        lambda x, whole, steps, start: transposed(lambda a: strides(a, x.shape, steps, start), whole)(x),
        shapes=[((3, 2),)], params=[
            {"whole": (2, 4), "steps": (1, 2), "start": 1}, {"whole": (9,), "steps": (0, 8), "start": 0}]),
    Row(shape.reshape, lambda x, shape: x.reshape(shape), shapes=CUBE, params=[{"shape": (4, 6)}, {"shape": (24,)}]),
    Row(shape.permute, lambda x, dims: x.transpose(dims), shapes=CUBE, params=[{"dims": (2, 0, 1)}]),
    Row(shape.expand, lambda x, shape: np.broadcast_to(x, shape), shapes=[((3, 1),)],
        params=[{"shape": (2, 3, 4)}, {"shape": (1, 3, 1)}]),
    Row(shape.sum_to, sum_to, shapes=CUBE, params=[{"shape": (3, 1)}, {"shape": ()}, {"shape": (1, 3, 4)}]),
    Row(diagonals.diagonal, lambda x, offset, dims: x.diagonal(offset, *dims), shapes=CUBE,
        params=[{"offset": 0, "dims": (0, 1)}, {"offset": 1, "dims": (2, 1)}, {"offset": -1, "dims": (0, 2)}]),
    Row(diagonals.undiagonal, undiagonal, shapes=[((2, 3),)],
        params=[{"shape": (2, 4, 4), "offset": -1, "dims": (1, 2)}, {"shape": (3, 2, 3), "offset": 0, "dims": (2, 0)}]),
    Row(diagonals.tril, lambda x, diagonal: np.tril(x, diagonal), shapes=CUBE,
        params=[{"diagonal": 0}, {"diagonal": -1}]),
    Row(diagonals.triu, lambda x, diagonal: np.triu(x, diagonal), shapes=CUBE,
        params=[{"diagonal": 0}, {"diagonal": 2}]),
    Row(shape.flip, lambda x, dims: np.flip(x, dims), shapes=CUBE, params=[{"dims": (0, 2)}, {"dims": ()}]),
    Row(shape.roll, lambda x, shifts, dims: np.roll(x, shifts, dims), shapes=CUBE,
        params=[{"shifts": (1, -2), "dims": (0, 2)}]),
    Row(shape.part, lambda x, at: x[numpy_key(at)], shapes=CUBE,
        params=[{"at": (1, None, (0, 3, 2))}, {"at": (0, 1, 2)}, {"at": ()}, {"at": ((0, 0, 1),)}]),
    Row(shape.unslice, placed, shapes=[((3, 2),)], params=[{"at": (1, (0, 3, 1), (0, 4, 2)), "shape": (2, 3, 4)}]),
    Row(shape.pad, placed, shapes=[((3, 2),)], params=[{"at": ((1, 4, 1),), "shape": (5, 2), "value": 1.5}]),
    Row(shape.cat, lambda *xs, dim: np.concatenate(xs, dim), shapes=[((2, 3), (2, 1), (2, 0), (2, 2))],
        params=[{"dim": 1}]),
    Row(shape.stack, lambda *xs, dim: np.stack(xs, dim), shapes=[((2, 3), (2, 3), (2, 3)), ((2, 0), (2, 0))],
        params=[{"dim": 0}, {"dim": 1}, {"dim": 2}]),
    Row(shape.stack, lambda *xs, dim: np.stack(xs, dim), shapes=[((), ()), ((3,),)], params=[{"dim": 0}]),
    Row(inplace.overwrite, lambda x, y: y, shapes=[((2, 3), (2, 3))]),
    Row(view.write_view, lambda x, v, steps: placed(v, (1,), (3, 4)) + x * (np.arange(3) != 1)[:, None],
        shapes=[((3, 4), (4,))], params=[{"steps": ((shape.part, {"at": (1,)}),)}]),
]  # fmt: skip

# ---- by index arrays ------------------------------------------------------------------------------------------------

AT = np.array([2, 0, -1, 2])  # twice the same place, once from the end
ALONG = np.array([[0, 2, 1], [3, 0, 1], [3, 3, 3]])[:, :2]
ONCE = np.array([[0, 2], [3, 0], [1, 3]])  # no place twice


def numpy_index(x, *at, dims):
    return x[tuple(dict(zip(dims, at, strict=True)).get(d, slice(None)) for d in range(x.ndim))]


def index_sum(x, *at, shape, dims):
    out = np.zeros(shape)
    np.add.at(out, tuple(dict(zip(dims, at, strict=True)).get(d, slice(None)) for d in range(len(shape))), x)
    return out


def index_put(x, v, *at, dims):
    out = x.copy()
    out[tuple(dict(zip(dims, at, strict=True)).get(d, slice(None)) for d in range(x.ndim))] = v
    return out


def along(x, at, v, combine):
    """Row by row, column by column, as the definition of scatter says; dim=1."""
    out = x.copy()
    for i, j in np.ndindex(at.shape):
        out[i, at[i, j]] = combine(out[i, at[i, j]], v[i, j])
    return out


def first_places(x, dim, count, descending):
    return np.take(np.argsort(-x if descending else x, dim, "stable"), range(count), dim)


def with_indices(*choices):
    """Samples of a floating array of some shape, index arrays, and parameters."""
    return lambda rng, dtype: [((uniform(rng, dtype, shape), *at), params) for shape, at, params in choices]


INDEX = [
    Row(index.index, numpy_index, samples=with_indices(
        ((4, 3), [AT], {"dims": (0,)}), ((2, 3, 4), [AT % 3, AT], {"dims": (1, 2)}),
        ((3, 4, 3), [AT[:, None], AT[:2]], {"dims": (0, 2)})),
        errors=[((np.zeros(3), np.array([3])), {"dims": (0,)}, IndexError, "index 3 is out of bounds")]),
    Row(index.index_sum, index_sum, samples=with_indices(
        ((4, 3), [AT], {"shape": (4, 3), "dims": (0,)}), ((2, 4), [AT % 3, AT], {"shape": (2, 3, 4), "dims": (1, 2)}),
        ((4, 2, 4), [AT[:, None], AT[:2]], {"shape": (3, 4, 3), "dims": (0, 2)})),
        errors=[((np.zeros(1), np.array([3])), {"shape": (3,), "dims": (0,)}, IndexError, "out of bounds")]),
    Row(index.index_put, index_put, samples=lambda rng, dtype: [
        ((uniform(rng, dtype, (4, 3)), uniform(rng, dtype, (2, 1)), AT[:2]), {"dims": (0,)}),
        ((uniform(rng, dtype, (4, 3)), 0.5, AT, AT % 3), {"dims": (0, 1)})]),
    Row(index.gather, lambda x, at, dim: np.take_along_axis(x, at, dim),
        samples=lambda rng, dtype: [((uniform(rng, dtype, (3, 4)), ALONG), {"dim": 1})],
        errors=[((np.zeros(3), np.array([3])), {"dim": 0}, RuntimeError, "index 3 is out of bounds")]),
    Row(index.gather_sum, lambda x, at, shape, dim: along(np.zeros(shape), at, x, np.add),
        samples=lambda rng, dtype: [((uniform(rng, dtype, (3, 2)), ALONG), {"shape": (3, 4), "dim": 1})],
        errors=[((np.zeros(1), np.array([3])), {"shape": (3,), "dim": 0}, RuntimeError, "out of bounds")]),
    Row(index.scatter, lambda x, at, v, dim: along(x, at, v, lambda old, new: new),
        samples=lambda rng, dtype: [((uniform(rng, dtype, (3, 4)), ONCE, uniform(rng, dtype, (3, 2))), {"dim": 1})]),
    Row(combine.scatter_best, lambda x, at, v, dim, largest: along(x, at, v, np.maximum if largest else np.minimum),
        samples=lambda rng, dtype: [
            ((uniform(rng, dtype, (3, 4)), ALONG, uniform(rng, dtype, (3, 2))), {"dim": 1, "largest": largest})
            for largest in (True, False)], order=2),
    Row(combine.scatter_product, lambda x, at, v, dim: along(x, at, v, np.multiply),
        samples=lambda rng, dtype: [
            ((uniform(rng, dtype, (3, 4), 0.5, 1.5), ALONG, uniform(rng, dtype, (3, 2), 0.5, 1.5)), {"dim": 1})]),
    Row(combine.scatter_product, lambda x, at, v, dim: along(x, at, v, np.multiply), name="scatter_product of zeros",
        order=3, samples=lambda rng, dtype: [
            ((np.array([[2, 0]], dtype), np.array([[0, 1, 0, 0, 1]]), np.array([v], dtype)), {"dim": 1})
            for v in ([0, 1, 3, 2, 4], [0, 1, 0, 2, 4])]),
    Row(index.argwhere, lambda x: np.argwhere(x > 0), samples=lambda rng, dtype: [
        ((np.asarray(np.maximum(uniform(rng, dtype, s), 0)),), {}) for s in ((3, 4), (), (0, 2))], order=0),
]  # fmt: skip

SORT = [
    Row(sort.argtop, first_places, order=0, samples=lambda rng, dtype: [
        ((draw(rng, dtype, shape),), {"dim": dim, "count": count, "descending": descending})
        for shape, dim, count in (((3, 4), 1, 2), ((5000,), 0, 20), ((70, 3, 40), 0, 5), ((70, 3, 40), 2, 0))
        for descending in (True, False) for draw in (uniform, lambda *given: uniform(*given).round(1))]),
    Row(sort.argsort, lambda x, dim, descending: np.argsort(-x if descending else x, dim, "stable"), order=0,
        samples=lambda rng, dtype: [((rng.integers(0, 4, (3, 9)).astype(dtype),), {"dim": dim, "descending": down})
                                    for dim in (0, 1) for down in (True, False)]),
    Row(sort.searchsorted, lambda edges, x, right: np.searchsorted(edges, x, "right" if right else "left"), order=0,
        samples=lambda rng, dtype: [((np.array([0, 1, 1, 2], dtype), rng.integers(-1, 4, (2, 3)).astype(dtype)),
                                     {"right": right}) for right in (True, False)]),
    Row(sort.searchsorted, lambda edges, x, right: (edges[:, None] < x[..., None]).sum(-1), order=0, name="row by row",
        samples=lambda rng, dtype: [((np.sort(uniform(rng, dtype, (2, 4))), uniform(rng, dtype, (2, 3))),
                                     {"right": False})]),
]  # fmt: skip

ELSEWHERE = {
    **dict.fromkeys(
        [create.full, create.zeros, create.empty, create.constant, create.arange, create.eye, create.linspace,
         create.logspace, create.triangle],
        "test_creation.py",
    ),
    **dict.fromkeys(
        [random.uniform, random.normal, random.exponential, random.integers, random.permutation, random.bernoulli_full,
         random.bernoulli, random.multinomial, random.log_normal, random.cauchy, random.geometric,
         poisson.poisson, binomial.binomial],
        "test_random.py",
    ),
    strided.reinterpret: "tensor/test_storage.py",
    histogram.histogram: "tensor/test_histograms.py",
    gamma.standard_gamma: "distributions/test_distributions.py",
}  # fmt: skip
ROWS = [*SHAPES, *INDEX, *SORT]
