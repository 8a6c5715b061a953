"""What the rules of others return becomes a gradient: of the argument's dtype, in memory of its own."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leafgrad
from leafgrad import func, op, rules


def with_rule(rule, forward=lambda xp, x: x * x / 2, *traits):
    made = op(*(traits or ("elementwise", "float")), name="given")(forward)
    return made.vjp(x=rule)


def leaf(*values, dtype=leafgrad.float32, device="cpu"):
    return leafgrad.tensor(values or [1.0, 2.0], dtype=dtype, device=device).requires_grad_()


SAVED = {
    "an argument": lambda g, x: x,
    "its view": lambda g, x: rules.flip(rules.flip(x, (0,)), (0,)),
    "reshaped": lambda g, x: rules.reshape(x, (2,)),
}


@pytest.mark.parametrize("rule", SAVED.values(), ids=SAVED)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_a_saved_argument_that_is_returned_is_copied(rule, create_graph, device):
    given, z = with_rule(rule), leaf(device=device)
    for _ in range(2):
        given(z).sum().backward(create_graph=create_graph)
    assert (z.tolist(), z.grad.tolist()) == ([1.0, 2.0], [2.0, 4.0])
    z.grad = None
    (found,) = leafgrad.autograd.grad(given(z).sum(), z, create_graph=create_graph)
    with leafgrad.no_grad():
        found.mul_(10)
    assert z.tolist() == [1.0, 2.0]


def test_an_output_that_is_returned_is_copied():
    given, z = with_rule(lambda g, out: out, lambda xp, x: xp.exp(x)), leaf()
    y = given(z)
    y.sum().backward()
    z.grad.zero_()
    assert (y > 2).all()


def test_a_parameter_that_is_returned_is_copied():
    given = with_rule(lambda g, *, k: k, lambda xp, x, *, k: (x * k).sum(), "float")
    k, z = np.array([5.0, 6.0], "float32"), leaf()
    for _ in range(2):
        given(z, k=k).backward()
    assert k.tolist() == [5.0, 6.0]


KEPT = np.array([1.0, 2.0], "float32")
THEIRS = {
    "an array": lambda: KEPT,
    "a view of it": lambda: KEPT[::1],
    "a broadcast": lambda: np.broadcast_to(KEPT, (1, 2))[0],
    "from a cache": functools.cache(lambda: np.array([1.0, 2.0], "float32")),
}


@pytest.mark.parametrize("theirs", THEIRS.values(), ids=THEIRS)
@pytest.mark.parametrize("executor", [None, "numpy", "replay"])
def test_an_array_that_the_rule_keeps_is_copied(theirs, executor):
    given, z = with_rule(lambda g, x: theirs()), leaf()

    def step():
        z.grad = None
        given(z).sum().backward()
        return leafgrad.autograd.grad(given(z).sum(), z)[0]

    run = step if executor is None else leafgrad.compile(step, executor=executor)
    for _ in range(5):
        found = run()
        assert (found.tolist(), z.grad.tolist()) == ([1.0, 2.0], [1.0, 2.0])
        found.mul_(3)
        z.grad.add_(1)
    for _ in range(3):
        given(z).sum().backward()
    assert z.grad.tolist() == [5.0, 9.0]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_a_tensor_that_the_rule_keeps_is_copied():
    kept = {}
    given, z = with_rule(lambda g, x: kept.setdefault(type(g), rules.ones_like(g) * 2)), leaf()
    for _ in range(3):
        (found,) = leafgrad.autograd.grad(given(z).sum(), z, create_graph=True)
        assert found.tolist() == [2.0, 2.0]
        with leafgrad.no_grad():
            found.mul_(5)


def test_in_a_batch():
    given, x = with_rule(lambda g, x: x), leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = func.vmap(lambda t: func.grad(lambda q: given(q).sum())(t).mul_(2))(x)
    assert (found.tolist(), x.tolist()) == ([[2.0, 4.0], [6.0, 8.0]], [[1.0, 2.0], [3.0, 4.0]])


def test_compiled():
    given, x = with_rule(lambda g, x: x), leafgrad.tensor([1.0, 2.0])
    step = leafgrad.compile(lambda t: func.grad(lambda q: given(q).sum())(t).mul_(2), executor="numpy")
    for _ in range(3):
        assert (step(x).tolist(), x.tolist()) == ([2.0, 4.0], [1.0, 2.0])


OTHER = {
    "float64": (lambda g, x: g * ((x > 0) * np.ones(2)), [1.0, 1.0]),
    "integers": (lambda g: (g > 0) * 3, [3.0, 3.0]),
    "booleans": (lambda g: g > 0, [1.0, 1.0]),
    "complex": (lambda g: g * (2 + 1j), [2.0, 2.0]),
}


@pytest.mark.parametrize(("rule", "want"), OTHER.values(), ids=OTHER)
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_the_dtype_is_that_of_the_argument(rule, want, dtype):
    given, z = with_rule(rule), leaf(dtype=getattr(leafgrad, dtype))
    if rule.__code__.co_argcount > 1 and dtype == "bfloat16":
        pytest.skip("NumPy knows no product of bfloat16 and float64")
    given(z).sum().backward()
    assert (z.grad.dtype, z.grad.tolist()) == (z.dtype, want)


@pytest.mark.parametrize("name", ["integers", "booleans", "complex"])
def test_the_dtype_where_the_pass_is_recorded_or_compiled(name):
    rule, want = OTHER[name]
    given, z = with_rule(rule), leaf()
    (found,) = leafgrad.autograd.grad(given(z).sum(), z, create_graph=True)
    assert (found.dtype, found.tolist()) == (z.dtype, want)
    step = leafgrad.compile(func.grad(lambda t: given(t).sum()), executor="numpy")
    assert (step(z.detach()).dtype, step(z.detach()).tolist()) == (z.dtype, want)
    found = func.vmap(func.grad(lambda t: given(t).sum()))(leafgrad.ones(3, 2))
    assert (found.dtype, found.tolist()) == (z.dtype, [want] * 3)


def test_an_op_that_changes_the_dtype():
    given = with_rule(lambda g: g * 1, lambda xp, x: x.astype("float64"), "any_dtype")
    z = leaf()
    given(z).sum().backward()
    assert z.grad.dtype is leafgrad.float32


def test_any_number_of_arguments():
    @op("float")
    def total(xp, *xs):
        return sum(xs)

    total.vjp(xs=lambda g, xs, index: xs[index])
    a, b = leaf(), leaf(3.0, 4.0)
    for _ in range(2):
        total(a, b).sum().backward()
    assert [t.tolist() for t in (a, b, a.grad, b.grad)] == [[1.0, 2.0], [3.0, 4.0], [2.0, 4.0], [6.0, 8.0]]


def test_of_saved_values_that_are_packed():
    given, z = with_rule(lambda g, x: x), leaf()
    with leafgrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = given(z)
    y.sum().backward()
    z.grad.zero_()
    assert z.tolist() == [1.0, 2.0]


def test_a_tensor_is_refused_where_arrays_are_meant():
    given, z = with_rule(lambda g: leafgrad.ones(2)), leaf()
    with pytest.raises(RuntimeError, match="op 'given', rule for 'x': returned a Tensor, expected an array or symbol"):
        given(z).sum().backward()
