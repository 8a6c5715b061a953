"""Names that several plugins define: who keeps them, and which error names them all."""

from __future__ import annotations

import pytest
from installed_plugins import Entry, NamedOp, by_name, names, plugin

from leafgrad.errors import PluginError
from leafgrad.plugins import BackendSpec, PluginClashError, PluginWarning


def test_two_plugins_with_one_op_name(fresh):
    first = Entry("a", plugin(ops=[NamedOp("same")]), "dist-a", "1.0")
    second = Entry("b", plugin(ops=[NamedOp("other"), NamedOp("same")]), "dist-b", "2.0")
    made = fresh(first, second, Entry("c", plugin(ops=[NamedOp("c")])))
    message = r"op 'same' is defined twice: by plugin 'a' \(dist-a 1.0\) and by plugin 'b' \(dist-b 2.0\)"
    with pytest.warns(PluginWarning, match=message + "; uninstall one of them, or set LEAFGRAD_PLUGINS=-b") as caught:
        made.load()
    assert len(caught) == 1
    assert names(made.ops) == ["tanh", "other", "c"]
    for _ in range(2):
        with pytest.raises(PluginClashError, match=message):
            made.ops.find("same")
    records = by_name(made)
    assert [records[name].status for name in "abc"] == ["active"] * 3
    assert records["a"].error == records["b"].error == str(caught[0].message)
    assert records["c"].error == ""


def test_a_clash_is_found_by_whoever_looks_up_the_name_first(fresh):
    made = fresh(*[Entry(name, plugin(ops=[NamedOp("same"), NamedOp(name)])) for name in "abc"])
    with (
        pytest.warns(PluginWarning, match="'same' is defined twice") as caught,
        pytest.raises(PluginClashError, match=r"by plugin 'a' .* and by plugin 'b' .* and by plugin 'c' "),
    ):
        made.ops.find("same")
    assert len(caught) == 2
    assert names(made.ops) == ["tanh", *"abc"]
    with pytest.raises(PluginClashError, match=r"by plugin 'c' .* and by plugin 'mine'"):
        made.register(plugin("mine", ops=[NamedOp("same")]))


def test_a_clash_with_a_name_of_the_core_or_of_the_program_leaves_it_there(fresh):
    made = fresh(Entry("a", plugin(ops=[NamedOp("tanh"), NamedOp("mine"), NamedOp("a")])))
    core = made.ops.find("tanh")
    own = NamedOp("mine")
    made.register(plugin("program", ops=[own]))
    with pytest.warns(PluginWarning, match=r"op '(tanh|mine)' is defined twice") as caught:
        made.load()
    assert len(caught) == 2
    assert (made.ops.find("tanh"), made.ops.find("mine")) == (core, own)
    assert made.ops.find("a").name == "a"
    records = by_name(made)
    assert "op 'tanh'" in records["a"].error
    assert "op 'mine'" in records["a"].error
    assert records["core"].error == records["program"].error == ""


def test_strict_makes_a_clash_an_error_as_long_as_both_are_installed(fresh, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_STRICT_PLUGINS", "1")
    made = fresh(*[Entry(name, plugin(ops=[NamedOp("same")])) for name in "ab"])
    for _ in range(2):
        with pytest.raises(PluginError, match="op 'same' is defined twice"):
            made.load()


def test_two_installed_backends_for_one_device_type(fresh):
    first = Entry("a", plugin(backends=[BackendSpec("ba", "npu", "m:A"), BackendSpec("bx", "xpu", "m:X")]))
    second = Entry("b", plugin(backends=[BackendSpec("bb", "npu", "m:B"), BackendSpec("ba", "vpu", "m:V")]))
    made = fresh(first, second)
    with pytest.warns(PluginWarning, match="is defined twice"):
        made.load()
    assert made.backend_for("cpu").name == "numpy"
    assert made.backend_for("xpu").name == "bx"
    with pytest.raises(PluginClashError, match=r"device type 'npu' is defined twice: by plugin 'a'.*by plugin 'b'"):
        made.backend_for("npu")
    with pytest.raises(PluginClashError, match="backend 'ba' is defined twice"):
        made.backend_for("vpu")  # whose backend has the name of another, by which ops keep their kernels


def test_a_core_op_cannot_be_replaced(fresh):
    made = fresh()
    mine = NamedOp("tanh")
    with pytest.raises(PluginClashError, match=r"plugin 'core' \(leafgrad\) and by plugin 'plug'"):
        made.register(plugin(ops=[mine]))
    assert made.ops.find("tanh") is not mine


def test_one_plugin_that_lists_a_name_twice(fresh):
    with pytest.raises(PluginClashError, match="'a' is defined twice: by plugin 'plug'"):
        fresh().register(plugin(ops=[NamedOp("a"), NamedOp("a")]))


def test_two_backends_for_one_device_type(fresh):
    made = fresh()
    with pytest.raises(PluginClashError, match="device type 'cpu' is defined twice"):
        made.register(plugin(backends=[BackendSpec("mine", "cpu", "m:B")]))
    with pytest.raises(PluginClashError, match="device type 'npu' is defined twice"):
        made.register(plugin(backends=[BackendSpec("b", "npu", "m:B"), BackendSpec("c", "npu", "m:C")]))
    assert names(made.backends) == ["numpy"]


def test_registering_twice_is_refused_and_keeps_the_first(fresh):
    made = fresh()
    module = plugin("mine", ops=[NamedOp("a")])
    made.register(module)
    for again in (module, plugin("mine", ops=[NamedOp("b")])):
        with pytest.raises(PluginClashError, match=r"plugin 'mine' .* is registered already"):
            made.register(again)
    with pytest.raises(PluginClashError, match="registered already"):
        made.register(module, "another name")
    assert made.ops.find("a").name == "a"
    assert by_name(made)["mine"].status == "active"


def test_two_distributions_with_one_plugin_name(fresh):
    made = fresh(
        Entry("same", plugin(ops=[NamedOp("a")]), "dist-a"), Entry("same", plugin(ops=[NamedOp("b")]), "dist-b")
    )
    with pytest.warns(PluginWarning, match=r"'same' \(dist-b 1.0\): plugin 'same' \(dist-a 1.0\) is registered"):
        made.load()
    assert [(r.distribution, r.status) for r in made.status()[1:]] == [("dist-a", "active"), ("dist-b", "failed")]
    assert names(made.ops) == ["tanh", "a"]
