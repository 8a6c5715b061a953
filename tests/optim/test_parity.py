"""Optimizers and schedules against PyTorch's, where it is installed: the same iterates, the same learning rates."""

from __future__ import annotations

import warnings
from functools import partial

import pytest

import leafgrad
import leafgrad.optim

torch = pytest.importorskip("torch")

SHAPES = [(3, 2), (), (4,), (1, 2, 2)]


def values(seed, shapes=SHAPES):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def pair(kind=torch.float64, seed=0):
    """The same parameters in PyTorch and here."""
    start = [v.to(kind) for v in values(seed)]
    theirs = [v.clone().requires_grad_() for v in start]
    return theirs, [leafgrad.tensor(v.numpy(), requires_grad=True) for v in start]


def give_gradients(theirs, ours, step, missing=()):
    for i, (t, p, v) in enumerate(zip(theirs, ours, values(100 + step), strict=True)):
        absent = i in missing
        t.grad = None if absent else v.to(t.dtype)
        p.grad = None if absent else leafgrad.tensor(v.to(t.dtype).numpy())


def assert_same(theirs, ours, tolerance=1e-13):
    for t, p in zip(theirs, ours, strict=True):
        assert str(p.dtype).split(".")[-1] == str(t.dtype).split(".")[-1]
        assert tuple(p.shape) == tuple(t.shape)
        difference = torch.as_tensor(p.detach().numpy()) - t.detach()
        assert difference.abs().max() <= tolerance * (1 + t.detach().abs().max())


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.5), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.2}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.3, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.5), "maximize": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 5, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.2)}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-3, 1e-2), "d": 1.5, "weight_decay": 0.1, "maximize": True}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 2e-6)])
def test_the_iterates_are_pytorchs(name, options, kind, tolerance):
    theirs, ours = pair(kind)
    their_optimizer = getattr(torch.optim, name)(theirs, **options)
    our_optimizer = getattr(leafgrad.optim, name)(ours, **options)
    if name == "NAdam":
        tolerance = max(tolerance, 1e-8)  # PyTorch rounds a factor to float32 before it is used
    for step in range(22):
        give_gradients(theirs, ours, step)
        their_optimizer.step()
        our_optimizer.step()
        assert_same(theirs, ours, tolerance)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS[2:])
def test_parameters_without_gradient_are_left_out_as_in_pytorch(name, options):
    theirs, ours = pair()
    their_optimizer = getattr(torch.optim, name)(theirs, **options)
    our_optimizer = getattr(leafgrad.optim, name)(ours, **options)
    for step, missing in enumerate([(0,), (), (1, 2), (), (0, 1, 2, 3), (3,), (3,), ()]):
        give_gradients(theirs, ours, step, missing)
        their_optimizer.step()
        our_optimizer.step()
        assert_same(theirs, ours, 1e-8 if name == "NAdam" else 1e-13)
    for t, p in zip(theirs, ours, strict=True):
        for key, value in their_optimizer.state[t].items():
            found = our_optimizer.state[p][key].to(leafgrad.float64)
            assert_same([torch.as_tensor(value, dtype=torch.float64)], [found], 1e-7 if name == "NAdam" else 1e-13)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adafactor"])
def test_a_nan_reaches_what_it_does_in_pytorch(name):
    theirs, ours = pair()
    their_optimizer = getattr(torch.optim, name)(theirs, lr=0.1)
    our_optimizer = getattr(leafgrad.optim, name)(ours, lr=0.1)
    for step in range(3):
        give_gradients(theirs, ours, step)
        for p in (*theirs, *ours):
            p.grad.reshape(-1)[0] = float("nan")
        their_optimizer.step()
        our_optimizer.step()
        for t, p in zip(theirs, ours, strict=True):
            assert torch.allclose(torch.from_numpy(p.detach().numpy()), t.detach(), rtol=1e-9, equal_nan=True)


