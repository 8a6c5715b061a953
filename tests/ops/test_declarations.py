"""What is declared of an op beside its forward: parameters, methods, and what print tells."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest

import leafgrad
from leafgrad import op, rules
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.errors import CompileError, OpDefinitionError
from leafgrad.tensor.methods import DECLARED, Methods

TESTS = "ops.define ops.describe"


@leafgrad.op("reduction", "float")
def smoothmax(xp, x, *, dim, keepdim=True):
    """log(sum(exp(x))) along ``dim``."""
    return xp.log(xp.exp(x).sum(axis=dim, keepdims=keepdim))


@leafgrad.op("reduction")
def inner(xp, x, y, *, dim, keepdim=False):
    return (x * y).sum(axis=dim, keepdims=keepdim)


@leafgrad.op("along")
def running(xp, x, *, dim, reverse=False):
    return xp.cumsum(x, axis=dim)


@pytest.fixture
def named():
    """A method of Tensor for the time of a test."""
    smoothmax.method("smoothmax")
    yield "smoothmax"
    del DECLARED["smoothmax"]
    delattr(Methods, "smoothmax")
    smoothmax.methods = ()
    del smoothmax.origins["method smoothmax"]


def reference(x, dim, keepdim=True):
    return np.log(np.exp(x).sum(axis=dim, keepdims=keepdim))


@pytest.mark.parametrize("dim", [0, -1, (0, -1), (-1, 0), [1], None, np.int64(1)])
@pytest.mark.parametrize("given", [{}, {"keepdim": False}])
def test_dims_are_counted_from_the_front_and_defaults_are_filled(dim, given):
    x = leafgrad.randn(3, 4)
    asked = tuple(dim) if isinstance(dim, list) else dim
    expected = reference(x.numpy(), asked, **given)
    np.testing.assert_allclose(smoothmax(x, dim=dim, **given).numpy(), expected, rtol=1e-6)

    def function(x):
        return smoothmax(x, dim=dim, **given) * 2

    step = leafgrad.compile(function)
    for _ in range(4):
        np.testing.assert_allclose(step(x).numpy(), 2 * expected, rtol=1e-6)


@pytest.mark.parametrize("dim", [0, -1, (0, 1), (-1,), None])
def test_vmap_of_a_reduction_with_any_dim(dim):
    x, y = leafgrad.randn(5, 3, 4), leafgrad.randn(3, 4)
    got = leafgrad.func.vmap(lambda a: smoothmax(a, dim=dim))(x)
    np.testing.assert_allclose(got.numpy(), [reference(a, dim) for a in x.numpy()], rtol=1e-6)
    both = leafgrad.func.vmap(lambda a: inner(a, y, dim=dim))(x)
    np.testing.assert_allclose(both.numpy(), [(a * y.numpy()).sum(dim) for a in x.numpy()], rtol=1e-5)
    swapped = leafgrad.func.vmap(lambda a: inner(y, a, dim=dim), in_dims=2)(x.movedim(0, 2))
    np.testing.assert_allclose(swapped.numpy(), both.numpy(), rtol=1e-5)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_vmap_along(dim):
    x = leafgrad.randn(5, 3, 4)
    got = leafgrad.func.vmap(lambda a: running(a, dim=dim))(x)
    np.testing.assert_allclose(got.numpy(), [np.cumsum(a, dim) for a in x.numpy()], rtol=1e-5)


def test_wrong_parameters_are_named():
    x = leafgrad.ones(3, 4)
    for given, error, words in (
        ({"dim": 2}, IndexError, r"smoothmax: dim: Dimension out of range \(expected .* \[-2, 1\], but got 2\)"),
        ({"dim": (0, -2)}, RuntimeError, "smoothmax: dim 0 appears multiple times"),
        ({"dim": 1.0}, TypeError, "smoothmax: dim: expected an int, a tuple of ints or None, got float"),
        ({"dim": True}, TypeError, "got bool"),
        ({}, TypeError, r"smoothmax: missing the parameter 'dim'; expected smoothmax\(x, \*, dim, keepdim=True\)"),
        ({"dim": 0, "axis": 1}, TypeError, "smoothmax: unexpected parameter 'axis'"),
    ):
        with pytest.raises(error, match=words):
            smoothmax(x, **given)
        with pytest.raises(error, match=words):
            leafgrad.trace(lambda x, given=given: smoothmax(x, **given), x)


def test_a_method_is_a_function_of_every_namespace(named):
    x = leafgrad.randn(3, 4)
    expected = reference(x.numpy(), -1, keepdim=False)
    functions = (leafgrad.smoothmax, x.__array_namespace__().smoothmax, leafgrad.Tensor.smoothmax)
    for got in (x.smoothmax(-1, False), x.smoothmax(dim=-1, keepdim=False), *(f(x, -1, False) for f in functions)):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    assert str(inspect.signature(leafgrad.smoothmax)) == "(x, dim, keepdim=True)"
    assert "smoothmax" in dir(leafgrad)
    assert leafgrad.smoothmax.__doc__ == smoothmax.__doc__
    with pytest.raises(TypeError, match="smoothmax: got several values for 'dim'"):
        x.smoothmax(0, dim=1)
    with pytest.raises(TypeError, match=r"smoothmax: expected .*, got 4 arguments"):
        x.smoothmax(0, True, 1)


@pytest.mark.parametrize("name", ["exp", "backward", "nn", "no name", ""])
def test_a_method_does_not_take_a_name_that_is_taken(name):
    with pytest.raises(OpDefinitionError, match="op 'smoothmax': "):
        smoothmax.method(name)
    assert smoothmax.methods == ()


def test_print_tells_what_there_is_and_what_is_not():
    text = str(smoothmax)
    assert text.startswith("smoothmax(x, *, dim, keepdim=True): log(sum(exp(x))) along ``dim``.")
    rows = {line.split("  ")[1]: line for line in text.splitlines()[1:]}
    assert "none: an error where it is needed" in rows["vjp x"]
    assert "trait reduction" in rows["chunk"]
    assert "leafgrad/ops/reduce.py:" in str(leafgrad.ops.reduce.sum)


@pytest.mark.parametrize("what", ["shape", "chunk", "batched", "summed"])
def test_each_rule_is_given_once(what):
    @leafgrad.op
    def plain(xp, x):
        """x."""
        return x * 1

    getattr(plain, what)(lambda x: None)
    with pytest.raises(OpDefinitionError, match=r"already has .*, from .*test_declarations.py:\d+"):
        getattr(plain, what)(lambda x: None)


def test_a_module_whose_import_was_cut_is_imported_again(import_cut_once):
    @leafgrad.op
    def plain(xp, x):
        """x."""
        return x * 1

    import_cut_once("cut.op.vjp(x=lambda g: g)", op=plain)
    with pytest.raises(OpDefinitionError, match="already has a vjp rule"):
        plain.vjp(x=lambda g: g)


def test_a_declaration_is_made_once():
    rule = running.shape(lambda x, *, dim: x.shape)
    assert running.shaping is rule
    with pytest.raises(OpDefinitionError, match=r"already has a shape rule, from .*test_declarations.py:\d+"):
        running.shape(rule)
    with pytest.raises(OpDefinitionError, match="shape rule: unknown parameter 'axis'; the op has: dim, keepdim"):
        inner.shape(lambda x, y, *, axis: x.shape)
    with pytest.raises(OpDefinitionError, match=r"shape rule: expected the arguments \(x, y\)"):
        inner.shape(lambda x: x.shape)
    with pytest.raises(OpDefinitionError, match="lower native: expected a function, got 'exp"):
        inner.lower("native", "exp(x)")


@leafgrad.op("elementwise", "float")
def kept_square(xp, x):
    return x * x


@leafgrad.op("elementwise", "float")
def kept_product(xp, x, y):
    return x * y


def test_integers_become_floats_at_each_call():
    x = leafgrad.tensor([1, 2, 3])
    for _ in range(3):
        assert kept_square(x).dtype is leafgrad.float32
        assert kept_product(x, x).dtype is leafgrad.float32
        assert kept_product(x, 2).dtype is leafgrad.float32


# ---- mistakes -------------------------------------------------------------------------------------------------------


def doubled(**rules):
    """An op that doubles, with these rules."""

    @op("float", name="doubled_here")
    def made(xp, x):
        return x * 2

    return made.vjp(**rules) if rules else made


def test_a_rule_that_was_refused_may_be_mended():
    made = doubled()
    with pytest.raises(OpDefinitionError, match="unknown name 'gg'"):
        made.vjp(x=lambda gg: gg)
    with pytest.raises(OpDefinitionError, match=r"by the name of its argument, as vjp\(x=lambda g: ...\)"):
        made.vjp(lambda g: g)
    made.vjp(x=lambda g: g * 2)
    with pytest.raises(OpDefinitionError, match="kernel for 'cupy': expected parameters"):
        made.kernel("cupy")(lambda xp, y: y)
    made.kernel("cupy")(lambda xp, x: x * 2)


@pytest.mark.parametrize("kinds", [("elementwise", "reduction"), ("along", "reduction"), ("along", "elementwise")])
def test_traits_that_exclude_each_other(kinds):
    with pytest.raises(OpDefinitionError, match=r"op 'f': expected one of the traits '\w+' and '\w+', got both"):

        @op(*kinds)
        def f(xp, x, *, dim):
            return x


def test_a_rule_that_leaves_the_graph_is_refused_where_it_is_recorded():
    made = doubled(x=lambda g: np.asarray(g.detach() if hasattr(g, "detach") else g) * 2)
    x = leafgrad.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"op 'doubled_here', rule for 'x': returned ndarray, expected a Tensor, under"
    ):
        leafgrad.autograd.grad(made(x).sum(), x, create_graph=True)


@pytest.mark.parametrize(
    ("rule", "got"),
    [
        (lambda call: call.again(call.args[0])[0], r"float32 \(2,\)"),
        (lambda call: None, "None"),
        (lambda call: "a", "'a'"),
    ],
)
def test_a_batched_rule_that_gives_no_batch_is_refused(rule, got):
    made = doubled()
    made.batched(rule)
    with pytest.raises(
        RuntimeError, match=rf"'doubled_here', batched rule from .*: expected .* batch of 3 .*, got {got}"
    ):
        leafgrad.func.vmap(made)(leafgrad.ones(3, 2))


def test_an_error_in_a_batched_rule_notes_where_it_is_from():
    made = doubled()
    made.batched(lambda call: call.nothing)
    with pytest.raises(AttributeError) as caught:
        leafgrad.func.vmap(made)(leafgrad.ones(3, 2))
    assert caught.value.__notes__[0].startswith(f"in the batched rule of op 'doubled_here', from {__file__}:")


def test_a_numpy_rule_that_gives_no_source_is_refused():
    made = doubled()
    made.lower("numpy", lambda writer, equation: 3)
    graph = leafgrad.trace(made, leafgrad.ones(2))
    with pytest.raises(
        CompileError, match=r"lower rule for 'numpy' from .*expected the source of an expression.*got 3"
    ):
        NumpyProgram(graph)


def test_an_op_that_is_not_differentiable_has_no_rules():
    floored = op("nondifferentiable", name="floored")(lambda xp, x: xp.floor(x))
    with pytest.raises(OpDefinitionError, match="op 'floored': vjp: expected no rules, as the trait 'nondifferenti"):
        floored.vjp(x=lambda g: g)


POLYNOMIAL = {
    "list": ([1.0, 2.0, 3.0], lambda c: c.__setitem__(1, 50.0), lambda c: c),
    "list in a tuple": (([1.0, 2.0, 3.0],), lambda c: c[0].__setitem__(1, 50.0), lambda c: c[0]),
    "dict": ({"c": [1.0, 2.0, 3.0]}, lambda c: c["c"].__setitem__(1, 50.0), lambda c: c["c"]),
    "set": ({1.0, 2.0, 3.0}, lambda c: c.add(50.0), sorted),
}


@pytest.mark.parametrize(("coef", "change", "read"), POLYNOMIAL.values(), ids=POLYNOMIAL)
@pytest.mark.parametrize("several", [False, True])
def test_a_rule_is_given_what_was_in_a_parameter_at_the_call(coef, change, read, several):
    def value(x, coef):
        return sum(c * x**i for i, c in enumerate(read(coef)))

    @op("float")
    def polynomial(xp, x, *, coef):
        return (value(x, coef), x + 1) if several else value(x, coef)

    polynomial.vjp(x=lambda g, x, *, coef: (g[0] if several else g) * (read(coef)[1] + 2 * read(coef)[2] * x))
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    polynomial(x, coef=copy.deepcopy(coef))
    given = copy.deepcopy(coef)
    y = polynomial(x, coef=given)
    change(given)
    (y[0] if several else y).sum().backward()
    assert x.grad.tolist() == [8.0, 14.0]


def test_a_view_is_made_anew_by_what_was_in_a_parameter_at_the_call():
    taken = op("view", name="taken")(lambda xp, x, *, at: x[at[0] :])
    taken.vjp(x=lambda g, x_shape, *, at: rules.cat([rules.zeros_like(g)[: at[0]], g]))
    x, at = leafgrad.tensor([1.0, 2.0], requires_grad=True), [1]
    w = x * 1
    y = taken(w, at=at)
    at[0] = 0
    w.mul_(3)
    assert leafgrad.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 3.0]


def test_a_number_may_be_the_first_of_the_arguments_of_an_op_with_several_results():
    both = op("float", name="both")(lambda xp, x, y: (x + y, x * y))
    assert [r.tolist() for r in both(2.0, leafgrad.ones(2))] == [[3.0, 3.0], [2.0, 2.0]]


def test_what_is_said_where_a_forward_expects_something_else():
    total = op("float", name="total")(lambda xp, x, y: x * y.sum())
    with pytest.raises(RuntimeError, match=r"total\(x: .*, y: 2.0\): .*'y' is a number, which .*give a tensor"):
        total(leafgrad.ones(2), 2.0)
    scaled = op("float", name="scaled")(lambda xp, x, *, by: xp.multiply(x, by))
    with pytest.raises(RuntimeError, match=r"scaled\(.*parameter 'by' is a Tensor, .*argument, before \*"):
        scaled(leafgrad.ones(2), by=leafgrad.ones((), requires_grad=True))


def test_names_that_mean_something_else_elsewhere():
    @op("elementwise")
    def warped(xp, x, x_shape, *, self=float("inf")):
        return xp.minimum(x * x_shape, self)

    warped.vjp(x=lambda g, x_shape, *, self: g * x_shape, x_shape=lambda g, x: g * x)
    x, y = leafgrad.tensor([2.0, 3.0], requires_grad=True), leafgrad.tensor([5.0, 7.0], requires_grad=True)
    assert [t.tolist() for t in leafgrad.autograd.grad(warped(x, y).sum(), (x, y))] == [[5, 7], [2, 3]]
    assert warped(x, y, self=12.0).tolist() == [10, 12]
