"""vmap of ops that have no rule but their traits, as plugins make them: random calls against loops over the samples."""

from __future__ import annotations

import itertools
import zlib
from functools import partial

import numpy as np
import pytest

import leafgrad
from leafgrad import func, op
from leafgrad.ops.convert import new_full
from leafgrad.ops.reduce import kept, sum as total
from leafgrad.ops.shape import expand, reshape

ROUNDS = 40


def dims_of(dim, ndim):
    return tuple(range(ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,) if ndim else ()


def back(g, shape, dim):
    """The gradient of a reduction in the shape of what was reduced."""
    return expand(reshape(g, shape=kept(shape, dims_of(dim, len(shape)))), shape=shape)


@op("reduction", "float")
def squares(xp, x, *, dim, keepdim=False):
    """The sum of x * x over dim."""
    return (x * x).sum(axis=dim if x.ndim else None, keepdims=keepdim and x.ndim > 0)


squares.vjp(x=lambda g, x, x_shape, *, dim: 2 * x * back(g, x_shape, dim))


@op("reduction", "float")
def kept_sum(xp, x, *, dim=None, keepdim=True):
    """The sum over dim, kept by default."""
    return x.sum(axis=dim if x.ndim else None, keepdims=keepdim and x.ndim > 0)


kept_sum.vjp(x=lambda g, x_shape, *, dim: back(g, x_shape, dim))


@op("reduction", "float", "promote")
def dotted(xp, x, y, *, dim=-1, keepdim=False):
    """The sum of the product of two arrays, which broadcast."""
    z = x * y
    return z.sum(axis=dim if z.ndim else None, keepdims=keepdim and z.ndim > 0)


def _dotted(g, x_shape, y_shape, other, dim):
    return back(g, np.broadcast_shapes(x_shape, y_shape), dim) * other


dotted.vjp(
    x=lambda g, y, x_shape, y_shape, *, dim: _dotted(g, x_shape, y_shape, y, dim),
    y=lambda g, x, x_shape, y_shape, *, dim: _dotted(g, x_shape, y_shape, x, dim),
)


@op("reduction", "float")
def moments(xp, x, *, dim=None, keepdim=False):
    """The sums of x and of its squares."""
    axis, keep = dim if x.ndim else None, keepdim and x.ndim > 0
    return x.sum(axis=axis, keepdims=keep), (x * x).sum(axis=axis, keepdims=keep)


moments.vjp(x=lambda g, x, x_shape, *, dim: back(g[0], x_shape, dim) + 2 * x * back(g[1], x_shape, dim))


@op("along", "float", "promote")
def weighted_share(xp, x, w, *, dim=-1):
    """x * w over the sum of w * w along dim, plus 1."""
    p = x * w
    s = (w * w) + 0 * x
    return p / (s.sum(axis=dim, keepdims=True) + 1 if s.ndim else s + 1)


def _sums(v, dim):
    return total(v, dim=(dim,), keepdim=True) if v.shape else v


def _share_w(g, x, w, *, dim):
    n = new_full(x * w, shape=tuple((x * w).shape), value=1)
    s = _sums(w * w * n, dim) + 1
    return g * x / s - 2 * w * n * _sums(g * x * w / (s * s), dim)


weighted_share.vjp(x=lambda g, x, w, *, dim: g * w / (_sums(w * w + 0 * x, dim) + 1), w=_share_w)


@op("along", "float")
def sums_both_ways(xp, x, *, dim):
    """Running sums from both ends."""
    if not x.ndim:
        return x.copy(), x.copy()
    return xp.cumsum(x, dim), xp.flip(xp.cumsum(xp.flip(x, dim), dim), dim)


sums_both_ways.vjp(x=lambda g, *, dim: sums_both_ways(g[0], dim=dim)[1] + sums_both_ways(g[1], dim=dim)[0])


@op("elementwise", "float")
def polar(xp, r, angle, scale=None, *, turn=0.5):
    """r times cosine and sine of the angle, scaled."""
    r = r if scale is None else r * scale
    return r * xp.cos(angle + turn), r * xp.sin(angle + turn)


def _unit(g, angle, turn):
    return g[0] * leafgrad.cos(angle + turn) + g[1] * leafgrad.sin(angle + turn)


polar.vjp(
    r=lambda g, angle, scale, *, turn: _unit(g, angle, turn) * (1 if scale is None else scale),
    angle=lambda g, out: g[1] * out[0] - g[0] * out[1],
    scale=lambda g, r, angle, *, turn: _unit(g, angle, turn) * r,
)

# How many arguments each takes, and of which kinds its dim may be.
OPS = {
    squares: (1, (int, tuple)),
    kept_sum: (1, (int, tuple, None)),
    dotted: (2, (int, tuple, None)),
    moments: (1, (int, tuple, None)),
    weighted_share: (2, (int,)),
    sums_both_ways: (1, (int,)),
    polar: (3, ()),
}


def shapes_for(rng, count):
    """Shapes that broadcast, some of them shorter, or with ones."""
    whole = tuple(
        int(n) for n in rng.choice([0, 1, 2, 3], size=rng.choice(4, p=[0.1, 0.2, 0.35, 0.35]), p=[0.05, 0.15, 0.4, 0.4])
    )
    found = []
    for _ in range(count):
        cut = whole[rng.integers(0, len(whole) + 1) :] if rng.random() < 0.4 else whole
        found.append(tuple(1 if rng.random() < 0.2 else n for n in cut))
    if rng.random() < 0.5:
        found[rng.integers(count)] = whole
    return found


def parameters(rng, op, kinds, ndim):
    params = {}
    if "keepdim" in op.signature.parameters and rng.random() < 0.6:
        params["keepdim"] = bool(rng.random() < 0.5)
    has_default = op.signature.parameters.get("dim") in (None, -1)
    if not kinds or (has_default and rng.random() < 0.2):
        return params
    kind = kinds[rng.integers(len(kinds))]
    wide = max(ndim, 1)
    if kind is int:
        params["dim"] = int(rng.integers(-wide, wide))
    elif kind is None:
        params["dim"] = None
    else:
        chosen = rng.permutation(ndim)[: rng.integers(0, ndim + 1)]
        params["dim"] = tuple(int(d) - (ndim if rng.random() < 0.5 else 0) for d in chosen)
    return params


def several(out):
    return out if type(out) is tuple else (out,)


def looped(function, args, places, size):
    """The function of each sample, stacked."""
    each = [
        several(function(*[a if p is None else a.select(p, k) for a, p in zip(args, places, strict=True)]))
        for k in range(size)
    ]
    return tuple([leafgrad.stack(parts) for parts in zip(*each, strict=True)])


def batch(rng, shape, size):
    """An array with the batch somewhere, and where; or without it."""
    if rng.random() < 0.3:
        return np.asarray(rng.normal(size=shape)), None
    at = int(rng.integers(0, len(shape) + 1))
    return rng.normal(size=(*shape[:at], size, *shape[at:])), at - (len(shape) + 1 if rng.random() < 0.5 else 0)


def same(found, wanted):
    for a, b in zip(several(found), several(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-12)


def cases(op):
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    count, kinds = OPS[op]
    for _ in range(ROUNDS):
        shapes = shapes_for(rng, count)
        size = int(rng.integers(1, 4))
        params = parameters(rng, op, kinds, max(map(len, shapes)))
        yield rng, shapes, size, params


def cubes(outputs):
    return sum([(o * o * o).sum() for o in several(outputs)], leafgrad.zeros((), dtype=leafgrad.float64))


def gradient(function, count):
    """Of the sum of the cubes of what ``function`` gives, by all arguments."""
    return func.grad(lambda *args: cubes(function(*args)), tuple(range(count)))


def pushed(function, *args):
    """The derivative of ``function`` at the first half of ``args`` in the direction of the other half."""
    half = len(args) // 2
    return func.jvp(function, args[:half], args[half:])[1]


def tensors(arrays):
    return [leafgrad.tensor(a) for a in arrays]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_batch_equals_its_samples(op):
    for rng, shapes, size, params in cases(op):
        arrays, places = zip(*[batch(rng, s, size) for s in shapes], strict=True)
        if all(p is None for p in places):
            continue
        args, function = tensors(arrays), partial(op, **params)
        mapped = func.vmap(function, in_dims=places)
        same(mapped(*args), looped(function, args, places, size))
        inside = gradient(function, len(args))
        each = looped(inside, args, places, size)
        same(func.vmap(inside, in_dims=places)(*args), each)
        for got, parts, p in zip(gradient(mapped, len(args))(*args), each, places, strict=True):
            same(got, parts.sum(0) if p is None else parts.movedim(0, p))
        moving, places = (*args, *map(leafgrad.cos, args)), (*places, *places)
        push = partial(pushed, function)
        same(func.vmap(push, in_dims=places)(*moving), looped(push, moving, places, size))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_batches_in_batches(op):
    for rng, shapes, size, params in itertools.islice(cases(op), 12):
        arrays, inner = zip(*[batch(rng, s, size) for s in shapes], strict=True)
        arrays, outer = zip(*[batch(rng, a.shape, 2) for a in arrays], strict=True)
        if all(p is None for p in inner) or all(p is None for p in outer):
            continue
        args, function = tensors(arrays), partial(op, **params)
        for f in (function, gradient(function, len(args))):
            one = func.vmap(f, in_dims=inner)
            same(func.vmap(one, in_dims=outer)(*args), looped(one, args, outer, 2))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_no_samples(op):
    for _, shapes, _, params in itertools.islice(cases(op), 12):
        function = partial(op, **params)
        none = [leafgrad.zeros((0, *s), dtype=leafgrad.float64) for s in shapes]
        one = [leafgrad.zeros(s, dtype=leafgrad.float64) for s in shapes]
        found, alone = several(func.vmap(function)(*none)), several(function(*one))
        assert [tuple(f.shape) for f in found] == [(0, *a.shape) for a in alone]


def test_a_wrong_dim_is_an_error_of_a_sample():
    x = leafgrad.zeros(2, 3)
    with pytest.raises(IndexError, match=r"squares: dim: Dimension out of range .* \[-1, 0\], but got 1"):
        func.vmap(lambda x: squares(x, dim=1))(x)
    with pytest.raises(RuntimeError, match="squares: dim 0 appears multiple times"):
        func.vmap(lambda x: squares(x, dim=(0, -1)))(x)


@pytest.mark.parametrize("dim", [0, 1, -1, -2, (0, -1), None])
def test_a_rule_without_a_trait_takes_negative_dims(dim):
    @op
    def sums(xp, x, *, dim):
        return x.sum(axis=dim)

    sums.batched(lambda call: call.along())
    x = leafgrad.tensor(np.random.default_rng(0).normal(size=(2, 2, 2)))
    for d in (0, 1, 2):
        same(func.vmap(partial(sums, dim=dim), d)(x), looped(partial(sums, dim=dim), (x,), (d,), 2))


@op("random")
def shifted_by_one_number(xp, x, *, generator):
    """All elements with one normal number added."""
    return x + generator.normal((), x.dtype.name)


def test_a_random_op_without_a_rule_draws_for_each_sample():
    with pytest.warns(UserWarning, match="performance drop"):
        drawn = func.vmap(shifted_by_one_number, randomness="different")(leafgrad.zeros(5, 3))
    assert len(set(drawn[:, 0].tolist())) == 5
    assert (drawn == drawn[:, :1]).all()
