"""Bugs in what is declared for programs: shapes, batches, chunks, rewriting, lowering, and jets."""

from __future__ import annotations

from testing.plants.entered import ONE, TWO, X, plant, squared

import leafgrad
from leafgrad import op

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


@plant("vmap", ONE)
def a_batched_rule_that_is_wrong_in_a_batch_of_batches():
    @op
    def last(xp, x):
        return xp.cumsum(x, axis=-1)

    last.batched(lambda call: call.again(call.front(0) * (1 if hasattr(call.args[0], "flags") else 2)))
    return last


@plant("vmap", TWO)
def a_batched_rule_that_is_wrong_where_an_argument_is_in_the_outer_batch():
    @op
    def moved(xp, x, y):
        return xp.cumsum(x, axis=-1) + y

    @moved.batched
    def rule(call):
        known = call.inside[1] or hasattr(call.args[1], "flags")
        return call.again(call.front(0), call.front(1) * (1 if known else 2))

    return moved


@plant("view", ONE)
def a_batched_rule_that_copies():
    @op("view")
    def turned(xp, x):
        return x[..., ::-1]

    turned.batched(lambda call: call.again(call.front(0) + 0))
    return turned
