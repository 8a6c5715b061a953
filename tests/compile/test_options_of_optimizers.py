"""Optimizers of users: what changes among the options of a group is followed, however they are read."""

from __future__ import annotations

import operator

import pytest

import leafgrad
from leafgrad import optim
from leafgrad.optim import lr_scheduler
from leafgrad.optim.optimizer import Optimizer, option


class Base(Optimizer):
    def __init__(self, params, lr=0.1, rho=1.0):
        super().__init__(params, {"lr": lr, "rho": rho})


class Through(Base):
    def update(self, group, bucket):
        bucket.add(self.gradient(group, bucket) * -option(group, "lr") * option(group, "rho"))


class Plain(Base):
    def update(self, group, bucket):
        bucket.add(self.gradient(group, bucket) * -option(group, "lr") * group["rho"])


class Both(Base):
    def update(self, group, bucket):
        factor = option(group, "rho") + group["rho"]
        bucket.add(self.gradient(group, bucket) * -option(group, "lr") * factor)


class AllValues(Base):
    def update(self, group, bucket):
        factor = sum(v for v in group.values() if isinstance(v, float))
        bucket.add(self.gradient(group, bucket) * -factor)


class ByVariable(Base):
    def update(self, group, bucket):
        factor = 1.0
        for key in group:
            if key[0] in "lr" and isinstance(group[key], float):
                factor = factor * group[key]
        bucket.add(self.gradient(group, bucket) * -factor)


class Merged(Base):
    def update(self, group, bucket):
        bucket.add(self.gradient(group, bucket) * -helper(**group))


def helper(lr, rho, **_):
    return lr * rho


class Getter(Base):
    def update(self, group, bucket):
        bucket.add(self.gradient(group, bucket) * -operator.itemgetter("rho")(group))


class OtherOption(Base):
    def update(self, group, bucket):
        bucket.add(self.gradient(group, bucket) * -mine(group, "rho"))


def mine(group, name):
    return group[name]


class Stepped(Base):
    def step(self, closure=None):
        with leafgrad.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad * group["lr"] * group["rho"])


def losses(kind, key, compiled):
    p = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    optimizer = kind([p])

    def step():
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
        return p.sum()

    run = leafgrad.compile(step) if compiled else step
    found = []
    for _ in range(10):
        optimizer.param_groups[0][key] *= 0.9
        found.append(float(run()))
    return found, run


@pytest.mark.parametrize("key", ["lr", "rho"])
@pytest.mark.parametrize("kind", [Through, Plain, Both, AllValues, ByVariable, Merged, Getter, OtherOption, Stepped])
def test_a_changing_option_is_never_frozen(kind, key):
    expected, _ = losses(kind, key, compiled=False)
    got, _ = losses(kind, key, compiled=True)
    assert got == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("key", ["lr", "rho"])
@pytest.mark.parametrize("kind", [Through, Plain, Both, AllValues, ByVariable, Merged, OtherOption])
def test_a_changing_option_keeps_a_step_closed(kind, key):
    _, step = losses(kind, key, compiled=True)
    assert "1 program, traced again 0 times" in step.explain()
    _, adam = losses(lambda params: optim.Adam(params), "lr", compiled=True)
    assert "1 program, traced again 0 times" in adam.explain()


SCHEDULES = {
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 50),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=60),
    "function": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.95**epoch),
    "linear": lambda o: lr_scheduler.LinearLR(o, total_iters=50),
    "milestones": lambda o: lr_scheduler.MultiStepLR(o, [3, 8, 8]),
    "cycles": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4, T_mult=2),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.LinearLR(o, total_iters=50), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_inside_is_closed(name):
    def rates(compiled):
        p = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)
        schedule = SCHEDULES[name](optimizer)

        def step():
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
            schedule.step()

        run = leafgrad.compile(step, executor="numpy") if compiled else step
        found = []
        for _ in range(12):
            run()
            found.append((*schedule.get_last_lr(), optimizer.param_groups[0]["betas"], p.tolist()))
        return found, run

    (expected, _), (got, step) = rates(compiled=False), rates(compiled=True)
    for one, other in zip(got, expected, strict=True):
        assert one[:2] == other[:2]
        assert one[2] == pytest.approx(other[2], rel=1e-5)
    assert ": closed; " in step.explain().summary
