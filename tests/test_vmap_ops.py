"""Every row of the op table under vmap: a batch of three, and its gradients, equal the samples alone."""

from __future__ import annotations

import numpy as np
import pytest
from rows import ROWS, outputs

import leafgrad
from leafgrad.autograd import grad
from leafgrad.batching import call as batching
from leafgrad.plugins import builtin

SIZE = 3

# These have results whose shape depends on values, which may differ between samples.
DYNAMIC = {"argwhere", "runs", "unique"}

# These have no batching rule and run sample by sample, which is said once for each.
LOOPS = {"rnn", "rnn_gates", "gru", "gru_gates", "lstm", "lstm_gates"}


def name(row):
    return getattr(row.op, "name", str(row))


COVERED = [row for row in ROWS if name(row) not in DYNAMIC]


def draws(row):
    """For each sample of a row three of the same shapes: ``(three tuples of args, params)``."""
    dtype = row.dtypes[0]
    each = []
    for seed in range(SIZE):
        rng = np.random.default_rng(seed)
        if row.samples is not None:
            each.append(row.samples(rng, dtype))
        else:
            shapes = (
                row.shapes or ((((3, 4),), ((),)), (((2, 1), (3,)), ((2,), ())))[len(row.op.signature.arguments) - 1]
            )
            each.append([(row.arrays(rng, dtype, s), params) for s in shapes for params in row.params])
    for samples in zip(*each, strict=True):
        params = samples[0][1]
        args = [list(s[0]) for s in samples]
        if len({tuple(np.shape(a) for a in own) for own in args}) > 1 or any(s[1] != params for s in samples):
            continue  # shapes are random, too
        for i, a in enumerate(args[0]):
            if not isinstance(a, np.ndarray):
                for other in args:
                    other[i] = a
        yield args, params


def choices(args):
    """Which arguments are batches: all, and each alone."""
    arrays = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    return [arrays] + ([[i] for i in arrays] if len(arrays) > 1 else [])


def tensor(array):
    return leafgrad.tensor(array, requires_grad=array.dtype.kind == "f")


def case(args, chosen, in_dim):
    """The arguments of the vmapped call with ``in_dims``, and those of each sample."""
    whole, dims, alone = [], [], [[] for _ in range(SIZE)]
    for i, a in enumerate(args[0]):
        if not isinstance(a, np.ndarray):
            whole.append(a)
            dims.append(None)
        elif i in chosen:
            dim = min(in_dim, a.ndim)
            whole.append(tensor(np.stack([s[i] for s in args], dim)))
            dims.append(dim)
        else:
            whole.append(tensor(a))
            dims.append(None)
        for k in range(SIZE):
            own = args[k][i] if i in chosen else a
            alone[k].append(tensor(own) if isinstance(a, np.ndarray) else a)
    return whole, tuple(dims), alone


def close(actual, expected, row):
    actual, expected = (t.detach().numpy() for t in (actual, expected))
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    rtol = max(row.rtol, 1e-9)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


@pytest.mark.filterwarnings("ignore:There is a performance drop because vmap has no batching rule")
@pytest.mark.parametrize("in_dim", [0, 1])
@pytest.mark.parametrize("row", COVERED, ids=str)
def test_a_batch_equals_its_samples(row, in_dim):
    samples = list(draws(row))
    for args, params in samples[: 1 if in_dim else None]:
        for chosen in choices(args[0])[: 1 if in_dim else None]:
            whole, dims, alone = case(args, chosen, in_dim)

            def function(*given, params=params):
                return row.op(*given, **params)

            found = outputs(leafgrad.vmap(function, in_dims=dims)(*whole))
            single = [outputs(function(*each)) for each in alone]
            for i, out in enumerate(found):
                close(out, leafgrad.stack([s[i] for s in single]), row)
            compare_gradients(row, found, single, whole, dims, alone)


