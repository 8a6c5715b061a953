"""Which batches are cut into chunks, and what whole arrays are written into."""

from itertools import pairwise

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.autograd import grad
from leafgrad.compile.ir.replay import ReplayProgram
from leafgrad.compile.numpy.executor import NumpyPlan, NumpyProgram
from leafgrad.compile.passes import optimize
from leafgrad.ops.flat import pack, unpack
from leafgrad.ops.matmul import contract


def layers(*widths, activation=nn.ReLU):
    found = [part for i, o in pairwise(widths) for part in (nn.Linear(i, o), activation())]
    return nn.Sequential(*found[:-1])


def training(net, loss):
    adam = optim.Adam(net.parameters())

    def step(x):
        adam.zero_grad()
        loss(net, x).backward()
        adam.step()

    return step


def squares(net, x):
    return (net(x) ** 2).mean()


def residual(net, x):
    x = x.detach().requires_grad_()
    (first,) = grad(net(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    return ((second + first) ** 2).mean()


def plan_of(step, x):
    step(x)
    return NumpyPlan(optimize(leafgrad.trace(step, x)))


@pytest.mark.parametrize(
    ("widths", "loss", "rows", "why"),
    [
        ((2, 20, 20, 20, 20, 1), residual, 20_000, None),
        ((2, 20, 20, 20, 20, 1), residual, 500, "small enough"),
        ((64, 64, 64, 1), squares, 500, "small enough"),
        ((256, 256, 256, 1), squares, 20_000, "matrix products"),
    ],
)
def test_batches_are_chunked_where_caches_alone_do_not_serve_them(widths, loss, rows, why):
    plan = plan_of(training(layers(*widths, activation=nn.Tanh), loss), leafgrad.rand(rows, widths[0]))
    assert bool(plan.loops) == (why is None)
    assert [(n, why in text) for n, text in plan.schedule.given_up] == ([(rows, True)] if why else [])
    assert (f"not chunked: {rows} rows, whose arrays" in "\n".join(NumpyProgram(plan).explain())) == (
        why == "small enough"
    )


def test_rows_of_which_a_few_fill_the_cache_are_not_chunked():
    plan = plan_of(lambda x: (x * 2).tanh().exp().sum(), leafgrad.rand(64, 150_000))
    assert not plan.loops
    assert plan.schedule.given_up == [(64, "few of which fit the cache")]


WHOLE = {
    "contract": lambda x, y: (contract(x, y) * 2, contract(y, x)),
    "contract, leading dimensions": lambda x, y: contract(x.reshape(3, -1, 40), y.reshape(3, -1, 50)),
    "contract, no rows": lambda x, y: contract(x[:0], y[:0]),
    "pack": lambda x, y: pack(x, y) * 2 + pack(y, x),
    "pack that stays": lambda x, y: pack(x, x.T, y[0]),
    "unpack": lambda x, y: sum(t.sum() for t in unpack(pack(x, y) * 2, shapes=((60, 40), (60, 50)))),
    "unpack, of an input": lambda x, y: unpack(x.reshape(-1), shapes=((1200,), (30, 40)))[1] + 1,
    "unpack that stays": lambda x, y: unpack(pack(x, y) * 2, shapes=((60, 40), (3, 1000))),
    "unpack of nothing": lambda x, y: unpack(pack(x, y), shapes=((0, 3), (5400,)))[1] * 2,
    "cat": lambda x, y: leafgrad.cat((x, y, x), 1).tanh() + leafgrad.cat([y, x, x], dim=-1),
    "cat that stays": lambda x, y: leafgrad.cat((x.T, y.T)),
    "cat of itself": lambda x, y: leafgrad.cat((x * 2, x * 2)).sin(),
    "memory of parts": lambda x, y: [t * 3 for t in unpack((pack(x, y) * 2).exp(), shapes=((60, 40), (60, 50)))],
}


@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64, leafgrad.complex64])
@pytest.mark.parametrize("function", WHOLE.values(), ids=WHOLE)
def test_whole_arrays_are_as_those_of_replay(function, dtype):
    leafgrad.manual_seed(0)
    x, y = leafgrad.randn(60, 40, dtype=dtype), leafgrad.randn(60, 50, dtype=dtype)
    for graph in (leafgrad.trace(function, x, y), optimize(leafgrad.trace(function, x, y))):
        given = [t.numpy() for t in (x, y)][: len(graph.inputs)]
        before = [a.copy() for a in given]
        program, expected = NumpyProgram(graph), ReplayProgram(graph)(given)
        for _ in range(3):
            found = program(given)
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5)
                assert not any(np.may_share_memory(got, a) for a in given)
        for a, b in zip(given, before, strict=True):
            np.testing.assert_array_equal(a, b)
