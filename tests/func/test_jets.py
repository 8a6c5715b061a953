"""func.jet against nested jvp, in all that it may be inside of."""

from __future__ import annotations

import math
import random

import pytest

import leafgrad
from leafgrad import compile as compiled, op
from leafgrad.autograd import Function
from leafgrad.errors import OpDefinitionError
from leafgrad.func import grad, hessian, jacrev, jet, jvp, vmap
from leafgrad.ops.series import product

TESTS = "autograd.taylor ops.series"

F64 = leafgrad.float64
A = leafgrad.tensor([[0.3, 0.2, 0.1], [0.5, -0.2, 0.4], [0.3, 0.9, -0.7]], dtype=F64)
F = leafgrad.nn.functional


@op("elementwise", "float")
def bump(xp, x):
    """exp(-x**2), with nothing declared but its vjp. (...) -> (...)"""
    return xp.exp(-x * x)


bump.vjp(x=lambda g, out, x: g * (-2 * x * out))


@op("float")
def radius(xp, x, y):
    """Length and product, two results of which neither is linear. (...), (...) -> (...), (...)"""
    return xp.hypot(x, y), x * y


radius.vjp(x=lambda g, out, x, y: g[0] * x / out[0] + g[1] * y, y=lambda g, out, x, y: g[0] * y / out[0] + g[1] * x)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


def written(x):
    y = x * 2
    y[0] = x[1] * x[2]
    y += x.sin()
    return y * y


FUNCTIONS = {
    "tanh": leafgrad.tanh,
    "sigmoid": leafgrad.sigmoid,
    "gelu": F.gelu,
    "softplus": F.softplus,
    "silu": F.silu,
    "mish": F.mish,
    "erf": leafgrad.erf,
    "sinh": lambda x: leafgrad.sinh(x) + leafgrad.cosh(x),
    "inverse": lambda x: leafgrad.asinh(x) + leafgrad.atan(x) + leafgrad.acos(x / 2) + leafgrad.atanh(x / 3),
    "atan2": lambda x: leafgrad.atan2(x, 1 + x * x),
    "roots": lambda x: leafgrad.sqrt(2 + x) + leafgrad.rsqrt(2 + x) + leafgrad.reciprocal(2 + x),
    "logs": lambda x: leafgrad.log(2 + x) * leafgrad.log1p(x * x) + leafgrad.expm1(x),
    "powers": lambda x: x**3 + (2 + x) ** x + 2.0**x + (2 + x) ** 0.3,
    "quotient": lambda x: leafgrad.sin(x) / (2 + x) / leafgrad.exp(x),
    "constant over": lambda x: 3 / (2 + leafgrad.cos(x)),
    "mixed dtypes": lambda x: leafgrad.ones(3) * x * x.sin() + leafgrad.arange(3) * x.exp(),
    "broadcast": lambda x: (x[:, None] * x).tanh() + x / (2 + x[:, None]),
    "matmul": lambda x: leafgrad.tanh(A @ x) @ x,
    "linear": lambda x: F.linear(x.sin(), A * x, x * x),
    "softmax": lambda x: leafgrad.softmax(x, 0) + leafgrad.log_softmax(x * x, 0),
    "logsumexp": lambda x: leafgrad.logsumexp(x, 0),
    "norm": lambda x: (x * x).sum().sqrt() + x.std() + x.var() + x.norm(),
    "layer_norm": lambda x: F.layer_norm(x * x, (3,)),
    "prod": lambda x: x.prod() + leafgrad.cumprod(x.sin(), 0),
    "where": lambda x: leafgrad.where(x > 0, x**2, x.exp()) + leafgrad.relu(x) * x + x.abs() ** 2,
    "index": lambda x: x[[0, 2, 2]] ** 2 + x[1:].flip(0).cumsum(0).sum(),
    "cat": lambda x: leafgrad.cat([x, x * x]).reshape(2, 3).t() @ A[:2],
    "sort": lambda x: leafgrad.sort(x * x)[0] * leafgrad.amax(x, 0),
    "inv": lambda x: leafgrad.linalg.inv(A + leafgrad.diag(x)),
    "in place": written,
    "plugin's op": bump,
    "several results": lambda x: radius(x, 1 + x * x)[0] * radius(x.sin(), x + 2)[1],
    "Function": lambda x: Cube.apply(leafgrad.sin(x)),
    "gradient": lambda x: grad(lambda z: (z.sin() * z**3).sum())(x),
    "of a jet": lambda x: jet(lambda z: (z * z).tanh(), (x,), ([x, x * x],))[1][1],
    "of a vmap": lambda x: vmap(lambda z: (z * x).tanh().sum() * z)(x),
    "constant": lambda x: x.detach().exp(),
}


