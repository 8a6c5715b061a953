"""``leafgrad ops``: what each op can do is what it declares, and the page in the docs says the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import leafgrad
from leafgrad import cli, plugins

ROOT = Path(__file__).resolve().parent.parent.parent


@leafgrad.op("elementwise", "float", name="coverage_scaled", c="x * y * scale")
def scaled(xp, x, y, *, scale=1.0):
    return x * y * scale


@leafgrad.op(name="coverage_bare")
def bare(xp, x):
    return x


def rule(*arguments):
    return None


scaled.vjp(x=lambda g, y, *, scale: g * y * scale)
scaled.kernel("cupy")(scaled.forward)
bare.lower("native", rule)


@pytest.fixture
def listed(monkeypatch, capsys):
    """Runs the command where these ops belong to a plugin; gives what it prints."""
    plugins.load()
    known, ops = plugins.status(), [*plugins.ops(), scaled, bare]
    brought = plugins.Plugin("coverage", "leafgrad-coverage", hooks={"leafgrad_ops": (scaled.name, bare.name)})
    monkeypatch.setattr(plugins, "status", lambda: [*known, brought])
    monkeypatch.setattr(plugins, "ops", lambda: iter(ops))

    def run(*options):
        assert cli.main(["ops", *options]) == 0
        return capsys.readouterr().out

    return run


def test_json_says_what_is_declared(listed):
    first, second = json.loads(listed("coverage", "--json"))
    assert second == {
        "op": "coverage_scaled",
        "plugin": "coverage",
        "derivatives": ["x"],
        "differentiable": True,
        "traits": ["elementwise", "float"],
        "dtypes": "floating",
        "kernels": ["cupy"],
        "vmap": "rule",
        "compile": "chunks",
        "c": "x * y * scale",
        "executors": [],
    }
    assert (first["derivatives"], first["vmap"], first["compile"]) == ([], "by sample", "no shape rule")
    assert (first["c"], first["executors"]) == (None, ["native"])


def test_a_declaration_more_shows(listed, monkeypatch):
    for name in ("shaping", "chunking", "batching"):
        monkeypatch.setattr(bare, name, rule)
    (found, _) = json.loads(listed("coverage", "--json"))
    assert (found["vmap"], found["compile"]) == ("rule", "chunks")
    monkeypatch.setattr(bare, "chunking", None)
    (found, _) = json.loads(listed("coverage", "--json"))
    assert found["compile"] == "whole"


def test_a_table_of_all(listed):
    head, *rows = [line.split() for line in listed().splitlines()]
    assert head == ["op", "plugin", "derivatives", "dtypes", "devices", "vmap", "compile", "C"]
    assert [row[0] for row in rows] == sorted(op.name for op in plugins.ops())
    found = {row[0]: row[1:] for row in rows}
    assert found["coverage_scaled"] == ["coverage", "x", "floating", "all,", "cupy", "rule", "chunks", "expression"]
    assert found["eq"] == ["core", "not", "differentiable", "promoted", "all", "rule", "chunks", "expression"]


def test_markdown_has_the_same(listed):
    page = listed("--markdown", "coverage")
    assert page.startswith("# Coverage of ops\n")
    assert "| coverage_scaled | coverage | x | floating | all, cupy | rule | chunks | expression |\n" in page


def test_an_unknown_plugin(capsys):
    assert cli.main(["ops", "nothing"]) == 2
    assert "leafgrad ops: unknown plugin 'nothing': known are " in capsys.readouterr().err
    assert cli.main(["ops", "--json", "--markdown"]) == 2
    assert cli.main(["ops", "--help"]) == 0


def test_the_page_in_the_docs_is_current():
    """In a process of its own, since other tests declare more of the core's ops."""
    command = [sys.executable, "-m", "leafgrad", "ops", "--markdown", "core"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs" / "coverage.md").read_text() == printed, "run `make coverage`"
