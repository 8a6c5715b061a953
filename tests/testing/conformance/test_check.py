"""The kit finds planted faults, each by the name of its check, and nothing in ops that are right."""

from __future__ import annotations

import logging
import pickle
import re
import sys
import types

import numpy as np
import pytest

import leafgrad
from leafgrad import op
from leafgrad.backends import by_device_type
from leafgrad.errors import CompileError, PluginError
from leafgrad.ops import random, reduce
from leafgrad.plugins import ExecutorSpec, hookimpl
from leafgrad.testing import CHECKS, ConformanceError, check_op, fake
from leafgrad.testing.conformance import examine

TESTS = "testing.conformance.* testing.pytest_plugin"

CORE = ("numpy",)
RNG = np.random.default_rng(0)
MATRIX = RNG.uniform(-2.0, 2.0, (3, 4))


def check(function, samples=None, reference=None, **options):
    return check_op(function, samples, reference, **{"executors": CORE, **options})


# ---- ops that are right -------------------------------------------------------------------------------------------


@op("elementwise", "float", c="exp(-x * x)")
def gauss(xp, x):
    return xp.exp(-x * x)


gauss.vjp(x=lambda g, out, x: g * (-2 * x * out))


@op("elementwise", "float")
def damped(xp, x, y, *, rate):
    return x * xp.exp(-rate * y)


damped.vjp(
    x=lambda g, y, *, rate: g * leafgrad.exp(-rate * y),
    y=lambda g, out, *, rate: g * (-rate * out),
)  # fmt: skip


@op("float", "reduction")
def power_mean(xp, x, *, dim, keepdim=False):
    return xp.sqrt((x * x).mean(axis=dim, keepdims=keepdim))


@op("float")
def halves(xp, x):
    """Two results, the sum and the difference of both halves."""
    n = x.shape[-1] // 2
    return x[..., :n] + x[..., n:], x[..., :n] - x[..., n:]


@op("nondifferentiable")
def ranks(xp, x):
    return xp.argsort(xp.argsort(x, axis=-1), axis=-1)


@op("linear", "view")
def turned(xp, x):
    return x.T


turned.vjp(x=lambda g: turned(g))


RIGHT = {
    "drawn": (gauss, None, lambda x: np.exp(-x * x), 3),
    "two arguments": (damped, [((MATRIX, MATRIX[0]), {"rate": 2.0})], lambda x, y, rate: x * np.exp(-rate * y), 3),
    "a reduction": (power_mean, None, lambda x, dim, keepdim=False: np.sqrt((x * x).mean(dim, keepdims=keepdim)), 0),
    "several results": (halves, [((MATRIX,), {})], lambda x: (x[:, :2] + x[:, 2:], x[:, :2] - x[:, 2:]), 0),
    "integers": (ranks, [((MATRIX,), {})], lambda x: np.argsort(np.argsort(x)), 3),
    "a view": (turned, [((MATRIX,), {})], np.transpose, 2),
    "a function": (lambda x: leafgrad.sin(x).sum(), [((MATRIX,), {})], lambda x: np.sin(x).sum(), 2),
}


@pytest.mark.parametrize(("function", "samples", "reference", "orders"), RIGHT.values(), ids=RIGHT)
def test_what_is_right_passes(function, samples, reference, orders, device):
    checks = set(CHECKS) - {"dims"}
    report = check(
        function, samples, reference, orders=orders, device=device, checks=[c for c in CHECKS if c in checks]
    )
    assert report.ok
    assert {"forward", "values", "layouts", "vmap", "compile"} <= {r.check for r in report.results}
    assert report.seconds == sum(r.seconds for r in report.results)


@op("random")
def dropped(xp, x, *, generator):
    return x * generator.bernoulli(0.3, (*x.shape[:-1], 1), x.dtype.name)


def test_numbers_with_equal_values_or_drawn_for_rows_are_one_distribution():
    def reference(x, generator):
        return x * (generator.random((*x.shape[:-1], 1)) < 0.3)

    assert check(dropped, [((MATRIX,), {}), ((MATRIX[0],), {})], reference, checks=["forward", "draws"]).ok