def lines(function, x, v, order):
    """The derivatives along a line by nested forward mode."""
    steps = [function]
    for _ in range(order):
        steps.append(lambda x, f=steps[-1]: jvp(f, (x,), (v,))[1])
    return [step(x) for step in steps]


def point():
    return (leafgrad.tensor([0.3, 0.7, -0.4], dtype=F64), leafgrad.tensor([1.0, 2.0, -0.5], dtype=F64))


def assert_near(found, expected, tolerance=1e-11):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    scale = 1 + expected.abs().max().item()
    assert (found - expected).abs().max().item() <= tolerance * scale


@pytest.mark.parametrize("name", FUNCTIONS)
def test_along_a_line(name):
    x, v = point()
    expected = lines(FUNCTIONS[name], x, v, 4)
    value, derivatives = jet(FUNCTIONS[name], (x,), ([v, None, None, None],))
    for found, wanted in zip([value, *derivatives], expected, strict=True):
        assert_near(found, wanted)


def curve(x, v, w, u):
    """A curve with given derivatives at 0, as a function of time."""
    return lambda t: x + v * t + w * (t**2 / 2) + u * (t**3 / 6)


@pytest.mark.parametrize("name", ["tanh", "gelu", "quotient", "matmul", "softmax", "several results", "in place"])
@pytest.mark.parametrize("missing", [(), (0,), (1,), (0, 1), (0, 1, 2)])
def test_along_a_curve(name, missing):
    """Also with derivatives that are zero, which may be left out."""
    x, v = point()
    terms = [v, v * 0.3, v.flip(0)]
    terms = [None if k in missing else t for k, t in enumerate(terms)]
    path = curve(x, *[x * 0 if t is None else t for t in terms])
    one, zero = leafgrad.ones((), dtype=F64), leafgrad.zeros((), dtype=F64)
    expected = lines(lambda t: FUNCTIONS[name](path(t)), zero, one, 3)
    _, derivatives = jet(FUNCTIONS[name], (x,), (terms,))
    for found, wanted in zip(derivatives, expected[1:], strict=True):
        assert_near(found, wanted)


SMOOTH = [leafgrad.sin, leafgrad.tanh, leafgrad.exp, leafgrad.sigmoid, lambda x: leafgrad.log(2 + x * x), F.gelu]
PAIRS = [
    leafgrad.add,
    leafgrad.mul,
    leafgrad.sub,
    lambda x, y: x / (3 + y.sin()),
    lambda x, y: (x[:, None] * y).mean(0),
]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_of_two_inputs(seed):
    choose = random.Random(seed)
    steps = [(choose.randrange(2), choose.random(), choose.random(), choose.random()) for _ in range(7)]

    def program(x, y):
        known = [x, y, A[0]]
        for binary, kind, i, j in steps:
            first, second = known[int(i * len(known))], known[int(j * len(known))]
            table = PAIRS if binary else SMOOTH
            function = table[int(kind * len(table))]
            known.append(leafgrad.tanh(function(first, second) if binary else function(first)))
        return known[-1] + known[-2] * known[-3]

    x, v = point()
    y, w = x.flip(0) * 0.5, v.cos()

    def at(t):
        return program(x + v * t, y + w * t * t)

    one, zero = leafgrad.ones((), dtype=F64), leafgrad.zeros((), dtype=F64)
    expected = lines(at, zero, one, 4)
    _, found = jet(program, (x, y), ([v, None, None, None], [None, 2 * w, None, None]))
    for k in range(4):
        assert_near(found[k], expected[k + 1], 1e-9)


def test_exponentials_to_a_high_order():
    x = leafgrad.tensor(0.5, dtype=F64)
    _, found = jet(lambda x: leafgrad.exp(2 * x), (x,), ([leafgrad.ones_like(x), *[None] * 9],))
    assert all(math.isclose(d.item(), 2**k * math.exp(1), rel_tol=1e-12) for k, d in enumerate(found, 1))


