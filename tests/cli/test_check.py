"""``leafgrad check``: what the conformance kit finds of an op or of a plugin, and the exit status."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad import cli, plugins


@leafgrad.op("elementwise", "float", name="check_right")
def right(xp, x):
    return xp.exp(x)


@leafgrad.op("elementwise", "float", name="check_wrong")
def wrong(xp, x):
    return xp.exp(x)


@leafgrad.op("elementwise", "float", name="check_needs")
def needs(xp, x, *, scale):
    return x * scale


right.vjp(x=lambda g, out: g * out)
wrong.vjp(x=lambda g, out: g * (2 * out))
needs.vjp(x=lambda g, *, scale: g * scale)


@pytest.fixture
def check(monkeypatch, capsys):
    """Runs the command where some ops belong to a plugin; gives the exit status and what it prints."""
    plugins.load()
    known, find = plugins.status(), plugins.op

    def run(*arguments, ops=()):
        by_name = {op.name: op for op in ops}
        brought = plugins.Plugin("checked", "leafgrad-checked", hooks={"leafgrad_ops": tuple(by_name)})
        monkeypatch.setattr(plugins, "status", lambda: [*known, brought])
        monkeypatch.setattr(plugins, "ops", lambda: iter(ops))
        monkeypatch.setattr(plugins, "op", lambda name: by_name.get(name) or find(name))
        return cli.main(["check", *arguments]), capsys.readouterr()

    return run


def test_an_op_that_is_right(check):
    status, printed = check("check_right", ops=[right])
    assert status == 0
    lines = [line.split() for line in printed.out.splitlines()]
    assert lines[0] == ["op", "'check_right'"]
    assert {"gradients", "vmap", "compile"} <= {name for name, outcome, *_ in lines[1:] if outcome == "passed"}
    assert "failed" not in printed.out


def test_an_op_that_is_wrong(check):
    status, printed = check("check_wrong", ops=[wrong])
    assert status == 1
    assert "  gradients    failed: " in printed.out


def test_a_plugin_in_short_and_in_full(check):
    status, printed = check("checked", ops=[right, wrong, needs])
    assert status == 1
    assert "op 'check_right': " in printed.out
    assert "  gradients: " in printed.out
    assert "op 'check_needs': not checked: " in printed.out
    assert printed.out.endswith("3 ops: 1 passed, 1 failed, 1 not checked\n")
    status, printed = check("checked", "-v", ops=[right, needs])
    assert status == 0
    assert "  gradients    passed\n" in printed.out
    assert printed.out.endswith("2 ops: 1 passed, 1 not checked\n")


def test_an_op_that_cannot_be_checked_has_not_passed(check):
    status, printed = check("check_needs", ops=[needs])
    assert status == 1
    assert "parameters without a default: scale" in printed.out


def test_a_plugin_without_ops(check):
    status, printed = check("checked", ops=[])
    assert status == 1
    assert printed.out == "0 ops: nothing to check\n"


def test_what_it_refuses(check):
    status, printed = check("nothing")
    assert status == 2
    assert printed.err.startswith("leafgrad check: unknown op 'nothing': known are ")
    assert check("nope")[1].err.startswith("leafgrad check: unknown op 'nope': known are ne, ")
    assert printed.err.count(", ") == 4
    assert check()[0] == 2
    assert check("--help")[0] == 0
