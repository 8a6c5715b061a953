"""Derivatives up to the fourth of every smooth function: by backward passes, by forward mode, mixed, and by PyTorch."""

from __future__ import annotations

import pytest

import leafgrad

MIXED = [0.3, 0.55, 0.75, 0.4]  # inside every domain below, unless moved
ONE_ARGUMENT = {
    **{
        name: (lambda t, x, name=name: getattr(t, name)(x))
        for name in (
            "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh atanh sigmoid sqrt "
            "rsqrt reciprocal square erf sinc"
        ).split()
    },
    **{
        name: (lambda t, x, name=name: getattr(t.nn.functional, name)(x))
        for name in "logsigmoid softplus silu gelu mish elu selu tanhshrink softsign".split()
    },
    "acosh": lambda t, x: t.acosh(x + 1),
    "gelu tanh": lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
    "power": lambda t, x: x**3.5 + x**-2 + x**3 + 2.5**x,
    "quotient": lambda t, x: 1 / (1 + x * x) - x / 3,
    "softmax": lambda t, x: t.softmax(x, 0),
    "log_softmax": lambda t, x: t.log_softmax(x, 0),
    "logsumexp": lambda t, x: t.logsumexp(x, 0),
    "prod": lambda t, x: t.prod(x) + t.prod(x.reshape(2, 2), 0).sum(),
    "mean": lambda t, x: (x * x).mean() * x,
    "var": lambda t, x: t.var(x.exp(), 0),
    "std": lambda t, x: t.std(x.exp(), 0),
    "norm": lambda t, x: x.norm(),
    "cumsum": lambda t, x: t.cumsum(x * x, 0) ** 2,
    "cumprod": lambda t, x: t.cumprod(x, 0),
    "matmul": lambda t, x: (x.reshape(2, 2) @ x.exp().reshape(2, 2)).reshape(4),
    "broadcast": lambda t, x: (x.reshape(4, 1) * x.exp()).sum(dim=1),
    "cat and split": lambda t, x: t.cat([part.exp() for part in x.split(2)]) * x,
    "index": lambda t, x: x[[0, 0, 3]].exp() * x[1:],
    "max": lambda t, x: x.max() ** 4 * x,
    "where": lambda t, x: t.where(x > 0.5, x**4, x.exp()),
    "in place": lambda t, x: (x * x).mul_(x).add_(x.exp()),
    "network": lambda t, x: t.tanh(t.tanh(x.reshape(4, 1) @ x.reshape(1, 4)) @ x),
}
TWO_ARGUMENTS = {
    "mul": lambda t, x, y: x * y,
    "div": lambda t, x, y: x / y,
    "pow": lambda t, x, y: x**y,
    "atan2": lambda t, x, y: t.atan2(x, y),
    "hypot": lambda t, x, y: t.hypot(x, y),
    "logaddexp": lambda t, x, y: t.logaddexp(x, y),
    "lerp": lambda t, x, y: t.lerp(x, y, x * y),
    "outer": lambda t, x, y: (x.reshape(4, 1) * y).exp(),
}


def both(function):
    """A function of x and 1.7 - x**2, so that both arguments take part in each derivative."""
    return lambda t, x: function(t, x, 1.7 - x * x)


FUNCTIONS = ONE_ARGUMENT | {name: both(function) for name, function in TWO_ARGUMENTS.items()}


def point(t):
    return t.tensor(MIXED, dtype=t.float64), t.tensor([1.0, -0.5, 0.7, 0.3], dtype=t.float64)


def weighted(t, y):
    """A scalar in which each element of y counts differently."""
    y = y.reshape(-1)
    return (y * t.linspace(0.5, 1.5, y.numel(), dtype=t.float64)).sum()


def by_reverse(t, f, v):
    """The directional derivative of ``f`` along ``v``, by a backward pass."""

    def derivative(x):
        if not x.requires_grad:
            x = x.detach().requires_grad_()
        y = f(x)
        if not y.requires_grad:  # all lower derivatives are constant
            return (x * 0).sum()
        (g,) = t.autograd.grad(y, x, create_graph=True, materialize_grads=True)
        return (g * v).sum()

    return derivative


def by_forward(t, f, v):
    """The same by a forward sweep."""
    return lambda x: t.func.jvp(f, (x,), (v,))[1]


def derivatives(t, function, ways):
    """The directional derivatives of orders 1 to len(ways), the n-th taken by ways[n]."""
    x, v = point(t)
    f, values = lambda x: weighted(t, function(t, x)), []
    for way in ways:
        f = way(t, f, v)
        values.append(f(x.detach().requires_grad_()).item())
    return values


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_ways_agree(name):
    r, f = by_reverse, by_forward
    reverse = derivatives(leafgrad, FUNCTIONS[name], (r, r, r, r))
    assert derivatives(leafgrad, FUNCTIONS[name], (f, f, f)) == pytest.approx(reverse[:3], rel=1e-9, abs=1e-9)
    for ways in ((r, f), (r, r, f), (r, r, r, f), (f, r, f)):
        assert derivatives(leafgrad, FUNCTIONS[name], ways) == pytest.approx(reverse[: len(ways)], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivative_agrees_with_differences(name):
    (x, v), eps = point(leafgrad), 1e-6
    above, below = (weighted(leafgrad, FUNCTIONS[name](leafgrad, x + s * eps * v)).item() for s in (1, -1))
    (exact,) = derivatives(leafgrad, FUNCTIONS[name], (by_reverse,))
    assert (above - below) / (2 * eps) == pytest.approx(exact, rel=1e-5, abs=1e-7)


def test_derivatives_agree_with_pytorch():
    torch = pytest.importorskip("torch")
    ways = (by_reverse,) * 4
    differ = {}
    for name, function in FUNCTIONS.items():
        ours, theirs = (derivatives(t, function, ways) for t in (leafgrad, torch))
        if ours != pytest.approx(theirs, rel=1e-8, abs=1e-8):
            differ[name] = (ours, theirs)
    assert not differ
