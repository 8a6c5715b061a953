"""Results of programs lie in memory of their own."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.testing import fake


@pytest.mark.parametrize("index", [0, 1])
def test_a_result_that_is_an_argument_is_copied_on_its_own_device(index):
    fake.register()
    x = leafgrad.ones(3).to(f"fake:{index}")
    run = leafgrad.compile(lambda x: (x.view(3), x * 2), executor="replay")
    for _ in range(3):
        same, twice = run(x)
        assert str(same.device) == str(twice.device) == f"fake:{index}"
        assert same.tolist() == [1.0] * 3