def converted(state_dict, convert):
    """The same state_dict with the other library's tensors."""
    state = {i: {k: convert(v) for k, v in entry.items()} for i, entry in state_dict["state"].items()}
    return {"state": state, "param_groups": state_dict["param_groups"]}


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS[2:])
def test_a_state_dict_of_pytorchs_can_be_loaded(name, options):
    theirs, ours = pair()
    their_optimizer = getattr(torch.optim, name)(theirs, **options)
    for step in range(3):
        give_gradients(theirs, ours, step)
        their_optimizer.step()
    saved = their_optimizer.state_dict()  # with PyTorch's own tensors
    ours = [leafgrad.tensor(t.detach().numpy(), requires_grad=True) for t in theirs]
    our_optimizer = getattr(leafgrad.optim, name)(ours, **options)
    our_optimizer.load_state_dict(saved)
    their_optimizer = getattr(torch.optim, name)(theirs, **options)
    their_optimizer.load_state_dict(converted(our_optimizer.state_dict(), lambda t: torch.tensor(t.numpy())))
    for step in range(3, 6):
        give_gradients(theirs, ours, step)
        their_optimizer.step()
        our_optimizer.step()
        assert_same(theirs, ours, 1e-8 if name == "NAdam" else 1e-13)


@pytest.mark.parametrize(
    "options", [{"lr": 0.1}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}, {"ns_steps": 3, "momentum": 0.5}]
)
def test_muon_takes_pytorchs_steps_but_for_bfloat16(options, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda t: t.clone())
    start = values(0, [(3, 2), (2, 5), (3, 2)])
    theirs = [v.clone().requires_grad_() for v in start]
    ours = [leafgrad.tensor(v.numpy(), requires_grad=True) for v in start]
    their_optimizer, our_optimizer = torch.optim.Muon(theirs, **options), leafgrad.optim.Muon(ours, **options)
    for step in range(20):
        for t, p, v in zip(theirs, ours, values(step, [(3, 2), (2, 5), (3, 2)]), strict=True):
            t.grad, p.grad = v, leafgrad.tensor(v.numpy())
        their_optimizer.step()
        our_optimizer.step()
        assert_same(theirs, ours, 1e-11)


@pytest.mark.parametrize("name", "SGD Adam AdamW NAdam RAdam Adamax RMSprop Adagrad Adadelta ASGD Rprop Muon".split())
def test_options_and_defaults_are_pytorchs(name):
    groups = []
    for library in (torch, leafgrad):
        group = getattr(library.optim, name)([library.zeros(2, 2, requires_grad=True)]).param_groups[0]
        groups.append({key: value for key, value in group.items() if key != "params"})
    assert groups[0] == groups[1]


# ---- L-BFGS -----------------------------------------------------------------------------------------------------


def rosenbrock(library, x):
    a, b = x[:-1], x[1:]
    return (100 * (b - a * a) ** 2 + (1 - a) ** 2).sum()


def network(library, weights, x):
    w1, b1, w2 = weights
    return library.tanh(x * w1 + b1) @ w2


def poisson(library, weights, x, grad):
    """The residual of u'' = -sin x with u a small network: second derivatives inside the loss."""
    u = network(library, weights, x)
    (ux,) = grad(u.sum(), x, create_graph=True)
    (uxx,) = grad(ux.sum(), x, create_graph=True)
    return ((uxx + library.sin(x)) ** 2).mean() + (u[:1] ** 2).mean() + (u[-1:] ** 2).mean()


def minimize(library, weights, loss, steps, **options):
    """The losses and iterates of some steps."""
    optimizer = library.optim.LBFGS(weights, **options)
    history = []

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value.detach()

    for _ in range(steps):
        optimizer.step(closure)
        history.append([loss().item(), *(w.detach().numpy().copy() for w in weights)])
    return history, optimizer.state[weights[0]]


@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "lr": 0.5, "max_iter": 7, "history_size": 2},
        {"lr": 1e-3, "max_iter": 5},
        {"line_search_fn": "strong_wolfe", "max_eval": 4, "tolerance_change": 1e-5},
        {"line_search_fn": "strong_wolfe", "max_iter": 100, "max_eval": 1000},
    ],
)
def test_lbfgs_takes_pytorchs_steps_on_rosenbrock(options):
    runs = []
    for library in (torch, leafgrad):
        x = library.tensor([-1.2, 1.0, 0.7, -0.3], dtype=library.float64, requires_grad=True)
        runs.append(minimize(library, [x], partial(rosenbrock, library, x), 5, **options))
    (theirs, their_state), (ours, our_state) = runs
    assert (our_state["n_iter"], our_state["func_evals"]) == (their_state["n_iter"], their_state["func_evals"])
    for t, o in zip(theirs, ours, strict=True):
        assert o[0] == pytest.approx(t[0], rel=1e-7, abs=1e-18)
        assert o[1] == pytest.approx(t[1], rel=1e-7, abs=1e-12)


