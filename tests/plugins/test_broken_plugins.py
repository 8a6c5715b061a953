"""Broken plugins, really installed, in a program that uses none of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TESTS = "plugins.failures"

HEAD = "import leafgrad\nfrom leafgrad.plugins import ExecutorSpec, hookimpl\n"
OPS = """
@leafgrad.op("elementwise", name="{0}")
def {0}(xp, x):
    return x + x
@leafgrad.op("elementwise", name="shared")
def shared(xp, x):
    return x + x
@hookimpl
def {1}():
    return [{0}, shared]
"""
BROKEN = {
    "left": HEAD + OPS.format("left_op", "leafgrad_ops"),
    "right": HEAD + OPS.format("right_op", "leafgrad_ops"),
    "typo": HEAD + OPS.format("typo_op", "leafgrad_opps"),
    "gone": "import a_module_that_nobody_has",
    "fast": HEAD
    + """
@hookimpl
def leafgrad_executors():
    return [ExecutorSpec("fast", "brk_fast:Fast", preferred=True)]
class Fast:
    name, device_type = "fast", None
    def gains(self, graph):
        raise ArithmeticError("no gains today")
""",
}
PROGRAM = """
import os, sys, warnings
sys.path.insert(0, os.getcwd())
import leafgrad
from leafgrad import plugins
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    step = leafgrad.compile(lambda x: (x * 2).exp().sum())
    for _ in range(4):
        assert abs(step(leafgrad.zeros(3)).item() - 3) < 1e-6
    plugins.load()
    assert plugins.op("tanh").name == "tanh"
    assert plugins.op("left_op").name + plugins.op("right_op").name == "left_opright_op"
for warning in caught:
    assert warning.category is plugins.PluginWarning, warning
    print(str(warning.message))
for name in ("shared", "typo_op"):
    try:
        plugins.op(name)
    except (plugins.PluginClashError, plugins.UnknownNameError) as error:
        print("op:", str(error)[:40], "...", str(error)[-400:])
try:
    f = leafgrad.compile(lambda x: x * 2, executor="fast")
    for _ in range(3):
        f(leafgrad.zeros(3))
except Exception as error:
    print("executor:", type(error).__name__, error)
"""


@pytest.fixture
def installed(tmp_path):
    """Installs the plugins in a folder of their own; runs the program there with some environment variables."""
    for name, code in BROKEN.items():
        (tmp_path / f"brk_{name}.py").write_text(code)
        info = tmp_path / f"leafgrad_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: leafgrad-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[leafgrad]\n{name} = brk_{name}\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEAFGRAD_")}

    def run(**variables):
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=tmp_path, env=environment | variables
        )

    return run


def test_a_program_that_uses_none_of_them_runs_and_is_warned_once_of_each(installed):
    done = installed()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    warned, used = lines[:4], lines[4:]
    for name, reason in {
        "gone": "No module named 'a_module_that_nobody_has'",
        "typo": "unknown hook 'leafgrad_opps'; did you mean leafgrad_ops?",
        "right": "op 'shared' is defined twice: by plugin 'left' (leafgrad-left 1.0) and by plugin 'right'",
        "fast": "its preferred executor 'fast' failed",
    }.items():
        assert (
            len([line for line in warned if f"plugin {name!r} (leafgrad-{name} 1.0)" in line and reason in line]) == 1
        )
    clash, missing, executor = used
    assert clash.startswith("op: op 'shared' is defined twice")
    assert "plugin 'typo' (leafgrad-typo 1.0): unknown hook 'leafgrad_opps'" in missing
    assert executor.startswith("executor: ")
    assert "compile" in executor  # the method that it lacks


def test_excluding_them_ends_the_warnings(installed):
    done = installed(LEAFGRAD_PLUGINS="-right,-typo,-gone,-fast")
    assert done.returncode == 1
    assert "unknown op 'right_op'" in done.stderr
    assert "plugin 'right' (leafgrad-right 1.0) is excluded by LEAFGRAD_PLUGINS" in done.stderr
    assert done.stdout == ""
