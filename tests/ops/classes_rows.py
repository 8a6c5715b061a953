"""Reading and writing one class of many."""

from __future__ import annotations

import numpy as np
from op_table import FLOATS, Row

from leafgrad.ops import classes

# Size of the scores, and the dimension of the classes.
CASES = [((4,), 0), ((5, 3), 1), ((2, 3, 2, 2), 1), ((0, 3), 1)]


def without(shape, dim):
    return shape[:dim] + shape[dim + 1 :]


def targets(rng, shape, dim, ignore):
    """Classes, and ``ignore`` among them."""
    target = rng.integers(0, shape[dim], without(shape, dim))
    return np.where(rng.random(target.shape) < 0.3, ignore, target)


def pick(x, target, dim, ignore):
    out = np.zeros(target.shape, x.dtype)
    for place in np.ndindex(target.shape):
        if target[place] != ignore:
            out[place] = x[(*place[:dim], target[place], *place[dim:])]
    return out


def place(v, target, shape, dim, ignore):
    out = np.zeros(shape, v.dtype)
    for i in np.ndindex(target.shape):
        if target[i] != ignore:
            out[(*i[:dim], target[i], *i[dim:])] = v[i]
    return out


def scores(rng, dtype):
    return [
        ((rng.normal(size=shape).astype(dtype), targets(rng, shape, dim, ignore)), {"dim": dim, "ignore": ignore})
        for shape, dim in CASES
        for ignore in (-100, 1)
    ]


def values(rng, dtype):
    return [
        (
            (rng.normal(size=without(shape, dim)).astype(dtype), targets(rng, shape, dim, -100)),
            {"shape": shape, "dim": dim, "ignore": -100},
        )
        for shape, dim in CASES
    ]


def filled(rng, dtype):
    """Scores, and targets that are not all ignored."""
    samples = []
    for shape, dim in CASES[1:3]:
        target = targets(rng, shape, dim, -100)
        target.flat[0] = 1
        samples.append(((rng.normal(size=shape).astype(dtype), target), {"dim": dim, "ignore": -100}))
    return samples


def nll_loss(x, target, dim, ignore):
    return -pick(x, target, dim, ignore).sum() / (target != ignore).sum()


def one_hot(x, classes):
    return (x[..., None] == np.arange(classes)).astype("int64")


def numbers(rng, dtype):
    return [((rng.integers(0, 4, shape).astype(dtype),), {"classes": 4}) for shape in ((), (3,), (0, 2), (5, 4, 4))]


def cross_entropy(x, target, dim, ignore):
    logarithms = x - np.log(np.exp(x).sum(axis=dim, keepdims=True))
    return -pick(logarithms, target, dim, ignore).sum() / (target != ignore).sum()


def cross_entropy_slope(x, target, dim, ignore):
    probabilities = np.exp(x) / np.exp(x).sum(axis=dim, keepdims=True)
    ones = np.ones(target.shape, x.dtype)
    return target_weights(x, target, dim, ignore) * (probabilities - place(ones, target, x.shape, dim, ignore))


def target_weights(x, target, dim, ignore):
    kept = target != ignore
    return np.expand_dims(kept / kept.sum(), dim).astype(x.dtype)


OUTSIDE = [
    ((np.ones((2, 3)), np.array([0, wrong])), {"dim": 1, "ignore": -100}, IndexError, "out of bounds")
    for wrong in (3, -1)
]  # fmt: skip

NAMELESS = [
    ((np.array([0, -1]),), {"classes": 3}, RuntimeError, "must be non-negative"),
    ((np.array([0, 3]),), {"classes": 3}, RuntimeError, "must be smaller than num_classes=3"),
]  # fmt: skip

ROWS = [
    Row(classes.pick, pick, samples=scores, order=2, dtypes=FLOATS, integers=False, errors=OUTSIDE),
    Row(classes.place, place, samples=values, order=2, dtypes=FLOATS, integers=False),
    Row(classes.nll_loss, nll_loss, samples=filled, order=2, dtypes=FLOATS, integers=False, errors=OUTSIDE),
    Row(classes.one_hot, one_hot, samples=numbers, order=0, dtypes=("int64",), errors=NAMELESS),
    Row(classes.cross_entropy, cross_entropy, samples=filled, dtypes=FLOATS, integers=False, errors=OUTSIDE),
    Row(classes.cross_entropy_slope, cross_entropy_slope, samples=filled, dtypes=FLOATS, integers=False),
    Row(classes.target_weights, target_weights, samples=filled, dtypes=FLOATS, integers=False),
]
