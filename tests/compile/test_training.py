"""Models train compiled as they train eagerly: the same losses and the same parameters, step after step."""

from __future__ import annotations

import math

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.nn import functional as F
from leafgrad.optim import lr_scheduler
from leafgrad.testing import fake

STEPS, MANY = 40, 300
WHERE = pytest.mark.parametrize(("place", "executor"), [("cpu", "numpy"), ("cpu", "replay"), ("fake:0", "replay")])


@pytest.fixture(autouse=True)
def _stand_in():
    fake.register()


def check(make, place="cpu", executor=None, steps=STEPS, dtype=leafgrad.float64, rtol=1e-9, atol=1e-11):
    """Train twice, eagerly and compiled, and compare all losses and, at the end, all tensors of the models.

    On the stand-in, which is slow, for half as many steps: past the first ones its programs are the same.
    ``make(place, dtype)`` gives a step, its arguments, the model, and what is done after each step.
    """
    found = []
    for compiled in (False, True):
        leafgrad.manual_seed(3)
        step, arguments, model, after = make(place, dtype)
        run = leafgrad.compile(step, executor=executor) if compiled else step
        losses = []
        for _ in range(steps if place == "cpu" else steps // 2):
            losses.append(run(*arguments).item())
            after()
        found.append((losses, {k: v.tolist() for k, v in model.state_dict().items()}))
    (losses, expected), (got, state) = found
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]
    assert got == pytest.approx(losses, rel=rtol, abs=atol)
    for name, value in expected.items():
        a, b = leafgrad.tensor(state[name], dtype=dtype), leafgrad.tensor(value, dtype=dtype)
        assert leafgrad.allclose(a, b, rtol=rtol, atol=atol), name
    assert "1 program, traced again 0 times" in run.explain()
    return run


def nothing():
    pass


def digits(place, dtype):
    """Ten noisy patterns, as images of 16 pixels."""
    patterns = leafgrad.randn(10, 16, dtype=dtype)
    y = leafgrad.arange(40) % 10
    x = patterns[y] + 0.3 * leafgrad.randn(40, 16, dtype=dtype)
    return x.to(place), y.to(place)


def stack(*layers):
    return lambda place, dtype: nn.Sequential(*(make() for make in layers)).to(place, dtype)


MLP = stack(lambda: nn.Linear(16, 24), nn.ReLU, lambda: nn.Linear(24, 24), nn.Tanh, lambda: nn.Linear(24, 10))


def classifier(net, optimizer, scheduler=None, *, clip=None, accumulate=False):
    """Cross-entropy training of ``net`` on `digits`."""

    def make(place, dtype):
        x, y = digits(place, dtype)
        model = net(place, dtype)
        chosen = optimizer(model.parameters())

        def step(x, y):
            chosen.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if accumulate:
                F.cross_entropy(model(x * 0.9), y).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            chosen.step()
            return loss

        return step, (x, y), model, nothing if scheduler is None else scheduler(chosen).step

    return make


OPTIMIZERS = {
    "Adam": lambda p: optim.Adam(p, lr=3e-3),
    "AdamW": lambda p: optim.AdamW(p, lr=3e-3, weight_decay=0.05),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9),
    "groups": lambda p: optim.SGD([{"params": q, "lr": 0.02 * (i + 1)} for i, q in enumerate(p)], lr=0.1),
}
SCHEDULES = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 15, 0.7),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, MANY),
}


# Each optimizer with one schedule, and for long with both.
PAIRS = [(optimizer, [*SCHEDULES][i % len(SCHEDULES)], STEPS) for i, optimizer in enumerate(OPTIMIZERS)]
PAIRS += [pytest.param(o, s, MANY, marks=pytest.mark.slow) for o in OPTIMIZERS for s in SCHEDULES]


@WHERE
@pytest.mark.parametrize(("optimizer", "schedule", "steps"), PAIRS)
def test_a_classifier_with_a_schedule_outside(optimizer, schedule, steps, place, executor):
    check(classifier(MLP, OPTIMIZERS[optimizer], SCHEDULES[schedule]), place, executor, steps)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_in_float32(executor):
    smooth = stack(lambda: nn.Linear(16, 24), nn.Tanh, lambda: nn.Linear(24, 10))
    make = classifier(smooth, lambda p: optim.SGD(p, lr=0.05, momentum=0.9))
    check(make, executor=executor, dtype=leafgrad.float32, rtol=1e-5, atol=1e-6)


@WHERE
def test_batch_norm_and_dropout_draw_the_same_numbers(place, executor):
    net = stack(
        lambda: nn.Linear(16, 24, bias=False),
        lambda: nn.BatchNorm1d(24),
        nn.ReLU,
        lambda: nn.Dropout(0.3),
        lambda: nn.Linear(24, 10),
    )
    check(classifier(net, lambda p: optim.Adam(p, lr=3e-3)), place, executor)


@WHERE
def test_clipped_gradients(place, executor):
    check(classifier(MLP, OPTIMIZERS["momentum"], clip=0.5), place, executor)


@WHERE
def test_two_backward_passes_add_up(place, executor):
    check(classifier(MLP, OPTIMIZERS["Adam"], accumulate=True), place, executor)