# ---- faults -------------------------------------------------------------------------------------------------------


@op("elementwise")
def wrong_gradient(xp, x):
    return x * x


wrong_gradient.vjp(x=lambda g, x: g * (2.00001 * x))


@op("elementwise")
def cube_slope(xp, x):
    return 3 * x * x


@op("elementwise")
def wrong_second_order(xp, x):
    return x * x * x


cube_slope.vjp(x=lambda g, x: g * (5.0 * x))
wrong_second_order.vjp(x=lambda g, x: g * cube_slope(x))


@op("elementwise")
def constant_gradient(xp, x):
    return x * x


constant_gradient.vjp(x=lambda g, x: g * (2.0 * (x.detach() if isinstance(x, leafgrad.Tensor) else x)))


@op("elementwise")
def second_of_two(xp, x, y):
    return x * y


second_of_two.vjp(x=lambda g, y: g * y, y=lambda g, x: g * (x + 1e-3))


@op("elementwise")
def writes_its_input(xp, x):
    y = x
    y *= 2
    return y + 0


@op("elementwise")
def writes_its_gradient(xp, x):
    return 2 * x


def in_place(g):
    if not isinstance(g, leafgrad.Tensor):
        g[...] *= 2
        return g
    return 2.0 * g


writes_its_gradient.vjp(x=in_place)


@op("elementwise")
def widens(xp, x):
    return xp.asarray(x, dtype="float64") * 2


@op("elementwise")
def calls_numpy(xp, x):
    return np.exp(x)


@op("elementwise")
def centred(xp, x):
    return x - (x.mean() if x.size else 0)


@op("elementwise")
def running(xp, x):
    return xp.cumsum(x.reshape(-1)).reshape(x.shape)


@op("linear")
def shifted(xp, x):
    return x + 1


@op("bilinear")
def not_bilinear(xp, x, y):
    return x @ y + y.sum()


@op("reduction")
def leaks(xp, x, *, dim, keepdim=False):
    return x.sum(axis=dim, keepdims=keepdim) + x.max()


@op("reduction")
def drops_keepdim(xp, x, *, dim, keepdim=False):
    return x.sum(axis=dim)


@op("comparison")
def no_comparison(xp, x):
    return (x > 0).astype("int64")


@op("view")
def no_view(xp, x):
    return x.T.copy()


@op("elementwise")
def nothing(xp, x):
    x + 1


@op
def reads_memory(xp, x):
    return xp.asarray(x.ravel(order="K")).reshape(x.shape)


@op("elementwise")
def two_faced(xp, x):
    return 3 * x


two_faced.vjp(x=lambda g: (3.0 if isinstance(g, leafgrad.Tensor) else 2.0) * g)


@op
def wrong_batch(xp, x):
    return 2 * x


@wrong_batch.batched
def _(call):
    return call.again(call.front(0)[:1] + 0 * call.front(0))


@op
def wrong_shape(xp, x):
    return x.sum(axis=0)


COUNT = [0]


@op("elementwise")
def counts_calls(xp, x):
    COUNT[0] += 1
    return x + COUNT[0]


@op
def centred_rows(xp, x):
    return x - x.mean(axis=0)


centred_rows.shape(lambda x: x.shape)
centred_rows.chunk(lambda call: call.kept())


@op("reduction")
def added_means(xp, x, *, dim, keepdim=False):
    return x.mean(axis=dim, keepdims=keepdim)


added_means.chunk(lambda call: call.reduced(additive=True))


