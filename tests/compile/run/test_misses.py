"""Kinds of calls that come too rarely to be worth a program run uncompiled."""

from __future__ import annotations

import random

import pytest

import leafgrad
from leafgrad.compile.run import misses as misses_module
from leafgrad.compile.run.misses import PATIENCE, Misses


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
    assert compiled._calls.misses.total <= PATIENCE + 2
    assert f"{compiled._calls.misses.waited} calls ran uncompiled" in compiled.explain()
    assert "pad it to a few shapes" in compiled.explain()


@pytest.mark.filterwarnings("ignore:.*has been traced again")
def test_a_length_that_comes_often_gets_its_program():
    @leafgrad.compile
    def step(x):
        return x.sum()

    for n in range(1, 40):
        step(leafgrad.ones(n))
    total = step._calls.misses.total
    for _ in range(step._calls.misses.needed + 2):
        assert step(leafgrad.ones(1000)).item() == 1000
    assert step._calls.misses.total == total + 1


def test_the_first_kinds_are_recorded_at_once_and_others_wait_ever_longer():
    misses = Misses()
    waits = []
    for _ in range(PATIENCE + 4):
        count = 0
        while misses.waits("kind"):
            count += 1
        waits.append(count)
        misses.total += 1
    assert waits == [0] * PATIENCE + [1, 4, 9, 16]


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
        assert misses.waits(kind)
    assert len(misses.waiting) <= 12
    assert misses.waited == 100