class Block(nn.Module):
    """A transformer block of width 8 with 2 heads."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(8), nn.LayerNorm(8)
        self.inward, self.outward = nn.Linear(8, 24), nn.Linear(8, 8)
        self.feed = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        batch, tokens, _ = x.shape
        parts = self.inward(self.before(x)).chunk(3, dim=-1)
        q, k, v = (p.reshape(batch, tokens, 2, 4).transpose(1, 2) for p in parts)
        weights = leafgrad.softmax(q @ k.transpose(-2, -1) / 2, dim=-1)
        x = x + self.outward((weights @ v).transpose(1, 2).reshape(batch, tokens, 8))
        return x + self.feed(self.between(x))


def transformer(place, dtype):
    model = Block().to(place, dtype)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    x = leafgrad.randn(6, 5, 8, dtype=dtype).to(place)

    def step(batch):
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch["x"]), batch["targets"]["y"])
        loss.backward()
        optimizer.step()
        return loss

    return step, ({"x": x, "targets": {"y": x.flip(1)}},), model, nothing


@WHERE
def test_a_transformer_block_on_nested_arguments(place, executor):
    check(transformer, place, executor)


class LSTM(nn.Module):
    """A cell of width 6 over 8 steps, with its training step as a method."""

    def __init__(self):
        super().__init__()
        self.inward, self.across, self.head = nn.Linear(3, 24), nn.Linear(6, 24), nn.Linear(6, 1)

    def forward(self, x):
        h = c = leafgrad.zeros(x.shape[0], 6, dtype=x.dtype, device=x.device)
        for t in range(x.shape[1]):
            i, f, g, o = (self.inward(x[:, t]) + self.across(h)).chunk(4, dim=1)
            c = leafgrad.sigmoid(f) * c + leafgrad.sigmoid(i) * leafgrad.tanh(g)
            h = leafgrad.sigmoid(o) * leafgrad.tanh(c)
        return self.head(h)

    def train_on(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self(x), y)
        loss.backward(inputs=list(self.parameters()))
        self.optimizer.step()
        return loss


def lstm(batch):
    def make(place, dtype):
        model = LSTM().to(place, dtype)
        model.optimizer = optim.Adam(model.parameters(), lr=1e-2)
        x = leafgrad.randn(batch, 8, 3, dtype=dtype).to(place)
        return model.train_on, (x, x.sum(dim=(1, 2)).reshape(batch, 1)), model, nothing

    return make


@WHERE
@pytest.mark.parametrize("batch", [5, 70])
def test_an_lstm_whose_step_is_a_method(batch, place, executor):
    check(lstm(batch), place, executor, steps=40)


@pytest.mark.slow
def test_an_lstm_for_long():
    check(lstm(5), steps=MANY)


@WHERE
def test_lbfgs_with_a_compiled_closure(place, executor):
    def train(wrap):
        leafgrad.manual_seed(0)
        x, y = digits(place, leafgrad.float64)
        model = MLP(place, leafgrad.float64)
        optimizer = optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        run = wrap(closure)
        return [optimizer.step(run).item() for _ in range(6)], run

    expected, _ = train(lambda f: f)
    got, run = train(lambda f: leafgrad.compile(f, executor=executor))
    assert expected[-1] < 0.1 * expected[0]
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert "1 program, traced again 0 times" in run.explain()


@WHERE
def test_gradients_accumulate_over_calls(place, executor):
    x, y = digits(place, leafgrad.float64)
    model = MLP(place, leafgrad.float64)

    def add():
        (F.cross_entropy(model(x), y) / 4).backward()

    add()
    expected = [p.grad.tolist() for p in model.parameters()]
    model.zero_grad()
    run = leafgrad.compile(add, executor=executor)
    for calls in range(1, 5):
        run()
        for p, g in zip(model.parameters(), expected, strict=True):
            g = leafgrad.tensor(g, dtype=leafgrad.float64) * calls
            assert leafgrad.allclose(p.grad.to("cpu"), g, rtol=1e-11, atol=1e-14)


@WHERE
def test_a_compiled_model_with_the_backward_pass_outside(place, executor):
    def train(wrap):
        leafgrad.manual_seed(0)
        x, y = digits(place, leafgrad.float64)
        model = MLP(place, leafgrad.float64)
        run, optimizer, losses = wrap(model), optim.Adam(model.parameters(), lr=3e-3), []
        for _ in range(50):
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, run

    expected, _ = train(lambda f: f)
    got, run = train(lambda f: leafgrad.compile(f, executor=executor))
    assert got == pytest.approx(expected, rel=1e-10)
    assert "1 program, traced again 0 times" in run.explain()


@WHERE
def test_training_and_evaluation_have_a_program_each(place, executor):
    leafgrad.manual_seed(0)
    x, _ = digits(place, leafgrad.float64)
    net = stack(lambda: nn.Linear(16, 8), lambda: nn.BatchNorm1d(8), lambda: nn.Dropout(0.5))(place, leafgrad.float64)
    run = leafgrad.compile(net, executor=executor)
    for _ in range(3):
        net.train()
        assert run(x).requires_grad
        net.eval()
        with leafgrad.no_grad():
            a, b = run(x), net(x)
        assert not a.requires_grad
        assert leafgrad.allclose(a.to("cpu"), b.to("cpu"), rtol=1e-12, atol=1e-14)
    assert "2 programs, traced again 1 time" in run.explain()


@WHERE
def test_the_gradient_of_ones_through_relu(place, executor):
    x = leafgrad.tensor([-1.0, 0.5, 2.0], device=place, requires_grad=True)
    run = leafgrad.compile(lambda x: leafgrad.autograd.grad(F.relu(x).sum(), x)[0], executor=executor)
    for _ in range(3):
        assert run(x).tolist() == [0, 1, 1]
