"""Schedules: the rates they give, combinations, saving, and rates that are tensors."""

from __future__ import annotations

import math

import pytest

import leafgrad
from leafgrad import optim
from leafgrad.optim import lr_scheduler as s

TESTS = "optim.lr_scheduler.*"


def sgd(lr=1.0, **options):
    return optim.SGD([leafgrad.zeros(1, requires_grad=True)], lr=lr, **options)


def rates(optimizer, schedule, count):
    """The learning rates of the first epochs."""
    found = []
    for _ in range(count):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
    return found


def cosine(t, n, low=0.0):
    return low + (1 - low) * (1 + math.cos(math.pi * t / n)) / 2


MAKERS = {
    "multiplicative": (lambda o: s.MultiplicativeLR(o, lambda t: 0.5), [0.5**t for t in range(8)]),
    "constant": (lambda o: s.ConstantLR(o, 0.25, 3), [0.25, 0.25, 0.25, 1, 1, 1, 1, 1]),
    "polynomial": (lambda o: s.PolynomialLR(o, 4, 2.0), [(1 - t / 4) ** 2 for t in range(5)] + [0, 0, 0]),
    "restarts": (lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.1), [cosine(t, 3, 0.1) for t in range(3)]
        + [cosine(t, 6, 0.1) for t in range(5)]),
    "triangles": (lambda o: s.CyclicLR(o, 0.0, 1.0, 2), [0, 0.5, 1, 0.5, 0, 0.5, 1, 0.5]),
    "lower triangles": (lambda o: s.CyclicLR(o, 0.0, 1.0, 2, mode="triangular2"), [0, 0.5, 1, 0.5, 0, 0.25, 0.5, 0.25]),
    "warm-up": (lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.5, total_iters=2), s.ExponentialLR(o, 0.5)], [3]),
        [0.5, 0.75, 1, 1, 0.5, 0.25, 0.125, 0.0625]),
    "restarts, then another": (lambda o: s.SequentialLR(o, [s.CosineAnnealingWarmRestarts(o, 3, 2), s.StepLR(o, 2)],
        [5]), [cosine(t, 3) for t in range(3)] + [cosine(t, 6) for t in range(2)] + [1, 1, 0.1]),
    "chained": (lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.5)]),
        [0.1, 0.05, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]),
    "chained within chained": (lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2),
        s.ChainedScheduler([s.ExponentialLR(o, 0.5)])]),
        [0.1, 0.05, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]),
    "chained, then another": (lambda o: s.SequentialLR(o, [s.ChainedScheduler([s.ConstantLR(o, 0.1, 2),
        s.ExponentialLR(o, 0.5)]), s.StepLR(o, 2)], [3]), [0.1, 0.05, 0.25, 1, 1, 0.1, 0.1, 0.01]),
    "one, then chained": (lambda o: s.SequentialLR(o, [s.StepLR(o, 1), s.ChainedScheduler([s.ConstantLR(o, 0.1, 2),
        s.ExponentialLR(o, 0.5)])], [3]), [1, 0.1, 0.01, 0.1, 0.05, 0.25, 0.125, 0.0625]),
    "one, then a sequence": (lambda o: s.SequentialLR(o, [s.StepLR(o, 1), s.SequentialLR(o, [s.ExponentialLR(o, 0.5),
        s.StepLR(o, 2)], [2])], [3]), [1, 0.1, 0.01, 1, 0.5, 1, 1, 0.1]),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_the_rates_are_those_of_the_formula(name):
    make, expected = MAKERS[name]
    optimizer = sgd(momentum=0.9)
    assert rates(optimizer, make(optimizer), 8) == pytest.approx(expected)


@pytest.mark.parametrize("name", MAKERS)
def test_a_rate_that_is_a_tensor_is_written_in_place(name):
    make, expected = MAKERS[name]
    rate = leafgrad.tensor(1.0)
    optimizer = sgd(rate, momentum=0.9)
    schedule = make(optimizer)
    assert rates(optimizer, schedule, 8) == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert optimizer.param_groups[0]["lr"] is rate
    assert schedule.get_last_lr()[0] is not rate


@pytest.mark.parametrize("name", MAKERS)
def test_a_schedule_goes_on_from_its_state(name, tmp_path):
    make, _ = MAKERS[name]
    first, second = sgd(momentum=0.9), sgd(momentum=0.9)
    schedule, other = make(first), make(second)
    rates(first, schedule, 3)
    leafgrad.save([schedule.state_dict(), first.state_dict()], tmp_path / "state")
    state, optimizer = leafgrad.load(tmp_path / "state")
    other.load_state_dict(state)
    second.load_state_dict(optimizer)
    assert other.get_last_lr() == schedule.get_last_lr()
    assert rates(second, other, 5) == rates(first, schedule, 5)


