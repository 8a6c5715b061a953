"""Kinds of calls that come too rarely to be worth a program run uncompiled."""

from __future__ import annotations

import random

import pytest

import leafgrad
from leafgrad.compile.guard.conditions import Miss
from leafgrad.compile.run import misses as misses_module, runner as runner_module
from leafgrad.compile.run.misses import EARLY, PATIENCE, VAIN, WAIT, Misses, kind_of


@pytest.mark.filterwarnings("ignore:.*has been traced again")
def test_lengths_that_come_once_run_uncompiled():
    def step(x):
        return (x * 3).sin().sum()

    compiled = leafgrad.compile(step)
    lengths = [*range(1, 200)]
    random.Random(0).shuffle(lengths)
    for n in lengths:
        x = leafgrad.arange(n) / n
        assert compiled(x).item() == pytest.approx(step(x).item(), rel=1e-6)
    assert compiled._calls.misses.total < EARLY
    assert f"{compiled._calls.misses.waited} calls ran uncompiled" in compiled.explain()
    assert "pad it to a few shapes" in compiled.explain()


@pytest.mark.filterwarnings("ignore:.*has been traced again")
def test_a_length_that_comes_often_gets_its_program():
    @leafgrad.compile
    def step(x):
        return x.sum()

    for n in range(1, 40):
        step(leafgrad.ones(n))
    (call,) = [call for call in step._calls.programs if call.lengths is not None]
    made = len(call.lengths.runners)
    for _ in range(WAIT * (made + 2) ** 2):
        assert step(leafgrad.ones(1000)).item() == 1000
    assert len(call.lengths.runners) == made + 1
    assert step._calls.misses.total <= 2  # it is not recorded again


def test_what_came_once_is_replayed_until_it_comes_again():
    def step(x, mode):
        return getattr(leafgrad, mode)(x * 3).sum()

    x = leafgrad.ones(4)
    right = {mode: step(x, mode).item() for mode in ("sin", "cos", "exp", "tanh")}
    for executor, replayed in ((None, 5), ("numpy", None)):
        compiled, seen = leafgrad.compile(step, executor=executor), []
        for mode in ("sin", "sin", "sin", "cos", "exp", "tanh", "tanh", "tanh"):
            assert compiled(x, mode).item() == pytest.approx(right[mode])
            seen.append(compiled._calls.last.runner.executor.name == "replay")
        assert seen == [i == replayed for i in range(8)]


def test_what_is_large_is_not_replayed(monkeypatch):
    monkeypatch.setattr(runner_module, "COMPARED", 8)
    step = leafgrad.compile(lambda x, sign: (x * sign).exp().sum())
    for n in (0, 0, 0, 1, 2):
        step(leafgrad.ones(100), leafgrad.ones([1] * n))
        assert step._calls.last.runner.executor.name != "replay"


def waits(misses, kind):
    """How often a kind waits before it is recorded."""
    count = 0
    while misses.waits("step", kind):
        count += 1
    return count


def test_the_first_shapes_are_recorded_at_once_and_others_wait_ever_longer():
    misses = Misses()
    assert [waits(misses, ("f32", n)) for n in range(EARLY + 3)] == [0] * EARLY + [4, 16, 36]
    assert waits(misses, ("f32", 0)) == 0  # it was recorded before
    assert waits(misses, ("f64", 0)) == 0  # a kind of its own


def test_no_shape_waits_longer_than_a_program_takes_to_repay_what_it_costs():
    misses = Misses()
    misses.made(equations=500, elements=10_000_000)
    assert [waits(misses, ("f32", n)) for n in range(EARLY + 5)] == [0] * EARLY + [4, 16] + [35] * 3
    misses.made(equations=3, elements=10)
    assert waits(misses, ("f32", EARLY + 5)) == WAIT * 6**2


def test_after_many_recordings_for_whatever_reason_all_wait():
    misses = Misses()
    found = []
    for _ in range(PATIENCE + 3):
        found.append(waits(misses, ("f32", 0)))
        misses.total += 1
    assert found == [0] * PATIENCE + [4, 16, 36]


@pytest.mark.parametrize(("served", "waited"), [(1, 4), (2, 0)])
def test_after_recordings_that_serve_no_other_call_all_wait(served, waited):
    misses = Misses()
    assert waits(misses, ("f32", 0)) == 0
    for i in range(VAIN):
        misses.note(Miss(0, f"n{i}", "1", "2"), "step", served * (i + 1))
    misses.warns = False
    assert waits(misses, ("f32", 0)) == waited


def test_a_kind_is_what_a_call_is_given_and_the_shapes_of_its_tensors():
    of, shapes = kind_of("(*, *)", [leafgrad.ones(2, 3), 4])
    assert shapes == ((2, 3),)
    assert kind_of("(*, *)", [leafgrad.ones(5), 6]) == (of, ((5,),))
    assert kind_of("(*, *)", [leafgrad.ones(2, 3).double(), 4])[0] != of


def test_a_step_of_several_shapes_is_learnt_anew_after_a_checkpoint():
    """So that it records the same shapes as in a process that resumes the training from there."""

    def told(lengths):
        compiled = leafgrad.compile(lambda x: (x * 3).sin().sum())
        for n in lengths:
            for _ in range(3):
                compiled(leafgrad.ones(n))
        return compiled._calls.outlives_checkpoint()

    assert told([4])
    assert not told([4, 5])


@pytest.mark.filterwarnings("ignore:.*has been traced again")
def test_a_step_that_must_be_closed_waits_for_nothing():
    @leafgrad.compile(closed=True)
    def closed(x):
        return (x * 2).sum()

    for n in range(1, 30):
        closed(leafgrad.ones(n))
    assert closed._calls.misses.waited == 0


def test_counts_of_kinds_do_not_grow_for_ever(monkeypatch):
    monkeypatch.setattr(misses_module, "KINDS", 10)
    misses = Misses()
    misses.total = PATIENCE + 5
    for kind in range(100):
        assert misses.waits("step", ("f32", kind))
    assert len(misses.waiting) <= 12
    assert misses.waited == 100
