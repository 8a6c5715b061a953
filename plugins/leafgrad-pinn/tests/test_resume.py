"""A run that was killed goes on to the same bits, whatever the stage, its weights and its points."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leafgrad_pinn as pinn

SCRIPT = """
import math, sys
import numpy as np
import leafgrad as lg, leafgrad_pinn as pinn
from leafgrad_pinn.stages import Worker, first_order, quasi_newton
first_order.Descent.look = quasi_newton.SSBroydenWorker.look = 15
quasi_newton.LBFGSWorker.look = Worker.look = 3
domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
u = pinn.Field("u", domain, pinn.MLP(6, 2))
sides = [pinn.Dirichlet(0, n=16), pinn.Initial(lambda x: lg.sin(math.pi * x), n=16)]
problem = pinn.Problem(u, [pinn.Interior(lambda u: u.t - 0.1 * u.xx, n=64), *sides])
reference = pinn.references.exact(domain, u=lambda x, t: np.sin(np.pi * x) * np.exp(-0.1 * np.pi**2 * t))
problem.solve(STAGES, reference=reference, out=sys.argv[1], resume=True)
"""

STAGES = {
    "first order": "pinn.Adam(90, weights=(pinn.Causal(), pinn.GradNorm(every=20)), points=pinn.RAD(every=25)), "
    "pinn.SOAP(60, weights=pinn.SelfAdaptive()), pinn.Muon(60, weights=pinn.RBA(), points=pinn.R3(20))",
    "quasi-Newton": "pinn.LBFGS(150, block=10, weights=pinn.Causal(), hold=40, points=pinn.RAD(every=70)), "
    "pinn.SSBroyden(120, weights=pinn.RBA(), hold=25, points=pinn.R3(50))",
    "Gauss-Newton": "pinn.GaussNewton(20, tolerance=0, points=pinn.RAD(every=7)), "
    "pinn.LevenbergMarquardt(20, tolerance=0, weights=pinn.NTK(every=5)), "
    "pinn.GaussNewton(8, solver='cg', tolerance=0)",
}


def start(name, folder):
    script = SCRIPT.replace("STAGES", STAGES[name])
    return subprocess.Popen([sys.executable, "-c", script, folder], stderr=subprocess.DEVNULL)


def finish(name, folder, kills):
    """Run to the end, killed so many times at moments of no choice, each after some progress."""
    while True:
        process = start(name, folder)
        if kills:
            before = rows_in(folder)
            while process.poll() is None and rows_in(folder) <= before:
                time.sleep(0.02)
            time.sleep(random.random() * 0.3)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            kills -= 1
            process.wait()
            continue
        assert process.wait() == 0
        return


def rows_in(folder):
    try:
        return len((folder / "seed0" / "history.csv").read_text().splitlines())
    except FileNotFoundError:
        return 0


def rows(folder):
    with open(folder / "seed0" / "history.csv", newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_killed_runs_go_on_to_the_same_bits(name, tmp_path):
    finish(name, tmp_path / "whole", 0)
    finish(name, tmp_path / "killed", 3)
    whole, killed = rows(tmp_path / "whole"), rows(tmp_path / "killed")
    assert len(whole) > 30
    assert whole == killed
    x, t = np.linspace(0, 1, 9)[:, None], np.linspace(0, 1, 7)
    values = [pinn.Solution.load(tmp_path / n / "solution.safetensors")(x, t) for n in ("whole", "killed")]
    assert np.array_equal(*values)


ORDER = """
import math, sys
import leafgrad as lg, leafgrad_pinn as pinn
ring = pinn.Interval("x", -1, 1, periodic=True) * pinn.Time("t", 0, 0.4)
start = (pinn.Hard(lambda x: lg.cos(math.pi * x)), pinn.Hard(0))
psi = pinn.ComplexField("psi", ring, pinn.MLP(5, 1, embed=pinn.Periodic(x=2)), initial=start)
equation = pinn.Interior(lambda psi: 1j * psi.t + psi.xx / math.pi**2, n=24)
problem = pinn.Problem(psi, [equation], derivatives=sys.argv[1])
print(problem.solve(pinn.GaussNewton(4, tolerance=0)).run.loss.hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("derivatives", ["auto", "jet", "forward"])
def test_processes_whose_strings_hash_differently_round_alike(derivatives):
    found = set()
    for number in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": number}
        found.add(subprocess.check_output([sys.executable, "-c", ORDER, derivatives], env=environment, text=True))
    assert len(found) == 1, found


def test_signed_distances_are_the_same_in_each_process():
    one, two = (pinn.SignedDistance(lambda x, y: x**2 + y**2 - 1, x=(-2, 2), y=(-2, 2)) for _ in range(2))
    assert one.function is not two.function
    assert repr(one) == repr(two)