def test_cyclic_momentum_goes_the_other_way():
    for optimizer, read in (
        (sgd(momentum=0.5), lambda g: g["momentum"]),
        (optim.Adam([leafgrad.zeros(1, requires_grad=True)]), lambda g: g["betas"][0]),
    ):
        schedule = s.CyclicLR(optimizer, 0.0, 1.0, 2, base_momentum=0.6, max_momentum=0.8)
        found = []
        for _ in range(5):
            found.append(read(optimizer.param_groups[0]))
            optimizer.step()
            schedule.step()
        assert found == pytest.approx([0.8, 0.7, 0.6, 0.7, 0.8])


def test_the_order_of_calls_is_watched():
    optimizer = sgd()
    schedule = s.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()
    optimizer = sgd()
    schedule = s.StepLR(optimizer, 1)
    optimizer.step()
    with pytest.warns(UserWarning, match="epoch parameter .* deprecated"):
        schedule.step(5)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(1e-5)


def test_warm_restarts_go_to_a_fraction_of_an_epoch():
    optimizer = sgd()
    optimizer.step()
    schedule = s.CosineAnnealingWarmRestarts(optimizer, 3, 2, 0.1)
    for epoch, rate in ((0.5, cosine(0.5, 3, 0.1)), (2.75, cosine(2.75, 3, 0.1)), (4.5, cosine(1.5, 6, 0.1)), (0, 1)):
        schedule.step(epoch)
        assert schedule.get_last_lr() == [pytest.approx(rate)]


def test_a_plateau_serves_groups_that_are_added_later():
    optimizer = sgd()
    schedule = s.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.05)
    optimizer.add_param_group({"params": [leafgrad.zeros(1, requires_grad=True)], "lr": 0.2})
    schedule.step(1.0)
    schedule.step(leafgrad.tensor(2.0))
    assert schedule.get_last_lr() == [0.1, 0.05]
    listed = s.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0, 0])
    optimizer.add_param_group({"params": [leafgrad.zeros(1, requires_grad=True)]})
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="extend its min_lrs"):
        listed.step(2.0)


def test_a_compiled_step_follows_a_schedule_without_new_traces():
    p = leafgrad.zeros(1, requires_grad=True)
    optimizer = optim.Adam([p], lr=1.0)
    schedule = s.OneCycleLR(optimizer, 1.0, total_steps=20)

    @leafgrad.compile
    def step():
        optimizer.zero_grad()
        (p - 1).square().sum().backward()
        optimizer.step()

    for _ in range(15):  # more new traces than that would warn
        step()
        schedule.step()
    assert p.item() > 0.5


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: s.MultiplicativeLR(o, 0.5), TypeError, "lr_lambda should be a function, but got float"),
        (lambda o: s.ConstantLR(o, 1.5), ValueError, "between 0 and 1, got 1.5"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0, but got 0"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 1, 0.5), ValueError, "integer T_mult >= 1, but got 0.5"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 1).step(-1), ValueError, "non-negative epoch, but got -1"),
        (lambda o: s.CyclicLR(o, 0.1, 1.0, mode="square"), ValueError, "mode is invalid and scale_fn is None"),
        (lambda o: s.CyclicLR(o, [0.1, 0.2], 1.0), ValueError, "Expected 1 base_lr, but got 2; give one for each"),
        (lambda o: s.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]), ValueError, "number of schedulers 1 and"),
        (lambda o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []), ValueError, "does not support `ReduceLROnPlateau`"),
        (lambda o: s.ChainedScheduler([3], o), TypeError, "at index 0 should have `optimizer`"),
        (lambda o: s.ChainedScheduler([s.StepLR(sgd(), 1)], o), ValueError, "belong to the same optimizer"),
        (lambda o: s.ReduceLROnPlateau(o).step("x"), TypeError, "argument 'metrics'"),
        (lambda o: s.LRScheduler(o), NotImplementedError, "define get_lr"),
    ],
)
def test_errors_say_what_was_expected(make, error, message):
    with pytest.raises(error, match=message):
        make(sgd(momentum=0.9))


def test_a_plateau_schedule_is_a_schedule():
    plateau = s.ReduceLROnPlateau(sgd(), patience=0)
    assert isinstance(plateau, s.LRScheduler)
    with pytest.raises(TypeError, match=r"step\(\) .*metrics"):
        plateau.step()
    for metric in (1.0, 2.0):
        plateau.step(metric)
    assert plateau.get_last_lr() == [0.1]


@pytest.mark.parametrize("make", [lambda o: s.ExponentialLR(o, 0.5), lambda o: s.ChainedScheduler([s.LinearLR(o)])])
def test_a_state_that_was_loaded_stays_as_it_was(make):
    optimizer = optim.SGD([leafgrad.ones(1, requires_grad=True)], lr=1.0)
    schedule = make(optimizer)
    state = schedule.state_dict()
    kept = list(state["_last_lr"])
    schedule.load_state_dict(state)
    optimizer.step()
    schedule.step()
    assert state["_last_lr"] == kept != schedule.get_last_lr()
