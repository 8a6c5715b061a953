"""Forks while other threads run compilers, load libraries and compute in C: both sides go on, with right numbers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from leafgrad_native.compiler import NoCompiler, compiler

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

WHILE_ONE_STARTS = """
import os, subprocess, threading, time
from leafgrad_native import compiler

begun, go_on = threading.Event(), threading.Event()

class Slow(subprocess.Popen):
    def _execute_child(self, *arguments):  # the pipes are there
        begun.set()
        go_on.wait(0.3)
        super()._execute_child(*arguments)

subprocess.Popen = Slow
thread = threading.Thread(target=compiler.run, args=[["true"]])
thread.start()
begun.wait()
child = os.fork()
if not child:
    time.sleep(600)
    os._exit(0)
thread.join(30)
os.kill(child, 9)
os._exit(thread.is_alive())
"""


def test_a_child_keeps_no_pipe_of_a_compiler(start):
    assert start(WHILE_ONE_STARTS).wait(60) == 0


IN_A_CALL = """
import faulthandler, os, signal
import leafgrad as lg

lg.set_num_threads(3)
x = lg.rand(150_000, 4, dtype=lg.float64)

@lg.compile(executor="native")
def step(x):
    for _ in range(12):
        x = (x.tanh() * x.sin()).exp()
    return x.cumsum(1).sum(1)

for _ in range(3):
    expected = step(x)
children = []

def fork(*_):
    signal.setitimer(signal.ITIMER_REAL, 0)  # where a fork takes long, as under sanitizers, none begins in it
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(300, exit=True)
    children.append(child)

signal.signal(signal.SIGALRM, fork)
signal.setitimer(signal.ITIMER_REAL, 0.002)
while not children:
    found = step(x)
right = lg.allclose(found, expected, rtol=1e-12) and lg.equal(step(x), expected)
if 0 in children:
    os._exit(not right)
os._exit(not right or any([os.waitpid(child, 0)[1] for child in children]))
"""


@pytest.mark.times(1, 10)
def test_a_child_goes_on_with_the_call_that_a_handler_forked_in(count, tried):
    for _ in range(count):
        done = subprocess.run(
            [sys.executable, "-c", IN_A_CALL], capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
    tried("a fork by a handler of a signal in the middle of a call of C", count, "both go on; right numbers")


BUSY = """
import faulthandler, os, random, sys, threading, time, warnings
warnings.simplefilter("error")  # as where C is given up
import leafgrad as lg
from leafgrad import nn

chance, forks, warm = random.Random(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
lg.set_num_threads(3)
lg.manual_seed(0)
w, x = lg.rand(4, 4, dtype=lg.float64), lg.rand(5000, 4, dtype=lg.float64)
PARTS = [
    lambda x: x.tanh() * 1.5,
    lambda x: (x + 0.5).sin(),
    lambda x: 1 / (1 + (-x).exp()),
    lambda x: x.square() - 1,
    lambda x: x.cumsum(1) / 3,
    lambda x: x @ w,
    lambda x: x.clamp(min=-0.3),
]

class Program:
    def __init__(self):
        parts = chance.choices(PARTS, k=9)

        def function(x):
            for part in parts:
                x = part(x)
            return x.sum(1)

        self.expected, self.step = function(x), lg.compile(function, executor="native")

    def check(self):
        for _ in range(3):
            if not lg.allclose(self.step(x), self.expected, rtol=1e-11, atol=1e-11):
                print("other numbers than eager", file=sys.stderr, flush=True)
                os._exit(3)

def train():
    net = nn.Linear(8, 8)
    adam = lg.optim.Adam(net.parameters())

    @lg.compile(executor="native")
    def step(x):
        adam.zero_grad()
        net(x).square().mean().backward()
        adam.step()

    for _ in range(4):
        step(lg.rand(64, 8))

def for_ever(act):
    while True:
        act()

known = [Program(), Program()]
if warm:
    for program in known:
        program.check()
for act in (known[0].check, known[1].check, train, lambda: Program().check()):
    threading.Thread(target=for_ever, args=[act], daemon=True).start()
for n in range(forks):
    time.sleep(chance.uniform(0, 0.1))
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(60, exit=True)
        for program in known:
            program.check()
        if n % 10 == 9:
            Program().check()  # with a compiler of its own
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        os._exit(os.waitstatus_to_exitcode(status) & 255)
os._exit(0)
"""


@pytest.mark.times(1, 20)
def test_while_other_threads_compile_and_compute(count, tried, tmp_path):
    """Half of the parents are cold: they look for a compiler, and load their first library, as they fork."""
    for i in range(count):
        around = {**os.environ, "LEAFGRAD_CACHE": str(tmp_path / f"cache{i}")}
        command = [sys.executable, "-c", BUSY, str(i), "25" if count > 1 else "5", str(i % 2)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=around)
        assert done.returncode == 0, f"{i}: {done.stderr}"
    forks = count * (25 if count > 1 else 5)
    tried("a fork while four threads compile to C, load and compute", forks, "the child does, too; right numbers")
