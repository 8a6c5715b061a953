"""Rules that a plugin declares of its ops: they are used, and what is wrong with them is said by name."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.compile.ir import shapes
from leafgrad.compile.ir.graph import Value
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.passes import optimize
from leafgrad.compile.schedule.schedule import Loop
from leafgrad.errors import CompileError
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import div, sub
from leafgrad.ops.exponential import exp
from leafgrad.ops.matmul import matmul
from leafgrad.ops.reduce import amax, sum as sum_op

TESTS = "compile.ir.agreement compile.ir.shapes ops.abstract ops.traits"

EXECUTORS = ("numpy", "replay")
ROWS = 200


def rows(*shape):
    return leafgrad.tensor(np.random.default_rng(0).uniform(0.5, 1.5, (ROWS, *shape)))


def softmax_of_rows():
    @op("along")
    def row_softmax(xp, x, *, dim):
        e = xp.exp(x - x.max(axis=dim, keepdims=True))
        return e / e.sum(axis=dim, keepdims=True)

    row_softmax.vjp(x=lambda g, out, *, dim: out * (g - sum_op(g * out, dim=(dim,), keepdim=True)))
    return row_softmax


def loops(function, *args):
    program = NumpyProgram(optimize(leafgrad.trace(function, *args)), rows=64)
    return [s for s in program.schedule.stages if isinstance(s, Loop)], program


def thrice(function, *args):
    """The first call runs uncompiled."""
    for _ in range(3):
        found = function(*args)
    return found


def compare(function, *args, executor="numpy"):
    want = function(*args)
    got = thrice(leafgrad.compile(function, executor=executor), *args)
    for a, b in zip(got if type(got) is tuple else (got,), want if type(want) is tuple else (want,), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


# ---- what a rule is good for ----------------------------------------------------------------------------------------


def test_a_row_softmax_of_a_plugin_runs_in_the_loop_of_all_else():
    softmax = softmax_of_rows()
    w = leafgrad.tensor(np.ones((5, 4)))

    def step(x):
        return (softmax(leafgrad.tanh(x @ w), dim=-1) * 2).sum()

    (loop,), program = loops(step, rows(5))
    assert "row_softmax" in {e.name for e in loop.equations}
    assert not program.schedule.unchunked
    for executor in EXECUTORS:
        compare(step, rows(5), executor=executor)


def test_with_gradients_and_a_chunk_that_is_shorter():
    softmax = softmax_of_rows()

    def step(x):
        x = x.detach().requires_grad_()
        (softmax(x * 2, dim=1) ** 2).sum().backward()
        return x.grad

    x = rows(5)
    expected = step(x).numpy()
    program = NumpyProgram(optimize(leafgrad.trace(step, x)), rows=64)
    np.testing.assert_allclose(program([x.numpy()])[0], expected, rtol=1e-12)


def test_results_of_chunks_add_up_where_the_rule_says_so():
    @op("reduction")
    def energy(xp, x, y, *, dim, keepdim=False):
        return (x * y).sum(axis=dim, keepdims=keepdim)

    energy.chunk(lambda call: call.reduced(additive=True))

    def step(x):
        return energy(leafgrad.sin(x), leafgrad.cos(x), dim=0, keepdim=True) + 1

    (loop,), _ = loops(step, rows(5))
    assert len(loop.summed) == 1
    compare(step, rows(5))


def test_a_reduction_without_a_rule_waits_for_all_rows():
    @op("linear", "reduction")
    def middle(xp, x, *, dim, keepdim=False):
        return x.mean(axis=dim, keepdims=keepdim)

    def step(x):
        return middle(leafgrad.sin(x), dim=(0,)), middle(leafgrad.sin(x), dim=(1,))

    (loop,), _ = loops(step, rows(5))
    assert [e.params["dim"] for e in loop.equations if e.name == "middle"] == [(1,)]
    compare(step, rows(5))


@pytest.mark.parametrize("dim", [0, 1, -1, None, (-1,)])
def test_sums_over_any_kind_of_dim(dim):
    def step(x):
        return leafgrad.sin(sum_op(leafgrad.sin(x), dim=dim))

    for executor in EXECUTORS:
        compare(step, rows(5), executor=executor)
    np.testing.assert_allclose(NumpyProgram(leafgrad.trace(step, rows(5)))([rows(5).numpy()])[0], step(rows(5)).numpy())


def test_several_results_in_a_loop():
    @op
    def halves(xp, x):
        n = x.shape[-1] // 2
        return x[..., :n].copy(), x[..., n:].copy()

    halves.shape(lambda x: [x.like((*x.shape[:-1], x.shape[-1] // 2))] * 2)
    halves.chunk(lambda call: None if call.axes[0] == call.inputs[0].ndim - 1 else call.kept())

    def step(x):
        a, b = halves(leafgrad.sin(x))
        return a * b, a, b.sum()

    (loop,), _ = loops(step, rows(6))
    assert "halves" in {e.name for e in loop.equations}
    for executor in EXECUTORS:
        compare(step, rows(6), executor=executor)


def test_a_rewrite_puts_simpler_ops_in_the_place():
    softmax = softmax_of_rows()

    @softmax.rewrite
    def steps(graph, equation):
        (x,), dim = equation.values, (equation.params["dim"],)
        y = graph.emit(exp, graph.emit(sub, x, graph.emit(amax, x, dim=dim, keepdim=True)))
        return graph.emit(div, y, graph.emit(sum_op, y, dim=dim, keepdim=True))

    def step(x):
        return softmax(x, dim=1)

    graph = optimize(leafgrad.trace(step, rows(5)))
    assert "row_softmax" not in {e.name for e in graph.equations}
    compare(step, rows(5))


def test_a_rewrite_of_several_results_gives_a_value_for_each():
    @op
    def halves(xp, x):
        return x / 2, -x / 2

    halves.shape(lambda x: [x.like(x.shape)] * 2)

    @halves.rewrite
    def steps(graph, equation):
        half = graph.emit(div, equation.values[0], 2.0)
        return half, graph.emit(sub, 0.0, half)

    def step(x):
        a, b = halves(leafgrad.sin(x))
        return a * 3, b

    graph = optimize(leafgrad.trace(step, rows(5)))
    assert "halves" not in {e.name for e in graph.equations}
    compare(step, rows(5))


@pytest.mark.parametrize("count", [1, 3])
def test_a_rewrite_gives_as_many_values_as_there_are_results(count):
    @op
    def halves(xp, x):
        return x / 2, -x / 2

    halves.shape(lambda x: [x.like(x.shape)] * 2)
    halves.rewrite(lambda graph, e: (graph.emit(div, e.values[0], 2.0),) * count)
    with pytest.raises(CompileError, match=r"halves.*: expected .*, a rule gave"):
        optimize(leafgrad.trace(lambda x: halves(x), rows(5)))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda graph, e: 3, "op 'row_softmax', rewrite rule: expected a value of the graph, or None, got 3"),
        (lambda graph, e: graph.emit(sum_op, e.values[0], dim=(0,)), r"expected float64 \(200, 5\) .* \(5,\)"),
    ],
)
def test_a_wrong_rewrite_is_named(rule, message):
    softmax = softmax_of_rows()
    softmax.rewrite(rule)
    with pytest.raises(CompileError, match=message):
        optimize(leafgrad.trace(lambda x: softmax(x, dim=1), rows(5)))


def test_source_for_the_numpy_executor():
    @op
    def gram(xp, x):
        return x.T @ x

    gram.shape(lambda x: (x.shape[1],) * 2)
    gram.chunk(lambda call: call.summed(0))
    gram.lower("numpy", lambda writer, e: f"matmul({writer.text(e, 0)}.T, {writer.text(e, 0)})")

    def step(x):
        return gram(leafgrad.sin(x)) * 2

    (loop,), program = loops(step, rows(5))
    assert loop.summed
    assert "gram_forward" not in program.source()
    compare(step, rows(5))


def test_source_of_several_results_for_the_numpy_executor():
    @op
    def extremes(xp, x):
        return xp.min(x), xp.max(x, axis=0)

    extremes.shape(lambda x: [(), x.shape[1:]])
    extremes.lower("numpy", lambda writer, e: f"xp.min({writer.text(e, 0)}), xp.amax({writer.text(e, 0)}, 0)")

    def step(x):
        least, most = extremes(leafgrad.sin(x))
        return least * 2, most + least

    program = NumpyProgram(optimize(leafgrad.trace(step, rows(5))))
    assert "extremes_forward" not in program.source()
    for found, expected in zip(program([rows(5).numpy()]), step(rows(5)), strict=True):
        np.testing.assert_array_equal(found, expected.numpy())


def test_a_ufunc_writes_into_memory_that_is_there():
    @op("elementwise", "float", ufunc="logaddexp")
    def softer(xp, x, y):
        return xp.logaddexp(x, y)

    def step(x):
        return (softer(x, x * 2) * softer(x, 1.0)).sum()

    _, program = loops(step, rows(5))
    assert "softer_forward" not in program.source()
    compare(step, rows(5))


def test_a_ufunc_that_numpy_lacks():
    @op("elementwise", "float", ufunc="nonesuch")
    def softer(xp, x):
        return xp.sqrt(x)

    with pytest.raises(CompileError, match="op 'softer': expected ufunc= to name a function of NumPy, got 'nonesuch'"):
        loops(softer, rows(5))


# ---- predictions that are wrong -------------------------------------------------------------------------------------


def wrong(rule):
    @op
    def widen(xp, x):
        return x.astype("float64")[:, None]

    widen.shape(rule)
    widen.chunk(lambda call: call.kept())
    return widen


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("rule", [lambda x: (x.shape[0], 2), lambda x: x.like((x.shape[0], 1), "float32")])
def test_a_prediction_that_fails_is_named(executor, rule):
    widen = wrong(rule)
    compiled = leafgrad.compile(lambda x: leafgrad.sin(widen(leafgrad.sin(x))) * 2, executor=executor)
    x = leafgrad.ones(ROWS)
    message = r"op 'widen', shape rule: predicted float32 .*, the op gave float64 .*; mend widen\.shape"
    with pytest.raises(CompileError, match=message):
        thrice(compiled, x)


def test_the_right_prediction_passes():
    widen = wrong(lambda x: x.like((x.shape[0], 1), "float64"))
    for executor in EXECUTORS:
        compare(lambda x: leafgrad.sin(widen(leafgrad.sin(x))) * 2, leafgrad.ones(ROWS), executor=executor)


def test_a_prediction_that_fails_in_an_open_step():
    widen = wrong(lambda x: (x.shape[0],))

    @leafgrad.compile
    def step(x):
        y = widen(x)
        return y * float(x.sum())

    with pytest.raises(CompileError, match="op 'widen', shape rule"):
        thrice(step, leafgrad.ones(3))


def test_several_predictions_that_fail():
    @op
    def pair(xp, x):
        return x + 1, x + 2

    pair.shape(lambda x: [x.shape] * 3)
    compiled = leafgrad.compile(lambda x: pair(x)[0], executor="numpy")
    with pytest.raises(CompileError, match=r"op 'pair', shape rule: predicted float32 .*, the op gave 2 arrays"):
        thrice(compiled, leafgrad.ones(3))


def test_rows_that_only_a_chunk_shows():
    """A forward that looks at the number of rows is found out in a chunk."""

    @op
    def trimmed(xp, x):
        return x if len(x) == ROWS else x[1:]

    trimmed.shape(lambda x: x.shape)
    trimmed.chunk(lambda call: call.kept())
    program = NumpyProgram(leafgrad.trace(lambda x: trimmed(leafgrad.sin(x)), rows(3)), rows=64)
    with pytest.raises(CompileError, match=r"predicted float64 \(64, 3\), the op gave float64 \(63, 3\)"):
        program([rows(3).numpy()])


def test_what_depends_on_values_is_left_to_the_op():
    @op("nondifferentiable")
    def positive(xp, x):
        return x[x > 0]

    def step(x):
        return positive(x).sum()

    compiled = leafgrad.compile(step)
    for values in ([1.0, -1.0], [1.0, 2.0], [-1.0, -2.0]):
        assert compiled(leafgrad.tensor(values)).item() == sum(v for v in values if v > 0)


# ---- rules that are wrong -------------------------------------------------------------------------------------------


def value(*shape, dtype="float64"):
    return Value(shape, dtype, ("cpu", 0))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda x: x.nonsense, r"op 'made', shape rule from .*test_declared_rules.py:\d+: AttributeError"),
        (lambda x: 3, "expected a shape, .* got 3"),
        (lambda x: (3.0,), r"expected a shape, .* got \(3.0,\)"),
        (lambda x: (-1,), "expected a shape"),
        (lambda x: x.like((3,), "complex32"), "expected the name of a dtype, got 'complex32'"),
    ],
)
def test_a_shape_rule_that_is_wrong(rule, message):
    @op
    def made(xp, x):
        return x

    made.shape(rule)
    with pytest.raises(CompileError, match=message) as caught:
        shapes.predict(made, [value(3)], {})
    assert not isinstance(caught.value, shapes.Unknown)


@pytest.mark.parametrize("rule", [lambda x: None, lambda x: x.shape[3], lambda x: (x.shape.index(9),)])
def test_a_shape_rule_that_leaves_it_to_the_op(rule):
    @op
    def made(xp, x):
        return x

    made.shape(rule)
    with pytest.raises(shapes.Unknown):
        shapes.predict(made, [value(3)], {})


def test_missing_arguments_numbers_and_dtypes():
    seen = []

    @op("any_dtype")
    def made(xp, x, y=None, z=None, *, k):
        return x

    made.shape(lambda x, y, z, *, k: seen.append((x, y, z)) or x.like((k,), "int64"))
    found = shapes.predict(made, [value(3, dtype="float32"), 2.0], {"k": 4})
    assert (found.shape, found.dtype) == ((4,), "int64")
    ((x, y, z),) = seen
    assert (x.shape, x.dtype, x.ndim) == ((3,), "float32", 1)
    assert (y.shape, y.dtype) == ((), None)
    assert z is None


def test_what_is_printed_names_each_rule_and_where_it_is():
    text = str(matmul)
    for what in ("shape", "chunk", "lower numpy"):
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{what} ")]
        assert "leafgrad/ops/matmul.py:" in line
