"""Forward mode: pushed along functions and graphs, as often as one likes."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import func, op, rules
from leafgrad.autograd import forward
from leafgrad.testing import fake


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def vector(t, *values):
    return t.tensor(list(values), dtype=t.float64)


# PyTorch's own forward mode uses what PyTorch deprecates.
quiet = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


@quiet
def test_func_jvp(t):
    x, v = vector(t, 0.5, 1.0), vector(t, 1.0, 10.0)
    out, tangent = t.func.jvp(t.sin, (x,), (v,))
    assert out.tolist() == pytest.approx(t.sin(x).tolist())
    assert tangent.tolist() == pytest.approx((t.cos(x) * v).tolist())
    out, tangent, aux = t.func.jvp(lambda x: ((x, x * 2), x + 1), (x,), (v,), has_aux=True)
    assert tangent[1].tolist() == [2.0, 20.0]
    assert aux.tolist() == [1.5, 2.0]


@quiet
def test_func_jvp_can_be_nested_and_differentiated(t):
    x, one = leaf(t, 0.5), vector(t, 1.0)

    def ahead(f):
        return lambda x: t.func.jvp(f, (x,), (one,))[1]

    assert ahead(ahead(ahead(t.sin)))(x.detach()).tolist() == pytest.approx((-t.cos(x)).tolist())
    assert t.autograd.grad(ahead(ahead(t.sin))(x), x)[0].tolist() == pytest.approx((-t.cos(x)).tolist())


@quiet
def test_the_direction_can_be_differentiated(t):
    x, v = vector(t, 2.0), leaf(t, 3.0)
    _, tangent = t.func.jvp(lambda x: x * x, (x,), (v,))
    assert t.autograd.grad(tangent, v)[0].tolist() == [4.0]


@quiet
def test_func_jvp_checks_its_arguments(t):
    x = t.ones(2)
    with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
        t.func.jvp(t.sin, x, x)
    with pytest.raises(RuntimeError, match="same python structure"):
        t.func.jvp(t.sin, (x,), (x, x))
    with pytest.raises(
        RuntimeError, match=r"different size than that of the original|different size than the original"
    ):
        t.func.jvp(t.sin, (x,), (t.ones(1),))


def test_without_history_nothing_requires_grad():
    out, tangent = leafgrad.func.jvp(leafgrad.sin, (leafgrad.ones(2),), (leafgrad.ones(2),))
    assert not out.requires_grad
    assert not tangent.requires_grad


def test_an_independent_output_has_no_tangent():
    x = leafgrad.ones(2)
    assert leafgrad.func.jvp(lambda x: leafgrad.ones(3), (x,), (x,))[1].tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="output 0 is independent"):
        leafgrad.func.jvp(lambda x: leafgrad.ones(3), (x,), (x,), strict=True)


def test_push_along_a_graph_as_often_as_you_like():
    x, y = leaf(leafgrad, 1.0, 2.0), leaf(leafgrad, 3.0, 4.0)
    z = x * y + x.sum()
    for scale in (1.0, 2.0):
        (t,) = forward.push((z,), (x, y), (vector(leafgrad, scale, 0.0), vector(leafgrad, 0.0, scale)))
        assert t.tolist() == [4.0 * scale, 3.0 * scale]


PIECES = {
    "elementwise": lambda x: (x * x / (1 + x.exp())).tanh() - x,
    "broadcast": lambda x: x.reshape(-1, 1) * x + x[0],
    "linear": lambda x: (x * x).reshape(2, 2).t().sum(dim=0, keepdim=True).expand(3, 2),
    "bilinear": lambda x: x.reshape(2, 2) @ (x * x).reshape(2, 2),
    "constant factor": lambda x: leafgrad.ones(3, 2, dtype=leafgrad.float64) @ (x * x).reshape(2, 2),
    "reductions": lambda x: (x * x).mean() + x.max() + x.prod() + x.logsumexp(0) + (x * x).softmax(0),
    "several outputs": lambda x: leafgrad.stack(
        [p * q for p, q in zip((x * x).split(2), x.exp().split(2), strict=True)]
    ),
    "max and index": lambda x: leafgrad.max((x * x).reshape(2, 2), dim=1)[0],
    "cat and cumsum": lambda x: leafgrad.cat([x * x, x.exp()]).cumsum(0),
    "where and clamp": lambda x: leafgrad.where(x > 0.5, x * x, x.exp()) + x.clamp(0.2, 0.6),
    "in place": lambda x: (x * 1).mul_(x).add_(x.exp()),
    "written view": lambda x: write(x * x, x),
    "conversion": lambda x: (x.to(leafgrad.float32) * 2).to(leafgrad.float64) * 0 + x,
    "gradient": lambda x: leafgrad.autograd.grad((x.exp() * x).sum(), x, create_graph=True)[0],
}


def write(y, x):
    y[1:3] = x[0:2].exp()
    return y


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("place", ["cpu", "fake:0"])
def test_forward_mode_agrees_with_differences(piece, place):
    fake.register()
    if place != "cpu" and piece == "constant factor":
        return
    x = leafgrad.tensor([0.3, 0.9, 0.45, 0.7], dtype=leafgrad.float64, device=place, requires_grad=True)
    atol = 1e-2 if piece == "conversion" else 1e-5
    leafgrad.autograd.gradcheck(PIECES[piece], x, check_forward_ad=True, atol=atol)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "body", [lambda a, y: a + y.sin(), lambda a, y: (a + y.sin()).sum(), lambda a, y: a * y.sin() + y]
)
def test_tangents_of_what_samples_share_are_differentiated_for_all_samples(t, body, shared):
    x = t.tensor([[0.5, -1.2], [1.0, 2.0]], dtype=t.float64)
    y = leaf(t, 1.1, 0.4)

    def of_batch(y):
        return t.func.vmap(body, (0, None))(x, y) if shared else t.func.vmap(lambda a: body(a, y))(x)

    found = []
    for function in (of_batch, lambda y: t.stack([body(a, y) for a in x])):
        pushed = t.func.jvp(function, (y,), (vector(t, 1.0, 2.0),))[1]
        (g,) = t.autograd.grad((pushed * pushed).sum() + pushed.sum(), y)
        found.append(g)
    assert t.allclose(*found)


# ---- ops and Functions of others, whose results are of other dtypes than their arguments ----------------------------


@op("elementwise", "complex")
def wave(xp, x):
    """exp(i x) of real x."""
    return xp.exp(1j * x)


@op("elementwise", "complex")
def power(xp, x):
    """|x|^2 of complex x."""
    return xp.real(x * xp.conj(x))


@op("elementwise", "linear", "complex")
def joined(xp, x, y):
    return x + 1j * y


@op("any_dtype")
def widened(xp, x):
    """x^2 in float64."""
    return x.astype("float64") ** 2


@op("elementwise", "complex")
def waves(xp, x):
    """exp(i x) and x^2 of real x."""
    return xp.exp(1j * x), x * x


wave.vjp(x=lambda g, out: g * rules.conj(1j * out))
power.vjp(x=lambda g, x: 2 * g * x)
joined.vjp(x=lambda g: g, y=lambda g: g * -1j)
widened.vjp(x=lambda g, x: g * 2 * x)
waves.vjp(x=lambda g, out, x: rules.real(g[0] * rules.conj(1j * out[0])) + g[1] * 2 * x)


class Wave(leafgrad.autograd.Function):
    @staticmethod
    def forward(x):
        return leafgrad.exp(1j * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        return (g * (1j * ctx.saved_tensors[0]).conj()).real


class Power(leafgrad.autograd.Function):
    @staticmethod
    def forward(z):
        return (z * z.conj()).real

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


REAL, COMPLEX = leafgrad.tensor([0.5, -1.0]), leafgrad.tensor([1 + 2j, 0.5 - 1j])
OTHERS = {
    "complex of real": (wave, lambda x: leafgrad.exp(1j * x), [REAL]),
    "real of complex": (power, lambda z: (z * z.conj()).real, [COMPLEX]),
    "linear": (joined, lambda x, y: x + 1j * y, [COMPLEX, COMPLEX * 2]),
    "float64 of float32": (widened, lambda x: x.double() ** 2, [REAL]),
    "several": (waves, lambda x: (leafgrad.exp(1j * x), x * x), [REAL]),
    "Function, complex of real": (Wave.apply, Wave.forward, [REAL]),
    "Function, real of complex": (Power.apply, Power.forward, [COMPLEX]),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("way", ["jvp", "compiled", "of samples", "twice"])
@pytest.mark.parametrize("name", OTHERS)
def test_tangents_of_others_have_the_dtypes_of_their_results(name, way):
    *both, args = OTHERS[name]
    tangents = [a * 0.5 + 1 for a in args]

    def tangent(f):
        return lambda *args: func.jvp(f, args, tuple(tangents))[1]

    def found(f):
        run = tangent(tangent(f) if way == "twice" else f)
        if way == "of samples":
            return func.vmap(lambda *each: func.jvp(f, each, each)[1])(*args)
        return (leafgrad.compile(run, executor="numpy") if way == "compiled" else run)(*args)

    got, expected = [each if isinstance(each := found(f), tuple) else (each,) for f in both]
    for a, b in zip(got, expected, strict=True):
        assert a.dtype is b.dtype
        assert a.tolist() == pytest.approx(b.tolist())
