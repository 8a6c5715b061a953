"""``leafgrad pinn`` on a folder of scripts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import leafgrad_pinn
from leafgrad import cli, plugins
from leafgrad_pinn.scripts import Options, find
from leafgrad_pinn.table import ResultsTable
from leafgrad_pinn.training import Training


def main(arguments):
    return cli.main(["pinn", *arguments])


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
INVERSE = '''"""A rate."""
import numpy as np
import leafgrad_pinn as pinn

TRUTH = {"k": 2.0}

def solve(run):
    k = pinn.Unknown("k", 1.0)
    t = np.linspace(0, 1, 20)
    u = pinn.Field("u", pinn.Time("t", 0, 1), pinn.SIREN(20, 1, frequency=2))
    data = pinn.Data({"t": t}, {"u": np.exp(-2 * t)})
    problem = pinn.Problem(u, [data, pinn.Interior(lambda u: u.t + k * u, n=30, sampler="grid")], [k])
    return problem.solve(pinn.LeastSquares(10), **run.options)
'''
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pinn"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bent.py").write_text(SCRIPT)
    return ["--folder", str(tmp_path)]


def test_problems_come_with_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 0
    assert "Poisson's equation on a square" in capsys.readouterr().out
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"../../examples/pinn": "leafgrad_pinn/problems"}


def test_a_new_problem_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine"]) == 0
    assert main(["run", "mine.py", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "u: relative L2 error" in said
    assert "estimated without a reference: u" in said
    assert "residuals, relative to their terms: interior" in said
    assert main(["run", "mine.py", "--quick"]) == 2
    assert "or --resume to go on, or --overwrite to start anew in it" in capsys.readouterr().err
    assert main(["run", "mine.py", "--quick", "--overwrite"]) == 0
    Path("mine.py").write_text(Path("mine.py").read_text().replace("10 if", "11 if"))
    capsys.readouterr()
    assert main(["run", "mine.py", "--quick", "--resume"]) == 2
    error = capsys.readouterr().err
    assert "run: resume: expected stages" in error
    assert error.endswith("; --overwrite starts anew\n")
    assert main(["new", "mine"]) == 2
    assert "mine.py cannot be written" in capsys.readouterr().err
    assert main(["new", "no name"]) == 2
    assert main(["run", "other.py"]) == 2
    assert "no file other.py; leafgrad pinn new writes one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("x = 1\n1 / 0\n", ["mine.py, line 2, raises ZeroDivisionError: division by zero"]),
        ("x = 1\nx = = 2\n", ["mine.py raises SyntaxError: invalid syntax (mine.py, line 2)"]),
        ("x = 1\n", ["no problems in mine.py; define solve(run) there"]),
    ],
)
def test_scripts_that_do_not_run(script, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(script)
    assert main(["run", "mine.py"]) == 2
    assert capsys.readouterr().err.splitlines() == [f"leafgrad pinn: {line}" for line in said]


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


@pytest.mark.parametrize("command", [["run", "bent", "--out"], ["table", "--out"], ["table", "--runs"]])
def test_a_folder_that_cannot_be_made(folder, tmp_path, command, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main([*folder, *command, str(tmp_path / "file" / "in" / "it")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"leafgrad pinn {command[0]}: {command[-1]}: ")
    assert "cannot be made a folder: Not a directory; name another" in error


@pytest.mark.parametrize("seeds", ["0", "-2", "x", "1.5"])
def test_wrong_seeds(folder, seeds, capsys):
    assert main([*folder, "run", "bent", "--seeds", seeds]) == 2
    assert f"expected a whole number, at least 1, got '{seeds}'" in capsys.readouterr().err


def test_other_scripts_are_no_problems(folder, tmp_path, capsys):
    (tmp_path / "helper.py").write_text("x = 1")
    assert main([*folder, "list"]) == 0
    assert "helper" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_script_that_fails_does_not_stand_in_the_way(folder, tmp_path, capsys):
    (tmp_path / "a_draft.py").write_text("solve = undefined")
    assert main([*folder, "list"]) == 1
    out, error = capsys.readouterr()
    assert "bent" in out
    assert "a_draft.py, line 1, raises NameError: name 'undefined' is not defined" in error
    assert main([*folder, "run", "bent", "--quick", "--out", str(tmp_path / "out")]) == 0
    assert main([*folder, "run", "a_draft"]) == 2
    assert main([*folder, "table", "--quick", "--out", str(tmp_path / "pinn.md")]) == 1
    assert "| bent |" in (tmp_path / "pinn.md").read_text()


def test_the_hook_names_the_command():
    (command,) = leafgrad_pinn.leafgrad_cli()
    assert command.name == "pinn"
    assert plugins.resolve(command.target) is import_module("leafgrad_pinn.cli").main


def test_loading_the_plugin_leaves_the_package_for_later():
    program = "import leafgrad, sys; leafgrad.plugins.load(); import leafgrad_pinn as pinn; before = set(sys.modules); "
    program += "found = {name: getattr(pinn, name) for name in pinn.__all__}; now = set(vars(pinn)); "
    program += "print(*sorted(name for name in before if name.startswith(('leafgrad_pinn', 'leafgrad.nn'))), "
    program += "found.keys() <= now & set(dir(pinn)), callable(found['fields']), found['Problem'].__name__)"
    environment = {**os.environ, "LEAFGRAD_PLUGINS": "pinn"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.split() == ["leafgrad_pinn", "True", "True", "Problem"]
    with pytest.raises(AttributeError, match="module 'leafgrad_pinn' has no attribute 'Field3'"):
        _ = leafgrad_pinn.Field3


def test_each_name_may_be_the_first_that_is_asked_for():
    public = vars(import_module("leafgrad_pinn.public"))
    assert sorted(leafgrad_pinn.__all__) == sorted(name for name in public if not name.startswith("__"))
    program = "import leafgrad_pinn as pinn; print(pinn.references.burgers.__name__)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["burgers"]


def test_no_module_hides_a_name_of_the_package():
    modules = {module.name for module in iter_modules(leafgrad_pinn.__path__)}
    assert modules & set(leafgrad_pinn.__all__) == {"references"}  # which is that module


@pytest.mark.at_once
def test_a_table_keeps_rows_of_other_runs_and_says_what_was_not_run(folder, tmp_path, capsys):
    (tmp_path / "bent.py").write_text(SCRIPT + 'CASES = {"bent": {}, "straight": {}}\nTARGETS = {"quick": 1e-12}\n')
    out = tmp_path / "table" / "pinn.md"
    command = [*folder, "table", "--out", str(out)]
    out.parent.mkdir()
    earlier = {
        "errors": [2e-16],
        "processor seconds": 3.2,
        "floor": 1e-16,
        "classical": "closed form",
        "classical seconds": 0.1,
        "command": "leafgrad pinn table straight",
        "machine": "another",
    }
    out.with_suffix(".json").write_text(json.dumps({"straight full": earlier}))
    assert main([*command, "bent", "--quick", "--seeds", "2"]) == 0
    text = out.read_text()
    assert "| straight | not run | | | 1e-12 | | | |" in text
    assert "| straight | 2.0e-16, at the reference's floor | one seed |  |  | 3 | 1e-16 | closed form: 0.1 s |" in text
    assert re.search(r"2 seeds \| \d\.\de-\d\d \| 1e-12 \|", text)
    assert "leafgrad pinn table bent --quick --seeds 2 --dtype float64" in text
    quick = json.loads(out.with_suffix(".json").read_text())["bent quick"]
    assert len(quick["errors"]) == 2
    assert main([*command, "round"]) == 2


def test_tables_that_are_measured_at_once_keep_each_others_rows(folder, tmp_path):
    (tmp_path / "bent.py").write_text(SCRIPT + 'CASES = {"bent": {}, "straight": {}}\n')
    first, second = (ResultsTable(tmp_path / "pinn.md", find(tmp_path)[0]) for _ in range(2))
    first.measure("bent", quick=True, seeds=1, dtype="float64")
    second.measure("straight", quick=True, seeds=1, dtype="float64")
    assert set(json.loads((tmp_path / "pinn.json").read_text())) == {"bent quick", "straight quick"}


def test_a_table_goes_on_with_runs_that_were_stopped_and_adds_their_times(folder, tmp_path, capsys):
    out, runs = tmp_path / "pinn.md", tmp_path / "runs"
    command = [*folder, "table", "bent", "--quick", "--out", str(out), "--runs", str(runs)]
    assert main(command) == 0
    first = json.loads(out.with_suffix(".json").read_text())["bent quick"]
    assert main(command) == 0
    second = json.loads(out.with_suffix(".json").read_text())["bent quick"]
    assert second["errors"] == first["errors"]
    assert second["processor seconds"] > first["processor seconds"]
    assert second["elapsed seconds"] > first["elapsed seconds"]
    assert json.loads((runs / "bent quick" / "spent.json").read_text())["processor"] == second["processor seconds"]


@pytest.mark.at_once
@pytest.mark.parametrize("stops", [[], ["--seeds", "2"]])
def test_a_table_has_no_row_of_a_run_that_was_interrupted(folder, tmp_path, stops, capsys, monkeypatch):
    out = tmp_path / "pinn.md"
    command = [*folder, "table", "bent", "--quick", "--out", str(out)]
    assert main(command) == 0
    before = out.with_suffix(".json").read_text()
    monkeypatch.setattr(Training, "_stage", lambda *_: signal.raise_signal(signal.SIGTERM))
    assert main([*command, *stops]) == 130
    assert "bent was interrupted; its row stays as it was" in capsys.readouterr().err
    assert out.with_suffix(".json").read_text() == before


def test_a_table_shows_what_was_measured_beside_deepxde(folder, tmp_path, capsys):
    theirs, ours = [[10, 0.5], [40, 0.02], [90, 0.03]], [[1, 0.9], [5, 0.02], [8, 1e-5]]
    bent = {"machine": "a machine", "deepxde": {"curve": theirs, "versions": "a 1", "command": "python a.py"}}
    slow = {**bent, "leafgrad": {"curve": theirs[:1], "versions": "b 2", "command": "python b.py"}}
    bent["leafgrad"] = {**slow["leafgrad"], "curve": ours}
    (tmp_path / "pinn_deepxde.json").write_text(json.dumps({"bent": bent, "slow": slow}))
    assert main([*folder, "table", "bent", "--quick", "--out", str(tmp_path / "pinn.md")]) == 0
    text = (tmp_path / "pinn.md").read_text()
    assert "| bent | 2.0e-02 | 40 | 5.0 | 8.0 times as fast | 1.0e-05 | 8.0 |" in text
    assert "| slow | 2.0e-02 | 40 | never | | 5.0e-01 | 10.0 |" in text
    assert "Machine: a machine, a 1, b 2. Commands" in text
    assert "    python b.py" in text


def test_a_script_says_how_far_unknowns_are_off(tmp_path, capsys):
    (tmp_path / "rate.py").write_text(INVERSE)
    assert main(["--folder", str(tmp_path), "run", "rate", "--out", str(tmp_path / "out")]) == 0
    assert "k = 2, off by " in capsys.readouterr().out
    assert (tmp_path / "out" / "rate.png").exists()


@pytest.mark.slow
def test_a_table_shows_the_standard_error_of_numbers(tmp_path):
    noisy = INVERSE.replace("np.exp(-2 * t)}", "np.exp(-2 * t) + 0.01 * np.cos(40 * t)}")
    (tmp_path / "few.py").write_text(noisy.replace("np.linspace(0, 1, 20)", "np.linspace(0, 1, 2)"))  # as many as found
    (tmp_path / "rate.py").write_text(noisy)
    out = tmp_path / "pinn.md"
    assert main(["--folder", str(tmp_path), "table", "rate", "few", "--out", str(out)]) == 0
    rows = json.loads(out.with_suffix(".json").read_text())
    assert rows["few full"]["standard error"] is None
    error = rows["rate full"]["standard error"]
    assert 1e-4 < error < 1e-1
    assert f"| {error:.0e} |" in out.read_text()


def test_all_examples_are_found_and_have_targets():
    scripts, failed = find(EXAMPLES)
    assert not failed
    assert len(scripts) == 31
    for script in scripts.values():
        assert script.target(quick=False) is not None, script.name
        assert script.title, script.name
        assert len(script.path.read_text().splitlines()) <= 80, script.name


@pytest.mark.every(2)
@pytest.mark.parametrize(("name", "quick"), [("euler_beam", 1e-9), ("convection", 1e-3)])
def test_linear_problems_are_solved_in_seconds(name, quick):
    script = find(EXAMPLES)[0][name]
    solution = script.solve(Options(True, {}))
    assert script.error(solution, solution.run) < quick


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["wave", "plate", "kovasznay", "l_shape", "lotka_volterra", "reaction", "poisson_2d", "allen_cahn", "burgers_1d"],
)
def test_quick_recipes_reach_their_targets(name):
    script = find(EXAMPLES)[0][name]
    solution = script.solve(Options(True, {}))
    assert script.error(solution, solution.run) < script.target(quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["schroedinger", "kdv", "kuramoto_sivashinsky", "cavity_100", "poisson_100d"])
def test_other_recipes_begin(name, monkeypatch):
    short = {"Adam": 3, "GaussNewton": 1, "LeastSquares": 1}
    for stage, steps in short.items():
        kind = getattr(leafgrad_pinn, stage)
        monkeypatch.setattr(leafgrad_pinn, stage, lambda _, kind=kind, steps=steps, **given: kind(steps, **given))
    script = find(EXAMPLES)[0][name]
    solution = script.solve(Options(True, {}))
    assert 0 < script.error(solution, solution.run) < 100


MEASURED = """
TRUTH = {"area": 1 / 6, "peak": 0.5}

def measure(solution):
    return {"area": solution.integral(lambda u: u), "peak": float(solution(0.5)), "other": 3.0}
"""


def test_numbers_that_are_measured_have_errors(tmp_path, capsys):
    (tmp_path / "bent.py").write_text(SCRIPT + MEASURED)
    assert main(["--folder", str(tmp_path), "run", "bent", "--seeds", "2", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"area = 0\.16\d+, off by .* of 0\.166667", out)
    assert "of 0.5" in out
    assert "other = 3\n" in out
    assert main(["--folder", str(tmp_path), "table", "bent", "--out", str(tmp_path / "table.md")]) == 0
    assert re.search(r"\| bent \| [45]\.\de-01", capsys.readouterr().out)  # the peak is 1/4
