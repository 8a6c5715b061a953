"""Schedules: their formulas, alone and together, warnings, and how they resume."""

from __future__ import annotations

import copy
import math

import pytest

import leafgrad
from leafgrad import optim
from leafgrad.optim import lr_scheduler


def leaves(device="cpu", dtype=leafgrad.float32):
    data = [[1.0, -2.0], [[0.5], [3.0], [0.25]], 2.0]
    return [leafgrad.tensor(d, device=device, dtype=dtype, requires_grad=True) for d in data]


def schedule_on(kind, *args, **options):
    optimizer = optim.SGD(leaves(), lr=1.0, momentum=0.9)
    return optimizer, kind(optimizer, *args, **options)


def rates(optimizer, *schedules, steps=6):
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for schedule in schedules:
            schedule.step()
    return found


def test_schedules_give_the_rates_of_their_formulas():
    assert rates(*schedule_on(lr_scheduler.StepLR, 2, 0.5)) == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert rates(*schedule_on(lr_scheduler.MultiStepLR, [1, 4], 0.5)) == [1, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert rates(*schedule_on(lr_scheduler.ExponentialLR, 0.5), steps=3) == [1, 0.5, 0.25]
    assert rates(*schedule_on(lr_scheduler.LambdaLR, lambda epoch: 1 / (1 + epoch)), steps=3) == [1, 1 / 2, 1 / 3]
    linear = rates(*schedule_on(lr_scheduler.LinearLR, 0.5, 1.0, 4))
    assert linear == pytest.approx([0.5, 0.625, 0.75, 0.875, 1, 1])
    cosine = rates(*schedule_on(lr_scheduler.CosineAnnealingLR, 4, 0.2), steps=9)
    assert cosine == pytest.approx([0.2 + 0.4 * (1 + math.cos(math.pi * t / 4)) for t in range(9)])


def test_one_cycle_rises_falls_and_ends():
    optimizer, schedule = schedule_on(lr_scheduler.OneCycleLR, 2.0, total_steps=10)
    found = rates(optimizer, schedule, steps=10)
    assert (found[0], found[2]) == pytest.approx((0.08, 2.0))
    assert found[9] == pytest.approx(0.08 / 1e4)
    with pytest.raises(ValueError, match="Tried to step 11 times"):
        schedule.step()


def test_schedules_act_together():
    optimizer, first = schedule_on(lr_scheduler.ExponentialLR, 0.5)
    second = lr_scheduler.StepLR(optimizer, 2, 0.1)
    assert rates(optimizer, first, second, steps=4) == pytest.approx([1, 0.5, 0.025, 0.0125])


def test_a_schedule_before_the_optimizer_warns():
    optimizer, schedule = schedule_on(lr_scheduler.StepLR, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    optimizer.step()
    schedule.step()


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (lr_scheduler.StepLR, (2, 0.5)),
        (lr_scheduler.CosineAnnealingLR, (5,)),
        (lr_scheduler.LambdaLR, (lambda epoch: 0.5**epoch,)),
        (lr_scheduler.OneCycleLR, (2.0, 20)),
    ],
)
def test_a_schedule_resumes_from_a_state_dict(kind, args):
    optimizer, schedule = schedule_on(kind, *args)
    rates(optimizer, schedule, steps=3)
    saved = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
    other, resumed = schedule_on(kind, *args)
    other.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert resumed.get_last_lr() == schedule.get_last_lr()
    assert rates(other, resumed) == rates(optimizer, schedule)


def test_a_plateau_lowers_the_rate_once_patience_ends():
    optimizer, schedule = schedule_on(lr_scheduler.ReduceLROnPlateau, factor=0.5, patience=1)
    found = []
    for metric in [leafgrad.tensor(3.0), 2.0, 2.0, 2.0, 1.0, 1.0]:
        schedule.step(metric)
        found.append(optimizer.param_groups[0]["lr"])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5]
    other = lr_scheduler.ReduceLROnPlateau(optimizer)
    other.load_state_dict(schedule.state_dict())
    assert (other.best, other.num_bad_epochs, other.get_last_lr()) == (1.0, 1, [0.5])


KINDS = {
    "StepLR": {"step_size": 1},
    "LambdaLR": {"lr_lambda": lambda epoch: 0.5**epoch},
    "CosineAnnealingLR": {"T_max": 3},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 9},
    "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2, "cycle_momentum": False},
    "ReduceLROnPlateau": {"patience": 0},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_in_a_tensor_of_one_element_is_as_one_without_dimensions(kind, t):
    found = []
    for rate in (0.25, [0.25], [[0.25]]):
        p = t.nn.Parameter(t.ones(2))
        optimizer = t.optim.Adam([p], lr=t.tensor(rate))
        schedule = getattr(t.optim.lr_scheduler, kind)(optimizer, **KINDS[kind])
        for _ in range(2):
            p.sum().backward()
            optimizer.step()
            schedule.step(*[1.0] * (kind == "ReduceLROnPlateau"))
        assert optimizer.param_groups[0]["lr"].shape == t.tensor(rate).shape
        found.append((optimizer.param_groups[0]["lr"].item(), p.tolist()))
    assert found[0] == found[1] == found[2]