def test_lbfgs_takes_pytorchs_steps_on_a_physics_loss():
    runs = []
    start = [v * 0.5 for v in values(7, [(1, 8), (8,), (8, 1)])]
    points = torch.linspace(0, 3, 20, dtype=torch.float64)[:, None]
    for library in (torch, leafgrad):
        weights = [library.tensor(w.numpy(), requires_grad=True) for w in start]
        x = library.tensor(points.numpy(), requires_grad=True)
        loss = partial(poisson, library, weights, x, library.autograd.grad)
        runs.append(minimize(library, weights, loss, 2, line_search_fn="strong_wolfe"))
    (theirs, their_state), (ours, our_state) = runs
    assert (our_state["n_iter"], our_state["func_evals"]) == (their_state["n_iter"], their_state["func_evals"])
    for t, o in zip(theirs, ours, strict=True):
        for a, b in zip(t, o, strict=True):
            assert b == pytest.approx(a, rel=1e-6, abs=1e-9)


# ---- schedules --------------------------------------------------------------------------------------------------

SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
    ("MultiplicativeLR", {"lr_lambda": [lambda epoch: 0.9, lambda epoch: 1 - 0.1 / epoch]}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.3, "total_iters": 4}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "step_size_down": 4, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": [0.1, 0.2], "max_lr": 1.0, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "scale_fn": lambda x: 1 / x}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.9, "total_iters": 6}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 2.0, "total_steps": 16}),
    ("OneCycleLR", {"max_lr": [1.0, 2.0], "epochs": 4, "steps_per_epoch": 4, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 16, "three_phase": True, "pct_start": 0.4}),
]


CHAINABLE = "StepLR MultiStepLR ConstantLR LinearLR ExponentialLR PolynomialLR CosineAnnealingLR".split()

# One schedule after another, and several at once.
COMBINED = {
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingWarmRestarts(o, 3)], [4, 9]
    ),
    "warm-up": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 9)], [4]),
    "restarts first": lambda s, o: s.SequentialLR(
        o, [s.CosineAnnealingWarmRestarts(o, 2, 2), s.OneCycleLR(o, 0.5, 20)], [7]
    ),
    "from an epoch": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, 9), s.LinearLR(o, 0.1), s.ExponentialLR(o, 0.5)], [2, 9], last_epoch=4
    ),
    "averaging last": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1), swa(s).SWALR(o, 0.05, anneal_epochs=4)], [6]),
    "nested": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.ConstantLR(o, 0.1, 3), s.StepLR(o, 2)], [2]), s.MultiStepLR(o, [2, 3])], [6]
    ),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.PolynomialLR(o, 9)]
    ),
    "averaging": lambda s, o: swa(s).SWALR(o, [0.05, 0.2], anneal_epochs=6),
    "averaging along a line": lambda s, o: swa(s).SWALR(o, 0.05, anneal_epochs=4, anneal_strategy="linear"),
    "averaging at once": lambda s, o: swa(s).SWALR(o, 0.05, anneal_epochs=0),
}


def swa(schedules):
    return (leafgrad if schedules is leafgrad.optim.lr_scheduler else torch).optim.swa_utils


@pytest.mark.parametrize("case", COMBINED)
def test_combined_schedules_give_pytorchs_learning_rates(case):
    theirs, ours = optimizers("SGD")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        their_schedule = COMBINED[case](torch.optim.lr_scheduler, theirs)
        our_schedule = COMBINED[case](leafgrad.optim.lr_scheduler, ours)
        for _ in range(15):
            assert our_schedule.get_last_lr() == pytest.approx(their_schedule.get_last_lr(), rel=1e-12)
            assert [g["lr"] for g in ours.param_groups] == pytest.approx([g["lr"] for g in theirs.param_groups])
            for step in (theirs.step, ours.step, their_schedule.step, our_schedule.step):
                step()


