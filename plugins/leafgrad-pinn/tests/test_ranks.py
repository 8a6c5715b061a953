"""Points divided among processes: the results of one process, files from the first, resume, and Ctrl-C for all."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leafgrad_pinn as pinn

pytest.importorskip("mpi4py")

START = """
import math, os, sys
import numpy as np
import leafgrad as lg, leafgrad.distributed as dist, leafgrad_pinn as pinn

domain = pinn.Interval("x", 0, 1) * pinn.Time("t", 0, 1)
u = pinn.Field("u", domain, pinn.MLP(5, 1))
nu = pinn.Unknown("nu", 0.3)
heat = pinn.Interior(lambda u: u.t - nu * u.xx, n=33)
data = pinn.Data({"x": np.linspace(0, 1, 7), "t": np.linspace(0, 1, 7)}, {"u": np.ones(7)})
sides = [pinn.Dirichlet(0, n=9), pinn.Initial(lambda x: lg.sin(math.pi * x), n=11), data]
problem = pinn.Problem(u, [heat, *sides], [nu])
"""

STAGES = {
    "Adam": "pinn.Adam(6, lr=1e-2, weights=(pinn.Causal(), pinn.GradNorm(every=2)), points=pinn.RAD(every=3))",
    "SOAP": "pinn.SOAP(5, weights=pinn.SelfAdaptive()), pinn.Muon(4, points=pinn.R3(2))",
    "LBFGS": "pinn.LBFGS(10, block=5, weights=pinn.RBA(), hold=5)",
    "SSBroyden": "pinn.SSBroyden(10, weights=pinn.NTK(every=2), hold=4)",
    "GaussNewton": "pinn.GaussNewton(4, tolerance=0, points=pinn.RAD(every=2))",
    "LevenbergMarquardt": "pinn.LevenbergMarquardt(4, tolerance=0), pinn.LeastSquares(2)",
    "conjugate gradients": "pinn.GaussNewton(3, solver='cg', iterations=10, tolerance=0)",
}


def start(folder, code, count):
    script = folder / "script.py"
    script.write_text(START + code)
    ranks = [sys.executable, "-m", "leafgrad", "run", "--ranks", str(count), str(script)]
    command = ranks if count > 1 else [sys.executable, str(script)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def done(folder, code, count):
    process = start(folder, code, count)
    said, errors = process.communicate(timeout=200)
    assert process.returncode == 0, [line for line in errors.splitlines() if "it/s" not in line and "s/it" not in line]
    return said, errors


ALL = f"""
size, stages = int(os.environ.get("PMI_SIZE", 1)), {STAGES}
for name, given in stages.items():
    sol = problem.solve(*eval(f"[{{given}}]"), seeds=2, out=f"out{{size}} {{name}}")
    values = [[v.hex() for v in p.detach().numpy().ravel().tolist()] for p in sol.run.modules[0].parameters()]
    with open(f"{{os.getpid()}} {{name}}", "w") as file:
        print(values, sol.run.reasons, sol.unknowns, file=file)
"""


@pytest.mark.slow
def test_two_ranks_give_what_one_gives(tmp_path):
    done(tmp_path, ALL, 1)
    alone = {path.name for path in tmp_path.iterdir()}
    _, errors = done(tmp_path, ALL, 2)
    assert errors.count("seed 0 LevenbergMarquardt: 60 points") == 1  # of the first alone
    for name in STAGES:
        one, two = [read(tmp_path / f"out{count} {name}" / "seed1" / "history.csv") for count in (1, 2)]
        assert len(one) == len(two) > 1
        for a, b in zip(one, two, strict=True):
            assert a["stage"] == b["stage"]
            close = {key: float(b[key]) for key in b if key not in ("stage", "seconds")}
            rel = 1e-2 if name == "SOAP" else 1e-8  # whose basis is rounding where curvature is none
            assert close == pytest.approx({key: float(a[key]) for key in close}, rel=rel)
        texts = [p.read_text() for p in tmp_path.glob(f"* {name}") if p.is_file() and p.name not in alone]
        assert len(texts) == 2
        assert texts[0] == texts[1]  # both ranks have the same bits


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


LONG = """
problem.solve(pinn.Adam(2000, points=pinn.RAD(every=100)), out="out", resume=True)
"""


@pytest.mark.slow
def test_ctrl_c_stops_all_ranks_after_one_step_and_the_run_goes_on(tmp_path):
    (tmp_path / "whole").mkdir()
    done(tmp_path / "whole", LONG, 2)
    (tmp_path / "cut").mkdir()
    process = start(tmp_path / "cut", LONG, 2)
    history = tmp_path / "cut" / "out" / "seed0" / "history.csv"
    while not history.exists():
        time.sleep(0.01)
    pids = subprocess.run(["pgrep", "-f", str(tmp_path / "cut" / "script.py")], capture_output=True, text=True).stdout
    ranks = [int(pid) for pid in pids.split() if is_rank(int(pid))]
    assert len(ranks) == 2
    os.kill(ranks[1], signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.count("resume=True goes on from there") == 1
    assert len(read(history)) < 2000
    done(tmp_path / "cut", LONG, 2)
    folders = [tmp_path / name / "out" for name in ("whole", "cut")]
    rows = [[{**row, "seconds": ""} for row in read(folder / "seed0" / "history.csv")] for folder in folders]
    assert rows[0] == rows[1]
    x, t = np.linspace(0, 1, 5)[:, None], np.linspace(0, 1, 4)
    assert np.array_equal(*[pinn.Solution.load(folder / "solution.safetensors")(x, t) for folder in folders])


def is_rank(pid):
    with open(f"/proc/{pid}/environ") as file:
        return "PMI_RANK=" in file.read()
