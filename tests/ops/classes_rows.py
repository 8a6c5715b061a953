"""Reading and writing one class of many."""

from __future__ import annotations

import numpy as np
from op_table import FLOATS, Row

from leafgrad.ops import classes, margins

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


def labelled(rng, dtype):
    """Scores, and lists of classes that end at the first -1."""
    listed = [np.array([[2, 0, -1], [-1, 1, 1], [0, 1, 2], [1, 1, -1]]), np.array([1, -1, 2, 5]), np.zeros((0, 3), int)]
    return [((rng.normal(size=target.shape).astype(dtype), target), {}) for target in listed]


def labels(x, target):
    """A sample, its targets, and the classes that are none, one by one."""
    for i in np.ndindex(x.shape[:-1]):
        targets = list(target[i])[: list(target[i]).index(-1) if -1 in target[i] else None]
        yield i, targets, [o for o in range(x.shape[-1]) if o not in targets]


def multilabel_margin(x, target):
    out = np.zeros(x.shape[:-1])
    for i, targets, others in labels(x, target):
        out[i] = sum(max(0, 1 - x[i][t] + x[i][o]) for t in targets for o in others)
    return out


def multilabel_margin_slopes(x, target):
    out = np.zeros(x.shape)
    for i, targets, others in labels(x, target):
        for t in targets:
            for o in others:
                out[(*i, o)] += 1 - x[i][t] + x[i][o] > 0
                out[(*i, t)] -= 1 - x[i][t] + x[i][o] > 0
    return out


UNLISTED = [((np.ones((1, 2)), np.array([[wrong, 0]])), {}, IndexError, "out of bounds") for wrong in (2, -2)]
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
    Row(margins.multilabel_margin, multilabel_margin, samples=labelled, dtypes=FLOATS, integers=False, errors=UNLISTED),
    Row(
        margins.multilabel_margin_slopes,
        multilabel_margin_slopes,
        samples=labelled,
        order=0,
        dtypes=FLOATS,
        integers=False,
    ),
]