@pytest.mark.parametrize("name", [*CHAINABLE, "LambdaLR", "CyclicLR", "CosineAnnealingWarmRestarts"])
def test_schedules_jump_to_an_epoch_as_pytorchs_do(name):
    options = dict(SCHEDULES)[name]
    theirs, ours = optimizers("SGD")
    schedules = [
        getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        for library, optimizer in ((torch, theirs), (leafgrad, ours))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for epoch in (0, 3, 1, 7, 12, 5):
            for optimizer, schedule in zip((theirs, ours), schedules, strict=True):
                optimizer.step()
                schedule.step(epoch)
            assert schedules[1].get_last_lr() == pytest.approx(schedules[0].get_last_lr(), rel=1e-12)


def optimizers(name, **options):
    """The same optimizer with two groups in PyTorch and here."""
    made = []
    for library in (torch, leafgrad):
        groups = [{"params": [library.zeros(2, requires_grad=True)], "lr": lr} for lr in (1.0, 0.1)]
        made.append(getattr(library.optim, name)(groups, **options))
    return made


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_schedules_give_pytorchs_learning_rates(name, options, optimizer):
    theirs, ours = optimizers(optimizer)
    their_schedule = getattr(torch.optim.lr_scheduler, name)(theirs, **options)
    our_schedule = getattr(leafgrad.optim.lr_scheduler, name)(ours, **options)
    for _ in range(15):
        for t, o in zip(theirs.param_groups, ours.param_groups, strict=True):
            for key in {"lr", "momentum", "betas", "initial_lr"} & t.keys():
                assert o[key] == pytest.approx(t[key], rel=1e-12)
        assert our_schedule.get_last_lr() == pytest.approx(their_schedule.get_last_lr(), rel=1e-12)
        for step in (theirs.step, ours.step, their_schedule.step, our_schedule.step):
            step()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max", "threshold": 0.1, "threshold_mode": "abs"},
        {"mode": "max", "min_lr": [0.2, 0.01], "cooldown": 2},
        {"threshold_mode": "abs", "eps": 0.05},
    ],
)
def test_the_plateau_schedule_gives_pytorchs_learning_rates(options):
    theirs, ours = optimizers("SGD")
    their_schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, patience=1, factor=0.5, **options)
    our_schedule = leafgrad.optim.lr_scheduler.ReduceLROnPlateau(ours, patience=1, factor=0.5, **options)
    for metric in [3.0, 2.9999, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0, 1.0, -1.0, -1.0, -1.00001, 5.0, 5.0, 5.0, 5.0]:
        their_schedule.step(metric)
        our_schedule.step(metric)
        assert our_schedule.get_last_lr() == pytest.approx(their_schedule.get_last_lr())
        assert [g["lr"] for g in ours.param_groups] == pytest.approx([g["lr"] for g in theirs.param_groups])


def test_schedules_resume_as_pytorchs_do():
    for name, options in [s for s in SCHEDULES if s[0] in CHAINABLE]:
        rates = []
        for library in (torch, leafgrad):
            kind = getattr(library.optim.lr_scheduler, name)
            groups = [{"params": [library.zeros(2, requires_grad=True)], "lr": 0.5, "initial_lr": 1.0}]
            optimizer = library.optim.SGD(groups)
            schedule = kind(optimizer, **options, last_epoch=3)
            optimizer.step()
            schedule.step()
            rates.append(optimizer.param_groups[0]["lr"])
        assert rates[1] == pytest.approx(rates[0], rel=1e-12), name


# ---- errors -----------------------------------------------------------------------------------------------------

