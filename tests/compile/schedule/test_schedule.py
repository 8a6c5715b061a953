"""The schedule: what is chunked, in which loop, and that it computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from typecheck import check as well_formed

import leafgrad
from leafgrad import nn
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.sources import Argument, Captured
from leafgrad.compile.numpy.executor import NumpyProgram, fit
from leafgrad.compile.passes import optimize
from leafgrad.compile.record.trace import trace_call
from leafgrad.compile.schedule.schedule import Loop, Whole, batch_lengths, schedule

TESTS = "compile.schedule.buffers"


def inputs(graph: Graph, args: tuple[Any, ...]) -> list[Any]:
    arrays = []
    for source in graph.inputs.values():
        assert isinstance(source, (Argument, Captured))
        arrays.append((args[source.index] if isinstance(source, Argument) else source.tensor)._data)
    return arrays


def check(function: Any, *args: Any, rows: int = 64) -> NumpyProgram:
    """Run ``function`` in chunks of ``rows`` and compare with the eager result."""
    expected = function(*args)
    graph = well_formed(optimize(trace_call(function, args, {}).graph))
    program = NumpyProgram(graph, rows)
    before = [a.copy() for a in inputs(graph, args)]
    for _ in range(2):
        for got, want in zip(program(inputs(graph, args)), expected, strict=True):
            np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-10, atol=1e-12)
    for a, b in zip(before, inputs(graph, args), strict=True):
        np.testing.assert_array_equal(a, b)
    return program


def normal(*shape: int, grad: bool = False) -> Any:
    rng = np.random.default_rng(sum(shape))
    return leafgrad.tensor(rng.normal(size=shape), dtype=leafgrad.float64, requires_grad=grad)


def loops(program: NumpyProgram) -> list[Loop]:
    return [s for s in program.schedule.stages if isinstance(s, Loop)]


def test_one_loop_with_sums():
    w = normal(3, 4, grad=True)
    b = normal(4, grad=True)

    def step(x):
        loss = (leafgrad.tanh(x @ w + b) ** 2).mean()
        return loss, *leafgrad.autograd.grad(loss, (w, b))

    program = check(step, normal(200, 3))
    (loop,) = loops(program)
    assert loop.length == 200
    assert len(loop.summed) == 3
    assert not loop.stored


def test_second_derivatives_stay_in_one_loop():
    w1, w2 = normal(2, 8, grad=True), normal(8, 1, grad=True)

    def step(x, t):
        u = leafgrad.tanh(leafgrad.cat([x, t], 1) @ w1) @ w2
        u_x, u_t = leafgrad.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = leafgrad.autograd.grad(u_x.sum(), x, create_graph=True)
        loss = ((u_t + u * u_x - 0.01 * u_xx) ** 2).mean()
        return loss, *leafgrad.autograd.grad(loss, (w1, w2))

    program = check(step, normal(130, 1, grad=True), normal(130, 1, grad=True))
    assert len(loops(program)) == 1


def test_a_mean_that_is_subtracted_splits_the_step_into_two_loops():
    def centred(x):
        return ((x - x.mean(dim=0)) ** 2).sum(), x.exp().sum(dim=1)

    program = check(centred, normal(150, 5))
    first, second = loops(program)
    assert first.rank < second.rank


def test_a_value_of_an_earlier_loop_is_stored():
    def step(x):
        y = leafgrad.sin(x)
        z = y - y.sum(dim=0)
        for _ in range(5):
            z = leafgrad.tanh(z * z)
        return z.sum(), y.sum()

    program = check(step, normal(100, 3))
    assert any(loop.stored for loop in loops(program))


def test_a_batch_whose_loops_would_mostly_store_for_each_other_is_not_chunked():
    def step(x):
        y = leafgrad.sin(x)
        return ((y - y.sum(dim=0)) ** 2).sum(), y.sum()

    program = check(step, normal(100, 3))
    assert not loops(program)
    assert "not chunked: 100 rows" in "\n".join(program.explain())


def test_what_a_program_writes_is_no_batch():
    w, x = normal(64, 64), normal(70, 64)

    def step(x):
        w.add_((x @ w).tanh().sum(dim=0))

    assert [loop.length for loop in loops(NumpyProgram(optimize(trace_call(step, (x,), {}).graph), 64))] == [70]


def test_weights_that_nobody_trains_are_no_batch():
    w, points, bias = normal(100, 100), normal(100, 2), normal(100)

    def lengths(step, *args):
        return batch_lengths(optimize(trace_call(step, args, {}).graph))

    def network(x):
        return leafgrad.tanh(x @ w.T + bias)

    assert lengths(network, normal(1, 100)) == []
    assert lengths(network, normal(70, 100)) == [70]
    assert lengths(network, normal(100, 100)) == [100]
    assert lengths(lambda: (leafgrad.tanh(points * 2) ** 2).mean()) == [100]


def test_batches_of_different_length_have_loops_of_their_own():
    w = normal(3, 3, grad=True)

    def step(x, boundary):
        loss = (leafgrad.tanh(x @ w) ** 2).mean() + ((boundary @ w).exp()).mean()
        return loss, *leafgrad.autograd.grad(loss, w)

    program = check(step, normal(200, 3), normal(90, 3))
    assert sorted(loop.length for loop in loops(program)) == [90, 200]


def test_captured_points_are_chunked_like_arguments():
    points = normal(128, 2)

    def step(w):
        return ((points @ w) ** 2).mean(), (points * 2).sum(dim=0)

    assert len(loops(check(step, normal(2, 2)))) == 1


def test_what_needs_the_batch_whole_is_not_chunked_and_says_so():
    def step(x):
        return leafgrad.linalg.svdvals(leafgrad.tanh(x))[0], (x * x).sum()

    program = check(step, normal(100, 3))
    assert any("whole" in why for _, why in program.schedule.unchunked)
    assert any("not chunked" in line for line in program.explain())


def test_results_along_the_batch_are_stored():
    def step(x):
        return leafgrad.exp(x), x.T * 2, (x * x).reshape(-1)

    program = check(step, normal(96, 2))
    assert loops(program)


def test_broadcast_over_the_batch():
    def step(x, row):
        return (x * row + row).sum(dim=1, keepdim=True), (row.expand(x.shape) * x).mean()

    check(step, normal(100, 4), normal(1, 4))


def test_short_last_chunk():
    def step(x):
        return (leafgrad.sin(x) @ leafgrad.ones(3, 2, dtype=leafgrad.float64)).sum(), x.sum(dim=0)

    check(step, normal(64 * 2 + 7, 3))


def test_no_batch_no_loop():
    def step(a):
        return a.exp().sum(), a @ a

    program = check(step, normal(8, 8))
    assert all(isinstance(s, Whole) for s in program.schedule.stages)


def test_results_are_new_memory_at_each_call():
    def step(x):
        return x + 1, x, x.sum()

    x = normal(100, 2)
    graph = optimize(trace_call(step, (x,), {}).graph)
    program = NumpyProgram(graph, 64)
    first = program(inputs(graph, (x,)))
    copies = [a.copy() for a in first]
    second = program([a + 1 for a in inputs(graph, (x,))])
    for a, b, c in zip(first, copies, second, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, c)


@pytest.mark.parametrize(("rows", "length", "expected"), [(500, 10000, 512), (10**6, 100, 100), (1, 1000, 64)])
def test_chunks_are_even_and_multiples_of_16(rows, length, expected):
    assert abs(fit(rows, length) - expected) <= 16


def test_source_is_readable_python():
    def step(x):
        return (leafgrad.tanh(x) * x + x).sum()

    graph = trace_call(step, (normal(100, 2),), {}).graph
    source = NumpyProgram(graph, 64).source()
    assert "tanh(" in source
    assert "for lo, hi" in source
    compile(source, "step", "exec")
    assert schedule(graph).stages


def test_tuning_measures_and_remembers(monkeypatch, in_chunks):
    def step(x):
        return leafgrad.tanh(x * 2 + x).sum(dim=0), (x @ x.T[:, :3]).sum()

    x = normal(4096, 3)
    graph = optimize(trace_call(step, (x,), {}).graph)
    monkeypatch.setenv("LEAFGRAD_TUNE", "1")
    first = NumpyProgram(graph)
    expected = first(inputs(graph, (x,)))
    assert first.tuned
    assert first.chunk
    second = NumpyProgram(graph)
    assert second.chunk == first.chunk
    for a, b in zip(expected, second(inputs(graph, (x,))), strict=True):
        np.testing.assert_array_equal(a, b)


def test_chunks_follow_from_the_model_alone(in_chunks):
    def step(x):
        return leafgrad.tanh(x * 2 + x).sum(dim=0)

    graph = optimize(trace_call(step, (normal(4096, 3),), {}).graph)
    assert NumpyProgram(graph).tuned
    assert NumpyProgram(graph).chunk == NumpyProgram(graph).chunk


def test_large_elementwise_ops_are_made_in_blocks_and_sums_and_products_flat():
    w = normal(40, 40)

    def step(x):
        h = nn.functional.gelu(x @ w)
        turned = leafgrad.erf(h.transpose(0, 2)) + leafgrad.erf(h).transpose(0, 2)
        chosen = leafgrad.where(x > 0, h, 0.0)
        return h, turned, chosen * leafgrad.sigmoid(h), h.sum(dim=(0, 1)), h.sum(dim=2, keepdim=True), h.sum(dim=1)

    source = check(step, normal(30, 36, 40)).source()
    assert source.count("in_blocks(") >= 4
    assert source.count("ones_float64_") >= 3


def test_classes_are_chunked_with_their_scores():
    target = leafgrad.tensor([-100 if i % 9 == 0 else i % 5 for i in range(200)])

    def step(x, target):
        scores = nn.functional.log_softmax(leafgrad.tanh(x), dim=1)
        loss = nn.functional.nll_loss(scores, target, reduction="sum")
        return loss, *leafgrad.autograd.grad(loss, x)

    program = check(step, normal(200, 5, grad=True), target)
    assert {"pick", "place"} <= {e.name for loop in loops(program) for e in loop.equations}


def test_rows_of_a_table_and_columns_of_a_batch_are_chunked():
    table, x = normal(7, 4, grad=True), normal(200, 6, grad=True)
    words, columns = (leafgrad.tensor([i * i % n for i in range(m)]) for n, m in ((7, 200), (6, 4)))

    def step(x, words, columns):
        h = leafgrad.tanh(table[words] * x[:, columns])
        h = h + leafgrad.gather(x, 1, (words % 6).unsqueeze(1))
        return (h * h).sum(), *leafgrad.autograd.grad((h * h).sum(), (x, table))

    program = check(step, x, words, columns)
    (loop,) = loops(program)
    names = [e.name for e in loop.equations]
    assert [names.count(n) for n in ("index", "index_sum", "gather", "gather_sum")] == [2, 1, 1, 1]
    (sum_over_the_batch,) = [e for e, _ in program.schedule.unchunked]
    assert sum_over_the_batch.name == "index_sum"


@pytest.mark.parametrize(
    "step",
    [
        lambda x, at: leafgrad.sin(x)[at],  # along the batch
        lambda x, at: leafgrad.gather(leafgrad.sin(x), 0, at.unsqueeze(1)),
        lambda x, at: leafgrad.gather(leafgrad.sin(x), 1, (at[:100] % 3).unsqueeze(1)),  # of some rows alone
        lambda x, at: leafgrad.zeros(9, 3, dtype=x.dtype).index_add(0, at % 9, leafgrad.sin(x)),
    ],
)
def test_lookups_that_need_the_batch_whole(step):
    at = leafgrad.tensor([7 * i % 200 for i in range(200)])
    program = check(lambda x, at: (leafgrad.cos(step(x, at)),), normal(200, 3), at)
    named = {e.name for loop in loops(program) for e in loop.equations}
    assert not named & {"index", "index_sum", "gather", "gather_sum"}


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_numbers_are_drawn_in_order_across_loops(executor):
    """The first draw waits for a sum over the batch; the second, which could be had at once, waits for the first."""
    x = leafgrad.rand(300, 4)

    def step(x):
        h = leafgrad.tanh(x)
        for _ in range(12):
            h = leafgrad.sin(h) * 1.5 + x
        first = leafgrad.bernoulli(leafgrad.sigmoid(h.sum(0)))
        return first, leafgrad.rand(4), (h.cos().sum(0) * first).sum()

    compiled = leafgrad.compile(step, executor=executor)
    compiled(x), compiled(x)
    leafgrad.manual_seed(3)
    expected = step(x)
    leafgrad.manual_seed(3)
    for got, want in zip(compiled(x), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)


@pytest.mark.parametrize("ignored", [0, 9])
def test_what_only_a_later_loop_reads_is_made_there(ignored):
    """Gradients wait for the number of targets: one loop counts them, the other does all else and stores nothing."""
    target = leafgrad.tensor([-100 if ignored and i % ignored == 0 else i % 5 for i in range(200)])
    w, v = normal(6, 20, grad=True), normal(20, 5, grad=True)

    def step(x, target):
        loss = nn.functional.cross_entropy(leafgrad.tanh(x @ w) @ v, target)
        return loss, *leafgrad.autograd.grad(loss, (w, v))

    program = check(step, normal(200, 6), target)
    first, second = loops(program)
    assert len(first.equations) <= 3 < len(second.equations)
    assert not second.stored
    assert all(v.ndim == 1 for v in first.stored)


def test_counted_draws_go_where_they_are_read():
    """Made in the loop of their first reader, with what follows from them alone; whole where that is read whole."""
    w, x = normal(6, 5, grad=True), normal(200, 6)

    def step(x, w):
        mask = leafgrad.bernoulli(x, 0.5) * 2
        other = leafgrad.bernoulli(x, 0.5)
        return (leafgrad.tanh(x * mask @ w) * 3).square().sum(), leafgrad.flip(other, (0,)), leafgrad.bernoulli(x, 0.1)

    graph = optimize(trace_call(step, (x, w), {}).graph)
    found = schedule(graph, counted=lambda e: e.name == "bernoulli_full")
    (loop,) = [s for s in found.stages if isinstance(s, Loop)]
    assert [e.name for e in loop.equations].count("bernoulli_full") == 1
    assert [e.name for s in found.stages if isinstance(s, Whole) for e in s.equations].count("bernoulli_full") == 2
    made = set(graph.inputs)
    for stage in found.stages:
        for e in stage.equations:
            assert made.issuperset(e.values)
            made.update(e.outputs)
