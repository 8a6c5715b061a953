"""Every row of the op table under vmap: a batch of three, and its gradients, equal the samples alone."""

from __future__ import annotations

import numpy as np
import pytest
from rows import ROWS

import leafgrad
from leafgrad.autograd import grad
from leafgrad.batching import call as batching
from leafgrad.plugins import builtin
from leafgrad.testing import check_op

TESTS = "ops.shifted"

SIZE = 3

# These have results whose shape depends on values, which may differ between samples.
DYNAMIC = {"argwhere", "runs", "unique"}

# These have no batching rule and run sample by sample, which is said once for each.
LOOPS = {"binomial", "ldl_solve", "rnn", "rnn_gates", "gru", "gru_gates", "lstm", "lstm_gates"}


def name(row):
    return getattr(row.op, "name", str(row))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_batch_equals_its_samples(row):
    samples = [sample for seed in range(3) for sample in row.draw(row.dtypes[0], seed)]
    report = check_op(row.op, samples, None, row.order, dtypes=(), rtol=row.rtol, checks="vmap")
    (result,) = report.results
    assert result.outcome == ("skipped" if name(row) in DYNAMIC else "passed")


@pytest.mark.parametrize("row", [row for row in ROWS if name(row) in DYNAMIC], ids=str)
def test_a_shape_that_depends_on_values_is_an_error(row):
    args, params = row.draw(row.dtypes[0])[0]
    with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can output dynamic shape"):
        leafgrad.vmap(lambda x: row.op(x, **params))(leafgrad.tensor(np.stack([args[0]] * SIZE)))


@pytest.mark.parametrize("weights", [None, 0], ids=["one kernel", "a kernel each"])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups, weights):
    rng = np.random.default_rng(0)
    x = leafgrad.tensor(rng.normal(size=(SIZE, 2, 4, 7)), requires_grad=True)
    w = leafgrad.tensor(
        rng.normal(size=(SIZE, 6, 4 // groups, 3))[0 if weights is None else slice(None)], requires_grad=True
    )
    b = leafgrad.tensor(rng.normal(size=(SIZE, 6))[0 if weights is None else slice(None)], requires_grad=True)

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