def compare_gradients(row, found, single, whole, dims, alone):
    places = [i for i, o in enumerate(found) if o.requires_grad]
    if not places or not row.order:
        return
    seeds = [
        leafgrad.linspace(0.5, 1.5, found[i].numel(), dtype=found[i].dtype).reshape(found[i].shape) for i in places
    ]
    wanted = [i for i, t in enumerate(whole) if getattr(t, "requires_grad", False)]
    got = grad([found[i] for i in places], [whole[i] for i in wanted], seeds, allow_unused=True)
    each = [
        grad([s[i] for i in places], [a[i] for i in wanted], [seed[k] for seed in seeds], allow_unused=True)
        for k, (s, a) in enumerate(zip(single, alone, strict=True))
    ]
    for j, i in enumerate(wanted):
        parts = [g[j] for g in each]
        assert (got[j] is None) == (parts[0] is None)
        if got[j] is not None:
            close(got[j], sum(parts[1:], parts[0]) if dims[i] is None else leafgrad.stack(parts, dims[i]), row)


@pytest.mark.parametrize("row", [row for row in ROWS if name(row) in DYNAMIC], ids=str)
def test_a_shape_that_depends_on_values_is_an_error(row):
    (args,), params = next(draws(row))[0][:1], next(draws(row))[1]
    with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can output dynamic shape"):
        leafgrad.vmap(lambda x: row.op(x, **params))(leafgrad.tensor(np.stack([args[0]] * SIZE)))


@pytest.mark.parametrize("weights", [None, 0], ids=["one kernel", "a kernel each"])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups, weights):
    rng = np.random.default_rng(0)
    x = tensor(rng.normal(size=(SIZE, 2, 4, 7)))
    w = tensor(rng.normal(size=(SIZE, 6, 4 // groups, 3))[0 if weights is None else slice(None)])
    b = tensor(rng.normal(size=(SIZE, 6))[0 if weights is None else slice(None)])

    def loss(x, w, b):
        y = leafgrad.nn.functional.conv1d(x, w, b, stride=2, padding=1, groups=groups)
        return leafgrad.sin(y).sum() + leafgrad.nn.functional.max_pool1d(y, 2).sum()

    dims = (0, weights, weights)
    first = leafgrad.vmap(leafgrad.func.grad(loss, (0, 1, 2)), in_dims=dims)(x, w, b)
    for k in range(SIZE):
        own = [t if d is None else t[k] for t, d in zip((x, w, b), dims, strict=True)]
        for got, want in zip(first, grad(loss(*own), own), strict=True):
            np.testing.assert_allclose(got[k].detach().numpy(), want.numpy(), rtol=1e-10, atol=1e-12)


def test_a_loop_is_said_once(monkeypatch):
    monkeypatch.setattr(batching, "_told", set())

    @leafgrad.op
    def centred(xp, x):
        """x less its mean."""
        return x - x.mean()

    x = leafgrad.arange(6.0).reshape(3, 2)
    with pytest.warns(UserWarning, match="no batching rule for the op 'centred' and runs it sample by sample"):
        assert leafgrad.vmap(centred)(x).tolist() == [[-0.5, 0.5]] * 3
    assert leafgrad.vmap(centred)(x).tolist() == [[-0.5, 0.5]] * 3
    with pytest.raises(RuntimeError, match="there are no samples to tell its result's shape"):
        leafgrad.vmap(centred)(x[:0])


def test_an_op_gets_a_rule():
    @leafgrad.op
    def doubled(xp, x):
        """Twice x."""
        return x + x

    @doubled.batched
    def _(call):
        return call.again(call.front(0))

    x = leafgrad.arange(6.0).reshape(3, 2)
    assert leafgrad.vmap(doubled, in_dims=1)(x).tolist() == (2 * x.T).tolist()
    with pytest.raises(leafgrad.errors.OpDefinitionError, match="already has a batching rule"):
        doubled.batched(lambda call: None)


def test_every_op_has_a_rule_or_is_listed():
    loops = {op.name for op in builtin.leafgrad_ops() if op.signature.arguments and op.batching is None}
    assert loops == LOOPS
    assert {op.name for op in builtin.leafgrad_ops()} >= DYNAMIC
