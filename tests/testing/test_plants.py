"""Bugs that an author might plant, one in each op: the kit finds each, and tells in which declaration it is.

Those in C are beside the executor that runs it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import leafgrad
from leafgrad import op, rules
from leafgrad.ops import convert
from leafgrad.testing import ConformanceError, check_op

RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 2.0, (3, 4))
Y = RNG.uniform(0.2, 2.0, (3, 4))
ONE = [((X,), {})]
TWO = [((X, Y), {})]
PLANTS = {}


def plant(check, samples=None, **options):
    """Enter what a function makes: an op, which fails by the check of that name."""

    def enter(make):
        PLANTS[make.__name__.replace("_", " ")] = (make, check, samples, options)
        return make

    return enter


def squared(*traits, name="squared", **options):
    @op(*traits, name=name, **options)
    def forward(xp, x):
        return x * x

    return forward


# ---- vjp rules ----------------------------------------------------------------------------------------------------


@plant("gradients")
def a_factor_in_a_rule():
    return squared("elementwise").vjp(x=lambda g, x: 3 * g * x)


@plant("gradients")
def a_sign_in_a_rule():
    return squared("elementwise").vjp(x=lambda g, x: -2 * g * x)


@plant("gradients")
def a_rule_that_holds_for_positive_numbers():
    @op("elementwise")
    def signed(xp, x):
        return x * xp.abs(x)

    return signed.vjp(x=lambda g, x: 2 * g * x)


@plant("gradients")
def a_rule_of_zero():
    return squared("elementwise").vjp(x=lambda g: None)


@plant("gradients")
def a_rule_wrong_at_second_order():
    return squared("elementwise").vjp(
        x=lambda g, x: 2 * g * rules.abs(x).detach() if hasattr(x, "detach") else 2 * g * x
    )


@plant("gradients", TWO)
def two_rules_exchanged():
    @op("elementwise")
    def quotient(xp, x, y):
        return x / y

    return quotient.vjp(x=lambda g, out, y: -g * out / y, y=lambda g, y: g / y)


@plant("gradients", [((X,), {"rate": 2.0})])
def a_rule_that_ignores_a_parameter():
    @op("elementwise")
    def grown(xp, x, *, rate):
        return xp.exp(rate * x)

    return grown.vjp(x=lambda g, out: g * out)


@plant("gradients", [((X,), {"power": 2.0})])
def a_rule_that_is_right_for_the_one_value_in_the_samples():
    @op("elementwise")
    def raised(xp, x, *, power):
        return x**power

    return raised.vjp(x=lambda g, x, *, power: g * 2 * x)


@plant("gradients", ONE)
def a_rule_that_ignores_a_parameter_with_a_default():
    @op("elementwise")
    def grown(xp, x, *, rate=1.0):
        return xp.exp(rate * x)

    return grown.vjp(x=lambda g, out: g * out)


@plant("gradients", ONE)
def a_rule_that_ignores_a_flag():
    @op("elementwise")
    def power(xp, x, *, cubed=False):
        return x * x * x if cubed else x * x

    return power.vjp(x=lambda g, x: 2 * g * x)


@plant("gradients", ONE)
def a_rule_that_ignores_an_integer():
    @op("elementwise")
    def power(xp, x, *, n=2):
        return x**n

    return power.vjp(x=lambda g, x: 2 * g * x)


@plant("gradients", [((X, Y, np.full((3, 4), 0.5)), {})])
def the_third_argument():
    @op("elementwise")
    def blend(xp, x, y, w):
        return x + w * (y - x)

    return blend.vjp(x=lambda g, w: g * (1 - w), y=lambda g, w: g * w, w=lambda g, x, y: g * (x - y))


@plant("gradients", TWO)
def one_of_several_outputs():
    @op
    def both(xp, x, y):
        return x + y, x * y

    return both.vjp(x=lambda g, y: g[0] + g[1] * y, y=lambda g, x: g[0] + 2 * g[1] * x)


@plant("gradients", [(([X, Y][0], Y, X + Y), {})])
def an_index_of_many_arguments():
    @op
    def weighed(xp, *xs):
        return sum((i + 1) * x for i, x in enumerate(xs))

    return weighed.vjp(xs=lambda g, index: g * index)


@plant("gradients", [((X,), {"dim": 1}), ((X,), {"dim": 0})])
def a_reduction_rule_along_another_dimension():
    @op("reduction")
    def added_squares(xp, x, *, dim, keepdim=False):
        return (x * x).sum(axis=dim, keepdims=keepdim)

    def rule(g, x, *, dim):
        wide = rules.reshape(g, (x.shape[0], 1) if dim == 1 else (1, x.shape[1]))
        return wide * x if dim == 1 else 2 * wide * x

    return added_squares.vjp(x=rule)


@plant("backward", ONE)
def a_rule_of_another_dtype():
    return squared("elementwise").vjp(x=lambda g, x: convert.to_dtype(2.0 * g * x, dtype="float64", source="float32"))


@plant("backward", ONE)
def a_rule_that_tells_tensors_from_arrays():
    return squared("elementwise").vjp(x=lambda g, x: (2.0 if isinstance(g, leafgrad.Tensor) else 2.1) * g * x)


@plant("gradients", ONE)
def an_exception_in_a_rule():
    return squared("elementwise").vjp(x=lambda g, x: g * {}["missing"])


@plant("gradients", ONE)
def an_exception_at_second_order():
    @op("elementwise", name="half_slope")
    def slope(xp, x):
        return 2 * x

    def broken(g):
        raise ZeroDivisionError("planted")

    slope.vjp(x=broken)
    return squared("elementwise").vjp(x=lambda g, x: g * slope(x))


@plant("backward", ONE)
def numpy_in_a_rule():
    return squared("elementwise").vjp(x=lambda g, x: g * np.multiply(2, x) if isinstance(x, np.ndarray) else g * x)


@plant("inputs", ONE)
def a_rule_that_writes_into_the_gradient():
    def rule(g, x):
        if not isinstance(g, leafgrad.Tensor):
            g *= 2
            return g * x
        return 2 * g * x

    return squared("elementwise").vjp(x=rule)


@plant("rules", ONE)
def a_rule_that_names_an_array_it_does_not_use():
    @op("elementwise")
    def doubled(xp, x):
        return 2 * x

    return doubled.vjp(x=lambda g, x: 2 * g)


@plant("rules", ONE)
def a_rule_that_keeps_the_output_for_nothing():
    return squared("elementwise").vjp(x=lambda g, out, x: 2 * g * x)


@plant("rules", [((X,), {})])
def a_rule_that_keeps_an_array_for_its_shape():
    @op("linear")
    def total(xp, x):
        return x.sum()

    return total.vjp(x=lambda g, x: rules.expand(g, x.shape))


@plant("rules", TWO)
def a_long_rule_that_names_another_array():
    @op("elementwise")
    def product(xp, x, y):
        return x * y

    def rule(g, x, y):
        scale = 1.0
        return g * y * scale

    return product.vjp(x=rule, y=lambda g, x: g * x)


# ---- forwards -----------------------------------------------------------------------------------------------------


@plant("elementwise", ONE)
def neighbours():
    @op("elementwise")
    def smooth(xp, x):
        return x + xp.roll(x.reshape(-1), 1).reshape(x.shape)

    return smooth


@plant("sizes", ONE)
def neighbours_from_64_on():
    @op("elementwise")
    def smooth(xp, x):
        return 2 * x if x.size < 64 else x + xp.roll(x.reshape(-1), 1).reshape(x.shape)

    return smooth


@plant("sizes", ONE)
def the_last_of_65():
    @op("elementwise")
    def blocked(xp, x):
        out = 2 * x
        if out.ndim and out.size > 64:
            out[64:] = 0
        return out

    return blocked


@plant("sizes", ONE)
def a_rule_wrong_from_1000_on():
    @op("elementwise")
    def doubled(xp, x):
        return 2 * x

    return doubled.vjp(x=lambda g: 2 * g if len(g.shape) != 1 or g.shape[0] < 1000 else 3 * g)


@plant("sizes", ONE)
def a_scale_by_the_size():
    @op("elementwise")
    def scaled(xp, x):
        return x * (1 if x.size < 500 else 1 + 1e-3)

    return scaled


@plant("values", ONE, reference=lambda x: x**2)
def a_wrong_forward():
    @op("elementwise")
    def wrong(xp, x):
        return x * x * 1.0000001

    return wrong


@plant("values", ONE, reference=lambda x, bias=0.0: x + bias)
def a_forward_that_ignores_a_parameter():
    @op("elementwise")
    def shifted(xp, x, *, bias=0.0):
        return x + 0

    return shifted


@plant("values", [((X.astype("int64"),), {})], reference=lambda x: x // 2)
def integers():
    @op("elementwise")
    def halved(xp, x):
        return (x + 1) // 2

    return halved


@plant("precision", ONE)
def a_silent_float64():
    @op("elementwise")
    def widened(xp, x):
        return x * xp.ones((1,), dtype="float64")

    return widened


@plant("precision", ONE)
def a_forward_wrong_in_float16():
    @op("elementwise")
    def narrow(xp, x):
        return x * (2 if x.dtype.itemsize > 2 else 3)

    return narrow


@plant("forward", ONE)
def an_argument_that_is_written():
    @op
    def sorted_in_place(xp, x):
        x.sort(axis=-1)
        return x + 0

    return sorted_in_place


@plant("aliases", ONE)
def an_argument_that_is_returned():
    @op
    def same(xp, x):
        return x

    return same


@plant("layouts", ONE)
def an_order_of_memory():
    @op
    def raveled(xp, x):
        return x.ravel(order="K").copy()

    return raveled


@plant("stand-in", ONE)
def numpy_in_a_forward():
    @op("elementwise")
    def exponential(xp, x):
        return np.exp(x)

    return exponential


@plant("stand-in", ONE)
def a_transfer():
    @op("elementwise")
    def scaled(xp, x):
        return xp.asarray(np.asarray(x) * 2)

    return scaled


@plant("forward", ONE)
def a_forward_that_fails():
    @op("elementwise")
    def broken(xp, x):
        raise ValueError("planted")

    return broken


@plant("stand-in", ONE)
def a_branch_on_the_dtype_of_numpy():
    @op("elementwise")
    def rooted(xp, x):
        return np.lib.scimath.sqrt(x)

    return rooted


@plant("precision", ONE)
def a_detour_by_float32():
    @op("elementwise")
    def sine(xp, x):
        return xp.sin(x.astype("float32")).astype(x.dtype)

    return sine


@plant("precision", ONE)
def integers_that_become_float64():
    @op("elementwise")
    def sine(xp, x):
        return xp.sin(x)

    return sine


# ---- state --------------------------------------------------------------------------------------------------------


@plant("state", [((X,), {}), ((Y,), {})])
def state_in_a_class_attribute():
    class Seen:
        first = None

    @op
    def normalised(xp, x):
        if Seen.first is None:
            Seen.first = 1 + xp.abs(x).sum() * 0 + x.reshape(-1)[0]
        return x / Seen.first

    return normalised


@plant("state", [((X,), {}), ((Y,), {})])
def state_in_a_closure():
    largest = 0

    @op
    def normalised(xp, x):
        nonlocal largest
        largest = xp.maximum(largest, x.max())
        return x / largest

    return normalised


CACHE = {}


@plant("state", [((X,), {}), ((Y,), {})])
def a_cache_with_too_small_a_key():
    CACHE.clear()

    @op
    def centred(xp, x):
        key = x.shape
        if key not in CACHE:
            CACHE[key] = x.mean()
        return x - CACHE[key]

    return centred


@plant("state", [((X,), {}), ((Y,), {})])
def a_list_of_an_enclosing_function():
    kept = []

    def helper(x):
        kept.append(1)
        return len(kept)

    @op
    def counted(xp, x):
        return x * min(helper(x), 2)

    return counted


TABLE = np.ones(1)


@plant("state", [((X,), {}), ((Y,), {})])
def a_global_array():
    TABLE[:] = 1

    @op
    def scaled(xp, x):
        out = x * TABLE[0]
        TABLE[0] = x.reshape(-1)[0]
        return out

    return scaled


# ---- shapes, batches, programs ------------------------------------------------------------------------------------


@plant("shapes", ONE)
def a_wrong_shape():
    @op
    def rows(xp, x):
        return x.sum(axis=0)

    rows.shape(lambda x: x.shape)
    return rows


@plant("shapes", ONE)
def a_wrong_dtype():
    @op("nondifferentiable")
    def order(xp, x):
        return xp.argsort(x, axis=-1)

    order.shape(lambda x: x.like(x.shape, "int32"))
    return order


@plant("shapes", ONE)
def a_shape_right_for_odd_lengths():
    @op
    def even(xp, x):
        return x[: x.shape[0] - (x.shape[0] + 1) % 2] + 0

    even.shape(lambda x: x.shape)
    return even


@plant("shapes", TWO)
def a_shape_that_forgets_broadcasting():
    @op("float")
    def length(xp, x, y):
        return xp.hypot(x, y)

    length.shape(lambda x, y: x.shape)
    return length


@plant("shapes", TWO)
def an_exception_under_broadcasting():
    @op
    def total(xp, x, y):
        return x + y if x.shape == y.shape else xp.broadcast_to(y, x.form)

    total.shape(lambda x, y: x.shape)
    return total


@plant("shapes", [((X,), {"dim": 0}), ((X,), {"dim": 1})])
def a_shape_that_ignores_a_parameter():
    @op
    def gone(xp, x, *, dim):
        return x.sum(axis=dim)

    gone.shape(lambda x, *, dim: x.shape[1:])
    return gone


@plant("shapes", ONE)
def an_exception_in_a_shape_rule():
    broken = squared("linear", name="broken")
    broken.shape(lambda x: x.nothing)
    return broken


@plant("vmap", ONE)
def a_batched_rule():
    @op
    def last(xp, x):
        return xp.cumsum(x, axis=-1)

    last.batched(lambda call: call.again(call.front(0) * 2))
    return last


@plant("vmap", [((X[0],), {})])
def a_batched_rule_that_mixes_samples():
    @op
    def centred(xp, x):
        return x - x.mean()

    centred.batched(lambda call: call.again(call.front(0)))
    return centred


@plant("vmap", ONE)
def an_exception_in_a_batched_rule():
    @op
    def last(xp, x):
        return xp.cumsum(x, axis=-1)

    last.batched(lambda call: call.nothing())
    return last


@plant("chunks", ONE)
def a_chunk_rule():
    @op
    def centred(xp, x):
        return x - x.mean(axis=0)

    centred.shape(lambda x: x.shape)
    centred.chunk(lambda call: call.kept())
    return centred


@plant("chunks", [((X,), {"dim": 0})])
def sums_that_do_not_add_up():
    @op("reduction")
    def mean(xp, x, *, dim, keepdim=False):
        return x.mean(axis=dim, keepdims=keepdim)

    mean.chunk(lambda call: call.reduced(additive=True))
    return mean


@plant("chunks", ONE)
def an_exception_in_a_chunk_rule():
    doubled = squared(name="doubled")
    doubled.shape(lambda x: x.shape)
    doubled.chunk(lambda call: call.nothing())
    return doubled


@plant("chunks", ONE)
def an_exception_for_long_arrays():
    @op
    def halves(xp, x):
        return x * {3: 0.5, 4: 0.5}[x.shape[0]]

    halves.shape(lambda x: x.shape)
    halves.chunk(lambda call: call.kept())
    return halves


@plant("compile", ONE)
def a_rewriting_rule():
    doubled = squared("elementwise")

    @doubled.rewrite
    def rule(graph, equation):
        return graph.emit(leafgrad.ops.elementwise.add, *equation.values, *equation.values)

    return doubled


@plant("compile", ONE)
def another_ufunc():
    return squared("elementwise", ufunc="sqrt")


@plant("compile", ONE)
def a_lower_rule():
    doubled = squared("elementwise")
    doubled.lower("numpy", lambda writer, equation: f"({writer.text(equation, 0)} * 3)")
    return doubled


@plant("names", ONE)
def a_misspelt_executor():
    doubled = squared("elementwise")
    doubled.lower("nmupy", lambda writer, equation: None)
    return doubled


@plant("chunks", ONE)
def a_false_elementwise_for_parts():
    @op
    def ranks(xp, x):
        return x - x.max(axis=0, keepdims=True)

    ranks.shape(lambda x: x.shape)
    ranks.chunk(lambda call: call.aligned())
    return ranks


# ---- jets ---------------------------------------------------------------------------------------------------------


def grown(rule, *traits):
    @op("elementwise", *traits, name="grown")
    def forward(xp, x):
        return xp.exp(x)

    forward.vjp(x=lambda g, out: g * out)
    forward.jet(rule)
    return forward


@plant("jets", ONE)
def a_jet_of_12345():
    return grown(lambda out, x: leafgrad.ones((3, 4), dtype=leafgrad.float64) * 12345)


@plant("jets", ONE)
def a_jet_right_at_first_order_alone():
    return grown(lambda out, x: None if x[len(out)] is None else x[len(out)] * out[0])


@plant("jets", ONE)
def a_jet_that_forgets_that_terms_may_be_none():
    def rule(out, x):
        k = len(out)
        return sum((x[j] * out[k - j] * (j / k) for j in range(2, k + 1)), start=x[1] * out[k - 1] * (1 / k))

    return grown(rule)


@plant("jets", ONE)
def a_jet_without_its_factor():
    def rule(out, x):
        k = len(out)
        terms = [x[j] * out[k - j] for j in range(1, k + 1) if x[j] is not None]
        return sum(terms[1:], start=terms[0]) if terms else None

    return grown(rule)


# ---- kernels ------------------------------------------------------------------------------------------------------


@plant("kernels", ONE)
def a_kernel_that_calls_what_does_not_exist():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: xp.sqare(x))
    return doubled


@plant("kernels", ONE)
def a_kernel_that_calls_what_only_numpy_has():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: xp.asarray(xp.block([x, x])))
    return doubled


@plant("kernels", ONE)
def a_kernel_that_computes_something_else():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: x * x * x)
    return doubled


@plant("kernels", ONE)
def a_kernel_of_another_dtype():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: (x * x).astype("float32"))
    return doubled


@plant("kernels", ONE)
def a_kernel_that_widens_float32():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: (x * x).astype("float64"))
    return doubled


@plant("kernels", ONE)
def a_kernel_for_matrices_alone():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: x * x if x.ndim == 2 else x)
    return doubled


@plant("kernels", ONE)
def a_kernel_that_calls_numpy():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: np.square(x))
    return doubled


@plant("kernels", ONE)
def a_kernel_that_ignores_a_parameter():
    @op("elementwise")
    def scaled(xp, x, *, by=2.0):
        return x * by

    scaled.kernel("cupy")(lambda xp, x, *, by=2.0: x * 2.0)
    return scaled


@plant("kernels", ONE)
def an_inverted_kernel_for_bfloat16():
    doubled = squared("elementwise")
    doubled.kernel("bfloat16")(lambda xp, x: -(x * x))
    return doubled


@plant("kernels", ONE)
def a_kernel_for_bfloat16_that_gives_float32():
    doubled = squared("elementwise")
    doubled.kernel("bfloat16")(lambda xp, x: x.astype("float32") ** 2)
    return doubled


# ---- traits -------------------------------------------------------------------------------------------------------


@plant("linear", ONE)
def no_linear_op():
    @op("linear")
    def shifted(xp, x):
        return x + 1

    return shifted


@plant("bilinear", [((X, Y.T), {})])
def no_bilinear_op():
    @op("bilinear")
    def product(xp, x, y):
        return x @ y + y.sum()

    return product


@plant("reduction", [((X,), {"dim": 1})])
def no_reduction():
    @op("reduction")
    def leaking(xp, x, *, dim, keepdim=False):
        return x.sum(axis=dim, keepdims=keepdim) + x.max()

    return leaking


@plant("comparison", ONE)
def no_comparison():
    @op("comparison")
    def positive(xp, x):
        return (x > 1).astype("int8")

    return positive


@plant("view", ONE)
def no_view():
    @op("view")
    def turned(xp, x):
        return x.T.copy()

    return turned


@plant("precision", [((X,), {})])
def no_float():
    @op("elementwise", "float")
    def truncated(xp, x):
        return xp.trunc(x) if x.dtype.kind == "f" and x.dtype.itemsize == 8 else x.astype("float64")

    return truncated


# ---- random ops ---------------------------------------------------------------------------------------------------


def jittered(*traits):
    @op("random", *traits, name="jittered")
    def forward(xp, x, *, generator):
        return x + generator.normal(x.shape, x.dtype.name)

    return forward


@plant("gradients", ONE)
def a_random_op_with_17_times_g():
    return jittered().vjp(x=lambda g: 17 * g)


@plant("draws", ONE)
def numbers_from_numpy():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + xp.asarray(np.random.default_rng().normal(size=x.shape)).astype(x.dtype)

    return noisy


@plant("draws", ONE)
def a_seed_of_its_own():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + xp.asarray(np.random.default_rng(0).normal(size=x.shape)).astype(x.dtype)

    return noisy


@plant("draws", ONE, reference=lambda x, generator: x + generator.normal(size=x.shape))
def another_distribution():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + generator.uniform(x.shape, x.dtype.name)

    return noisy


@plant("draws", ONE, reference=lambda x, generator: x + generator.normal(size=x.shape))
def a_variance_instead_of_a_deviation():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + 1.2 * generator.normal(x.shape, x.dtype.name)

    return noisy


@plant("draws", ONE)
def a_distribution_by_dtype():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + (1 if x.dtype.itemsize == 8 else 2) * generator.normal(x.shape, x.dtype.name)

    return noisy


@plant("gradients", [((X,), {"scale": 2.0})])
def a_random_rule_that_ignores_a_parameter():
    @op("random")
    def noisy(xp, x, *, generator, scale):
        return x * scale + generator.normal(x.shape, x.dtype.name)

    return noisy.vjp(x=lambda g: g)


WHERE = re.compile(r"test_plants\.py:\d+")


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_is_found(name):
    make, check, samples, options = PLANTS[name]
    planted = make()
    with pytest.raises(ConformanceError) as caught:
        check_op(planted, samples, executors=["numpy"], checks=["forward", check], **options)
    reasons = {r.check: r.reason for r in caught.value.report.failures}
    assert check in reasons, reasons
    reason = reasons[check]
    if check != "names":
        assert WHERE.search(reason), reason
    if check not in ("names", "rules"):
        assert re.search(rf"sample \d.*{planted.name}\(.*\(\d*,? ?\d*\)", reason), reason
