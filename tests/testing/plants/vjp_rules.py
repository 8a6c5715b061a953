"""Bugs in vjp rules: values, higher orders, dtypes, and what they keep."""

from __future__ import annotations

import numpy as np
from testing.plants.entered import ONE, TWO, X, Y, plant, squared

import leafgrad
from leafgrad import op, rules

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


@plant("backward", ONE)
def a_rule_wrong_in_float32():
    return squared("elementwise").vjp(x=lambda g, x: g * (2.0 if "float64" in str(g.dtype) else 2.01) * x)


@plant("sizes", ONE)
def a_rule_wrong_in_three_dimensions():
    return squared("elementwise").vjp(x=lambda g, x: g * x * (2 if g.ndim < 3 else 3))


@plant("gradients", ONE)
def a_rule_of_another_shape():
    @op
    def total(xp, x):
        return x.sum(axis=0, keepdims=True)

    return total.vjp(x=lambda g: g[0])


@plant("shapes", [((X,), {"dim": (0, 1), "keepdim": True})])
def a_trait_whose_shape_does_not_hold():
    @op("reduction")
    def total(xp, x, *, dim, keepdim=False):
        return x.sum(axis=dim)

    return total


@plant("elementwise", TWO)
def a_rule_that_is_wrong_where_its_argument_broadcasts():
    @op("elementwise")
    def product(xp, x, y):
        return x * y

    return product.vjp(x=lambda g, y: g * y, y=lambda g, x, y_shape: g * x if y_shape == x.shape else g * x * 2)


@plant("gradients", [((X, X), {})])
def rules_that_are_swapped():
    @op("elementwise")
    def product(xp, x, y):
        return x * y

    return product.vjp(x=lambda g, x: g * x, y=lambda g, y: g * y)
