"""Bugs that real numbers do not show, in ops that say that they take complex ones."""

from __future__ import annotations

from testing.plants.entered import ONE, TWO, plant, squared

from leafgrad import op
from leafgrad.ops.pairs import Pair


@plant("complex", ONE)
def a_rule_that_is_no_conjugate():
    return squared("elementwise", "complex").vjp(x=lambda g, x: 2 * g * x)


@plant("complex", ONE)
def a_rule_conjugated_twice():
    return squared("elementwise", "holomorphic").vjp(x=lambda g, x: 2 * g * x.conj())


@plant("complex", ONE)
def a_function_that_is_not_holomorphic():
    @op("elementwise", "holomorphic")
    def length(xp, x):
        return x * xp.conj(x)

    return length.vjp(x=lambda g, x: 2 * g * x)


@plant("complex", ONE)
def a_part_that_is_lost():
    @op("elementwise", "complex")
    def doubled(xp, x):
        return 2 * x.real + 0 * x

    return doubled.vjp(x=lambda g: 2 * g)


@plant("complex", TWO)
def a_second_argument():
    @op("elementwise", "complex")
    def product(xp, x, y):
        return x * y

    return product.vjp(x=lambda g, y: g * y.conj(), y=lambda g, x: g * x)


@plant("complex", ONE)
def a_complex128_of_complex64():
    @op("elementwise", "holomorphic")
    def doubled(xp, x):
        return 2 * x if x.dtype.kind == "f" else (2 * x).astype("complex128")

    return doubled.vjp(x=lambda g: 2 * g)


@plant("complex", ONE)
def a_shape_rule_that_knows_real_numbers():
    lengths = op("complex", name="lengths")(lambda xp, x: xp.abs(x))
    lengths.shape(lambda x: x.shape)
    return lengths


@plant("complex", ONE)
def an_exception_of_complex_numbers_in_a_rule():
    return squared("elementwise", "holomorphic").vjp(x=lambda g, x: g * (2 * x if x.dtype.kind == "f" else x.nothing))


@plant("complex", ONE)
def a_rule_for_pairs_without_a_sign():
    made = squared("elementwise", "holomorphic").vjp(x=lambda g, x: g * 2 * x)
    made.lower("pairs", lambda x: Pair(x.re * x.re + x.im * x.im, 2 * x.re * x.im))
    return made


@plant("complex", ONE)
def a_rule_for_pairs_that_fails():
    made = squared("elementwise", "holomorphic").vjp(x=lambda g, x: g * 2 * x)
    made.lower("pairs", lambda x: Pair(x.real * x.real, x.imag))
    return made
