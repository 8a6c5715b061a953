"""The plugin door: guarded loading, whole registration or none, versions."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys
import time
import warnings

import pytest
from installed_plugins import Entry, NamedOp, by_name, names, plugin, returning

from leafgrad import plugins
from leafgrad.errors import PluginError
from leafgrad.plugins import (
    API_VERSION,
    BackendSpec,
    CommandSpec,
    ExecutorSpec,
    PluginWarning,
    UnknownNameError,
    hookimpl,
    hookspecs,
    resolve,
    specs,
)
from leafgrad.plugins.manager import HOOKS

TESTS = "plugins.builtin plugins.hookspecs plugins.lookup plugins.registry plugins.specs plugins.strangers"

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


def test_what_a_module_imports_when_asked_is_left_alone(fresh):
    module, asked = plugin(ops=[NamedOp("airy")]), []

    def later(name):
        asked.append(name)
        raise AttributeError(name)

    module.__dir__ = lambda: [*vars(module), "Layer"]
    module.__getattr__ = later
    assert fresh(Entry("lazy", module)).ops.find("airy").name == "airy"
    assert set(asked) <= {"leafgrad_api_version"}


def test_register_by_the_program(fresh):
    made = fresh()
    record = made.register(plugin("mine", ops=[NamedOp("a")]))
    assert (record.name, record.distribution, record.status) == ("mine", "", "active")
    assert made.ops.find("a").name == "a"
    assert str(record) == "plugin 'mine' (no distribution)"


def test_resolve_says_what_a_target_lacks():
    with pytest.raises(
        PluginError, match="target 'collections:Missing': module 'collections' has no attribute 'Missing'"
    ):
        resolve("collections:Missing")


@pytest.mark.parametrize("target", ["leaves_at_once:main", "leaves_when_asked:main"])
def test_a_target_that_ends_the_process_is_one_that_cannot_be_imported(target, tmp_path, monkeypatch):
    (tmp_path / "leaves_at_once.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "leaves_when_asked.py").write_text("def __getattr__(name):\n    raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    owner = plugins.Plugin("bad", "leafgrad-bad", "0.3")
    monkeypatch.setattr(specs, "owner_of", lambda target: owner)
    with pytest.raises(PluginError, match=rf"plugin 'bad' .*: its target '{target}' cannot be imported: SystemExit: 3"):
        resolve(target)


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


def nameless():
    made = NamedOp("b")
    del made.name
    return made


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ImportError("no module named numpy_3"), r"failed to load: ImportError: no module named numpy_3"),
        (SystemExit(3), r"failed to load: SystemExit: 3"),
        (plugin(ops=lambda: 1 // 0), r"failed to register: ZeroDivisionError"),
        (plugin(ops=lambda: sys.exit(3)), r"failed to register: SystemExit: 3"),
        (plugin(ops={"b": 1}), r"expected leafgrad_ops to return a list, got dict"),
        (plugin(ops=["b"]), r"expected leafgrad_ops to list Op objects, got 'b'"),
        (plugin(ops=[NamedOp]), r"expected leafgrad_ops to list Op objects"),
        (plugin(ops=[NamedOp("not a name")]), r"name: expected an identifier, got 'not a name'"),
        (plugin(ops=[NamedOp(3)]), r"name: expected an identifier, got 3"),
        (plugin(ops=[nameless(), NamedOp("b")]), r"leafgrad_ops lists .*: name: expected an identifier, got None"),
        (
            plugin(backends=[BackendSpec("b", "npu", None)]),
            r"leafgrad_backends lists .*: target: expected text, got None",
        ),
        (plugin(backends=[BackendSpec("b", 3, "m:A")]), r"device_type: expected text, got 3"),
        (plugin(executors=[ExecutorSpec("b", "m.A")]), r"target: expected 'module:attribute', got 'm.A'"),
        (
            plugin(executors=[ExecutorSpec("b", "m:A", 1)]),
            r"preferred: expected True, False or a type of devices, got 1",
        ),
        (plugin(commands=[CommandSpec("b", "", "m:main")]), r"leafgrad_cli lists .*: help: expected text, got ''"),
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


class Declared(NamedOp):
    """An op with a kernel for one backend and a rule for one executor."""

    def __init__(self, name, backend, executor):
        super().__init__(name)
        self.kernels, self.lowering = {backend: None, "bfloat16": None}, {executor: None}


@pytest.mark.parametrize(
    ("backend", "executor", "message"),
    [
        ("nunpy", "native", "op 'b' has a kernel for backend 'nunpy', which is not installed; did you mean 'numpy'"),
        (
            "numpy",
            "nativ",
            "op 'b' has a lower rule for executor 'nativ', which is not installed; did you mean 'native'",
        ),
    ],
)
def test_a_rule_for_a_misspelt_name(fresh, backend, executor, message):
    native = Entry("native", plugin(executors=[ExecutorSpec("native", "m:A")]))
    made = fresh(Entry("bad", plugin(ops=[Declared("b", backend, executor), NamedOp("c")])), native)
    with pytest.warns(PluginWarning, match=rf"plugin 'bad' \(leafgrad-bad 1.0\): {message}") as caught:
        made.load()
    assert len(caught) == 1
    assert names(made.ops) == ["tanh", "b", "c"]
    assert by_name(made)["bad"].error == str(caught[0].message)
    with pytest.raises(PluginError, match=message.removeprefix("op 'b' ")):
        made.register(plugin("mine", ops=[Declared("d", backend, executor)]))
    with pytest.raises(UnknownNameError):
        made.ops.find("d")


def test_a_rule_for_what_may_be_installed_elsewhere(fresh):
    made = fresh(Entry("fine", plugin(ops=[Declared("b", "jax", "native")])))
    made.load()
    assert by_name(made)["fine"].error == ""
    made.register(plugin("mine", ops=[Declared("c", "jax", "nativ")], executors=[ExecutorSpec("nativ", "m:A")]))


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [("leafgrad_op", "did you mean leafgrad_ops"), ("leafgrad_something_else", "the hooks are leafgrad_ops")],
)
def test_a_misspelt_hook_leaves_its_plugin_out(fresh, name, hint):
    misspelt = plugin(ops=[NamedOp("a")], **{name: hookimpl(returning([]))})
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


# ---- the real thing ----


def test_every_hook_has_an_example():
    for name in HOOKS:
        doc = getattr(hookspecs, name).__doc__
        assert "Example:" in doc
        assert f"def {name}({', '.join(inspect.signature(getattr(hookspecs, name)).parameters)}):" in doc


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


def test_first_and_last(fresh):
    """As pluggy orders implementations: what one lists comes before or after what others do."""

    def listing(name, **options):
        made = plugin(name, executors=[ExecutorSpec(name, "m:A")])
        made.leafgrad_executors = hookimpl(**options)(lambda: [ExecutorSpec(name, "m:A")])
        return made

    made = fresh(
        Entry("a", listing("a", trylast=True)), Entry("b", listing("b")), Entry("c", listing("c", tryfirst=True))
    )
    made.load()
    assert names(made.executors) == ["c", "b", "a"]
