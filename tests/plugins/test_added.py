"""What plugins add to leafgrad: modules, functions and methods that load plugins when they are first missed."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import leafgrad
from leafgrad import op, plugins
from leafgrad.errors import PluginError
from leafgrad.plugins import ModuleSpec, added, hookimpl
from leafgrad.tensor import methods

TESTS = "cli.stubs compat.unplugged_onnx"

PLUGIN = """
import leafgrad
from leafgrad.plugins import ModuleSpec, hookimpl

@leafgrad.op("elementwise")
def twice_of(xp, x):
    return 2 * x

twice_of.method("twice_of")

@hookimpl
def leafgrad_ops():
    return [twice_of]

@hookimpl
def leafgrad_modules():
    return [ModuleSpec("waves", target="wavelib")]
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A folder of packages with a plugin that adds a method and a module."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "leafgrad_twice.py").write_text(PLUGIN)
    (folder / "wavelib.py").write_text("__all__ = ['height']\ndef height():\n    return 3\n")
    info = folder / "leafgrad_twice-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leafgrad-twice\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[leafgrad]\ntwice = leafgrad_twice\n\n[leafgrad.methods]\ntwice_of = leafgrad_twice\nnever = leafgrad_twice\n"
    )
    return folder


@pytest.fixture(scope="module")
def installed(packages):
    """Runs programs that see the plugin."""

    def run(program, **environment):
        text = f"import sys; sys.path.insert(0, {str(packages)!r})\n" + textwrap.dedent(program)
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, env={"PATH": "", **environment}, check=False
        )
        return done.stdout + done.stderr[-2000:]

    return run


PROGRAMS = [
    "print(leafgrad.ones(2).twice_of().tolist())",
    "print(leafgrad.twice_of(leafgrad.ones(2)).tolist())",
    "print(leafgrad.compile(lambda x: x.twice_of())(leafgrad.ones(2)).tolist())",
    "f = leafgrad.Tensor.twice_of; print(f(leafgrad.ones(2)).tolist())",
    "print(leafgrad.waves.height() and [2.0, 2.0])",
    "import leafgrad.waves; print(leafgrad.waves.height() and [2.0, 2.0])",
    "from leafgrad.waves import height; print([2.0, 2.0])",
    "leafgrad.compat.install_as_torch(); import torch.waves; print(torch.waves.height() and [2.0, 2.0])",
]


@pytest.fixture(scope="module")
def printed(installed):
    """What each of the programs prints, in a child of a process that has imported leafgrad, and no plugin yet."""
    said = installed(
        f"""
        import os, traceback
        import leafgrad
        assert "leafgrad_twice" not in sys.modules
        for program in {PROGRAMS!r}:
            if os.fork():
                os.wait()
                continue
            try:
                exec(program, {{"leafgrad": leafgrad}})
            except BaseException:
                print(traceback.format_exc()[-2000:])
            print("end", flush=True)
            os._exit(0)
        """
    )
    return dict(zip(PROGRAMS, said.split("end\n"), strict=False))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_name_that_is_missed_loads_plugins(printed, program):
    assert printed[program] == "[2.0, 2.0]\n"


def test_names_that_no_plugin_adds(installed):
    said = installed(
        """
        import leafgrad
        for look in (lambda: leafgrad.ones(1).never, lambda: leafgrad.ones(1).other, lambda: leafgrad.other):
            try:
                look()
            except AttributeError as error:
                print(error)
        print(hasattr(leafgrad, "_private"), hasattr(leafgrad, "other"))
        """
    )
    lines = said.splitlines()
    assert lines[0].startswith("'Tensor' object has no attribute 'never': a plugin lists it, but no op")
    assert lines[1] == "'Tensor' object has no attribute 'other'"
    assert lines[2].startswith("module 'leafgrad' has no attribute 'other'")
    assert lines[3] == "False False"


def test_what_a_package_of_this_repository_would_bring(installed):
    said = installed(
        """
        import leafgrad
        try:
            import leafgrad.fft
        except ImportError as error:
            print(error)
        try:
            leafgrad.sparse
        except AttributeError as error:
            print(error)
        leafgrad.compat.install_as_torch()
        try:
            import torch.fft
        except ImportError as error:
            print(error)
        try:
            leafgrad.onnx
        except AttributeError as error:
            print(error)
        import torch
        from torch.onnx import export
        print(torch.onnx.is_in_onnx_export())
        for ask in (export, lambda: torch.onnx.errors):
            try:
                ask()
            except (NotImplementedError, AttributeError) as error:
                print(error)
        """,
        LEAFGRAD_PLUGINS="none",
    )
    fft, sparse, onnx = (
        f"the package {name} brings it; pip install {name}, or in a checkout ./plugins/{name}"
        for name in ("leafgrad-fft", "leafgrad-sparse", "leafgrad-onnx")
    )
    assert said.splitlines() == [
        f"leafgrad.fft: {fft}", f"module 'leafgrad' has no attribute 'sparse': {sparse}", f"torch.fft: {fft}",
        f"module 'leafgrad' has no attribute 'onnx': {onnx}", "False",
        "torch.onnx.export: leafgrad, which stands in for PyTorch here, cannot do this; pip install leafgrad-onnx, "
        "which does it", f"torch.onnx.errors: {onnx}",
    ]  # fmt: skip


