"""The hook with an argument: what plugins check of an op, in order, and what becomes of hooks that fail."""

from __future__ import annotations

import sys
import types
from unittest import SkipTest

import numpy as np
import pytest

from leafgrad import op, plugins
from leafgrad.errors import PluginError
from leafgrad.plugins import CheckSpec, PluginWarning, hookimpl
from leafgrad.testing import ConformanceError, check_op
from leafgrad.testing.conformance import examine

SAMPLES = [((np.ones((2, 3)),), {}), ((np.ones(4),), {})]


@op("elementwise")
def doubled(xp, x):
    return 2 * x


doubled.vjp(x=lambda g: 2 * g)


def right(op, args, params):
    assert (op(*args, **params) == 2 * args[0]).all()


def wrong(op, args, params):
    assert args[0].ndim == 2, f"expected two dimensions, got {args[0].ndim}"


def matrices(op, args, params):
    if args[0].ndim != 2:
        raise SkipTest("no matrix")


def nothing(op, args, params):
    raise SkipTest("no numbers")


@pytest.fixture
def add(monkeypatch):
    """Registers a plugin with the hook, for one test."""
    module = types.ModuleType("test_checks_targets")
    vars(module).update(right=right, wrong=wrong, matrices=matrices, nothing=nothing)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    added = []

    def register(name, answer, **options):
        class Added:
            @staticmethod
            @hookimpl(**options)
            def leafgrad_checks(op):
                return answer(op)

        added.append(name)
        return plugins.register(Added(), name)

    yield register
    for name in added:
        plugins.unregister(name)


def listing(*names):
    return lambda op: [CheckSpec(name, f"test_checks_targets:{name}") for name in names]


def found(report):
    return {r.check: r for r in report.results}


def test_it_is_asked_for_each_op_and_its_checks_run(add):
    asked = []

    def answer(op):
        asked.append(op.name)
        return listing("right")(op) if op is doubled else []

    assert add("checks", answer).hooks == {"leafgrad_checks": ()}
    assert not asked
    assert (
        found(check_op(doubled, SAMPLES, executors=["numpy"], checks=["forward", "right"]))["right"].outcome == "passed"
    )
    assert asked == ["doubled"]
    assert "right" not in found(examine(plugins.op("neg"), SAMPLES, executors=["numpy"]))
    with pytest.raises(ValueError, match="unknown check 'right'"):
        check_op(plugins.op("neg"), SAMPLES, checks="right")


def test_what_fails_names_the_sample_and_the_declarations(add):
    add("checks", listing("wrong"))
    with pytest.raises(
        ConformanceError, match=r"wrong: sample 1, doubled\(x: float64 \(4,\)\): expected two dim.*got 1"
    ) as e:
        check_op(doubled, SAMPLES, checks="wrong")
    assert "test_checks.py:" in str(e.value)


def test_what_cannot_be_tried_is_told(add):
    add("checks", listing("matrices", "nothing"))
    report = check_op(doubled, SAMPLES, checks=["matrices", "nothing"])
    assert found(report)["matrices"].outcome == "passed"
    assert found(report)["nothing"].outcome == "skipped"
    assert "matrices: sample 1: no matrix" in report.untried


def test_the_order_is_that_of_pluggy(add):
    add("late", listing("matrices"), trylast=True)
    add("plain", listing("right"))
    add("early", listing("wrong", "nothing"), tryfirst=True)
    names = [spec.name for spec in plugins.checks(doubled)]
    assert [n for n in names if n in vars(sys.modules["test_checks_targets"])] == [
        "wrong",
        "nothing",
        "right",
        "matrices",
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda op: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda op: 3, "'int' object is not iterable"),
        (lambda op: ["right"], "lists 'right': expected a CheckSpec"),
        (lambda op: [CheckSpec("right", "nowhere")], "target: expected 'module:attribute'"),
        (listing("right"), "there is a check of that name"),
        (lambda op: [CheckSpec("values", "test_checks_targets:right")], "there is a check of that name"),
    ],
)
def test_one_that_fails_is_named_and_the_others_are_asked(add, answer, reason):
    add("first", listing("right"))
    add("second", answer)
    with pytest.warns(PluginWarning, match=f"plugin 'second' .*leafgrad_checks of op 'doubled'.*{reason}"):
        assert "right" in found(check_op(doubled, SAMPLES, executors=["numpy"], checks=["forward", "right"]))


def test_other_arguments_are_refused():
    class Other:
        @staticmethod
        @hookimpl
        def leafgrad_checks(operation):
            return []

    with pytest.raises(PluginError, match="operation"):
        plugins.register(Other(), "other")
