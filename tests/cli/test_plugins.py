"""``leafgrad plugins``: what is installed, what became of it and why, for people and for programs."""

from __future__ import annotations

import json

import pytest

from leafgrad import cli, plugins
from leafgrad.plugins import Plugin

PLUGINS = [
    Plugin(
        "core", "leafgrad", "0.1", hooks={"leafgrad_cli": ("info", "run"), "leafgrad_ops": ("exp",)}, load_time=0.25
    ),
    Plugin("mine", hooks={"leafgrad_ops": ()}),
    Plugin("out", "dist-out", "2.0", "blocked", error="plugin 'out' (dist-out 2.0) is excluded by LEAFGRAD_PLUGINS"),
    Plugin("bad", "dist-bad", "3.0", "failed", error="plugin 'bad' (dist-bad 3.0) failed to load: OSError: disk"),
]


@pytest.fixture
def listed(monkeypatch, capsys):
    """Runs the command where these plugins were met; gives what it prints."""
    monkeypatch.setattr(plugins, "status", lambda: PLUGINS)

    def run(*options):
        assert cli.main(["plugins", *options]) == 0
        return capsys.readouterr().out

    return run


def test_a_line_for_each_and_the_reasons(listed):
    head, core, mine, out, bad, *reasons = listed().splitlines()
    assert head.split() == ["name", "distribution", "version", "state", "load", "time", "hooks", "ops"]
    assert core.split() == ["core", "leafgrad", "0.1", "active", "250", "ms", "cli", "ops", "1"]
    assert mine.split() == ["mine", "(the", "program)", "active", "0", "ms", "ops", "0"]
    assert out.split() == ["out", "dist-out", "2.0", "blocked", "0"]
    assert bad.split() == ["bad", "dist-bad", "3.0", "failed", "0"]
    assert [line for line in reasons if line] == [PLUGINS[2].error, PLUGINS[3].error]


def test_verbose_lists_what_each_brings(listed):
    out = listed("-v")
    assert "\nplugin 'core' (leafgrad 0.1)\n  leafgrad_cli: info, run\n  leafgrad_ops: exp\n" in out
    assert PLUGINS[3].error in out


def test_json_has_all_of_it(listed):
    assert json.loads(listed("--json"))[0] == {
        "name": "core",
        "distribution": "leafgrad",
        "version": "0.1",
        "status": "active",
        "hooks": {"leafgrad_cli": ["info", "run"], "leafgrad_ops": ["exp"]},
        "error": "",
        "load_time": 0.25,
    }


def test_the_real_ones(capsys):
    assert cli.main(["plugins", "--json"]) == 0
    (core,) = [plugin for plugin in json.loads(capsys.readouterr().out) if plugin["name"] == "core"]
    assert core["status"] == "active"
    assert core["load_time"] > 0
    assert {"exp", "matmul"} <= {*core["hooks"]["leafgrad_ops"]}


def test_what_the_parser_refuses(capsys):
    assert cli.main(["plugins", "special"]) == 2
    assert "special" in capsys.readouterr().err
    assert cli.main(["plugins", "--help"]) == 0
