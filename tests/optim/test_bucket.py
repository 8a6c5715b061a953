"""Buckets: which parameters are updated together, as it changes who has a gradient."""

from __future__ import annotations

import leafgrad
from leafgrad import nn, optim


def frozen_in_turn(compile):
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    adam = optim.Adam(net.parameters(), 0.01)

    @compile
    def step(x):
        adam.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        adam.step()
        return loss

    for i in range(60):
        for p in net[0].parameters():
            p.requires_grad_(i // 5 % 2 == 0)
        step(leafgrad.randn(6, 3))
    return step, [p.detach() for p in net.parameters()], adam


def test_buckets_of_sets_that_come_again_are_the_same():
    _, _, adam = frozen_in_turn(lambda f: f)
    (group,) = adam.param_groups
    for p in group["params"]:
        p.grad = leafgrad.zeros_like(p)
    before = adam._buckets.of(group)
    for p in group["params"][:2]:
        p.grad = None
    fewer = adam._buckets.of(group)
    for p in group["params"][:2]:
        p.grad = leafgrad.zeros_like(p)
    assert adam._buckets.of(group) is before
    assert [len(b.params) for b in fewer] == [2]
    assert len(before) == 2


def test_a_step_whose_parameters_are_frozen_in_turn_is_closed():
    step, compiled, _ = frozen_in_turn(leafgrad.compile)
    assert "closed" in step.explain().summary
    _, plain, _ = frozen_in_turn(lambda f: f)
    for a, b in zip(compiled, plain, strict=True):
        assert leafgrad.allclose(a, b, atol=1e-5)


def test_no_more_than_some_sets_are_kept(monkeypatch):
    monkeypatch.setattr(optim.bucket, "SETS", 3)
    params = [nn.Parameter(leafgrad.ones(2)) for _ in range(5)]
    adam = optim.Adam(params)
    for left_out in params:
        for p in params:
            p.grad = None if p is left_out else leafgrad.ones(2)
        adam.step()
    assert len(adam._buckets.known) <= 3
    assert adam.state[params[0]]["step"].item() == 4
