"""Each optimizer against its formula, parameter by parameter in NumPy; and what all rules have in common."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import leafgrad
from leafgrad import optim

TESTS = "optim.ada* optim.asgd optim.muon optim.nadam optim.radam optim.rmsprop optim.rprop optim.sgd"

SHAPES = [(3, 2), (), (4,), (2, 2, 3)]
MATRICES = [(3, 2), (2, 5), (3, 2)]


# ---- the formulas: a step of one parameter, its state in the dict s -------------------------------------------------


def means(s, g, o):
    b1, b2 = o["betas"]
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    return s["m"], s["v"], b1, b2


def sgd(p, g, s, t, o):
    s["v"] = o["momentum"] * s["v"] + (1 - o["dampening"]) * g if "v" in s else g
    return p - o["lr"] * (g + o["momentum"] * s["v"] if o["nesterov"] else s["v"])


def adam(p, g, s, t, o):
    m, v, b1, b2 = means(s, g, o)
    s["most"] = np.maximum(s.get("most", 0), v) if o["amsgrad"] else v
    return p - o["lr"] * m / (1 - b1**t) / (np.sqrt(s["most"] / (1 - b2**t)) + o["eps"])


def nadam(p, g, s, t, o):
    m, v, b1, b2 = means(s, g, o)
    mu, ahead = (b1 * (1 - 0.5 * 0.96 ** (k * o["momentum_decay"])) for k in (t, t + 1))
    s["product"] = s.get("product", 1.0) * mu
    mean = mu * 0 + ahead * m / (1 - s["product"] * ahead) + (1 - mu) * g / (1 - s["product"])
    return p - o["lr"] * mean / (np.sqrt(v / (1 - b2**t)) + o["eps"])


def radam(p, g, s, t, o):
    m, v, b1, b2 = means(s, g, o)
    most = 2 / (1 - b2) - 1
    length = most - 2 * t * b2**t / (1 - b2**t)
    change = m / (1 - b1**t)
    if length > 5:
        r = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        change = change * r * math.sqrt(1 - b2**t) / (np.sqrt(v) + o["eps"])
    return p - o["lr"] * change


def adamax(p, g, s, t, o):
    m, _, b1, b2 = means(s, g, o)
    s["u"] = np.maximum(b2 * s.get("u", 0), np.abs(g) + o["eps"])
    return p - o["lr"] / (1 - b1**t) * m / s["u"]


def rmsprop(p, g, s, t, o):
    a = o["alpha"]
    s["v"] = a * s.get("v", 0) + (1 - a) * g * g
    s["g"] = a * s.get("g", 0) + (1 - a) * g
    spread = s["v"] - s["g"] ** 2 if o["centered"] else s["v"]
    s["b"] = o["momentum"] * s.get("b", 0) + g / (np.sqrt(spread) + o["eps"])
    return p - o["lr"] * s["b"]


def adagrad(p, g, s, t, o):
    s["sum"] = s.get("sum", o["initial_accumulator_value"]) + g * g
    return p - o["lr"] / (1 + (t - 1) * o["lr_decay"]) * g / (np.sqrt(s["sum"]) + o["eps"])


def adadelta(p, g, s, t, o):
    rho, eps = o["rho"], o["eps"]
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    d = np.sqrt((s.get("d", 0) + eps) / (s["v"] + eps)) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * d * d
    return p - o["lr"] * d


def asgd(p, g, s, t, o):
    eta, mu = (np.float32(s.get(name, start)) for name, start in (("eta", o["lr"]), ("mu", 1)))
    p = p * (1 - o["lambd"] * float(eta)) - float(eta) * g
    s["ax"] = s.get("ax", 0) + (p - s.get("ax", 0)) * float(mu)
    s["eta"] = o["lr"] / (1 + o["lambd"] * o["lr"] * t) ** o["alpha"]
    s["mu"] = 1 / max(1, t - o["t0"])
    return p


def rprop(p, g, s, t, o):
    trend = g * s.get("g", 0 * g)
    factor = np.where(trend < 0, o["etas"][0], np.where(trend > 0, o["etas"][1], 1.0))
    s["size"] = np.clip(s.get("size", o["lr"]) * factor, *o["step_sizes"])
    s["g"] = np.where(trend < 0, 0, g)
    return p - np.sign(s["g"]) * s["size"]


def muon(p, g, s, t, o):
    s["b"] = s.get("b", 0) * o["momentum"] + (1 - o["momentum"]) * g
    x = g * (1 - o["momentum"]) + s["b"] * o["momentum"] if o["nesterov"] else s["b"]
    x = x.T if x.shape[0] > x.shape[1] else x
    x = x / max(np.linalg.norm(x), o["eps"])
    a, b, c = o["ns_coefficients"]
    for _ in range(o["ns_steps"]):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    rows, columns = p.shape
    rate = 0.2 * math.sqrt(max(p.shape)) if o["adjust_lr_fn"] else math.sqrt(max(1, rows / columns))
    return p * (1 - o["lr"] * o["weight_decay"]) - o["lr"] * rate * (x.T if rows > columns else x)


def adafactor(p, g, s, t, o):
    eps = np.finfo(p.dtype).eps if o["eps"][0] is None else o["eps"][0]
    weight, rms = t ** o["beta2_decay"], lambda x: np.sqrt(np.mean(x * x))
    size = max(o["eps"][1], rms(p)) * min(o["lr"], 1 / math.sqrt(t))
    if p.ndim > 1:
        for name, axis in (("rows", -1), ("columns", -2)):
            s[name] = s.get(name, 0) * (1 - weight) + weight * (g * g).mean(axis, keepdims=True)
        v = s["rows"] * s["columns"] / np.maximum(s["rows"].mean(-2, keepdims=True), eps)
    else:
        v = s["v"] = s.get("v", 0) * (1 - weight) + weight * g * g
    change = g / np.sqrt(np.maximum(v, eps * eps))
    return p * (1 - o["lr"] * o["weight_decay"]) - size * change / max(1, rms(change) / o["d"])


COUPLED = {"lr": 0.1, "weight_decay": 0.2}
RULES = [
    (optim.SGD, sgd, COUPLED),
    (optim.SGD, sgd, {"momentum": 0.8, "dampening": 0.3}),
    (optim.SGD, sgd, {"momentum": 0.8, "nesterov": True}),
    (optim.Adam, adam, COUPLED),
    (optim.Adam, adam, {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-2, "amsgrad": True}),
    (optim.NAdam, nadam, COUPLED),
    (optim.NAdam, nadam, {"momentum_decay": 0.1, "betas": (0.7, 0.8), "eps": 1e-3}),
    (optim.RAdam, radam, COUPLED),
    (optim.RAdam, radam, {"lr": 0.1, "betas": (0.5, 0.5)}),
    (optim.Adamax, adamax, COUPLED),
    (optim.RMSprop, rmsprop, COUPLED),
    (optim.RMSprop, rmsprop, {"lr": 0.1, "momentum": 0.8, "centered": True, "alpha": 0.7}),
    (optim.Adagrad, adagrad, COUPLED),
    (optim.Adagrad, adagrad, {"lr_decay": 0.1, "initial_accumulator_value": 0.3}),
    (optim.Adadelta, adadelta, COUPLED),
    (optim.ASGD, asgd, {"lr": 0.1, "lambd": 0.01, "t0": 5, "weight_decay": 0.1}),
    (optim.Rprop, rprop, {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.2)}),
    (optim.Muon, muon, {"lr": 0.1}),
    (optim.Muon, muon, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    (optim.Adafactor, adafactor, {"lr": 0.1}),
    (optim.Adafactor, adafactor, {"eps": (1e-2, 1e-1), "d": 1.5, "weight_decay": 0.1}),
]
IDS = [f"{kind.__name__}-{i}" for i, (kind, *_) in enumerate(RULES)]
KINDS = {kind: options for kind, _, options in RULES}


def values(rng, kind, dtype="float64"):
    return [np.asarray(rng.normal(size=shape)).astype(dtype) for shape in (MATRICES if kind is optim.Muon else SHAPES)]


def leaves(arrays, device="cpu"):
    return [leafgrad.tensor(a, device=device, requires_grad=True) for a in arrays]


def give(params, gradients):
    for p, g in zip(params, gradients, strict=True):
        p.grad = leafgrad.tensor(g, device=p.device)


def run(optimizer, params, gradients):
    for gs in gradients:
        give(params, gs)
        optimizer.step()
    return [p.detach().cpu().numpy().copy() for p in params]


@pytest.mark.parametrize(("kind", "formula", "options"), RULES, ids=IDS)
def test_the_iterates_are_those_of_the_formula(kind, formula, options):
    rng = np.random.default_rng(0)
    expected = values(rng, kind)
    params = leaves(expected)
    optimizer = kind(params, **options)
    group = optimizer.param_groups[0]
    states = [{} for _ in params]
    for t in range(1, 23):
        gradients = values(rng, kind)
        give(params, gradients)
        optimizer.step()
        if kind not in (optim.Muon, optim.Adafactor):
            gradients = [g + group.get("weight_decay", 0) * p for g, p in zip(gradients, expected, strict=True)]
        expected = [formula(p, g, s, t, group) for p, g, s in zip(expected, gradients, states, strict=True)]
        for p, e in zip(params, expected, strict=True):
            loose = 1e-7 if kind in (optim.NAdam, optim.ASGD) else 1e-11  # numbers that are kept in float32
            np.testing.assert_allclose(p.detach().numpy(), e, rtol=loose, atol=loose)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_stays_single_and_close(kind, device):
    rng = np.random.default_rng(1)
    start, gradients = values(rng, kind), [values(rng, kind) for _ in range(4)]
    runs = []
    for dtype in ("float64", "float32"):
        params = leaves([a.astype(dtype) for a in start], device)
        optimizer = kind(params, **KINDS[kind])
        runs.append(run(optimizer, params, [[g.astype(dtype) for g in gs] for gs in gradients]))
        assert all(p.dtype.name == dtype and p.device == device for p in params)
        assert all(
            t.dtype.name == dtype for p in params for name, t in optimizer.state[p].items() if name in optimizer.slots
        )
    for a, b in zip(*runs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not optim.Muon])
def test_maximizing_is_minimizing_the_negative(kind):
    rng = np.random.default_rng(2)
    start, gradients = values(rng, kind), [values(rng, kind) for _ in range(4)]
    options = {k: v for k, v in KINDS[kind].items() if k != "weight_decay"}
    up, down = leaves(start), leaves(start)
    a = run(kind(up, **options, maximize=True), up, gradients)
    b = run(kind(down, **options), down, [[-g for g in gs] for gs in gradients])
    for x, y in zip(a, b, strict=True):
        assert x.tolist() == y.tolist()


@pytest.mark.parametrize("kind", [optim.NAdam, optim.RAdam, optim.Adam])
def test_decoupled_decay_shrinks_apart_from_the_gradient(kind):
    start = [np.array([4.0, -2.0])]
    params = leaves(start)
    run(kind(params, lr=0.1, weight_decay=0.5, decoupled_weight_decay=True), params, [[np.zeros(2)]])
    np.testing.assert_allclose(params[0].detach().numpy(), start[0] * (1 - 0.1 * 0.5), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_saving_and_loading_goes_on_where_it_was(kind):
    rng = np.random.default_rng(3)
    start, gradients = values(rng, kind), [values(rng, kind) for _ in range(6)]
    params = leaves(start)
    optimizer = kind(params, **KINDS[kind])
    run(optimizer, params, gradients[:3])
    again = [p.detach().clone().requires_grad_() for p in params]
    other = kind(again, **KINDS[kind])
    other.load_state_dict(optimizer.state_dict())
    a, b = run(optimizer, params, gradients[3:]), run(other, again, gradients[3:])
    assert [x.tobytes() for x in a] == [y.tobytes() for y in b]


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_without_gradient_is_left_out(kind):
    rng = np.random.default_rng(4)
    start = values(rng, kind)
    together, alone = leaves(start), leaves(start)
    optimizer, single = kind(together, **KINDS[kind]), kind([alone[0]], **KINDS[kind])
    for step in range(5):
        gradients = values(rng, kind)
        give(together, gradients)
        if step in (1, 2):
            together[0].grad = None
        else:
            alone[0].grad = leafgrad.tensor(gradients[0])
            single.step()
        optimizer.step()
    np.testing.assert_allclose(together[0].detach().numpy(), alone[0].detach().numpy(), rtol=1e-13)


@pytest.mark.parametrize("kind", [*KINDS, optim.SGD, optim.Adam, optim.AdamW])
def test_a_compiled_step_takes_the_same_steps_and_sees_other_rates(kind):
    runs = []
    for compiled in (False, True):
        rng = np.random.default_rng(5)
        params = leaves(values(rng, kind))
        optimizer = kind(params, **KINDS.get(kind, {"lr": 0.1}))

        def step(params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = sum(((p - 0.5) ** 4).sum() for p in params)
            loss.backward()
            optimizer.step()

        call = leafgrad.compile(step) if compiled else step
        for k in range(7):
            optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)
            call()
        runs.append([p.detach().numpy() for p in params])
    for a, b in zip(*runs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


# ---- options that all have ------------------------------------------------------------------------------------------


LAYOUT = {
    optim.SGD: {"momentum_buffer"},
    optim.Adam: {"step", "exp_avg", "exp_avg_sq"},
    optim.NAdam: {"step", "mu_product", "exp_avg", "exp_avg_sq"},
    optim.RAdam: {"step", "exp_avg", "exp_avg_sq"},
    optim.Adamax: {"step", "exp_avg", "exp_inf"},
    optim.RMSprop: {"step", "square_avg", "grad_avg", "momentum_buffer"},
    optim.Adagrad: {"step", "sum"},
    optim.Adadelta: {"step", "square_avg", "acc_delta"},
    optim.ASGD: {"step", "eta", "mu", "ax"},
    optim.Rprop: {"step", "prev", "step_size"},
    optim.Muon: {"momentum_buffer"},
    optim.Adafactor: {"step", "row_var", "col_var"},
}
EXTRA = {optim.SGD: {"momentum": 0.9}, optim.RMSprop: {"momentum": 0.9, "centered": True}}


@pytest.mark.parametrize("kind", LAYOUT)
def test_the_state_has_pytorchs_names_and_shapes(kind):
    p = leafgrad.zeros(3, 2, requires_grad=True)
    optimizer = kind([p], **EXTRA.get(kind, {}))
    p.grad = leafgrad.ones(3, 2)
    optimizer.step()
    entry = optimizer.state_dict()["state"][0]
    assert set(entry) == LAYOUT[kind]
    shapes = {"step": (), "mu_product": (), "eta": (), "mu": (), "row_var": (3, 1), "col_var": (1, 2)}
    assert {name: tuple(t.shape) for name, t in entry.items()} == {name: shapes.get(name, (3, 2)) for name in entry}


def test_adagrad_takes_complex_parameters_as_pairs():
    z = leafgrad.ones(2, dtype=leafgrad.complex128, requires_grad=True)
    pairs = leafgrad.view_as_real(z.detach().clone()).requires_grad_()
    made = [optim.Adagrad([p], lr=0.1, initial_accumulator_value=0.5) for p in (z, pairs)]
    for _ in range(3):
        z.grad = leafgrad.full((2,), 1 + 1j, dtype=leafgrad.complex128)
        pairs.grad = leafgrad.ones(2, 2, dtype=leafgrad.float64)
        for optimizer in made:
            optimizer.step()
    assert leafgrad.allclose(leafgrad.view_as_real(z.detach()), pairs.detach())


def test_sums_of_adagrad_start_alike_in_all_groups(t):
    a, b = t.zeros(1, requires_grad=True), t.zeros(1, requires_grad=True)
    groups = [{"params": [a]}, {"params": [b], "initial_accumulator_value": 0.5}]
    for start in (0.0, 0.25):
        optimizer = t.optim.Adagrad(groups, initial_accumulator_value=start)
        assert [optimizer.state[p]["sum"].item() for p in (a, b)] == [start, start]


def test_adagrad_has_its_state_from_the_start():
    optimizer = optim.Adagrad(leaves([np.zeros(2), np.zeros(3)]), initial_accumulator_value=0.5)
    assert [entry["sum"].tolist() for entry in optimizer.state.values()] == [[0.5] * 2, [0.5] * 3]


@pytest.mark.parametrize("kind", [*KINDS, optim.SGD, optim.Adam])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_rate_may_be_a_tensor(kind, shape):
    rng = np.random.default_rng(6)
    start, gradients = values(rng, kind), [values(rng, kind) for _ in range(3)]
    options = {k: v for k, v in KINDS.get(kind, {}).items() if k != "lr"}
    a, b = leaves(start), leaves(start)
    found = run(kind(a, lr=leafgrad.full(shape, 0.25), **options), a, gradients)
    expected = run(kind(b, lr=0.25, **options), b, gradients)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_what_chooses_pytorchs_implementation_changes_nothing():
    rng = np.random.default_rng(7)
    start, gradients = values(rng, optim.Adam), [values(rng, optim.Adam) for _ in range(3)]
    results = set()
    for options in ({}, {"foreach": True}, {"fused": True}, {"capturable": True}, {"foreach": False}):
        params = leaves(start)
        results.add(b"".join(x.tobytes() for x in run(optim.Adam(params, **options), params, gradients)))
    assert len(results) == 1


DIFFERENTIABLE = [
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.Adam, {"lr": 0.1, "amsgrad": True}),
    (optim.AdamW, {"lr": 0.1}),
    (optim.NAdam, {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, {"lr": 0.1, "betas": (0.5, 0.9)}),
    (optim.Adamax, {"lr": 0.1}),
    (optim.RMSprop, {"lr": 0.1, "momentum": 0.5, "centered": True}),
    (optim.Adagrad, {"lr": 0.1}),
    (optim.Adadelta, {"lr": 0.1, "eps": 1e-2}),
    (optim.ASGD, {"lr": 0.1}),
    (optim.Rprop, {"lr": 0.1}),
]


@pytest.mark.parametrize(("kind", "options"), DIFFERENTIABLE)
def test_gradients_flow_through_differentiable_steps(kind, options):
    """Steps on the loss sum w p^2 as a function of w and of the start."""

    def trained(start, w):
        p = start.clone()
        optimizer = kind([p], **options, differentiable=True)
        for _ in range(3):
            p.grad = 2 * w * p.clone()
            optimizer.step()
        return p

    start = leafgrad.tensor([0.7, -1.3], dtype=leafgrad.float64, requires_grad=True)
    w = leafgrad.tensor([1.5, 0.4], dtype=leafgrad.float64, requires_grad=True)
    leafgrad.autograd.gradcheck(trained, (start, w))


# ---- hooks ----------------------------------------------------------------------------------------------------------


def test_hooks_of_all_optimizers_stand_around_those_of_one():
    calls = []
    p = leafgrad.zeros(1, requires_grad=True)
    optimizer, other = optim.SGD([p]), optim.Adam([p])
    optimizer.register_step_pre_hook(lambda *_: calls.append("before one"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after one"))
    before = optim.optimizer.register_optimizer_step_pre_hook(lambda *_: calls.append("before all"))
    after = optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: calls.append(type(o).__name__))
    with before, after:
        optimizer.step()
        other.step()
    optimizer.step()
    assert calls == [
        *("before all", "before one", "after one", "SGD"),
        *("before all", "Adam"),
        *("before one", "after one"),
    ]


def test_a_compiled_step_notices_a_new_hook_of_all_optimizers():
    p = leafgrad.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)

    @leafgrad.compile
    def step():
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    calls = []
    with optim.optimizer.register_optimizer_step_post_hook(lambda *_: calls.append(1)):
        step()
    assert calls


def test_hooks_around_saving_and_loading():
    calls = []
    p = leafgrad.zeros(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "extra": 1})
    optimizer.register_state_dict_post_hook(lambda o, d: calls.append(sorted(d)), prepend=True)
    saved = optimizer.state_dict()
    assert saved["extra"] == 1
    assert calls == ["save", ["param_groups", "state"]]
    optimizer.register_load_state_dict_pre_hook(
        lambda o, d: {**d, "param_groups": [{**d["param_groups"][0], "lr": 0.25}]}
    )
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append(o.param_groups[0]["lr"]))
    optimizer.load_state_dict(saved)
    assert calls[-1] == 0.25
    assert saved["param_groups"][0]["lr"] == 0.5
    with pytest.raises(TypeError, match="hook: expected a function, got int"):
        optimizer.register_step_post_hook(3)


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optim.NAdam(p, momentum_decay=-1), ValueError, "Invalid momentum_decay value: -1"),
        (lambda p: optim.RAdam(p, betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda p: optim.Adamax(p, eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: optim.RMSprop(p, alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda p: optim.Adagrad(p, initial_accumulator_value=-1), ValueError, "Invalid initial_accumulator_value"),
        (lambda p: optim.Adadelta(p, rho=1.1), ValueError, "Invalid rho value: 1.1"),
        (lambda p: optim.ASGD(p, weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda p: optim.RMSprop(p, weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda p: optim.Rprop(p, etas=(1.5, 2.0)), ValueError, "Invalid eta values: 1.5, 2.0"),
        (lambda p: optim.Muon(p), ValueError, r"Muon only supports 2D parameters .* size: \[2\]"),
        (lambda p: optim.Muon([], adjust_lr_fn="x"), ValueError, "Adjust learning rate function x is not supported"),
        (lambda p: optim.Adafactor(p, d=0.5), ValueError, "clipping threshold d: 0.5; expected it to be at least 1"),
        (lambda p: optim.SGD(p, lr=leafgrad.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda p: optim.Adam(p, fused=True, foreach=True), RuntimeError, "`fused` and `foreach` cannot be `True`"),
        (lambda p: optim.SGD(p, fused=True, differentiable=True), RuntimeError, "`fused` and `differentiable`"),
        (lambda p: optim.Adam(p, betas=(0.9, leafgrad.tensor(0.9))), ValueError, "both floats or both Tensors"),
    ],
)
def test_errors_say_what_was_expected(make, error, message):
    with pytest.raises(error, match=message):
        make([leafgrad.zeros(2, requires_grad=True)])


def test_muon_refuses_what_it_cannot_iterate():
    p = leafgrad.zeros(2, 2, requires_grad=True)
    p.grad = leafgrad.ones(2, 2)
    for options, message in (({"ns_steps": 100}, "less than 100"), ({"ns_coefficients": (1, 2)}, "exactly 3 values")):
        with pytest.raises(ValueError, match=message):
            optim.Muon([p], **options).step()


def test_muon_steps_along_nearly_orthogonal_matrices():
    leafgrad.manual_seed(0)
    p = leafgrad.zeros(6, 4, requires_grad=True)
    p.grad = leafgrad.randn(6, 4)
    optim.Muon([p], lr=1.0, weight_decay=0, momentum=0).step()
    singular = leafgrad.linalg.svdvals(p.detach()) / math.sqrt(6 / 4)
    assert 0.6 < singular.min().item() <= singular.max().item() < 1.3


DEFAULTS = {
    "ASGD": {"lr": 0.01, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0},
    "Adadelta": {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0},
    "Adafactor": {"lr": 0.01, "beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0, "weight_decay": 0.0},
    "Adagrad": {"lr": 0.01, "lr_decay": 0, "weight_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10},
    "Adam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False},
    "AdamW": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False},
    "Adamax": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0},
    "LBFGS": {"lr": 1, "max_iter": 20, "max_eval": None, "tolerance_grad": 1e-7, "tolerance_change": 1e-9,
              "history_size": 100, "line_search_fn": None},
    "Muon": {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True,
             "ns_coefficients": (3.4445, -4.775, 2.0315), "eps": 1e-7, "ns_steps": 5},
    "NAdam": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "momentum_decay": 4e-3},
    "RAdam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0},
    "RMSprop": {"lr": 0.01, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0, "momentum": 0, "centered": False},
    "Rprop": {"lr": 0.01, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)},
    "SGD": {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False},
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_pytorchs(name):
    parameters = inspect.signature(getattr(optim, name)).parameters
    assert {key: parameters[key].default for key in DEFAULTS[name]} == DEFAULTS[name]


def test_every_optimizer_has_its_defaults_here():
    made = {n for n, kind in vars(optim).items() if isinstance(kind, type) and issubclass(kind, optim.Optimizer)}
    assert made - {"Optimizer"} == DEFAULTS.keys()
