"""A forked child runs what the parent compiled, whatever other threads of the parent were doing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

CHILD = """
import os, signal, sys, threading
import leafgrad
from leafgrad import nn, optim

def trained(noisy):
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Adam(net.parameters())
    log = []
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        if noisy:
            log.append(1)
        return loss
    return leafgrad.compile(step)

x = leafgrad.ones(50, 3)
steps = [trained(False), trained(True)]
for step in steps:
    for _ in range(5):
        step(x)
running = True
def work(step):
    while running:
        step(x)
threads = [threading.Thread(target=work, args=(step,), daemon=True) for step in steps]
for t in threads:
    t.start()
bad = 0
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        signal.alarm(20)
        fresh = trained(False)
        for step in (*steps, fresh):
            for _ in range(4):
                step(x)
        leafgrad.rand(3)
        os._exit(0)
    bad += os.waitpid(child, 0)[1] != 0
running = False
os._exit(bad)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.times(4, 200)
def test_children_run_compiled_steps(count):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CHILD), str(count)]
    assert subprocess.run(command, timeout=500, check=False).returncode == 0