def test_order_zero_and_nested_results():
    x, v = point()
    value, derivatives = jet(leafgrad.sin, (x,), ([],))
    assert_near(value, x.sin())
    assert derivatives == []
    value, found = jet(lambda x: {"a": (x * x, x.sum()), "b": x.detach()}, (x,), ([v, None],))
    assert_near(value["a"][0], x * x)
    assert_near(found["a"][0][1], 2 * v * v)
    assert_near(found["a"][1][0], v.sum())
    assert_near(found["b"][0], 0 * x)


def test_at_kinks_the_derivatives_are_those_of_reverse_mode():
    x = leafgrad.tensor([0.0, -0.0, 1.0], dtype=F64)
    one = leafgrad.ones_like(x)
    for function in (leafgrad.relu, leafgrad.abs, lambda x: leafgrad.clamp(x, 0, 1), lambda x: leafgrad.maximum(x, -x)):
        _, (first, second) = jet(function, (x,), ([one, None],))
        assert_near(first, grad(lambda x, f=function: f(x).sum())(x))
        assert_near(second, grad(lambda x, f=function: grad(lambda z: f(z).sum())(x).sum())(x))


def laplacian(function, x):
    unit = leafgrad.eye(len(x), dtype=x.dtype)
    return jet(function, (x,), ([unit, None],), collapse=True)


@pytest.mark.parametrize("name", ["matmul", "logsumexp", "norm"])
def test_collapse_gives_the_laplacian_and_the_gradient(name):
    x, _ = point()
    value, (slopes, curved) = laplacian(FUNCTIONS[name], x)
    assert_near(value, FUNCTIONS[name](x))
    assert_near(slopes, grad(FUNCTIONS[name])(x))
    assert_near(curved, hessian(FUNCTIONS[name])(x).diagonal().sum())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_collapse_is_the_sum(name):
    x, v = point()
    curves = leafgrad.stack([v, v.flip(0)])
    _, found = jet(FUNCTIONS[name], (x,), ([curves, curves * 2, None],), collapse=True)
    each = [jet(FUNCTIONS[name], (x,), ([v, 2 * v, None],))[1] for v in curves]
    for k in range(2):
        assert_near(found[k], leafgrad.stack([one[k] for one in each]))
    assert_near(found[2], each[0][2] + each[1][2])


def weighted(w, x):
    return (leafgrad.tanh(x @ w) ** 2).sum(-1)


@pytest.mark.parametrize("how", [lambda f: f, compiled])
@pytest.mark.parametrize("way", ["each", "vmap", "collapse"])
def test_gradients_by_weights(how, way):
    """Reverse mode through jets of a batch of points, eager and compiled."""
    x, unit = leafgrad.stack([A[0], A[1]]), leafgrad.eye(3, dtype=F64)

    def along(w, v):
        return jet(lambda x: weighted(w, x), (x,), ([v.expand(2, 3), None],))[1][1]

    def laplacians(w):
        if way == "each":
            return sum(along(w, v) for v in unit)
        if way == "vmap":
            return vmap(lambda v: along(w, v))(unit).sum(0)
        series = ([unit[:, None].expand(3, 2, 3), None],)
        return jet(lambda x: weighted(w, x), (x,), series, collapse=True)[1][1]

    def expected(w):
        return vmap(lambda x: hessian(lambda x: weighted(w, x))(x).diagonal().sum())(x)

    run = how(lambda w: grad(lambda w: (laplacians(w) ** 2).sum())(w))
    for scale in (1.0, 0.5, 0.3, 0.7):
        w = A * scale
        assert_near(run(w), grad(lambda w: (expected(w) ** 2).sum())(w))


def test_inside_of_other_transforms():
    x, v = point()

    def curved(x):
        return jet(lambda z: (z * x).tanh(), (x,), ([v, None],))[1][1].sum()

    def by_hand(x):
        return lines(lambda z: (z * x).tanh(), x, v, 2)[2].sum()

    assert_near(grad(curved)(x), grad(by_hand)(x))
    assert_near(hessian(curved)(x), hessian(by_hand)(x))
    assert_near(jacrev(curved)(x), jacrev(by_hand)(x))
    assert_near(vmap(curved)(A), leafgrad.stack([curved(row) for row in A]))


