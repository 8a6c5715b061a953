"""The functions that gradient rules may call, with each kind of value that a rule is given."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import rules

X = np.random.default_rng(0).uniform(0.2, 0.8, (3, 4))

# One call of each function that takes more than a tensor, as its arguments.
CALLS = {
    "unsqueeze": lambda f, x: f(x, -1),
    "transpose": lambda f, x: f(x, 0, -1),
    "permute": lambda f, x: f(x, (1, 0)),
    "reshape": lambda f, x: f(x, (2, -1)),
    "sum": lambda f, x: f(x, dim=-1, keepdim=True),
    "softmax": lambda f, x: f(x, -1),
    "cumsum": lambda f, x: f(x, 0),
    "cat": lambda f, x: f([x, x], 1),
    "stack": lambda f, x: f((x, x), 1),
    "where": lambda f, x: f(x > 0.5, x, 0.0),
    "matmul": lambda f, x: f(x, rules.t(x)),
    "einsum": lambda f, x: f("ij,kj->ik", x, x),
    "max": lambda f, x: f(x, dim=-1).values,
    "clamp": lambda f, x: f(x, min=0.4, max=0.6),
    "flip": lambda f, x: f(x, (0,)),
    "split": lambda f, x: f(x, 2, 1)[1],
    "roll": lambda f, x: f(x, 1, 0),
    "tril": lambda f, x: f(x),
    "var": lambda f, x: f(x, -1),
    "zeros_like": lambda f, x: f(x) + x,
    "broadcast_to": lambda f, x: f(x, (2, 3, 4)),
    "exp": lambda f, x: f(x),
    "atan2": lambda f, x: f(x, 1.0),
}


def slices(x):
    return x[:, 1:] * x[..., :1] + x[None, 0, 0]


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # the op of this test has no rule
@pytest.mark.parametrize("name", [*CALLS, "slices"])
def test_each_kind_of_value_gives_its_own_kind(name):
    def function(x):
        return slices(x) if name == "slices" else CALLS[name](getattr(rules, name), x)

    expected = function(leafgrad.tensor(X)).numpy()
    raw = function(X)
    assert isinstance(raw, np.ndarray)
    np.testing.assert_allclose(raw, expected)

    @leafgrad.op(name=f"rule_{name}")
    def op(xp, x):
        return np.asarray(function(x))

    op.shape(lambda x: expected.shape)
    op.vjp(x=lambda g, x: rules.sum(function(x)) * rules.sum(g) * rules.ones_like(x))
    x = leafgrad.tensor(X, requires_grad=True)

    def slope(x):
        return leafgrad.autograd.grad(op(x).sum(), x, create_graph=True)[0]

    plain = leafgrad.autograd.grad(op(x).sum(), x)[0]
    recorded = slope(x)
    np.testing.assert_allclose(recorded.detach().numpy(), plain.numpy())
    (second,) = leafgrad.autograd.grad(recorded.sum(), x)
    y = leafgrad.tensor(X, requires_grad=True)
    (by_hand,) = leafgrad.autograd.grad(function(y).sum() * expected.size * X.size, y)
    np.testing.assert_allclose(second.numpy(), by_hand.numpy())
    batch = leafgrad.tensor(np.stack([X, X + 0.1]))
    got = leafgrad.func.vmap(leafgrad.func.grad(lambda x: op(x).sum()))(batch)
    want = [leafgrad.func.grad(lambda x: op(x).sum())(b).numpy() for b in batch]
    np.testing.assert_allclose(got.numpy(), want)
    step = leafgrad.compile(lambda x: slope(x) * 2)
    for _ in range(3):
        np.testing.assert_allclose(step(x).detach().numpy(), 2 * plain.numpy())


SCALARS = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("name", SCALARS)
def test_numbers_of_numpy_are_arrays_whether_or_not_one_was_met_before(name):
    """NumPy's reductions give them."""
    for number in (np.ones(2, name).any() if name == "bool" else np.ones(2, name).max(), np.dtype(name).type(1)):
        raw = rules.broadcast_to(number, (2,))
        assert (type(raw), raw.dtype, raw.tolist()) == (np.ndarray, name, [1, 1])
        assert type(rules.squeeze(rules.unsqueeze(number, 0))) is np.ndarray


def test_a_rule_with_arithmetic_on_a_sum():
    @leafgrad.op("float")
    def centred(xp, x):
        return x - x.mean()

    centred.vjp(x=lambda g, x_shape: g - rules.broadcast_to(rules.sum(g) / x_shape[0], x_shape))
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    (centred(x) ** 2).sum().backward()
    assert x.grad.tolist() == [-1.0, 1.0]


def test_what_rules_may_not_call_is_not_there():
    for name in ("nonzero", "randn", "zeros", "save", "nothing", "_publish"):
        with pytest.raises(AttributeError, match=f"no function '{name}'; see dir"):
            getattr(rules, name)
    assert set(CALLS) <= set(dir(rules))
