"""Indexing by arrays as C: what is read, written and added up, in loops over a batch and on whole arrays."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.lowering.kernels import Lookup
from leafgrad.ops import combine, index as ops
from leafgrad_native.compiler import NoCompiler, compiler

TESTS = "lowering.lookups"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

DTYPES = [leafgrad.float32, leafgrad.float64, leafgrad.int64]
ROWS = [7, 130]  # whole arrays, and a loop over chunks with a rest


def arrays(results):
    return [t.detach().numpy().copy() for t in (results if isinstance(results, tuple) else (results,))]


def compiled(step, *given, executor="native"):
    """The compiled step after its first call, which runs as it is."""
    found = leafgrad.compile(step, executor=executor)
    found(*given)
    return found


def program(step):
    return step._calls.runner().program


def lookups(step):
    """(the op's name, whether in a loop over the batch) of each lookup that C makes."""
    segments = program(step).plan.segments
    return [(k.maker.name, s.loop is not None) for s in segments for k in s.kernels if isinstance(k, Lookup)]


def check(step, *given, exact=True):
    """Run twice as C, compare with eager, and see that NumPy runs nothing; the compiled step."""
    c = compiled(step, *given)
    want = arrays(step(*given))
    for _ in range(2):
        for ours, right in zip(arrays(c(*given)), want, strict=True):
            assert ours.dtype == right.dtype
            if exact:
                np.testing.assert_array_equal(ours, right)
            else:
                np.testing.assert_allclose(ours, right, rtol=1e-11, atol=1e-13)
    assert "NumPy:" not in c.explain()
    assert "refused" not in c.explain()
    return c


def numbers(shape, dtype, grad=False):
    rng = np.random.default_rng(sum(shape))
    values = rng.integers(-9, 9, shape) if dtype is leafgrad.int64 else rng.normal(size=shape)
    return leafgrad.tensor(values, dtype=dtype, requires_grad=grad)


def indices(shape, n, low=None):
    """Repeated, and negative ones unless ``low`` is 0."""
    rng = np.random.default_rng(n)
    return leafgrad.tensor(rng.integers(-n if low is None else low, n, shape))


# ---- each op ------------------------------------------------------------------------------------------------------


@pytest.mark.every(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", [leafgrad.int64, leafgrad.int32])
def test_along_one_dimension(dtype, rows, kind):
    x, v, at = numbers((rows, 6), dtype), numbers((rows, 4), dtype), indices((rows, 4), 6).to(kind)

    def step(x, v, at):
        read = ops.gather(x, at, dim=1)
        added = ops.gather_sum(v, at, shape=(rows, 6), dim=1)
        return read + v, added * 2, ops.scatter(x, at, v, dim=1), ops.scatter(x, at, 3, dim=1)

    c = check(step, x, v, at)
    names = ["gather", "gather_sum", "scatter", "scatter"]
    assert lookups(c) == [(name, rows == ROWS[1]) for name in names]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("largest", [True, False])
def test_extremes(rows, largest):
    x, v, at = numbers((rows, 6), leafgrad.float32), numbers((rows, 4), leafgrad.float32), indices((rows, 4), 6)
    c = check(lambda x, at, v: combine.scatter_best(x, at, v, dim=1, largest=largest) + 1, x, at, v)
    assert lookups(c) == [("scatter_best", rows == ROWS[1])]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_a_table(dtype, rows):
    """As embeddings do: read in the loop over the batch, added up after it, in the order of the elements."""
    table, at, g = numbers((5, 3), dtype), indices((rows, 2), 5), numbers((rows, 2, 3), dtype)

    def step(table, at, g):
        return ops.index(table, at, dims=(0,)) + g, ops.index_sum(g * 2, at, shape=(5, 3), dims=(0,))

    assert sorted(lookups(check(step, table, at, g))) == [("index", rows == ROWS[1]), ("index_sum", False)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_columns_of_a_batch(dtype, rows):
    x, at, g = numbers((rows, 4, 3), dtype), indices((2, 2), 4), numbers((rows, 2, 2, 3), dtype)

    def step(x, at, g):
        return ops.index(x, at, dims=(1,)) + g, ops.index_sum(g * 2, at, shape=(rows, 4, 3), dims=(1,))

    batched = rows == ROWS[1]
    assert sorted(lookups(check(step, x, at, g))) == [("index", batched), ("index_sum", batched)]


@pytest.mark.parametrize("dims", [(0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_several_arrays(dims):
    shape, sizes = (4, 3, 5), (4, 3, 5)
    x = numbers(shape, leafgrad.float32)
    at = [indices((6, 1) if k else (2,), sizes[d]) for k, d in enumerate(dims)]

    def step(x, *at):
        read = ops.index(x, *at, dims=dims)
        return read, ops.index_sum(read * 2, *at, shape=shape, dims=dims), ops.index_put(x, read, *at, dims=dims)

    assert [name for name, _ in lookups(check(step, x, *at))] == ["index", "index_sum", "index_put"]


def test_several_arrays_of_a_batch():
    table, i, j = numbers((4, 3, 2), leafgrad.float64), indices((130, 1), 4), indices((3,), 3)
    c = check(lambda t, i, j: ops.index(t, i, j, dims=(0, 1)) * 2, table, i, j)
    assert lookups(c) == [("index", True)]


def test_what_is_written_last_stays():
    x, at, v = numbers((3, 4), leafgrad.float64), leafgrad.tensor([1, 2, 1, -2]), numbers((4, 4), leafgrad.float64)
    check(lambda x, at, v: (ops.index_put(x, v, at, dims=(0,)), ops.index_put(x, v[0], at, dims=(0,))), x, at, v)
    check(lambda x, at, v: ops.scatter(x.t(), at[None] * 1, v[:1], dim=1), x, at, v)


def test_arrays_in_any_order_of_memory():
    x, at = numbers((6, 5), leafgrad.float64), indices((4, 6), 5)

    def step(x, at):
        turned = (x * 2).t()
        return ops.gather(turned.t(), at.t(), dim=1), ops.index(turned, at[:2, :3].t(), dims=(0,)), turned.flip(0)[at]

    check(step, x, at)


def test_functions_of_tensors():
    x, at = numbers((130, 6), leafgrad.float64), indices((130, 3), 6, 0)

    def step(x, at):
        return (
            leafgrad.gather(x, 1, at),
            leafgrad.take_along_dim(x, at, 1),
            leafgrad.index_select(x, 1, at[0]),
            leafgrad.take(x, at),
            leafgrad.scatter_add(x, 1, at, x),
            x.index_add(0, at[:, 0], x, alpha=2),
            x.index_copy(1, at[0, :1], x[:, :1]),
            x.index_fill(0, at[:, 1], 0.5),
            x[at[:, 0], at[:, 1]],
            x[at],
        )

    check(step, x, at)


# ---- derivatives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ROWS)
def test_two_derivatives_of_gather(rows):
    x, at = numbers((rows, 6), leafgrad.float64, grad=True), indices((rows, 3), 6)

    def step(x, at):
        out = leafgrad.tanh(ops.gather(x, at, dim=1))
        (first,) = leafgrad.autograd.grad((out * out).sum(), x, create_graph=True)
        (second,) = leafgrad.autograd.grad((first * first).sum(), x)
        return out.detach(), first.detach(), second

    names = {name for name, batched in lookups(check(step, x, at, exact=False)) if batched == (rows == ROWS[1])}
    assert names == {"gather", "gather_sum"}


def test_two_derivatives_of_a_table():
    table, at = numbers((9, 4), leafgrad.float64, grad=True), indices((130, 2), 9)

    def step(table, at):
        out = leafgrad.tanh(table[at]).sum(1)
        (first,) = leafgrad.autograd.grad((out**3).sum(), table, create_graph=True)
        return first.detach(), *leafgrad.autograd.grad((first * first).sum(), table)

    assert {name for name, _ in lookups(check(step, table, at, exact=False))} == {"index", "index_sum"}


def test_training_of_an_embedding_equals_eager():
    def train(wrap):
        leafgrad.manual_seed(0)
        table, last = nn.Embedding(20, 4, padding_idx=3), nn.Linear(12, 5)
        net = nn.Sequential(table, nn.Flatten(), last).to(leafgrad.float64)
        optimizer = leafgrad.optim.Adam(net.parameters(), lr=0.01)
        words, classes = leafgrad.randint(20, (150, 3)), leafgrad.randint(5, (150,))

        def step(words, classes):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(words), classes)
            loss.backward()
            optimizer.step()
            return loss

        run = wrap(step)
        return [run(words, classes).item() for _ in range(30)], run

    expected, _ = train(lambda f: f)
    got, run = train(lambda f: leafgrad.compile(f, executor="native"))
    assert got == pytest.approx(expected, rel=1e-9)
    assert "NumPy:" not in run.explain()
    assert {name for name, _ in lookups(run)} == {"index", "index_sum"}


# ---- errors, and what C leaves to NumPy -----------------------------------------------------------------------------

WRONG = {
    "index": lambda x, at: ops.index(x, at[:, 0], dims=(1,)),
    "index of a table": lambda x, at: x[:6][at],
    "index_sum": lambda x, at: ops.index_sum(x, at[:, 0], shape=(6, 6), dims=(0,)),
    "index_put": lambda x, at: ops.index_put(x, 1, at[:, 0], dims=(1,)),
    "gather": lambda x, at: ops.gather(x, at, dim=1),
    "gather_sum": lambda x, at: ops.gather_sum(x[:, :3], at, shape=tuple(x.shape), dim=1),
    "scatter": lambda x, at: ops.scatter(x, at, 1, dim=1),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("wrong", [6, -7, 1 << 40])
@pytest.mark.parametrize("name", WRONG)
def test_an_index_out_of_range_is_the_error_of_eager(name, wrong, rows):
    x, at = numbers((rows, 6), leafgrad.float64), indices((rows, 3), 6)
    step = WRONG[name]
    c = check(lambda x, at: step(leafgrad.tanh(x), at * 1), x, at, exact=False)
    bad = at.clone()
    bad[-1, 0] = wrong
    with pytest.raises((IndexError, RuntimeError)) as eager:
        step(leafgrad.tanh(x), bad)
    with pytest.raises(type(eager.value)) as ours:
        c(x, bad)
    assert str(ours.value).startswith(str(eager.value))
    check(lambda x, at: step(leafgrad.tanh(x), at * 1), x, at, exact=False)
    np.testing.assert_allclose(arrays(c(x, at))[0], arrays(step(leafgrad.tanh(x), at))[0], rtol=1e-11)


@pytest.mark.parametrize("wrong", [6, -1])
def test_an_embedding_takes_no_index_from_the_end(wrong):
    table, words = numbers((6, 2), leafgrad.float64), indices((130,), 6, 0)
    c = check(nn.functional.embedding, words, table)
    words[7] = wrong
    with pytest.raises(IndexError, match="out of range in self"):
        c(words, table)


def test_nothing_is_written_by_a_step_that_fails():
    table = nn.Parameter(numbers((6, 2), leafgrad.float64))
    optimizer = leafgrad.optim.SGD([table], lr=0.1)

    def step(at):
        optimizer.zero_grad()
        (table[at] ** 2).sum().backward()
        optimizer.step()

    c = leafgrad.compile(step, executor="native")
    for _ in range(3):
        c(leafgrad.tensor([1, -1, 4]))
    before = table.detach().numpy().copy()
    with pytest.raises(IndexError, match=r"index 6 (is )?out of"):
        c(leafgrad.tensor([1, 6, 4]))
    np.testing.assert_array_equal(table.detach().numpy(), before)


@pytest.mark.parametrize(
    "step",
    [
        lambda x, at: ops.index_sum(x > 0, at, shape=(4, 2), dims=(0,)),
        lambda x, at: ops.index(x, at[:0], dims=(0,)),
        lambda x, at: x[:, at[:0]],
        lambda x, at: ops.gather_sum(x[:0], at[:0, None], shape=(4, 2), dim=0),
        lambda x, at: combine.scatter_best((x * 9).to(leafgrad.int64), at[:3, None], at[:3, None], dim=0, largest=True),
    ],
)
def test_what_has_no_loop_is_numpys(step):
    x, at = numbers((4, 2), leafgrad.float64), leafgrad.tensor([1, -2, 0, 3])
    c = compiled(step, x, at)
    for got, want in zip(arrays(c(x, at)), arrays(step(x, at)), strict=True):
        np.testing.assert_array_equal(got, want)
    assert not lookups(c)


# ---- threads, and the other executor --------------------------------------------------------------------------------


def mixture(rows=3000):
    """A step with all kinds of lookups on a batch."""
    table, w = numbers((11, 4), leafgrad.float32, grad=True), numbers((4, 1), leafgrad.float32, grad=True)
    x, words, at = numbers((rows, 4), leafgrad.float32), indices((rows, 3), 11), indices((rows, 2), 4, 0)

    def step(x, words, at):
        h = leafgrad.tanh(table[words].sum(1) * x)
        h = h.scatter(1, at, 0.5).scatter_add(1, at[:, :1], leafgrad.gather(x, 1, at[:, 1:]))
        loss = ((h @ w) ** 2).mean()
        return loss, *leafgrad.autograd.grad(loss, (table, w))

    return step, (x, words, at)


def test_the_same_bits_on_any_number_of_threads():
    step, given = mixture()
    c = compiled(step, *given)
    before, found = leafgrad.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            leafgrad.set_num_threads(count)
            found.append(arrays(c(*given)))
    finally:
        leafgrad.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rows", [64, 65, 700])
def test_chunks_equal_the_whole(rows):
    step, given = mixture(rows)
    c = compiled(step, *given)
    for _ in range(2):
        for got, want in zip(arrays(c(*given)), arrays(step(*given)), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4 * np.abs(want).max())
    assert f"loop over {rows} rows" in c.explain()