ONE = [((MATRIX,), {})]
FAULTS = {
    "wrong gradient": (wrong_gradient, ONE, "gradients", "gradient of order 1 for 'x'.*mend the vjp rule for 'x'"),
    "wrong second order": (wrong_second_order, ONE, "gradients", "gradient of order 2 for 'x'.*or of an op that it"),
    "no second order": (constant_gradient, ONE, "gradients", "gradient of order 2 for 'x'"),
    "one argument": (second_of_two, None, "gradients", "gradient of order 1 for 'y'"),
    "wrong jvp": (second_of_two, [((MATRIX, MATRIX), {})], "gradients", "for 'y'"),
    "mutated input": (writes_its_input, ONE, "forward", "writes into its argument 'x'.*or into a copy"),
    "mutated gradient": (writes_its_gradient, ONE, "inputs", "read-only"),
    "float64": (widens, ONE, "precision", "expected dtype float32, got float64"),
    "hidden NumPy": (calls_numpy, ONE, "stand-in", "on fake:0.*functions of xp alone"),
    "false elementwise": (centred, ONE, "elementwise", "every second element.*leave out the trait 'elementwise'"),
    "false elementwise, in order": (running, ONE, "elementwise", "elements in another order"),
    "false chunk rule": (centred_rows, ONE, "chunks", "64 of 130 rows at a time, result 0.*mend the trait or decl"),
    "means do not add up": (added_means, [((MATRIX,), {"dim": 0})], "chunks", "64 of 130 rows at a time"),
    "false linear": (shifted, ONE, "linear", "0.75 and -1.5 times two values of 'x'"),
    "false bilinear": (not_bilinear, [((MATRIX, MATRIX.T), {})], "bilinear", "two values of 'x'"),
    "false reduction": (leaks, None, "reduction", "every second of dim"),
    "no keepdim": (drops_keepdim, None, "reduction", "keepdim=True"),
    "false comparison": (no_comparison, ONE, "comparison", "expected a result of bool, got int64"),
    "false view": (no_view, ONE, "view", "expected the memory of 'x', got a copy"),
    "None": (nothing, ONE, "forward", "op 'nothing': expected its forward to return an array .*, got nothing"),
    "order of memory": (reads_memory, ONE, "layouts", "argument 'x' transposed"),
    "other rules when recorded": (two_faced, ONE, "backward", "recorded"),
    "wrong batching rule": (wrong_batch, ONE, "vmap", r"in_dims=\(0,\).*mend the batching rule"),
    "hidden state": (counts_calls, ONE, "compile", "executor 'numpy'"),
}  # fmt: skip