BAD = {
    "empty": lambda library, leaf: library.optim.SGD([]),
    "tensor": lambda library, leaf: library.optim.SGD(leaf),
    "set": lambda library, leaf: library.optim.SGD([{"params": {leaf}}]),
    "number": lambda library, leaf: library.optim.SGD([1.0]),
    "non-leaf": lambda library, leaf: library.optim.SGD([leaf * 2]),
    "twice": lambda library, leaf: library.optim.SGD([{"params": [leaf]}, {"params": [leaf]}]),
    "duplicate": lambda library, leaf: library.optim.SGD([leaf, leaf]),
    "group": lambda library, leaf: library.optim.SGD([leaf]).add_param_group([leaf]),
    "lr": lambda library, leaf: library.optim.SGD([leaf], lr=-1.0),
    "momentum": lambda library, leaf: library.optim.SGD([leaf], momentum=-1.0),
    "decay": lambda library, leaf: library.optim.SGD([leaf], weight_decay=-1.0),
    "nesterov": lambda library, leaf: library.optim.SGD([leaf], nesterov=True),
    "beta 0": lambda library, leaf: library.optim.Adam([leaf], betas=(1.0, 0.5)),
    "beta 1": lambda library, leaf: library.optim.Adam([leaf], betas=(0.5, -0.1)),
    "eps": lambda library, leaf: library.optim.AdamW([leaf], eps=-1.0),
    "groups": lambda library, leaf: library.optim.LBFGS([{"params": [leaf]}, {"params": [leaf * 1]}]),
    "search": lambda library, leaf: library.optim.LBFGS([leaf], line_search_fn="armijo").step(lambda: backward(leaf)),
    "schedule": lambda library, leaf: library.optim.lr_scheduler.StepLR(None, 1),
    "resume": lambda library, leaf: library.optim.lr_scheduler.StepLR(library.optim.SGD([leaf]), 1, last_epoch=2),
    "lambdas": lambda library, leaf: library.optim.lr_scheduler.LambdaLR(library.optim.SGD([leaf]), [abs, abs]),
    "factor": lambda library, leaf: library.optim.lr_scheduler.ReduceLROnPlateau(library.optim.SGD([leaf]), factor=1.0),
    "cycle": lambda library, leaf: library.optim.lr_scheduler.OneCycleLR(library.optim.SGD([leaf]), 1.0),
    "sequence": lambda library, leaf: library.optim.lr_scheduler.SequentialLR(library.optim.SGD([leaf]), [], []),
    "milestones": lambda library, leaf: sequence(library, library.optim.SGD([leaf]), [1, 2]),
    "other optimizer": lambda library, leaf: library.optim.lr_scheduler.ChainedScheduler(
        [library.optim.lr_scheduler.StepLR(library.optim.SGD([leaf]), 1) for _ in range(2)]
    ),
    "restarts": lambda library, leaf: library.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        library.optim.SGD([leaf]), 0
    ),
    "constant": lambda library, leaf: library.optim.lr_scheduler.ConstantLR(library.optim.SGD([leaf]), 2.0),
    "cyclic": lambda library, leaf: library.optim.lr_scheduler.CyclicLR(library.optim.Adagrad([leaf]), 0.1, 1.0),
    "muon": lambda library, leaf: library.optim.Muon([leaf]),
    "rho": lambda library, leaf: library.optim.Adadelta([leaf], rho=2.0),
    "etas": lambda library, leaf: library.optim.Rprop([leaf], etas=(2.0, 3.0)),
    "tensor lr": lambda library, leaf: library.optim.NAdam([leaf], lr=library.ones(2)),
    "fused": lambda library, leaf: library.optim.Adam([leaf], fused=True, foreach=True),
    "order": lambda library, leaf: library.optim.lr_scheduler.StepLR(library.optim.SGD([leaf]), 1).step(),
    "average": lambda library, leaf: library.optim.swa_utils.get_ema_avg_fn(1.5),
    "swalr": lambda library, leaf: library.optim.swa_utils.SWALR(library.optim.SGD([leaf]), 0.1, anneal_epochs=-1),
    "linear": lambda library, leaf: library.optim.lr_scheduler.LinearLR(library.optim.SGD([leaf]), start_factor=0),
}


def sequence(library, optimizer, milestones):
    schedules = [library.optim.lr_scheduler.StepLR(optimizer, 1) for _ in range(2)]
    return library.optim.lr_scheduler.SequentialLR(optimizer, schedules, milestones)


def backward(leaf):
    loss = (leaf * leaf).sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("case", BAD)
def test_errors_are_of_pytorchs_types(case):
    outcomes = []
    for library in (torch, leafgrad):
        leaf = library.ones(2, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                BAD[case](library, leaf)
                outcomes.append((None, [w.category for w in caught]))
            except Exception as error:
                outcomes.append((type(error), [w.category for w in caught]))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0] != (None, [])
