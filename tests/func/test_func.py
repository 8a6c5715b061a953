"""leafgrad.func: derivatives of functions in any order and nesting, and modules as functions. On PyTorch, too."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad

TESTS = "autograd.local func.arguments func.derivatives func.jacobians func.level func.modules"

# PyTorch's forward mode and linearize warn about their own insides.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning"),
]

RNG = np.random.default_rng(0)
X, W, V = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=4)


def close(actual, expected, rtol=1e-11):
    np.testing.assert_allclose(actual.detach().numpy(), np.asarray(expected), rtol=rtol, atol=1e-13)


def energy(t):
    return lambda x, w: (t.tanh(x @ w) ** 2).sum()


def slopes(x, w):
    y = np.tanh(x @ w)
    inner = 2 * y * (1 - y * y)
    return inner @ w.T, x.T @ inner


# ---- gradients ----------------------------------------------------------------------------------------------------


def test_grad(t):
    x, w = t.tensor(X), t.tensor(W)
    by_x, by_w = slopes(X, W)
    close(t.func.grad(energy(t))(x, w), by_x)
    close(t.func.grad(energy(t), argnums=-1)(x, w), by_w)
    both = t.func.grad(energy(t), argnums=(1, 0))(x, w)
    assert isinstance(both, tuple)
    close(both[0], by_w)
    close(both[1], by_x)
    found, value = t.func.grad_and_value(energy(t))(x, w)
    close(found, by_x)
    close(value, (np.tanh(X @ W) ** 2).sum())
    assert not found.requires_grad
    assert not value.requires_grad


def test_grad_of_nested_arguments_and_aux(t):
    p = {"w": t.tensor(V), "b": (t.tensor(2.0, dtype=t.float64),)}

    def function(p, *, scale):
        y = (p["w"] ** 2).sum() * p["b"][0] * scale
        return y, {"twice": 2 * y}

    found, aux = t.func.grad(function, has_aux=True)(p, scale=3.0)
    close(found["w"], 12 * V)
    close(found["b"][0], 3 * (V**2).sum())
    close(aux["twice"], 12 * (V**2).sum())
    assert not aux["twice"].requires_grad
    found, (value, aux) = t.func.grad_and_value(function, has_aux=True)(p, scale=3.0)
    close(value, 6 * (V**2).sum())
    constant = t.func.grad(lambda x: t.tensor(3.0))(t.tensor(V))
    close(constant, np.zeros(4))


def test_derivatives_nest(t):
    x = t.tensor(V)
    third = t.func.grad(lambda x: t.func.grad(lambda y: t.func.grad(lambda z: (z**4).sum())(y).sum())(x).sum())
    close(third(x), 24 * V)
    mixed = t.func.grad(lambda x: (x * t.func.grad(lambda y: (x * y).sum())(t.ones(4, dtype=t.float64))).sum())
    close(mixed(x), 2 * V)  # the inner derivative is by y alone


def test_what_is_recorded_outside(t):
    x, w = t.tensor(V), t.tensor(2.0, dtype=t.float64, requires_grad=True)
    found = t.func.grad(lambda x: (w * x**3).sum())(x)
    assert found.requires_grad
    close(t.autograd.grad(found.sum(), w)[0], 3 * (V**2).sum())
    assert not t.func.grad(lambda x: (x**3).sum() + w)(x).requires_grad
    with t.no_grad():
        assert not t.func.grad(lambda x: (w * x**3).sum())(x).requires_grad
    leaf = t.tensor(V, requires_grad=True)
    found, value = t.func.grad_and_value(lambda x: (x**3).sum())(leaf)
    assert found.requires_grad
    close(t.autograd.grad(found.sum() + value, leaf)[0], 6 * V + 3 * V**2)
    assert leaf.grad is None

    def untracked(x):
        with t.no_grad():
            factor = x.sum()
        return (x * factor).sum()

    close(t.func.grad(untracked)(x), np.full(4, V.sum()))


def test_inputs_are_leaves_inside(t):
    def function(x):
        assert x.requires_grad
        assert x.is_leaf
        return x.sum()

    x = t.tensor(V)
    t.func.grad(function)(x)
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        t.func.grad(lambda x: x.add_(1).sum())(x)


# ---- vjp, jvp, linearize --------------------------------------------------------------------------------------------


def test_vjp(t):
    x, v = t.tensor(V), t.tensor(X[0])
    value, pull = t.func.vjp(lambda a, b: {"p": a * b, "s": (a.sum(),)}, x, v)
    close(value["p"], V * X[0])
    for _ in range(2):
        a, b = pull({"p": v, "s": (t.tensor(2.0, dtype=t.float64),)})
        close(a, X[0] ** 2 + 2)
        close(b, V * X[0])
    _, pull, aux = t.func.vjp(lambda a: (a * 2, a.sum()), x, has_aux=True)
    close(aux, V.sum())
    close(t.func.vmap(pull)(t.tensor(X))[0], 2 * X)
    with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents to be the same"):
        pull((x, x))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        pull(t.tensor(X))
    with pytest.raises(RuntimeError, match="All outputs of f must be floating"):
        t.func.vjp(lambda a: a > 0, x)


def test_jvp(t):
    x, v = t.tensor(V), t.tensor(X[0])
    value, moved = t.func.jvp(lambda d: {"y": t.sin(d["x"]) * d["x"].sum()}, ({"x": x},), ({"x": v},))
    close(value["y"], np.sin(V) * V.sum())
    close(moved["y"], np.cos(V) * X[0] * V.sum() + np.sin(V) * X[0].sum())
    second = t.func.jvp(lambda x: t.func.jvp(lambda y: y**3, (x,), (v,))[1], (x,), (v,))[1]
    close(second, 6 * V * X[0] ** 2)
    _, moved, aux = t.func.jvp(lambda x: (x * 2, x), (x,), (v,), has_aux=True)
    close(moved, 2 * X[0])
    close(aux, V)
    with pytest.raises(RuntimeError, match="Expected primals and tangents to have the same python structure"):
        t.func.jvp(t.sin, (x,), (v, v))
    with pytest.raises(RuntimeError, match="to only contain Tensors"):
        t.func.jvp(t.sin, (x,), (3,))
    with pytest.raises(RuntimeError, match="independent of"):
        t.func.jvp(lambda x: v, (x,), (v,), strict=True)


def test_linearize(t):
    x, v = t.tensor(V), t.tensor(X[0])
    value, push = t.func.linearize(lambda x: t.sin(x) * x.sum(), x)
    close(value, np.sin(V) * V.sum())
    close(push(v), np.cos(V) * X[0] * V.sum() + np.sin(V) * X[0].sum())
    close(t.func.vmap(push)(t.tensor(X))[0], np.cos(V) * X[0] * V.sum() + np.sin(V) * X[0].sum())
    with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
        push(v, v)


# ---- Jacobians ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["jacrev", "jacfwd"])
def test_jacobians(t, mode):
    jac, x, w = getattr(t.func, mode), t.tensor(X), t.tensor(W)
    close(jac(lambda x: t.sin(x))(t.tensor(V)), np.diag(np.cos(V)))
    by_x, by_w = jac(lambda x, w: x @ w, argnums=(0, 1))(x, w)
    close(by_x, np.einsum("ik,lj->ijkl", np.eye(3), W))
    close(by_w, np.einsum("ik,jl->ijkl", X, np.eye(2)))
    table = jac(lambda d: {"s": (d["x"].sum(),), "q": d["x"] ** 2})({"x": t.tensor(V)})
    close(table["s"][0]["x"], np.ones(4))
    close(table["q"]["x"], np.diag(2 * V))
    found, aux = jac(lambda x: (x**2, x.sum()), has_aux=True)(t.tensor(V))
    close(found, np.diag(2 * V))
    close(aux, V.sum())
    close(jac(lambda x: t.ones(2, dtype=t.float64))(t.tensor(V)), np.zeros((2, 4)))
    assert tuple(jac(lambda x: x * 2)(t.ones(0)).shape) == (0, 0)


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_second_derivatives_by_any_two_modes(t, outer, inner):
    outer, inner = getattr(t.func, outer), getattr(t.func, inner)
    found = outer(inner(lambda x: (t.softmax(x, 0) * x**2).sum() + t.logsumexp(x, 0)))(t.tensor(V))

    def gradient(v):
        p = np.exp(v) / np.exp(v).sum()
        return p * (v**2 - (p * v**2).sum()) + 2 * p * v + p

    h = 1e-5 * np.eye(4)
    close(found, np.stack([(gradient(V + d) - gradient(V - d)) / 2e-5 for d in h]), rtol=1e-6)
    many = t.func.vmap(outer(inner(lambda x: (x**3).sum() * x[0])))(t.tensor(X))
    close(many[0], outer(inner(lambda x: (x**3).sum() * x[0]))(t.tensor(X[0])).numpy())


def test_hessian(t):
    x, y = t.tensor(V), t.tensor(X[0])
    close(t.func.hessian(lambda x: (x**3).sum())(x), np.diag(6 * V))
    table = t.func.hessian(lambda x, y: (x**2).sum() * (y**3).sum(), argnums=(0, 1))(x, y)
    close(table[0][1], np.outer(2 * V, 3 * X[0] ** 2))
    close(table[1][1], (V**2).sum() * np.diag(6 * X[0]))


def test_chunks_of_rows(t):
    whole = t.func.jacrev(lambda x: t.tanh(x @ t.tensor(W)))(t.tensor(X))
    parts = t.func.jacrev(lambda x: t.tanh(x @ t.tensor(W)), chunk_size=4)(t.tensor(X))
    close(parts, whole.numpy())
    with pytest.raises(ValueError, match="`chunk_size` should be greater than 0"):
        t.func.jacrev(t.sin, chunk_size=0)


# ---- with vmap ----------------------------------------------------------------------------------------------------


def test_derivatives_and_batches_in_any_order(t):
    x, w = t.tensor(X), t.tensor(W)
    close(t.func.vmap(t.func.grad(energy(t)), in_dims=(0, None))(x, w), slopes(X, W)[0])
    each = t.func.vmap(t.func.grad(energy(t), argnums=1), in_dims=(0, None))(x, w)
    close(each, np.stack([slopes(row[None], W)[1] for row in X]))
    close(t.func.grad(lambda w: t.func.vmap(energy(t), in_dims=(0, None))(x, w).sum())(w), slopes(X, W)[1])
    rows = t.func.jacrev(lambda x: t.func.vmap(lambda r: t.cumprod(r, 0))(x))(x)
    close(t.func.jacfwd(lambda x: t.func.vmap(lambda r: t.cumprod(r, 0))(x))(x), rows.numpy())
    close(t.func.vmap(t.func.jacfwd(lambda r: t.cumprod(r, 0)))(x)[1], rows.numpy()[1, :, 1, :])
    moved = t.func.jvp(lambda x: t.func.vmap(lambda r: t.softmax(r, 0))(x), (x,), (2 * x,))[1]
    p = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    close(moved, p * (2 * X - (p * 2 * X).sum(1, keepdims=True)))


def network(t, features=4, classes=3):
    t.manual_seed(0)
    layers = t.nn.Linear(features, 6), t.nn.Tanh(), t.nn.LayerNorm(6), t.nn.Linear(6, classes)
    return t.nn.Sequential(*layers).double()


def test_gradients_of_each_sample(t):
    model, x, y = network(t), t.tensor(X), t.tensor([0, 2, 1])
    params = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params, x, y):
        out = t.func.functional_call(model, params, (x[None],))
        return t.nn.functional.cross_entropy(out, y[None])

    each = t.func.vmap(t.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for k in range(3):
        alone = t.nn.functional.cross_entropy(model(x[k : k + 1]), y[k : k + 1])
        for (name, p), g in zip(params.items(), t.autograd.grad(alone, list(model.parameters())), strict=True):
            assert each[name].shape == (3, *p.shape)
            close(each[name][k], g.numpy())


def test_gradients_of_each_sample_of_a_convolution(t):
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.ReLU(), t.nn.MaxPool2d(2), t.nn.Flatten(), t.nn.Linear(8, 2))
    model, x = model.double(), t.tensor(RNG.normal(size=(3, 1, 6, 6)))
    params = {name: p.detach() for name, p in model.named_parameters()}
    each = t.func.vmap(
        t.func.grad(lambda p, x: (t.func.functional_call(model, p, (x[None],)) ** 2).sum()), in_dims=(None, 0)
    )(params, x)
    for k in range(3):
        alone = t.autograd.grad((model(x[k : k + 1]) ** 2).sum(), list(model.parameters()))
        for name, g in zip(params, alone, strict=True):
            close(each[name][k], g.numpy())


def residual_of(name, t, model):
    """u_t + u u_x - u_xx + u_xxt of a network at points, by transforms nested in different ways."""
    f, g, v = t.func, t.func.grad, t.func.vmap
    unit = t.tensor([1.0, 0.0], dtype=t.float64)

    def u(x):
        return model(x)[0]

    def along(function):
        return lambda x: f.jvp(function, (x,), (unit,))[1]

    def first(function):
        return lambda x: function(x)[0]

    ways = {
        "grad of grad": (v(g(u)), v(g(first(g(u)))), v(g(first(g(first(g(u))))))),
        "hessian": (v(g(u)), v(lambda x: f.hessian(u)(x)[0]), v(lambda x: f.jacfwd(f.hessian(u))(x)[0, 0])),
        "jacrev": (v(f.jacrev(u)), v(f.jacrev(first(f.jacrev(u)))), v(f.jacrev(first(f.jacfwd(first(f.jacrev(u))))))),
        "jvp": (v(g(u)), v(along(g(u))), v(along(along(g(u))))),
        "vmap inside": tuple(
            outer(lambda x: v(u)(x).sum())
            for outer in (
                g,
                lambda s: g(lambda x: g(s)(x)[:, 0].sum()),
                lambda s: g(lambda x: g(lambda y: g(s)(y)[:, 0].sum())(x)[:, 0].sum()),
            )
        ),
    }
    du, d2u, d3u = ways[name]
    return lambda x: du(x)[:, 1] + model(x)[:, 0] * du(x)[:, 0] - d2u(x)[:, 0] + d3u(x)[:, 1]


WAYS = ["grad of grad", "hessian", "jacrev", "jvp", "vmap inside"]


def by_autograd(t, model, x):
    x = x.clone().requires_grad_()
    u = model(x)
    (du,) = t.autograd.grad(u.sum(), x, create_graph=True)
    (d2u,) = t.autograd.grad(du[:, 0].sum(), x, create_graph=True)
    (d3u,) = t.autograd.grad(d2u[:, 0].sum(), x, create_graph=True)
    return du[:, 1] + u[:, 0] * du[:, 0] - d2u[:, 0] + d3u[:, 1]


@pytest.mark.parametrize("way", WAYS)
def test_third_derivatives_and_gradients_by_parameters(way):
    t, x = leafgrad, leafgrad.tensor(X[:, :2])
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(2, 4), t.nn.Tanh(), t.nn.Linear(4, 1)).double()
    parameters = list(model.parameters())
    expected = by_autograd(t, model, x)
    residual = residual_of(way, t, model)
    close(residual(x), expected.detach().numpy())

    def gradients():
        return t.autograd.grad((residual(x) ** 2).mean(), parameters)

    wanted = t.autograd.grad((expected**2).mean(), parameters, create_graph=True)
    compiled = t.compile(gradients) if way in ("grad of grad", "jvp") else gradients
    for found in (gradients(), compiled(), compiled()):
        for a, b in zip(found, wanted, strict=True):
            close(a, b.detach().numpy(), rtol=1e-9)
    ours = t.autograd.grad((residual(x) ** 2).mean(), parameters, create_graph=True)
    for a, b in zip(
        *(t.autograd.grad(sum((g**2).sum() for g in gs), parameters) for gs in (ours, wanted)), strict=True
    ):
        close(a, b.numpy(), rtol=1e-8)


def test_laplacian(t):
    model, x = network(t, 4, 1), t.tensor(X)
    found = t.func.vmap(lambda x: t.func.hessian(lambda x: model(x)[0])(x).diagonal().sum())(x)
    leaf = t.tensor(X, requires_grad=True)
    (first,) = t.autograd.grad(model(leaf).sum(), leaf, create_graph=True)
    parts = [t.autograd.grad(first[:, k].sum(), leaf, retain_graph=True)[0][:, k] for k in range(4)]
    close(found, sum(p.numpy() for p in parts))


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_compiled(executor):
    t, model, x, y = leafgrad, network(leafgrad), leafgrad.tensor(X), leafgrad.tensor([0, 2, 1])

    def loss(params, x, y):
        out = t.func.functional_call(model, params, (x[None],))
        return t.nn.functional.cross_entropy(out, y[None])

    def step(params, x, y):
        each = t.func.vmap(t.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
        curved = t.func.vmap(t.func.hessian(lambda x: t.func.functional_call(model, params, (x,)).sum()))(x)
        rows = t.func.jacrev(lambda x: t.softmax(x, -1), chunk_size=5)(x)
        return each, curved, rows, t.func.jacfwd(lambda x: t.cumprod(x, 1))(x)

    params = {name: p.detach() for name, p in model.named_parameters()}
    expected, compiled = step(params, x, y), t.compile(step, executor=executor)
    for _ in range(3):
        found = compiled(params, x, y)
        for name in params:
            close(found[0][name], expected[0][name].numpy())
        for a, b in zip(found[1:], expected[1:], strict=True):
            close(a, b.numpy())


def test_an_optimizer_trains_through_transforms():
    t, model = leafgrad, network(leafgrad, 1, 1)
    adam, x = t.optim.Adam(model.parameters(), lr=0.01), t.linspace(0, 1, 10, dtype=t.float64)[:, None]

    def step():
        slope = t.func.vmap(t.func.grad(lambda x: model(x).sum()))(x)
        loss = ((slope - 1) ** 2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss

    before = step().item()
    compiled = t.compile(step)
    for _ in range(30):
        compiled()
    assert compiled().item() < before / 10


# ---- modules ------------------------------------------------------------------------------------------------------


def tied(t):
    class Tied(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = t.nn.Linear(4, 4, bias=False)
            self.b = t.nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("calls", t.zeros(()))

        def forward(self, x, *, scale=1.0):
            self.calls = self.calls + 1
            return self.b(self.a(x)) * scale

    return Tied()


def test_functional_call(t):
    model, x, eye = t.nn.Linear(4, 4), t.ones(4), t.eye(4)
    before = model.weight
    call = t.func.functional_call
    close(call(model, {"weight": 2 * eye, "bias": x}, x), np.full(4, 3.0))
    close(call(model, ({"weight": 2 * eye}, {"bias": x}), (x,)), np.full(4, 3.0))
    close(call(model, {"weight": 2 * eye, "bias": x}, kwargs={"input": x}), np.full(4, 3.0))
    close(call(model, {"weight": 2 * eye, "bias": x, "other": x}, x), np.full(4, 3.0))
    assert model.weight is before
    with pytest.raises(RuntimeError, match=r"reparametrizing for Linear:\s+Missing key\(s\): 'bias'"):
        call(model, {"weight": eye}, x, strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'other'"):
        call(model, {"weight": eye, "bias": x, "other": x}, x, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        call(model, ({"weight": eye}, {"weight": eye}), x)
    with pytest.raises(ValueError, match="to be a dict, or a list/tuple of dicts"):
        call(model, 3, x)
    with pytest.raises(ValueError, match="all elements of parameter_and_buffer_dicts to be dictionaries"):
        call(model, (3,), x)
    with pytest.raises(TypeError):
        call(model, {"weight": 3}, x)
    with pytest.raises(RuntimeError):
        call(model, {"weight": t.ones(3)}, x)
    assert model.weight is before  # after an error, too


def test_tied_parameters_and_buffers(t):
    model, x, eye = tied(t), t.ones(4), t.eye(4)
    call = t.func.functional_call
    state = {"a.weight": 2 * eye, "calls": t.zeros(())}
    close(call(model, state, x, {"scale": 3.0}), np.full(4, 12.0))
    assert state["calls"].item() == 1
    assert model.calls.item() == 0
    close(call(model, {"b.weight": 2 * eye}, x), np.full(4, 4.0))
    close(call(model, {"a.weight": 2 * eye, "b.weight": eye}, x, tie_weights=False), np.full(4, 2.0))
    with pytest.raises(ValueError, match=r"multiple values for keys .*, which are tied"):
        call(model, {"a.weight": 2 * eye, "b.weight": eye}, x)


def test_many_models_at_once(t):
    models = [network(t) for _ in range(3)]
    for k, model in enumerate(models):
        with t.no_grad():
            model[0].weight.mul_(k + 1)
    params, buffers = t.func.stack_module_state(models)
    assert params["0.weight"].shape == (3, 6, 4)
    assert params["0.weight"].requires_grad
    assert params["0.weight"].is_leaf

    def call(params, buffers, x):
        return t.func.functional_call(models[0], (params, buffers), (x,))

    x = t.tensor(X)
    out = t.func.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    close(out, t.stack([model(x) for model in models]).detach().numpy())
    out.sum().backward()
    models[1](x).sum().backward()
    close(params["3.weight"].grad[1], models[1][3].weight.grad.numpy())
    for wrong, match in (([], "at least one model"), ([t.nn.Tanh(), t.nn.ReLU()], "of the same class")):
        with pytest.raises(RuntimeError, match=match):
            t.func.stack_module_state(wrong)
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        t.func.stack_module_state([t.nn.Tanh(), t.nn.Tanh().eval()])


# ---- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "options", "error", "pattern"),
    [
        (lambda x: x, {}, RuntimeError, "to return a scalar Tensor, got tensor with 2 dims. Maybe you wanted to use"),
        (lambda x: 3, {}, RuntimeError, "to return a Tensor, got <class 'int'>"),
        (lambda x: x.sum(), {"argnums": 2}, RuntimeError, "Got argnum=2, but only 1 positional inputs"),
        (lambda x: x.sum(), {"argnums": (0, 0)}, RuntimeError, "argnums elements must be unique"),
        (lambda x: x.sum(), {"argnums": ()}, RuntimeError, "argnums must be non-empty"),
        (lambda x: x.sum(), {"argnums": "x"}, RuntimeError, r"argnums must be int or Tuple\[int, ...\], got"),
        (lambda x: x.sum(), {"has_aux": True}, RuntimeError, r"should be a tuple: \(output, aux\) if has_aux is True"),
    ],
)
def test_errors_of_grad(t, function, options, error, pattern):
    with pytest.raises(error, match=pattern):
        t.func.grad(function, **options)(t.tensor(X))


def test_errors_of_arguments(t):
    with pytest.raises(RuntimeError, match=r"only Tensors of floating point.* dtype can require gradients"):
        t.func.grad(lambda x: x.sum())(t.tensor(3))
    with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got <class 'float'>"):
        t.func.grad(lambda x: x**2)(3.0)
    with pytest.raises(RuntimeError, match=r"non-empty output \(got output = \[None\]\)"):
        t.func.jacrev(lambda x: None)(t.tensor(V))
    with pytest.raises(RuntimeError, match="return only tensors, got unsupported type <class 'int'>"):
        t.func.jacrev(lambda x: (x, 3))(t.tensor(V))


def test_what_is_no_module():
    with pytest.raises(TypeError, match=r"functional_call: module: expected an nn\.Module, got int"):
        leafgrad.func.functional_call(3, {}, ())


def test_gradients_of_what_is_the_same_for_all_samples(t):
    c, x = t.arange(3.0), t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    same = {
        "itself": lambda x: t.func.vmap(lambda y: x)(c).sum(),
        "computed": lambda x: t.func.vmap(lambda y: x * x)(t.stack([c, c])).sum(),
        "of what is mapped": lambda x: t.func.vmap(lambda y: x * c)(t.stack([x, x])).sum(),
    }
    expected = {
        "itself": lambda v: 0 * v + 3,
        "computed": lambda v: 4 * v,
        "of what is mapped": lambda v: 2 * np.arange(3.0) + 0 * v,
    }
    for name, f in same.items():
        close(t.func.grad(f)(x[0]), expected[name](np.array([1.0, 2.0, 3.0])))
        close(t.func.vmap(t.func.grad(f))(x), expected[name](x.numpy()))
        leaf = x.clone().requires_grad_()
        f(leaf[0]).backward()
        close(leaf.grad[0], expected[name](np.array([1.0, 2.0, 3.0])))


def test_batch_normalization_without_running_averages(t):
    model = t.nn.Sequential(t.nn.BatchNorm1d(2), t.nn.Sequential(t.nn.BatchNorm1d(2)), t.nn.InstanceNorm1d(2))
    x = t.tensor([[1.0, 2.0], [3.0, 5.0], [4.0, 0.0]], dtype=t.float32)
    norms = model[:2]
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        t.func.grad(lambda x: norms(x).sum())(x)
    assert t.func.replace_all_batch_norm_modules_(model) is model
    assert norms[0].running_mean is None
    assert not norms[1][0].track_running_stats
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert t.func.grad(lambda x: norms(x).sum())(x).shape == x.shape
    assert t.func.vmap(norms)(t.stack([x, x + 1])).shape == (2, 3, 2)
    norms.eval()
    assert abs(norms(x).mean(0)).max() < 1e-6


def test_tangents_of_another_dtype(t):
    """They are cast to that of the primal, through which they can be differentiated."""
    x, v = t.ones(2, dtype=t.float64), t.ones(2)
    tangent = t.func.jvp(lambda x: x**2, (x,), (v,))[1]
    assert (tangent.dtype, tangent.tolist()) == (t.float64, [2, 2])
    by_tangent = t.func.grad(lambda v: t.func.jvp(lambda x: x**2, (x,), (v,))[1].sum())(v)
    assert (by_tangent.dtype, by_tangent.tolist()) == (t.float32, [2, 2])