@pytest.mark.parametrize(("function", "samples", "name", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_caught_by_name(function, samples, name, words):
    with pytest.raises(
        ConformanceError, match=f"op '{function.name}' fails .*\n(?:.*\n)*  {name}: .*{words}"
    ) as caught:
        check(function, samples)
    assert name in [r.check for r in caught.value.report.failures]


def test_a_wrong_shape_rule():
    wrong_shape.shape(lambda x: x.shape)
    with pytest.raises(ConformanceError, match=r"  shapes: .*predicted float64 \(3, 4\), the op gave float64 \(4,\)"):
        check(wrong_shape, ONE, checks=["forward", "shapes"])


def test_rules_for_misspelt_names():
    @op("elementwise")
    def twice(xp, x):
        return 2 * x

    twice.lower("numpi", lambda writer, equation: None)
    with pytest.raises(ConformanceError, match=r"names: twice has a lower rule .* 'numpi', .*did you mean 'numpy'\?"):
        check(twice, checks="names")

    @op("elementwise")
    def thrice(xp, x):
        return 3 * x

    thrice.kernel("jax")(thrice.forward)
    (result,) = check(thrice, checks="names").results
    assert (result.outcome, result.reason) == (
        "skipped", "thrice has a kernel for backend 'jax', which is not installed: nothing tries the rule",
    )  # fmt: skip


def test_what_cannot_be_pickled():
    @op("elementwise")
    def local(xp, x):
        return 2 * x

    with pytest.raises(ConformanceError, match=r"pickle: .*define the op at the top of a module"):
        check(local)


class Declining:
    """An executor that runs nothing."""

    name, device_type = "declining", None

    def compile(self, graph):
        raise CompileError("not today")


class DecliningPlugin:
    @staticmethod
    @hookimpl
    def leafgrad_executors():
        return [ExecutorSpec("declining", f"{__name__}:Declining")]


def test_an_executor_that_declines_is_no_failure():
    leafgrad.plugins.register(DecliningPlugin(), "declining", replace=True)
    try:
        report = check(gauss, executors=["declining"])
        told = {r.check: (r.outcome, r.reason) for r in report.results}
        assert told["compile"] == ("skipped", "declines: declining")
        assert "executor 'declining': declines: not today" in report.untried
        assert check(gauss, executors=["declining", "numpy"], checks="compile").results[0].outcome == "passed"
    finally:
        leafgrad.plugins.unregister("declining")


def test_a_rule_may_be_any_callable():
    class Doubling:
        def __call__(self, g, x):
            return 2 * g * x

    @op("elementwise")
    def squared(xp, x):
        return x * x

    squared.vjp(x=Doubling())
    assert check(squared, ONE, checks=["gradients", "rules"]).ok


def test_a_forward_for_the_host_with_a_kernel_for_cupy_is_skipped_on_the_stand_in():
    @op
    def on_the_host(xp, x):
        return np.exp(x)

    on_the_host.kernel("cupy")(lambda xp, x: xp.exp(x))
    (result,) = check(on_the_host, ONE, checks="stand-in").results
    assert result.outcome == "skipped"
    assert result.reason == "its forward is for NumPy's arrays alone: CuPy's have a kernel"


def test_the_stand_in_needs_no_index():
    assert check(gauss, device="fake", checks=["forward", "values", "backward"]).ok


def test_what_was_not_exercised_is_told():
    @op("elementwise")
    def scaled(xp, x, *, by=None, twice=False):
        if by is not None:
            return x * by
        return 2 * x if twice else x + 0

    scaled.kernel("cupy")(lambda xp, x, *, by=None, twice=False: xp.ElementwiseKernel("x", "y", "", "")(x))
    scaled.rewrite(lambda graph, equation: None)
    report = examine(scaled, ONE, orders=0, executors=CORE)
    told = " ".join(report.untried)
    assert "parameter 'by' away from its default" in told
    assert "'twice'" not in told  # the kit moves flags by itself
    assert "not run: cupy kernel" in told
    if sys.gettrace() is None:
        assert re.search(r"the forward \(.*test_check.py:\d+\), line \d+", told)


def test_wrong_values():
    with pytest.raises(
        ConformanceError, match=r"values: sample 0, gauss\(x: float64 \(3, 4\)\): expected .* at \(0, 0\)"
    ):
        check(gauss, None, lambda x: np.exp(-x * x) * (1 + 1e-9))
    with pytest.raises(ConformanceError, match=r"values: .*expected shape \(\), got \(3, 4\)"):
        check(gauss, ONE, lambda x: x.sum())
    with pytest.raises(ConformanceError, match=r"values: .*expected 2 results, got 1"):
        check(gauss, ONE, lambda x: (x, x))


# ---- samples, reports, misuse -------------------------------------------------------------------------------------


def test_a_report_tells_what_was_left_out():
    report = check(gauss, orders=0)
    told = {r.check: (r.outcome, r.reason) for r in report.results}
    assert told["values"] == ("skipped", "no reference was given")
    assert told["gradients"][0] == "skipped"
    assert told["vmap"] == ("passed", "")
    assert "op 'gauss'\n  forward" in str(report)
    assert "linear" not in told


def test_a_random_op_is_checked_by_its_seed_and_its_distribution():
    generator = by_device_type("cpu").generator()
    half = [((np.full((3, 4), 0.5),), {"generator": generator})]
    report = check(random.bernoulli, half, lambda p, generator: generator.random(p.shape) < p)
    told = {r.check: r.outcome for r in report.results}
    assert told["draws"] == told["layouts"] == told["stand-in"] == "passed"
    assert told["vmap"] == told["compile"] == "skipped"
    with pytest.raises(
        ConformanceError, match=r"draws: .*beside the reference: expected the distribution of mean 0.59"
    ):
        check(random.bernoulli, half, lambda p, generator: generator.random(p.shape) < 0.6)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (damped, "parameters without a default: rate"),
        (turned, "traits do not tell the shapes"),
        (lambda x: x, "what a function takes"),
    ],
)
def test_samples_that_cannot_be_drawn(function, reason):
    with pytest.raises(ValueError, match=f"needs samples, since .*{reason}.*; pass samples="):
        check(function)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checks": ["vamp"]}, "unknown check 'vamp'; expected some of forward, values"),
        ({"samples": []}, "at least one sample"),
        ({"samples": [MATRIX]}, r"samples\[0\]: expected \(args, params\)"),
    ],
)
def test_misuse(options, words):
    with pytest.raises(ValueError, match=words):
        check(gauss, **options)


