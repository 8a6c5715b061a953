"""Environment variables: which plugins may load, and whether failures are errors."""

from __future__ import annotations

import pytest
from installed_plugins import Entry, NamedOp, by_name, names, plugin

from leafgrad.errors import PluginError
from leafgrad.plugins import PluginWarning, UnknownNameError


def three():
    return [Entry(name, plugin(ops=[NamedOp(name)])) for name in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("value", "loaded"),
    [
        ("none", []),
        ("b", ["b"]),
        ("c, a", ["a", "c"]),
        ("", ["a", "b", "c"]),
        ("a,,", ["a"]),
        (",", ["a", "b", "c"]),
        ("-a", ["b", "c"]),
        (" -c, - a ", ["b"]),
        ("-a,-b,-c", []),
    ],
)
def test_leafgrad_plugins_restricts(fresh, monkeypatch, value, loaded):
    made = fresh(*three())
    monkeypatch.setenv("LEAFGRAD_PLUGINS", value)  # after the manager is made: read when plugins load
    made.load()
    assert names(made.ops) == ["tanh", *loaded]
    blocked = [record.name for record in made.status() if record.status == "blocked"]
    assert blocked == [name for name in "abc" if name not in loaded]
    reason = "excluded by" if "-" in value else "not in"
    for name in blocked:
        assert by_name(made)[name].error == f"plugin {name!r} (leafgrad-{name} 1.0) is {reason} LEAFGRAD_PLUGINS"
        with pytest.raises(UnknownNameError, match=f"unknown op {name!r}: .*{reason} LEAFGRAD_PLUGINS"):
            made.ops.find(name)


@pytest.mark.parametrize("value", ["a,-b", "-b,a", "-a,b,-c"])
def test_names_with_and_without_a_minus_do_not_mix(fresh, monkeypatch, value):
    monkeypatch.setenv("LEAFGRAD_PLUGINS", value)
    made = fresh(*three())
    message = rf"LEAFGRAD_PLUGINS={value}: expected either .* \(a,b\) or, .* \(-a,-b\), got both"
    for _ in range(2):
        with pytest.raises(PluginError, match=message):
            made.load()
    assert names(made.ops) == ["tanh"]


def test_the_core_cannot_be_excluded(fresh, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_PLUGINS", "-a,-core")
    with pytest.raises(
        PluginError, match="LEAFGRAD_PLUGINS=-a,-core: expected names of installed plugins, got the core"
    ):
        fresh(*three()).load()


@pytest.mark.parametrize("value", ["a,ghost", "-a,-ghost"])
def test_leafgrad_plugins_with_a_name_that_is_not_installed(fresh, monkeypatch, value):
    monkeypatch.setenv("LEAFGRAD_PLUGINS", value)
    made = fresh(*three())
    with pytest.warns(PluginWarning, match="LEAFGRAD_PLUGINS names 'ghost'"):
        made.load()


def test_strict_makes_every_failure_an_error(fresh, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_STRICT_PLUGINS", "1")
    made = fresh(
        Entry("bad", ValueError("one")), Entry("good", plugin(ops=[NamedOp("good")])), Entry("w", OSError("two"))
    )
    for _ in range(2):
        with pytest.raises(PluginError, match=r"(?s)'bad' .*ValueError: one.*'w' .*OSError: two"):
            made.load()
    assert made.ops.find("good").name == "good"


def test_strict_off(fresh, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_STRICT_PLUGINS", "0")
    made = fresh(Entry("bad", ValueError("one")))
    with pytest.warns(PluginWarning):
        made.load()
