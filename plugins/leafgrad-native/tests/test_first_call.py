"""The first call of new code: compiled by several processes at once, and compared with NumPy once on a machine."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import leafgrad
from leafgrad import threads
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad_native import build, check, parts
from leafgrad_native.compiler import Compiler, NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def fresh():
    """A number that no program had before, so that its code is not in the cache."""
    return 1 + time.time_ns() % 10**12 / 1e12


def compiled(step, *arguments):
    found = leafgrad.compile(step, executor="native")
    found(*arguments)
    return found


def test_code_is_compared_with_numpy_once_on_a_machine(monkeypatch):
    own = fresh()
    shifted = leafgrad.op("elementwise", "float", name="native_shifted", c="x + by")(lambda xp, x, *, by: x + by)
    x = leafgrad.randn(50, dtype=leafgrad.float64)
    made = []
    monkeypatch.setattr(check, "with_numpy", lambda graph: made.append(graph) or NumpyProgram(graph))
    for setting, comparisons in ((None, 1), (None, 1), ("1", 2), ("0", 2)):
        if setting is not None:
            monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", setting)
        c = compiled(lambda x: shifted(x, by=own), x)
        for _ in range(2):
            np.testing.assert_array_equal(c(x).numpy(), x.numpy() + own)
        assert len(made) == comparisons


def test_code_that_is_refused_is_compared_again(monkeypatch):
    own = fresh()
    wrong = leafgrad.op("elementwise", "float", name="native_off", c="x - by")(lambda xp, x, *, by: x + by)
    x = leafgrad.randn(50, dtype=leafgrad.float64)
    for _ in range(2):
        c = leafgrad.compile(lambda x: wrong(x, by=own), executor="native")
        with pytest.warns(RuntimeWarning, match="computes something else than its forward"):
            c(x)


@pytest.mark.parametrize("processors", [2, pytest.param(3, marks=pytest.mark.slow), 16])
def test_several_compilers_make_one_program(monkeypatch, processors):
    monkeypatch.setattr(build, "SHORT", 0)
    monkeypatch.setattr(threads, "processors", lambda: processors)
    own = fresh()
    width = 3 + processors  # at another one, no library of another serves
    w, x = (leafgrad.randn(n, width, dtype=leafgrad.float64, requires_grad=True) for n in (width, 300))

    def step(x):
        loss = (leafgrad.tanh(x @ w) * own).softmax(1).square().mean()
        return loss.detach(), *leafgrad.autograd.grad(loss, [x, w])

    ran = []
    monkeypatch.setattr(Compiler, "make", lambda *a, make=Compiler.make: ran.append(a[2:]) or make(*a))
    for ours, right in zip(compiled(step, x)(x), step(x), strict=True):
        np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=1e-12, atol=1e-15)
    assert sorted(a[1] for a in ran if a[0] == "-c") == sorted(f"-DLG_PARTS={n}" for n in parts.shares(processors))
    assert sum(parts.shares(processors)) == 15


TRAINING = """
import sys

import leafgrad
from leafgrad import nn

leafgrad.manual_seed(int(sys.argv[1]))
net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1))
adam = leafgrad.optim.Adam(net.parameters(), lr=1e-3)
x, t = (leafgrad.rand(200, 1, requires_grad=True) for _ in range(2))


@leafgrad.compile(executor="native")
def step(x, t):
    adam.zero_grad()
    u = net(leafgrad.cat([x, t], 1))
    u_x, u_t = leafgrad.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = leafgrad.autograd.grad(u_x.sum(), x, create_graph=True)
    loss = ((u_t + u * u_x - 0.01 * u_xx) ** 2).mean()
    loss.backward()
    adam.step()
    return loss


step(x, t), step(x, t)
assert "adam.state" in step.source()
"""


@pytest.mark.times(2, 6)
def test_training_is_compiled_once_whatever_its_seed_and_lines_are(count, tmp_path):
    for seed in range(count):
        script = tmp_path / f"training{seed}.py"
        script.write_text("\n" * seed + TRAINING, encoding="utf-8")
        settings = {"LEAFGRAD_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": str(seed)}
        subprocess.run([sys.executable, str(script), str(seed)], env=os.environ | settings, check=True)
    assert len(list((tmp_path / "cache" / "native").glob("step-*.c"))) == 1


@pytest.mark.times(20, 200)
def test_programs_that_are_dropped_are_unloaded(count):
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no list of what is loaded")

    def loaded():
        gc.collect()
        return sum("/step-" in line for line in maps.read_text().splitlines())

    x, own = leafgrad.ones(3), fresh()
    before = loaded()
    for k in range(count):
        c = compiled(lambda x, k=k: x.sin() * (own + k % 5), x)
        c(x)
    assert loaded() <= before + 5
    del c
    assert loaded() == before
