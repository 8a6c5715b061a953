"""The kit compares what an op computes in C, and finds a wrong c= whether or not the executor looks itself."""

from __future__ import annotations

import numpy as np
import pytest

from leafgrad import op
from leafgrad.testing import ConformanceError, check_op
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


@op("elementwise", c="x * 2 + bias")
def doubled(xp, x, *, bias=0.5):
    return x * 2 + bias


@op("elementwise", c="x * 3")
def wrong(xp, x):
    return x * 2


@pytest.mark.parametrize("own", ["0", "1"])
def test_a_right_and_a_wrong_c(own, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", own)
    check_op(doubled, executors=["native"], checks=["forward", "compile"])
    found = r"wrong\(x.*executor 'native'|executor 'native' failed on wrong, from .*test_conformance.py"
    with pytest.raises(ConformanceError, match=rf"op 'wrong' fails.*\n  compile: .*({found})"):
        check_op(wrong, [((np.ones((3, 4)),), {})], executors=["native"], checks=["forward", "compile"])
    report = None
    try:
        check_op(wrong, executors=["native"], checks=["compile"])
    except ConformanceError as error:
        report = error.report
    assert report is not None
    reason = report.failures[0].reason
    assert ("its c='x * 3', from " in reason and "computes something else" in reason) == (own == "1")
