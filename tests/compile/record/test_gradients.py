"""The backward of a user's Function runs in a compiled step as often as without, whatever the step returns of it."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

import leafgrad as lg

EFFECTS = {
    "a list grows": lambda o, g: o.log.append(1),
    "a counter scales": lambda o, g: setattr(o, "n", o.n + 10),
    "a number is drawn": lambda o, g: setattr(o, "n", random.random()),
    "a tensor is kept": lambda o, g: setattr(o, "kept", o.kept * 0.5 + g.detach()),
}
RETURNED = {
    "the loss": lambda y: (y.sum().backward(), y.sum())[1],
    "what it was differentiated from": lambda y: (y.sum().backward(), y)[1],
    "two results": lambda y: (y.sum().backward(), (y, y[:1], y.sum()))[1],
    "nothing": lambda y: y.sum().backward(),
    "a gradient": lambda y: lg.autograd.grad(y.sum(), y)[0],
}


def trained(compiler, effect, returned, reads):
    random.seed(0)
    o = SimpleNamespace(log=[], n=1, kept=lg.zeros(3), p=lg.nn.Parameter(lg.ones(3)))

    class Squared(lg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            effect(o, g)
            return g * o.n * (ctx.saved_tensors[0] if reads else 1)

    step = compiler(lambda x: returned(Squared.apply(o.p * x)))
    found = []
    for k in range(6):
        step(lg.arange(3.0) + k)
        grad = o.p.grad if o.p.grad is None else o.p.grad.tolist()
        found.append((len(o.log), o.n, o.kept.tolist(), grad))
    return found, random.random()


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_backward_of_the_user_runs_as_often_as_uncompiled(effect, returned, reads):
    case = EFFECTS[effect], RETURNED[returned], reads
    assert trained(lg.compile, *case) == trained(lambda step: step, *case)