def test_no_graph_where_nothing_is_to_be_differentiated():
    x, v = point()
    value, (first, second) = jet(leafgrad.tanh, (x,), ([v, None],))
    assert not any(t.requires_grad for t in (value, first, second))
    w = leafgrad.ones(3, dtype=F64, requires_grad=True)
    assert jet(lambda x: (x * w).tanh(), (x,), ([v, None],))[1][1].requires_grad
    with leafgrad.no_grad():
        assert not jet(lambda x: (x * w).tanh(), (x,), ([v, None],))[1][1].requires_grad


def test_vmap_of_nested_jvp_sums_gradients_once():
    w = leafgrad.tensor([0.3, 0.5], dtype=F64, requires_grad=True)
    x, unit = leafgrad.tensor([0.1, 0.2], dtype=F64), leafgrad.eye(2, dtype=F64)

    def third(v):
        return lines(lambda x: (leafgrad.tanh(x @ w.reshape(2, 1)) ** 2).sum(), x, v, 3)[3]

    (together,) = leafgrad.autograd.grad(vmap(third)(unit).sum(), w)
    (apart,) = leafgrad.autograd.grad(third(unit[0]) + third(unit[1]), w)
    assert_near(together, apart)


@pytest.mark.parametrize(
    ("primals", "series", "error", "says"),
    [
        (A, ([A],), TypeError, "primals: expected a tuple of tensors"),
        ((3.0,), ([A],), TypeError, r"primals\[0\]: expected a floating or complex tensor, got float"),
        ((leafgrad.arange(3),), ([None],), TypeError, r"primals\[0\]: expected a floating or complex tensor"),
        ((A, A), ([A],), ValueError, "series: expected a tuple with a list for each of 2 primals"),
        ((A,), (A,), TypeError, r"series\[0\]: expected a list of derivatives"),
        ((A, A), ([A, A], [A]), ValueError, r"series\[1\]: expected 2 derivatives, as in series\[0\], got 1"),
        (
            (A,),
            ([A, A[0]],),
            ValueError,
            r"series\[0\]\[1\]: expected shape \(3, 3\), that of primals\[0\], got \(3,\)",
        ),
        ((A,), ([A.float()],), ValueError, r"series\[0\]\[0\]: expected dtype leafgrad.float64"),
        ((A,), ([1.0],), TypeError, r"series\[0\]\[0\]: expected a tensor, or None for zero, got float"),
    ],
)
def test_errors(primals, series, error, says):
    with pytest.raises(error, match=says):
        jet(lambda *x: x[0], primals, series)


def test_errors_of_collapse():
    with pytest.raises(ValueError, match="expected a tensor with the curves as its first dimension"):
        jet(leafgrad.sin, (A,), ([None],), collapse=True)
    with pytest.raises(
        ValueError, match=r"series\[0\]\[0\]: expected shape \(3, 3, 3\), curves before that of primals"
    ):
        jet(leafgrad.sin, (A,), ([A],), collapse=True)


def test_a_declared_rule_goes_before_the_vjp():
    called = []

    @op("elementwise", "float")
    def doubled_exp(xp, x):
        return xp.exp(2 * x)

    doubled_exp.vjp(x=lambda g, out: g * 2 * out)

    @doubled_exp.jet
    def rule(out, x):
        called.append(len(out))
        k = len(out)
        terms = [x[j] * out[k - j] * (2 * j / k) for j in range(1, k + 1) if x[j] is not None]
        return sum(terms[1:], start=terms[0])

    x, v = point()
    _, found = jet(doubled_exp, (x,), ([v, None, None],))
    assert called == [1, 2, 3]
    for k, d in enumerate(found, 1):
        assert_near(d, (2 * v) ** k * leafgrad.exp(2 * x))
    with pytest.raises(OpDefinitionError, match="already has a jet rule"):
        doubled_exp.jet(rule)
    with pytest.raises(OpDefinitionError, match="jet rule: unknown name 'y'; it may read out, x"):
        bump.jet(lambda y: y)


def test_a_rule_that_reads_what_was_not_kept_is_an_error():
    """Taken for a zero it would give a wrong number."""

    @op("elementwise", "float")
    def tripled_exp(xp, x):
        return xp.exp(3 * x)

    tripled_exp.vjp(x=lambda g, x: g * 3 * leafgrad.exp(3 * x))
    tripled_exp.jet(lambda out, x: product(leafgrad.mul, [*out, None], x, len(out)))
    x, v = point()
    with pytest.raises(TypeError, match="Unkept"):
        jet(tripled_exp, (x,), ([v],))
