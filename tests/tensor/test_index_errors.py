"""An index out of range is an error on every device, also where the array library counts around, and in a program."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.nn import functional as F
from leafgrad.testing import fake


def setitem(x, at):
    x[at] = 1.0


def cube(device):
    return leafgrad.arange(12.0, device=device).reshape(4, 3)


# What is given x of size (4, 3), and an index that is out of range for it.
CASES = {
    "getitem": (lambda x, at: x[at], [4]),
    "getitem from the end": (lambda x, at: x[at], [-5]),
    "getitem by two": (lambda x, at: x[at, at], [3]),
    "setitem": (setitem, [4]),
    "setitem from the end": (setitem, [-5]),
    "take": (leafgrad.take, [12]),
    "index_select": (lambda x, at: x.index_select(1, at), [3]),
    "index_add": (lambda x, at: x.index_add(0, at, x[:1]), [4]),
    "index_copy": (lambda x, at: x.index_copy(0, at, x[:1]), [4]),
    "index_fill": (lambda x, at: x.index_fill(0, at, 2.0), [4]),
    "index_put": (lambda x, at: x.index_put((at,), x[:1]), [4]),
    "gather": (lambda x, at: x.gather(0, at), [[4]]),
    "gather negative": (lambda x, at: x.gather(0, at), [[-1]]),
    "scatter": (lambda x, at: x.scatter(0, at, 2.0), [[4]]),
    "scatter_add": (lambda x, at: x.scatter_add(0, at, x[:1, :1]), [[4]]),
    **{
        f"scatter_reduce {how}": (lambda x, at, how=how: x.scatter_reduce(0, at, x[:1, :1], reduce=how), [[4]])
        for how in ("sum", "prod", "amax", "amin", "mean")
    },
    "take_along_dim": (lambda x, at: leafgrad.take_along_dim(x, at, 0), [[5]]),
    "embedding": (lambda x, at: F.embedding(at, x), [4]),
    "embedding negative": (lambda x, at: F.embedding(at, x), [-1]),
    "embedding_bag": (lambda x, at: F.embedding_bag(at, x), [[4]]),
    "cross_entropy": (lambda x, at: F.cross_entropy(x[:2], at), [0, 3]),
    "cross_entropy negative": (lambda x, at: F.cross_entropy(x[:2], at), [0, -1]),
    "nll_loss": (lambda x, at: F.nll_loss(x[:2], at), [0, 3]),
    "multi_margin_loss": (lambda x, at: F.multi_margin_loss(x[:2], at), [0, 3]),
    "max_unpool1d": (lambda x, at: F.max_unpool1d(x[None, :1, :2], at, 2), [[[0, 9]]]),
}
WORDS = "out of bounds|out of range|out of|invalid max index"


@pytest.mark.parametrize(("function", "at"), CASES.values(), ids=CASES)
def test_an_index_out_of_range(function, at, device):
    with pytest.raises((IndexError, RuntimeError), match=WORDS):
        function(cube(device), leafgrad.tensor(at, device=device))


@pytest.mark.parametrize("device", ["cpu", "fake:0"])
def test_in_a_program(device):
    fake.register()
    step = leafgrad.compile(lambda x, at: x[at] * 2.0)
    good, bad = (leafgrad.tensor(at, device=device) for at in ([1, 3], [1, 4]))
    for _ in range(2):
        assert step(cube(device), good).tolist() == [[6, 8, 10], [18, 20, 22]]
    with pytest.raises(IndexError, match="out of"):
        step(cube(device), bad)


def test_the_stand_in_counts_around_as_cupy_does():
    backend = fake.FakeBackend()
    x = backend.from_host(leafgrad.arange(4.0).numpy())
    at = backend.asarray([5, -1, -6])
    for found in (x[at], x[[5, -1, -6]], x.take(at), backend.xp.take(x, at), x.reshape(2, 2).T.reshape(4)[at[:0]]):
        assert backend.to_host(found).tolist() in ([1, 3, 2], [])
    x[at] = 9.0
    backend.xp.add.at(x, at[:1], 1.0)
    assert backend.to_host(x).tolist() == [0, 10, 9, 9]
    y = backend.from_host(leafgrad.arange(6.0).reshape(2, 3).numpy())
    assert backend.to_host(y[..., None, backend.asarray([4])]).tolist() == [[[1]], [[4]]]
    with pytest.raises(IndexError):
        x[4]


def test_what_is_computed_inside_costs_no_synchronisation():
    fake.register()
    x = leafgrad.tensor([[3.0, 1.0, 2.0]], device="fake:0", requires_grad=True)
    with fake.no_sync():
        (x.sort(1).values + x.max(1).values + x.unfold(1, 2, 1).sum()).sum().backward()


HOW = ["sum", "prod", "mean", "amax", "amin"]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 0), (0, 2, 3), (1, 0), (0, 5), (7, 0)])
@pytest.mark.parametrize("input_shape", [(2, 3), (), (0, 3), (4,)])
def test_an_index_without_elements_does_nothing_whatever_its_shape(shape, input_shape):
    nothing = leafgrad.zeros(shape, dtype=leafgrad.int64)
    x = leafgrad.ones(input_shape, requires_grad=True)
    for src in (leafgrad.ones(2, 3, requires_grad=True), leafgrad.ones(()), leafgrad.ones(shape)):
        for made in (
            x.scatter(0, nothing, src),
            x.scatter_add(0, nothing, src),
            *[x.scatter_reduce(-1, nothing, src, how, include_self=own) for how in HOW for own in (True, False)],
            x.detach().scatter(0, nothing, src.detach(), reduce="add"),
        ):
            assert made.tolist() == x.tolist()
        (g,) = leafgrad.autograd.grad(x.scatter(0, nothing, src).sum(), x)
        assert g.tolist() == x.tolist()
    assert x.scatter(0, nothing, 5.0).tolist() == x.tolist()
    found = x.gather(0, nothing)
    assert found.shape == shape
    (g,) = leafgrad.autograd.grad(found.sum(), x)
    assert g.tolist() == leafgrad.zeros(input_shape).tolist()
