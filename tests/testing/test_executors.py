"""``check_executor`` passes what is right, and finds what is not."""

from __future__ import annotations

import sys
import types

import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.compile.numpy.executor import NumpyExecutor
from leafgrad.errors import CompileError
from leafgrad.plugins import ExecutorSpec
from leafgrad.testing import check_executor
from leafgrad.testing.conformance import ConformanceError
from leafgrad.testing.executors import CHECKS


@pytest.fixture
def listed(monkeypatch):
    """Lists a class as the executor "tried"."""

    def install(executor):
        module = types.ModuleType("tried_executors")
        module.Tried = executor
        monkeypatch.setitem(sys.modules, "tried_executors", module)
        find = plugins.executor
        spec = ExecutorSpec("tried", "tried_executors:Tried")
        monkeypatch.setattr(plugins, "executor", lambda name: spec if name == "tried" else find(name))

    return install


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a signal in a callback of Python's own
@pytest.mark.parametrize("name", ["numpy", "replay"])
def test_those_of_the_core_pass(name):
    report = check_executor(name)
    assert [r.outcome for r in report.results] == ["passed"] * len(CHECKS)


def test_a_wrong_one_fails_each_check_of_numbers(listed):
    class Wrong(NumpyExecutor):
        name = "tried"

        def compile(self, graph):
            right = NumpyExecutor().compile(graph)

            class Program:
                def __call__(self, inputs):
                    return [a + a for a in right(inputs)]

                def source(self):
                    return None

                explain = source

            return Program()

    listed(Wrong)
    with pytest.raises(ConformanceError) as caught:
        check_executor("tried")
    assert {r.check for r in caught.value.report.failures} >= {"ops", "layouts", "derivatives", "training", "memory"}


@pytest.mark.parametrize("good", [1, 2, 10, 90])
def test_one_that_is_wrong_from_a_later_run_on(listed, good):
    class Tired(NumpyExecutor):
        name = "tried"

        def compile(self, graph):
            right = NumpyExecutor().compile(graph)

            class Program:
                left = good

                def __call__(self, inputs):
                    self.left -= 1
                    found = right(inputs)
                    return found if self.left >= 0 else [a + a for a in found]

            return Program()

    listed(Tired)
    with pytest.raises(ConformanceError, match="runs: one of a hundred runs: expected"):
        check_executor("tried", "runs")


def test_one_that_declines_is_skipped(listed):
    class Picky(NumpyExecutor):
        def compile(self, graph):
            if len(graph) > 3:
                raise CompileError("at most 3 equations")
            return super().compile(graph)

    listed(Picky)
    results = {r.check: r for r in check_executor("tried", ["ops", "derivatives", "text"]).results}
    assert results["ops"].outcome == results["derivatives"].outcome == "skipped"
    assert "declines" in results["ops"].reason
    assert results["text"].outcome == "passed"


def test_one_that_declines_everything_fails_nothing(listed):
    class Idle(NumpyExecutor):
        def compile(self, graph):
            raise CompileError("nothing at all")

    listed(Idle)
    assert {r.outcome for r in check_executor("tried").results} == {"skipped"}


def test_what_it_does_not_decline_is_compared(listed):
    class Partial(NumpyExecutor):
        def compile(self, graph):
            names = {equation.op.name for equation in graph.equations}
            if "remainder" in names:
                raise CompileError("no remainders")
            right = super().compile(graph)

            class Program:
                def __call__(self, inputs):
                    return [a + 1 if "cumsum" in names else a for a in right(inputs)]

            return Program()

    listed(Partial)
    with pytest.raises(ConformanceError, match="ops: sums"):
        check_executor("tried", "ops")


def test_names_are_checked():
    with pytest.raises(ValueError, match="unknown check 'speed'"):
        check_executor("numpy", "speed")
    with pytest.raises(plugins.UnknownNameError, match="nimpy"):
        check_executor("nimpy")


def test_contracts_are_named_by_plugins():
    Backend, Executor, Program = plugins.Backend, plugins.Executor, plugins.Program

    assert issubclass(type(leafgrad.backends.by_device_type("cpu")), Backend)
    assert {Executor.__name__, Program.__name__} == {"Executor", "Program"}
