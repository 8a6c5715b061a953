"""Bugs in kernels, in traits, and in ops that draw random numbers."""

from __future__ import annotations

import numpy as np
from testing.plants.entered import ONE, X, Y, plant, squared

from leafgrad import op

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


@plant("kernels", ONE)
def a_kernel_that_writes_into_its_argument():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: xp.multiply(x, x, out=x))
    return doubled


@plant("kernels", ONE)
def a_kernel_that_returns_its_argument():
    @op("elementwise")
    def same(xp, x):
        return x + 0

    same.kernel("cupy")(lambda xp, x: x)
    return same


@plant("kernels", ONE)
def a_kernel_of_two_results():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: (x * x, x))
    return doubled


@plant("kernels", ONE)
def a_kernel_that_returns_a_number():
    doubled = squared("elementwise")
    doubled.kernel("cupy")(lambda xp, x: x * x if x.ndim else float(x * x))
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


@plant("draws", ONE, reference=lambda x, generator: x + generator.normal(size=x.shape))
def one_number_for_all():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + generator.normal((), x.dtype.name)

    return noisy


@plant("draws", ONE, reference=lambda x, generator: x + generator.normal(size=x.shape))
def one_number_for_a_column():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + generator.normal(x.shape[-1:], x.dtype.name)

    return noisy


@plant("draws", ONE)
def one_number_for_all_samples_of_a_batch():
    @op("random")
    def noisy(xp, x, *, generator):
        return x + generator.normal((), x.dtype.name)

    noisy.batched(lambda call: call.again(call.front(0)))
    return noisy
