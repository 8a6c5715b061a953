"""Bugs that an author might plant, one in each op: the kit finds each, and tells in which declaration it is.

Those in C are beside the executor that runs it.
"""

from __future__ import annotations

import re

import pytest
from testing.plants import complex_numbers, declarations, forwards, kernels, vjp_rules
from testing.plants.entered import PLANTS

from leafgrad.testing import ConformanceError, check_op

WHERE = re.compile(r"plants/\w+\.py:\d+")
FILES = (vjp_rules, forwards, declarations, kernels, complex_numbers)


@pytest.mark.parametrize("name", PLANTS)
def test_a_plant_is_found(name):
    make, check, samples, options = PLANTS[name]
    planted = make()
    with pytest.raises(ConformanceError) as caught:
        check_op(planted, samples, executors=["numpy"], checks=["forward", check], **options)
    reasons = {r.check: r.reason for r in caught.value.report.failures}
    assert check in reasons, reasons
    reason = reasons[check]
    if check != "names":
        assert WHERE.search(reason), reason
    if check not in ("names", "rules"):
        assert re.search(rf"sample \d.*{planted.name}\(.*\([\d, ]*\)", reason), reason


def test_plants_of_all_files_are_entered():
    assert {make.__module__ for make, *_ in PLANTS.values()} == {file.__name__ for file in FILES}
