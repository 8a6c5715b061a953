"""``check_op`` runs what an op's rule for ONNX files writes."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
import leafgrad_onnx
from leafgrad import op
from leafgrad.ops.trigonometric import tanh
from leafgrad.testing import ConformanceError, check_op

SAMPLES = [((np.linspace(-2, 2, 12).reshape(3, 4),), {})]


def softsign(rule):
    @op("elementwise", "float", name="softsign_in_files")
    def forward(xp, x):
        return x / (1 + xp.abs(x))

    forward.lower("onnx", rule)
    return forward


def test_a_right_rule_passes():
    right = softsign(lambda w, e: w.emit("Softsign", w(e.inputs[0])))
    assert check_op(right, SAMPLES, checks="onnx").results[0].outcome == "passed"


def test_a_wrong_rule_is_found():
    wrong = softsign(lambda w, e: w.emit("Tanh", w(e.inputs[0])))
    with pytest.raises(
        ConformanceError, match=r"onnx: sample 0, softsign_in_files\(x: float64 \(3, 4\)\).*mend its rule"
    ) as e:
        check_op(wrong, SAMPLES, checks="onnx")
    assert "test_conformance.py:" in str(e.value)


def test_an_exception_in_a_rule_is_found():
    broken = softsign(lambda w, e: w.nothing)
    with pytest.raises(ConformanceError, match=r"AttributeError.*test_conformance.py:\d+"):
        check_op(broken, SAMPLES, checks="onnx")


def test_a_rule_that_gives_no_form_is_told():
    report = check_op(softsign(lambda w, e: None), SAMPLES, checks="onnx")
    assert report.results[0].outcome == "skipped"
    assert any("has no ONNX form" in what for what in report.untried)


def test_ops_without_a_rule_of_their_own_are_not_asked():
    for _ in range(2):
        with pytest.raises(ValueError, match="unknown check 'onnx'"):
            check_op(tanh, SAMPLES, checks="onnx")
        assert leafgrad_onnx.export(tanh, leafgrad.ones(2))  # which gives tanh a rule
