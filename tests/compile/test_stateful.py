"""Random steps over a world that changes at random: compiled, they do at every call what they do uncompiled."""

from __future__ import annotations

import pytest
from compile.scenarios.harness import check
from compile.scenarios.random_steps import programs, scenario
from hypothesis import HealthCheck, Phase, given, note, settings

# What fails is shrunk under `make slow` only: that takes minutes.
QUICK = settings(max_examples=20, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=2000, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(QUICK, max_examples=15)
@given(programs)
def test_random_steps_are_fair(program):
    """Eager against eager: nothing but the compiler may make a program fail."""
    note(program.source)
    check(scenario(program), None, fair=False)


@pytest.mark.parametrize("executor", ["numpy", "replay"])
@QUICK
@given(program=programs)
def test_random_steps(executor, program):
    note(program.source)
    check(scenario(program), executor, fair=False)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["numpy", "replay"])
@MANY
@given(program=programs)
def test_many_random_steps(executor, program):
    note(program.source)
    check(scenario(program), executor, fair=False)