# ---- what the framework itself refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda g: leafgrad.ops.reduce.sum(g, dim=(0,)), r"returned shape \(3,\), expected \(2, 3\)"),
        (lambda g: leafgrad.ops.shape.permute(g, dims=(1, 0)), r"returned shape \(3, 2\), expected \(2, 3\)"),
        (lambda g: 2.0, "returned float, expected an? (array|Tensor)"),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_rule_that_gives_no_gradient_of_its_argument(rule, words, recorded):
    @op
    def rough(xp, x):
        return x * 2

    rough.vjp(x=rule)
    x = leafgrad.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"op 'rough', rule for 'x': {words}"):
        leafgrad.autograd.grad(rough(x).sum(), x, create_graph=recorded)


@pytest.mark.parametrize("result", [None, 3.0, "x", np.ones(2)], ids=str)
def test_a_result_that_is_no_array_of_the_device(result):
    fake.register()

    @op
    def foreign(xp, x):
        return result

    with pytest.raises(
        TypeError, match=r"op 'foreign': expected its forward to return an array of 'fake'.*; compute with"
    ):
        foreign(leafgrad.ones(2, device="fake:0"))


def test_a_hook_that_returns_nothing():
    @hookimpl
    def leafgrad_ops():
        pass

    plugin = types.ModuleType("empty")
    plugin.leafgrad_ops = leafgrad_ops
    with pytest.raises(PluginError, match="expected leafgrad_ops to return a list, got NoneType"):
        leafgrad.plugins.register(plugin, "empty")


def test_ops_in_pickles_and_copies():
    for o in (gauss, reduce.sum, leafgrad.ops.elementwise.mul):
        assert pickle.loads(pickle.dumps(o)) is o


def test_shapes_that_an_op_refuses_are_told():
    @op
    def same(xp, x, y):
        if x.shape != y.shape:
            raise ValueError("expected equal shapes")
        return x + y

    same.vjp(x=lambda g: g, y=lambda g: g)
    report = examine(same, [((np.ones((2, 3)), np.ones((2, 3))), {})], executors=["numpy"], checks="shapes")
    assert "'y' broadcast from some other shapes: the op refuses (ValueError)" in report.untried


def test_compiled_programs_are_run_closed(caplog):
    """At the third call the program alone runs, and not the Python that it was traced from."""

    @leafgrad.op("elementwise")
    def cubed(xp, x):
        return x * x * x

    cubed.vjp(x=lambda g, x: 3 * g * x * x)
    with caplog.at_level(logging.INFO, "leafgrad.compile"):
        check_op(cubed, [((np.ones(3),), {}), ((np.ones((2, 2)),), {})], executors=["numpy"], checks="compile")
    messages = [record.getMessage() for record in caplog.records]
    assert any("traced in" in message for message in messages)
    assert not [message for message in messages if "open" in message]


def test_without_executors_a_program_runs_by_itself():
    @leafgrad.op("elementwise", name="mistaken", ufunc="subtract")
    def mistaken(xp, x, y):
        return x + y

    mistaken.vjp(x=lambda g: g, y=lambda g: g)
    with pytest.raises(ConformanceError, match=r"compile: sample 0, mistaken\(.*as a program, result 0: expected"):
        check_op(mistaken, executors=[], checks="compile")
