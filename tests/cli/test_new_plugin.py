"""``leafgrad new-plugin``: what it writes works as it is, and nothing is overwritten."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv

import pytest

from leafgrad import cli
from leafgrad.cli.new_plugin import KINDS

WRITTEN = """
.github/workflows/test.yml .gitignore Makefile README.md
conftest.py leafgrad_heat_flow/__init__.py leafgrad_heat_flow/ops.py leafgrad_heat_flow/py.typed local.mk pyproject.toml
tests/test_heat_flow.py
"""


@pytest.fixture
def heat_flow(tmp_path):
    """The folder of a new plugin."""
    assert cli.main(["new-plugin", "heat_flow", "--path", str(tmp_path)]) == 0
    return tmp_path / "leafgrad-heat_flow"


def files(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written(heat_flow):
    written = files(heat_flow)
    assert sorted(written) == WRITTEN.split()
    assert not re.search("NAME|WHAT", "".join(written.values()))
    project = tomllib.loads(written["pyproject.toml"])["project"]
    assert project["name"] == "leafgrad-heat_flow"
    plugin = {"heat_flow": "leafgrad_heat_flow"}
    assert project["entry-points"] == {
        "leafgrad": plugin,
        "leafgrad.methods": {"heat_flow_gauss": "leafgrad_heat_flow"},
    }


def test_it_goes_into_the_working_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new-plugin", "heat"]) == 0
    assert capsys.readouterr().out.startswith("leafgrad-heat: the code is in leafgrad_heat/; `make test` there")
    assert (tmp_path / "leafgrad-heat" / "leafgrad_heat" / "ops.py").exists()


@pytest.mark.parametrize(
    "name", ["Heat", "heat-flow", "2d", "_heat", "heat_", "heat__flow", "", "wärme", "a/b", "..", "heat\n"]
)
def test_bad_names(tmp_path, capsys, name):
    assert cli.main(["new-plugin", name, "--path", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("leafgrad new-plugin: NAME: expected lower-case letters, digits and single underscores")
    assert f"got {name!r}" in error
    assert not [*tmp_path.iterdir()]


def test_a_name_that_a_plugin_has(tmp_path, capsys):
    assert cli.main(["new-plugin", "core", "--path", str(tmp_path)]) == 2
    assert "NAME: plugin 'core' (leafgrad" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_exists_stays_as_it_is(heat_flow, capsys):
    (heat_flow / "README.md").write_text("mine")
    before = files(heat_flow)
    assert cli.main(["new-plugin", "heat_flow", "--path", str(heat_flow.parent)]) == 2
    assert f"'{heat_flow}' exists already; choose another name" in capsys.readouterr().err
    assert files(heat_flow) == before


def test_a_path_that_does_not_exist(tmp_path, capsys):
    assert cli.main(["new-plugin", "heat", "--path", str(tmp_path / "no")]) == 2
    assert f"--path: expected a folder that exists, got '{tmp_path / 'no'}'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(tmp_path, kind):
    assert cli.main(["new-plugin", "heat", "--kind", kind, "--path", str(tmp_path)]) == 0
    written = files(tmp_path / "leafgrad-heat")
    assert {"Makefile", "README.md", ".github/workflows/test.yml", "leafgrad_heat/py.typed"} <= written.keys()
    assert not re.search("NAME|WHAT", "".join(written.values()))
    tomllib.loads(written["pyproject.toml"])
    for name, text in written.items():
        if name.endswith(".py"):
            for module, wanted in imported(text):
                assert hasattr(importlib.import_module(module), wanted), f"{name}: {module} has no {wanted}"


def imported(text):
    """The names that a text takes from modules of leafgrad, with the modules."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "leafgrad":
            yield from ((node.module, alias.name) for alias in node.names)


def test_what_the_parser_refuses(capsys):
    assert cli.main(["new-plugin"]) == 2
    assert "NAME" in capsys.readouterr().err
    assert cli.main(["new-plugin", "--help"]) == 0


def test_its_tests_pass(heat_flow):
    """Beside the entry points that an installation would bring."""
    project = tomllib.loads((heat_flow / "pyproject.toml").read_text())["project"]
    installed = heat_flow / f"leafgrad_heat_flow-{project['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (installed / "entry_points.txt").write_text("".join(groups))
    command, env = [sys.executable, "-m", "pytest", "-q"], {**os.environ, "PYTHONPATH": str(heat_flow)}
    done = subprocess.run(command, cwd=heat_flow, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_its_own_make_test_passes_and_leafgrad_finds_it(tmp_path, kind):
    """In a new environment, which sees the packages of this one in place of an index: nothing is downloaded."""
    assert cli.main(["new-plugin", "heat_flow", "--kind", kind, "--path", str(tmp_path)]) == 0
    heat_flow = tmp_path / "leafgrad-heat_flow"
    venv.create(heat_flow / ".venv", symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(heat_flow / ".venv")})
    outer = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    with open(os.path.join(packages, "outer.pth"), "w") as file:
        file.writelines(f"import site; site.addsitedir({path!r})\n" for path in sorted(outer))
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0: pip's word for no isolation

    def run(*command):
        done = subprocess.run(command, cwd=heat_flow, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert re.search(r"^\d+ passed", run("make", "test", f"PYTHON={sys.executable}", "LEAFGRAD="), re.MULTILINE)
    python = str(heat_flow / ".venv" / "bin" / "python")
    assert re.search(
        rf"^heat_flow +leafgrad-heat_flow +0.1.0 +active .* {2 if kind == 'op' else 0}$",
        run(python, "-m", "leafgrad", "plugins"),
        re.M,
    )
    (example,) = re.findall(r"```python\n(.*?)```", (heat_flow / "README.md").read_text(), re.DOTALL)
    assert run(python, "-c", example).strip() == re.search(r"print\(.*\)  # (.*)", example)[1]