def test_an_import_inside_leafgrad_loads_nothing():
    assert added.missed("tensor", leafgrad.__path__, {}) is None
    assert added.missed("_x", leafgrad.__path__, {}) is None


def test_stubs_show_what_is_added(installed, tmp_path):
    said = installed(
        f"""
        from leafgrad import cli
        cli.main(["stubs", "--path", {str(tmp_path / "typings")!r}])
        """
    )
    assert "twice_of" in said
    folder = tmp_path / "typings" / "leafgrad-stubs"
    assert (folder / "py.typed").read_text() == "partial\n"
    assert "def twice_of(self) -> Tensor:" in (folder / "tensor" / "methods.pyi").read_text()
    assert "def twice_of(x: Any) -> Tensor:" in (folder / "__init__.pyi").read_text()
    for path in folder.rglob("*.pyi"):
        compile(path.read_text(), str(path), "exec")


def test_a_listed_method_gives_way_to_the_op_that_declares_it(monkeypatch):
    monkeypatch.setattr(methods.plugins, "load", lambda: None)
    methods.expect(["listed_here", "sum"])
    assert not isinstance(vars(methods.Methods)["sum"], methods.Listed)
    try:
        with pytest.raises(AttributeError, match="a plugin lists it"):
            leafgrad.ones(1).listed_here()

        @op("elementwise")
        def listed_here(xp, x):
            return 3 * x

        listed_here.method("listed_here")
        assert leafgrad.ones(1).listed_here().item() == 3
    finally:
        delattr(methods.Methods, "listed_here")
        methods.DECLARED.pop("listed_here", None)


CELL = """
@op("elementwise")
def factor_here(xp, x):
    return FACTOR * x

factor_here.method("factor_here")

class Cell:
    @staticmethod
    @hookimpl
    def leafgrad_ops():
        return [factor_here]

plugins.register(Cell(), "cell", replace=True)
"""


def test_a_cell_that_runs_twice():
    try:
        for factor in (2.0, 3.0):
            exec(CELL, {"op": op, "hookimpl": hookimpl, "plugins": plugins, "FACTOR": factor, "__name__": "__main__"})
            x = leafgrad.ones(1)
            assert x.factor_here().item() == leafgrad.factor_here(x).item() == factor
            assert plugins.op("factor_here")(x).item() == factor

        @op("elementwise")
        def other(xp, x):
            return x + 0

        with pytest.raises(TypeError, match="'factor_here' already"):
            other.method("factor_here")
    finally:
        plugins.unregister("cell")
        delattr(methods.Methods, "factor_here")
        methods.DECLARED.pop("factor_here", None)


class Waves:
    @staticmethod
    @hookimpl
    def leafgrad_modules():
        return [ModuleSpec("waves_here", target="math")]


def test_replacing_and_taking_back():
    for _ in range(2):
        plugins.register(Waves(), "waves-here", replace=True)
    assert leafgrad.waves_here.floor(1.5) == 1
    with pytest.raises(PluginError, match="is registered already"):
        plugins.register(Waves(), "waves-here")

    class Broken:
        @staticmethod
        @hookimpl
        def leafgrad_nothing():
            return []

    with pytest.raises(PluginError, match="unknown hook"):
        plugins.register(Broken(), "waves-here", replace=True)
    assert plugins.module("waves_here").target == "math"  # the former one stays
    plugins.unregister("waves-here")
    with pytest.raises(plugins.UnknownNameError):
        plugins.module("waves_here")
    with pytest.raises(plugins.UnknownNameError, match="no plugin 'waves-here' was registered"):
        plugins.unregister("waves-here")
    with pytest.raises(PluginError, match=r"LEAFGRAD_PLUGINS=-core"):
        plugins.unregister("core")
    sys.modules.pop("leafgrad.waves_here", None)
    vars(leafgrad).pop("waves_here", None)


def test_a_target_that_cannot_be_imported():
    class Gone:
        leafgrad_modules = staticmethod(hookimpl(lambda: [ModuleSpec("gone_here", target="no_such_module")]))

    plugins.register(Gone(), "gone")
    try:
        with pytest.raises(
            PluginError, match=r"plugin 'gone' \(no distribution\): its target 'no_such_module' cannot be"
        ):
            _ = leafgrad.gone_here
    finally:
        plugins.unregister("gone")


def test_a_name_with_a_dot_is_no_attribute():
    assert not hasattr(leafgrad, "nothing.here")
