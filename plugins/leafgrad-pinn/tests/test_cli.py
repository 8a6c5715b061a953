"""``leafgrad pinn`` on a folder of scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

import leafgrad_pinn
from leafgrad import plugins
from leafgrad_pinn.cli import main

SCRIPT = '''"""A line that is bent.

More.
"""
import leafgrad_pinn as pinn

def solve(run):
    u = pinn.Field("u", pinn.Interval("x", 0, 1), pinn.MLP(4, 1), boundary=pinn.Hard(0))
    problem = pinn.Problem(u, [pinn.Interior(lambda u: u.xx + 2, n=16)])
    truth = pinn.references.exact(u.domain, u=lambda x: x * (1 - x))
    return problem.solve(pinn.GaussNewton(3 if run.quick else 6), reference=truth, **run.options)
'''
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pinn"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bent.py").write_text(SCRIPT)
    return ["--folder", str(tmp_path)]


def test_list(folder, capsys):
    assert main([*folder, "list"]) == 0
    assert capsys.readouterr().out == "bent  A line that is bent.\n"


def test_run(folder, tmp_path, capsys):
    assert main([*folder, "run", "bent", "--quick", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "u: relative L2 error" in out
    assert "seed 0: all 3 steps are done" in out
    assert {"bent.png", "solution.safetensors", "seed0"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_wrong_names(folder, tmp_path, capsys):
    assert main([*folder, "run", "straight"]) == 2
    assert "expected one of bent, got 'straight'" in capsys.readouterr().err
    assert main(["--folder", str(tmp_path / "none"), "list"]) == 2
    assert main([*folder, "run"]) == 2


def test_the_hook_names_the_command():
    (command,) = leafgrad_pinn.leafgrad_cli()
    assert command.name == "pinn"
    assert plugins.resolve(command.target) is main


@pytest.mark.slow
def test_poisson_is_solved_to_what_the_documentation_says(tmp_path, capsys):
    assert main(["--folder", str(EXAMPLES), "run", "poisson_2d", "--quick", "--out", str(tmp_path)]) == 0
    error = float(capsys.readouterr().out.split("relative L2 error ")[1].split(",")[0])
    assert error < 1e-4
