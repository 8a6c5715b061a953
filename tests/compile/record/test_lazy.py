"""Calls that are recorded and do not close: they do what they do uncompiled, all of it or none."""

from __future__ import annotations

import random
import types

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.ir.effects import complete
from leafgrad.compile.record.lazy import LazyRecorder
from leafgrad.errors import MissingGradientError

OWN = random.Random(0)  # whose choices are not followed


def opened(function):
    """A function that is open, and the same compiled."""

    def step(*args):
        OWN.choice((0.25, 0.5))
        return function(*args)

    return step, leafgrad.compile(step)


def test_numbers_become_inputs_of_the_op_that_they_belong_to():
    """A number that was an input at float32 must not be rounded for an op on float64, nor change an int's dtype."""
    o = types.SimpleNamespace(k=0.1)
    tensors = [leafgrad.ones(3), leafgrad.ones(3, dtype=leafgrad.float64), leafgrad.ones(3, dtype=leafgrad.int64)]

    def scaled(which):
        return [t * 1 for t in tensors][which] * o.k

    step, compiled = opened(scaled)
    for i, which in enumerate([0] * 6 + [1, 2, 0, 1, 2, 1, 0]):
        o.k = 0.1 + i / 7
        got, expected = compiled(which), step(which)
        assert got.dtype is expected.dtype
        assert got.tolist() == expected.tolist()


def test_draws_where_a_constant_was_are_draws():
    o = types.SimpleNamespace(k=0.0)

    def made(which):
        return leafgrad.tensor([o.k, 1.0, 2.0]) * 1 if which == 0 else leafgrad.rand(3) * 1

    found = []
    for step in opened(made):
        leafgrad.manual_seed(0)
        found.append([])
        for i, which in enumerate([0, 0, 0, 0, 0, 1, 1, 1, 0, 1]):
            o.k = float(i)
            found[-1].append(step(which).tolist())
    assert found[0] == found[1]


def test_an_int_is_no_float_among_parameters():
    o = types.SimpleNamespace(low=2)
    x = leafgrad.tensor([1, 2, 3])
    step, compiled = opened(lambda: (x.clamp(min=o.low), leafgrad.full((2,), o.low)))
    for o.low in (2, 2, 2, 2, 2, 2.0, 2, 2.5, 2.0):
        for got, expected in zip(compiled(), step(), strict=True):
            assert (got.dtype, got.tolist()) == (expected.dtype, expected.tolist())


def test_an_interrupt_between_the_effects_of_an_open_step_leaves_none_out(monkeypatch):
    net = nn.Linear(3, 1)
    optimizer = optim.SGD(net.parameters(), lr=0.5)
    kept = []

    def train(x):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        kept.append(loss)

    _, compiled = opened(lambda x: train(x))
    x = leafgrad.ones(2, 3)
    compiled(x)  # the next call is recorded, and left open
    before = [p.detach().clone() for p in net.parameters()]
    count, write = [0], LazyRecorder.overwrite

    def interrupted(self, *args):
        write(self, *args)
        count[0] += 1
        if count[0] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(LazyRecorder, "overwrite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    for p, old in zip(net.parameters(), before, strict=True):
        assert leafgrad.allclose(p, old - 1.0)
        assert leafgrad.allclose(p.grad, leafgrad.full_like(p, 2.0))
    assert isinstance(kept[-1].item(), float)


def test_complete_takes_an_interrupted_step_again():
    taken = []

    def once():
        taken.append(0)
        if len(taken) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete([once])
    assert taken == [0, 0]


def embedded(table, i):
    return nn.functional.embedding(i, table)


def classified(table, i):
    return nn.functional.cross_entropy(table, i)


def gathered(table, i):
    return table.sin().gather(0, i[:, None])


def put(table, i):
    return table.sin().index_add(0, i, table[:3])


def divided(table, i):
    return leafgrad.arange(3) // (i - 9)


REFUSING = [embedded, classified, gathered, put, divided]


@pytest.mark.every(2)
@pytest.mark.parametrize("caught", [False, True])
@pytest.mark.parametrize("refusing", REFUSING)
def test_an_error_of_elements_comes_where_it_does_uncompiled(refusing, caught):
    """What came before has happened, and what comes after it has not, at whatever call; the step may catch it."""
    for bad in range(8):
        found = []
        for wrap in (lambda f: f, leafgrad.compile):
            table = leafgrad.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
            optimizer = optim.SGD([table], lr=0.1, momentum=0.9)
            state = types.SimpleNamespace(calls=0, after=0, errors=0, mean=leafgrad.zeros(()), table=table)

            def step(i, state=state, optimizer=optimizer):
                state.calls += 1
                optimizer.zero_grad()
                state.table.square().mean().backward()
                optimizer.step()
                state.mean = state.mean * 0.9 + state.table.detach().mean()
                try:
                    loss = refusing(state.table, i).sum()
                except (IndexError, RuntimeError, ZeroDivisionError):
                    state.errors += 1
                    if not caught:
                        raise
                    loss = state.table.sum()
                state.after += 1
                return loss

            function, seen = wrap(step), []
            for call in range(8):
                try:
                    seen.append(function(leafgrad.tensor([0, 1, 9 if call == bad else 2])).item())
                except Exception as error:  # of any kind: eager says which
                    seen.append(f"{type(error).__name__}: {error}".splitlines()[0])
                seen += [state.calls, state.after, state.errors, state.mean.item(), table.tolist(), table.grad.tolist()]
            found.append(seen)
        for ours, theirs in zip(*found, strict=True):
            assert ours == (pytest.approx(theirs) if isinstance(theirs, float) else theirs)


def test_what_has_no_derivative_requires_grad_as_it_does_uncompiled():
    """unique() is computed where it is recorded; its result must not be a constant, whose gradient is zero."""

    def step(x):
        return leafgrad.unique(x * 2).sum() + (x * x).sum()

    compiled = leafgrad.compile(step)
    for _ in range(5):
        found = compiled(leafgrad.ones(3, requires_grad=True))
        with pytest.raises(MissingGradientError, match="'unique' has no gradient"):
            found.backward()
