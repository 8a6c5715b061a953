"""The choice of an executor: a preferred one that is broken is named once, and breaks only programs that name it."""

from __future__ import annotations

import sys
import types

import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.compile.numpy.executor import NumpyExecutor
from leafgrad.compile.run import executor
from leafgrad.errors import CompileError, PluginError
from leafgrad.plugins import ExecutorSpec, PluginWarning

GRAPHS = []


class Eager(NumpyExecutor):
    """Gains by every graph."""

    name = "eager"

    def gains(self, graph):
        GRAPHS.append(graph)
        return True


class Wrong(Eager):
    name = "wrong"

    def gains(self, graph):
        raise ZeroDivisionError("no gains today")


class Unmade(Eager):
    name = "unmade"

    def __init__(self):
        raise OSError("no compiler")


class Unable(Eager):
    name = "unable"

    def compile(self, graph):
        raise ValueError("no code today")


class Refusing(Eager):
    name = "refusing"

    def compile(self, graph):
        raise CompileError("this graph never")


@pytest.fixture
def prefer(monkeypatch):
    """Installs preferred executors, before all others, as one plugin."""
    module = types.ModuleType("test_executors")
    for made in (Eager, Wrong, Unmade, Unable, Refusing):
        setattr(module, made.__name__, made)
    monkeypatch.setitem(sys.modules, "test_executors", module)
    monkeypatch.delenv("LEAFGRAD_EXECUTOR", raising=False)
    monkeypatch.setattr(executor, "BROKEN", {})
    GRAPHS.clear()

    def install(**targets):
        specs = {name: ExecutorSpec(name, f"test_executors:{target}", True) for name, target in targets.items()}
        specs["absent"] = ExecutorSpec("absent", "no_module_of_this_name:Executor", "absent" in targets)
        listed = [specs[name] for name in targets]
        find, known = plugins.executor, [spec for spec in plugins.executors() if not spec.preferred]
        record = plugins.Plugin("bad", "leafgrad-bad", "0.3", hooks={"leafgrad_executors": tuple(targets)})
        monkeypatch.setattr(plugins, "executors", lambda: iter([*listed, *known]))
        monkeypatch.setattr(plugins, "executor", lambda name: specs[name] if name in specs else find(name))
        monkeypatch.setattr(plugins, "status", lambda: [record])

    return install


def step(x):
    return (x * 2).exp().sum()


def value(**options):
    """What a compiled step gives when it is run as a program."""
    compiled = leafgrad.compile(lambda x: step(x), **options)
    x = leafgrad.tensor([0.0, 0.5])
    for _ in range(3):
        result = compiled(x)
    assert result.item() == pytest.approx(step(x).item())
    return result


def test_a_preferred_executor_that_gains_runs_the_program(prefer):
    prefer(eager="Eager")
    value()
    assert GRAPHS


def test_one_preferred_on_other_devices_is_not_imported(prefer, monkeypatch):
    prefer(eager="Eager")
    other = ExecutorSpec("other", "no_module_of_this_name:Executor", "fake")
    listed = [other, *plugins.executors()]
    monkeypatch.setattr(plugins, "executors", lambda: iter(listed))
    value()
    assert GRAPHS


@pytest.mark.parametrize(
    ("name", "target", "reason"),
    [
        ("absent", "", "ModuleNotFoundError: No module named 'no_module_of_this_name'"),
        (
            "missing",
            "Missing",
            "PluginError: target 'test_executors:Missing': module 'test_executors' has no attribute 'Missing'",
        ),
        ("unmade", "Unmade", "OSError: no compiler"),
        ("wrong", "Wrong", "ZeroDivisionError: no gains today"),
        ("unable", "Unable", "executor 'unable' failed on .*ValueError: no code today"),
        ("refusing", "Refusing", "this graph never"),
    ],
)
def test_a_broken_one_is_named_once_and_programs_run_without_it(prefer, name, target, reason):
    prefer(**{name: target, "eager": "Eager"})
    with pytest.warns(
        PluginWarning, match=rf"plugin 'bad' \(leafgrad-bad 0.3\): .*{name!r} failed.*{reason}"
    ) as caught:
        value()
    assert len(caught) == 1
    assert "LEAFGRAD_PLUGINS=-bad" in str(caught[0].message)
    assert GRAPHS  # the next one is asked
    value()


def test_strict_makes_it_an_error(prefer, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_STRICT_PLUGINS", "1")
    prefer(wrong="Wrong")
    with pytest.raises(PluginError, match=r"plugin 'bad' .*'wrong' failed.*no gains today"):
        value()


@pytest.mark.parametrize(("name", "target"), [("absent", ""), ("unmade", "Unmade"), ("unable", "Unable")])
@pytest.mark.parametrize("asked", ["argument", "environment"])
def test_a_program_that_names_a_broken_one_fails(prefer, monkeypatch, name, target, asked):
    prefer(**{name: target})
    error, reason = {
        "absent": (ImportError, "no_module_of_this_name"),
        "unmade": (OSError, "no compiler"),
        "unable": (CompileError, "no code today"),
    }[name]
    if asked == "environment":
        monkeypatch.setenv("LEAFGRAD_EXECUTOR", name)
    with pytest.raises(error, match=reason):
        value(**({"executor": name} if asked == "argument" else {}))
