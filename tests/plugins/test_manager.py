"""The plugin door: guarded loading, whole registration or none, clashes, versions, environment."""

import importlib.metadata
import subprocess
import sys
import time
import types
import warnings

import pytest

from leafgrad.errors import PluginError
from leafgrad.plugins import (
    API_VERSION,
    BackendSpec,
    CommandSpec,
    ExecutorSpec,
    PluginClashError,
    PluginWarning,
    UnknownNameError,
    hookimpl,
    hookspecs,
    manager,
    resolve,
)
from leafgrad.plugins.manager import HOOKS, Manager


class NamedOp:
    """As much of an op as the registry looks at."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **params):
        return args


def plugin(name="plug", *, ops=None, backends=None, executors=None, commands=None, **attributes):
    """A plugin module whose hooks return what is given, or call it."""
    module = types.ModuleType(name)
    listed = {
        "leafgrad_ops": ops,
        "leafgrad_backends": backends,
        "leafgrad_executors": executors,
        "leafgrad_cli": commands,
    }
    for hook, entries in listed.items():
        if entries is not None:
            setattr(module, hook, hookimpl(_returning(entries)))
    for attribute, value in attributes.items():
        setattr(module, attribute, value)
    return module


def _returning(entries):
    return lambda: entries() if callable(entries) else entries


class Distribution:
    def __init__(self, name, version):
        self.name, self.version = name, version


class Entry:
    """As much of importlib.metadata.EntryPoint as the loader looks at."""

    def __init__(self, name, target, distribution=None, version="1.0", value="somewhere"):
        self.name, self.value, self._target = name, value, target
        self.dist = Distribution(distribution or f"leafgrad-{name}", version)

    def load(self):
        if isinstance(self._target, BaseException):
            raise self._target
        return self._target


@pytest.fixture
def fresh(monkeypatch):
    """Makes a manager with a small core and the given entry points installed."""
    core = plugin("test_core", ops=[NamedOp("tanh")], backends=[BackendSpec("numpy", "cpu", "m:A")])
    monkeypatch.setitem(sys.modules, "test_core", core)
    monkeypatch.delenv("LEAFGRAD_PLUGINS", raising=False)
    monkeypatch.delenv("LEAFGRAD_STRICT_PLUGINS", raising=False)

    def make(*entries):
        monkeypatch.setattr(manager, "_installed", lambda: entries)
        return Manager(core="test_core")

    return make


def names(registry):
    return [entry.name for entry in registry]


def by_name(made):
    return {record.name: record for record in made.status()}


# ---- what works ----


def test_every_kind_is_found_by_name(fresh):
    everything = plugin(
        ops=[NamedOp("j0")],
        backends=[BackendSpec("fancy", "npu", "fancy:Backend")],
        executors=(ExecutorSpec("native", "native:run"),),
        commands=[CommandSpec("plot", "draw", "plot:main")],
    )
    made = fresh(Entry("special", everything, version="2.1"))
    assert made.ops.find("j0").name == "j0"
    assert made.backends.find("fancy").device_type == "npu"
    assert made.backend_for("npu").name == "fancy"
    assert made.executors.find("native").target == "native:run"
    assert made.commands.find("plot").help == "draw"
    record = by_name(made)["special"]
    assert (record.distribution, record.version, record.status) == ("leafgrad-special", "2.1", "active")
    assert record.hooks == {
        "leafgrad_backends": ("fancy",),
        "leafgrad_cli": ("plot",),
        "leafgrad_executors": ("native",),
        "leafgrad_ops": ("j0",),
    }
    assert record.error == ""


def test_the_time_that_a_plugin_takes_to_load_is_noted(fresh):
    made = fresh(Entry("slow", plugin(ops=lambda: time.sleep(0.02) or [])), Entry("zoo", plugin(ops=[])))
    made.load()
    assert by_name(made)["slow"].load_time >= 0.02 > by_name(made)["zoo"].load_time > 0


def test_the_core_comes_through_the_same_hooks_and_scans_nothing(fresh):
    made = fresh(Entry("broken", RuntimeError("must not be loaded")))
    assert made.status() == []
    assert made.ops.find("tanh").name == "tanh"
    assert made.backend_for("cpu").name == "numpy"
    assert [(r.name, r.distribution) for r in made.status()] == [("core", "leafgrad")]


def test_the_core_registers_once_where_its_metadata_is_installed(fresh):
    made = fresh(Entry("core", AssertionError("not to be loaded again"), "leafgrad", "0.7", value="test_core"))
    made.load()
    assert names(made.ops) == ["tanh"]
    assert [(r.name, r.distribution, r.version) for r in made.status()] == [("core", "leafgrad", "0.7")]


def test_third_party_plugins_load_at_the_first_unknown_name_and_once(fresh):
    calls = []
    made = fresh(Entry("a", plugin(ops=lambda: calls.append(1) or [NamedOp("a")])))
    made.ops.find("tanh")
    assert calls == []
    made.ops.find("a")
    made.load()
    with pytest.raises(UnknownNameError):
        made.ops.find("nothing")
    assert calls == [1]


def test_a_plugin_that_looks_something_up_while_it_loads(fresh):
    made = fresh()
    made = fresh(Entry("a", plugin(ops=lambda: [made.ops.find("tanh"), NamedOp("a")][1:])))
    assert made.ops.find("a").name == "a"


def test_hooks_may_come_from_an_object(fresh):
    class Plug:
        @staticmethod
        @hookimpl
        def leafgrad_ops():
            return [NamedOp("a")]

    made = fresh(Entry("object", Plug()))
    assert made.ops.find("a").name == "a"


def test_register_by_the_program(fresh):
    made = fresh()
    record = made.register(plugin("mine", ops=[NamedOp("a")]))
    assert (record.name, record.distribution, record.status) == ("mine", "", "active")
    assert made.ops.find("a").name == "a"
    assert str(record) == "plugin 'mine' (no distribution)"


def test_resolve_imports_what_a_target_names():
    assert resolve("collections:OrderedDict.fromkeys".split(".")[0]).__name__ == "OrderedDict"


# ---- unknown names ----


def test_unknown_names_list_the_known_ones(fresh):
    made = fresh(Entry("a", plugin(ops=[NamedOp("a")])))
    with pytest.raises(LookupError, match=r"unknown op 'foo': known are a, tanh"):
        made.ops.find("foo")
    with pytest.raises(RuntimeError, match=r"unknown backend 'foo': known are numpy"):
        made.backends.find("foo")
    with pytest.raises(UnknownNameError, match=r"unknown executor 'foo': known are none"):
        made.executors.find("foo")
    with pytest.raises(UnknownNameError, match=r"unknown device type 'tpu': known are cpu"):
        made.backend_for("tpu")


# ---- broken plugins ----


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ImportError("no module named numpy_3"), r"failed to load: ImportError: no module named numpy_3"),
        (SystemExit(3), r"failed to load: SystemExit: 3"),
        (plugin(ops=lambda: 1 // 0), r"failed to register: ZeroDivisionError"),
        (plugin(ops={"b": 1}), r"expected leafgrad_ops to return a list, got dict"),
        (plugin(ops=["b"]), r"expected leafgrad_ops to list Op objects, got 'b'"),
        (plugin(ops=[NamedOp]), r"expected leafgrad_ops to list Op objects"),
        (plugin(ops=[NamedOp("not a name")]), r"invalid name, 'not a name'"),
        (plugin(ops=[NamedOp(3)]), r"invalid name, 3"),
        (plugin(backends=[NamedOp("b")]), r"expected leafgrad_backends to list BackendSpec objects"),
        (plugin(), r"implements no hook; expected at least one of leafgrad_ops"),
        (plugin(leafgrad_ops=hookimpl(lambda surplus: [])), r"failed to register: PluginValidationError"),
    ],
)
def test_a_broken_plugin_is_named_and_left_out(fresh, broken, message):
    made = fresh(Entry("bad", broken, "leafgrad-bad", "0.3"), Entry("good", plugin(ops=[NamedOp("good")])))
    with pytest.warns(PluginWarning, match=message) as caught:
        made.load()
    assert len(caught) == 1
    assert "plugin 'bad' (leafgrad-bad 0.3)" in str(caught[0].message)
    assert names(made.ops) == ["tanh", "good"]
    assert by_name(made)["bad"].status == "failed"
    assert by_name(made)["bad"].hooks == {}
    assert by_name(made)["bad"].error == str(caught[0].message)


def test_registration_is_whole_or_not_at_all(fresh):
    half = plugin(
        ops=[NamedOp("a"), NamedOp("b")],
        backends=[BackendSpec("fancy", "npu", "x:y")],
        executors=["not a spec"],
        commands=[CommandSpec("plot", "draw", "plot:main")],
    )
    made = fresh(Entry("half", half))
    with pytest.warns(PluginWarning, match="ExecutorSpec"):
        made.load()
    assert names(made.ops) == ["tanh"]
    assert names(made.backends) == ["numpy"]
    assert (names(made.executors), names(made.commands)) == ([], [])


def test_a_plugin_that_was_rolled_back_can_be_registered_once_mended(fresh):
    made = fresh()
    module = plugin("mine", ops=[NamedOp("a"), "junk"])
    with pytest.raises(PluginError, match="junk"):
        made.register(module)
    module.leafgrad_ops = hookimpl(lambda: [NamedOp("a")])
    assert made.register(module).status == "active"
    assert made.ops.find("a").name == "a"


def test_warnings_turned_into_errors_lose_no_plugin(fresh):
    made = fresh(Entry("bad", ValueError("broken")), Entry("good", plugin(ops=[NamedOp("good")])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PluginWarning, match="broken"):
            made.load()
        assert made.ops.find("good").name == "good"


# ---- clashes ----


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [("leafgrad_op", "did you mean leafgrad_ops"), ("leafgrad_something_else", "the hooks are leafgrad_ops")],
)
def test_a_misspelt_hook_leaves_its_plugin_out(fresh, name, hint):
    misspelt = plugin(ops=[NamedOp("a")], **{name: hookimpl(_returning([]))})
    made = fresh(Entry("typo", misspelt), Entry("zoo", plugin(ops=[NamedOp("zoo")])))
    message = rf"plugin 'typo' \(leafgrad-typo 1.0\): unknown hook '{name}'; {hint}"
    with pytest.warns(PluginWarning, match=message) as caught:
        assert made.ops.find("zoo").name == "zoo"
    assert len(caught) == 1
    assert names(made.ops) == ["tanh", "zoo"]
    with pytest.raises(UnknownNameError, match=rf"unknown op 'a': known are tanh, zoo; left out: {message}"):
        made.ops.find("a")
    made.register(plugin("later", ops=[NamedOp("later")]))  # the typo left nothing behind
    with pytest.raises(PluginError, match=f"plugin 'plug' .*unknown hook '{name}'"):
        made.register(misspelt)


def test_an_unmarked_hook_is_an_error(fresh):
    forgotten = plugin(ops=[NamedOp("a")], leafgrad_cli=list)
    with pytest.raises(PluginError, match="leafgrad_cli is not marked as a hook"):
        fresh().register(forgotten)


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


# ---- API version ----


def test_a_plugin_for_another_version_is_refused_by_name(fresh):
    future = plugin(ops=lambda: pytest.fail("a refused plugin's hook was called"), leafgrad_api_version=99)
    made = fresh(Entry("future", future))
    with pytest.warns(PluginWarning, match=r"plugin 'future' \(leafgrad-future 1.0\) was made for version 99"):
        made.load()
    assert by_name(made)["future"].status == "failed"


def test_a_plugin_for_this_version_loads(fresh):
    made = fresh(Entry("now", plugin(ops=[NamedOp("a")], leafgrad_api_version=API_VERSION)))
    assert made.ops.find("a").name == "a"


# ---- environment variables ----


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


# ---- the real thing ----


def test_every_hook_has_an_example():
    for name in HOOKS:
        doc = getattr(hookspecs, name).__doc__
        assert "Example:" in doc
        assert f"def {name}():" in doc


def test_core_backends_are_listed_without_importing_them():
    from leafgrad.plugins import builtin

    listed = {spec.name: spec for spec in builtin.leafgrad_backends()}
    assert listed["cupy"].device_type == "cuda"
    assert listed["numpy"].device_type == "cpu"
    assert "leafgrad.backends.cupy" not in sys.modules


def test_the_core_registers_in_a_program_of_its_own_and_loads_a_real_entry_point(tmp_path):
    (tmp_path / "flower.py").write_text(
        "from leafgrad.plugins import hookimpl, ExecutorSpec\n"
        "@hookimpl\ndef leafgrad_executors():\n    return [ExecutorSpec('petal', 'flower:run')]\n"
    )
    info = tmp_path / "leafgrad_flower-3.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leafgrad-flower\nVersion: 3.2\n")
    (info / "entry_points.txt").write_text("[leafgrad]\nflower = flower\n")
    assert importlib.metadata.distributions(path=[str(tmp_path)])
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from leafgrad import plugins\n"
        "assert 'flower' not in sys.modules and plugins.status() == []\n"
        "assert plugins.backend('numpy').device_type == 'cpu'\n"
        "assert plugins.op('tanh').name == 'tanh'\n"
        "assert 'flower' not in sys.modules\n"
        "assert plugins.executor('petal').target == 'flower:run'\n"
        "print([(p.name, p.distribution, p.version) for p in plugins.status() if p.name == 'flower'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "[('flower', 'leafgrad-flower', '3.2')]"
