"""An op that refuses some elements refuses them in a compiled step too, where nobody reads what it makes."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import nn
from leafgrad.compile.passes import remove_dead
from leafgrad.errors import LinAlgError
from leafgrad.nn import functional as F
from leafgrad.ops.index import index

X = leafgrad.ones(2, 2)
WHOLE = leafgrad.tensor([1, 0]), leafgrad.tensor([1, 2])
PLACES = leafgrad.tensor([0, 7]), leafgrad.tensor([0, 1])
MATRIX = leafgrad.zeros(2, 2), leafgrad.eye(2)
INDEFINITE = leafgrad.tensor([[1.0, 2.0], [2.0, 1.0]]), leafgrad.eye(2)
NAN = leafgrad.full((3, 3), float("nan")), leafgrad.eye(3)
SHARES = leafgrad.tensor([0.5, -0.5]), leafgrad.tensor([0.5, 0.25])
ADAPTIVE = nn.AdaptiveLogSoftmaxWithLoss(4, 4, [2])

REFUSE = {
    "floor_divide": (lambda y: 4 // y, WHOLE, RuntimeError),
    "remainder": (lambda y: y % y, WHOLE, RuntimeError),
    "fmod": (lambda y: leafgrad.fmod(y, y), WHOLE, RuntimeError),
    "div trunc": (lambda y: leafgrad.div(y, y, rounding_mode="trunc"), WHOLE, RuntimeError),
    "index": (lambda at: X[at], PLACES, IndexError),
    "index_put": (lambda at: leafgrad.index_put(X, (at,), X[0]), PLACES, IndexError),
    "index_add": (lambda at: X.index_add(0, at, X), PLACES, IndexError),
    "gather": (lambda at: X.gather(0, at[None]), PLACES, RuntimeError),
    "scatter": (lambda at: X.scatter(0, at[None], 1.0), PLACES, RuntimeError),
    "scatter_add": (lambda at: X.scatter_add(0, at[None], X), PLACES, RuntimeError),
    "scatter_reduce": (lambda at: X.scatter_reduce(0, at[None], X, "amax"), PLACES, RuntimeError),
    "embedding": (lambda at: F.embedding(at, X), PLACES, IndexError),
    "one_hot": (lambda at: F.one_hot(at, 2), PLACES, RuntimeError),
    "nll_loss": (lambda at: F.nll_loss(X, at), PLACES, IndexError),
    "cross_entropy": (lambda at: F.cross_entropy(X, at), PLACES, IndexError),
    "adaptive": (lambda at: ADAPTIVE(leafgrad.ones(2, 4), at).loss, PLACES, RuntimeError),
    "inv": (leafgrad.linalg.inv, MATRIX, LinAlgError),
    "solve": (lambda a: leafgrad.linalg.solve(a, X), MATRIX, LinAlgError),
    "cholesky": (leafgrad.linalg.cholesky, INDEFINITE, LinAlgError),
    "eigh": (leafgrad.linalg.eigh, NAN, LinAlgError),
    "svd": (leafgrad.linalg.svd, NAN, LinAlgError),
    "pinv": (leafgrad.linalg.pinv, NAN, LinAlgError),
    "binary_cross_entropy": (lambda p: F.binary_cross_entropy(p, p), SHARES, RuntimeError),
    "gaussian_nll_loss": (lambda v: F.gaussian_nll_loss(X[0], X[1], v), SHARES, ValueError),
    "poisson": (leafgrad.poisson, SHARES, RuntimeError),
    "normal": (lambda std: leafgrad.normal(0.0, std), SHARES, RuntimeError),
}


@pytest.mark.parametrize("executor", ["numpy", "replay", "native"])
@pytest.mark.parametrize("what", REFUSE)
def test_an_error_needs_no_reader(what, executor):
    function, (bad, good), error = REFUSE[what]
    if executor == "native":
        pytest.importorskip("leafgrad_native")

    @leafgrad.compile(executor=executor)
    def step(x):
        function(x)
        return x.sum() * 2

    with pytest.raises(error):
        function(bad)
    for _ in range(2):
        step(good)
        with pytest.raises(error):
            step(bad)


def test_an_error_of_an_open_step_needs_no_reader():
    @leafgrad.compile
    def step(x, y):
        x // y
        return float(x.sum())

    bad, good = WHOLE
    for _ in range(3):
        assert step(good, good) == 3
        with pytest.raises(RuntimeError, match="divisors other than 0"):
            step(good, bad)


def test_a_target_that_only_the_backward_pass_reads_is_looked_at(device):
    """The gradient trusts what the loss looked at, and CuPy counts such an index around."""
    x, at = leafgrad.ones(2, 3, device=device, requires_grad=True), leafgrad.tensor([0, 7], device=device)

    @leafgrad.compile
    def step(at):
        x.grad = None
        F.nll_loss(x, at).backward()

    for _ in range(2):
        step(at - at)
        with pytest.raises((IndexError, RuntimeError)):
            step(at)


def test_what_was_checked_already_may_go():
    graph = leafgrad.trace(lambda x, at: (index(x, at, dims=(0,), inside=True), x * 2)[1], X, PLACES[1])
    assert [e.name for e in remove_dead(graph).equations] == ["mul"]
