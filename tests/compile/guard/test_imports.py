"""Imports in a call, and names of modules, packages and NumPy's that a step reads."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compile.guard import walk


def warm(function, *args):
    """The function compiled and traced."""
    compiled = leafgrad.compile(function)
    for _ in range(3):
        compiled(*args)
    assert "traced again 0 times" in compiled.explain()
    return compiled


def reasons(compiled):
    return [miss.path for miss in compiled._calls.misses]


LATE = """
import sys

vars(sys).get("path")  # would make all attributes count
K = 2.0
"""


def test_an_import_in_a_call_is_no_part_of_the_step(tmp_path, monkeypatch):
    (tmp_path / "a_late_module.py").write_text(LATE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_late_module", raising=False)
    net = nn.Linear(3, 1)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        import a_late_module

        sgd.zero_grad()
        (net(x).sum() * a_late_module.K).backward()
        sgd.step()
        return net.bias.grad * 1

    compiled = leafgrad.compile(step, closed=True)
    for _ in range(3):
        assert compiled(leafgrad.ones(1, 3)).item() == 2
    monkeypatch.setattr(sys.modules["a_late_module"], "K", 3.0)
    assert compiled(leafgrad.ones(1, 3)).item() == 3
    monkeypatch.delitem(sys.modules, "a_late_module")
    (tmp_path / "a_late_module.py").write_text("K = 14.0")
    assert compiled(leafgrad.ones(1, 3)).item() == 14


PACKAGE = {
    "__init__.py": "A = 1.0",
    "room/__init__.py": "B = 1.0",
    "room/sub.py": "K = 2.0",
    "room/steps.py": """
def whole(x):
    import a_package.room.sub
    return x * a_package.A * a_package.room.B * a_package.room.sub.K

def named(x):
    import a_package.room.sub as sub
    from a_package import A, room
    return x * A * room.B * sub.K

def relative(x):
    from . import B, sub
    from .. import A
    from .sub import K
    return x * A * B * K * sub.K / 2
""",
}


@pytest.mark.parametrize("name", ["whole", "named", "relative"])
def test_packages_and_modules_imported_in_a_call(tmp_path, monkeypatch, name):
    for path, text in PACKAGE.items():
        (tmp_path / "a_package" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a_package" / path).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    step = getattr(importlib.import_module("a_package.room.steps"), name)
    compiled = leafgrad.compile(step, closed=True)
    try:
        for _ in range(3):
            assert compiled(leafgrad.ones(())).item() == 2
        package = sys.modules["a_package"]
        for holder, changed in ((package, "A"), (package.room, "B"), (package.room.sub, "K")):
            setattr(holder, changed, 3.0)
            assert compiled(leafgrad.ones(())).item() == step(leafgrad.ones(())).item()
        package.room.sub = types.SimpleNamespace(K=11.0)
        assert compiled(leafgrad.ones(())).item() == step(leafgrad.ones(())).item()
    finally:
        for module in [m for m in sys.modules if m.partition(".")[0] == "a_package"]:
            del sys.modules[module]


def test_an_import_that_finds_nothing_is_tried_at_each_call(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def step(x):
        try:
            import a_module_to_come
        except ImportError:
            return x
        return x * a_module_to_come.K

    compiled = leafgrad.compile(step)
    for _ in range(3):
        assert compiled(leafgrad.ones(())).item() == 1
    assert "imports a_module_to_come, which is not found, at test_imports.py" in compiled.explain()
    (tmp_path / "a_module_to_come.py").write_text("K = 5.0")
    importlib.invalidate_caches()
    assert compiled(leafgrad.ones(())).item() == 5
    del sys.modules["a_module_to_come"]


def test_a_function_of_numpys_that_is_named_but_not_called_opens_nothing():
    @leafgrad.compile
    def step(x):
        return (x * np.pi).mean()

    for _ in range(4):
        step(leafgrad.ones(3))
    assert "open, since" not in step.explain()


def test_a_function_of_numpys_that_is_called_opens_the_step():
    values = [1.0, 2.0]

    @leafgrad.compile
    def step(x):
        return x * float(np.concatenate([values, values]).sum())

    for i in range(5):
        values[0] = float(i)
        assert step(leafgrad.ones(1)).item() == 2 * (i + 2)
    assert "open, since" in step.explain()


WORDS = np.array([1.0, 2.0])


def test_arrays_among_the_names_that_a_function_reads():
    def function(x):
        for group in ({"rho": 1.0},):
            x = x * group["rho"] + float(WORDS[1])
        return x

    compiled = leafgrad.compile(function)
    assert [compiled(leafgrad.ones(2)).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3


def test_a_context_variable_among_what_is_reached_opens_nothing():
    holder = types.SimpleNamespace(function=leafgrad.tanh, k=2.0)
    x = leafgrad.ones(3)
    assert not warm(lambda x: holder.function(x) * holder.k, x)._calls.reason


def test_functions_of_equal_code_in_two_modules_read_globals_of_their_own():
    source = compile("def times(x):\n    return x * scale\n", "<twins>", "exec")
    modules = []
    for scale in (2.0, 3.0):
        modules.append({"__name__": "twin", "scale": scale})
        exec(source, modules[-1])
    times = [module["times"] for module in modules]

    @leafgrad.compile
    def step(x):
        return times[0](x) + times[1](x)

    x = leafgrad.ones(2)
    for _ in range(4):
        assert step(x).tolist() == [5.0, 5.0]
    for module in modules:
        module["scale"] = 10.0
        for _ in range(3):
            assert step(x).tolist() == step.function(x).tolist()


def test_a_class_of_a_module_that_is_not_registered_is_the_users():
    module = types.ModuleType("loaded_from_a_path")
    exec(
        "class Scale:\n    factor = 2.0\n    def __call__(self, x):\n        return x * self.factor * top", vars(module)
    )
    module.top = 1.0
    scale = module.Scale()

    @leafgrad.compile
    def step(x):
        return scale(x) + module.top

    x = leafgrad.ones(2)
    for _ in range(4):
        assert step(x).tolist() == [3.0, 3.0]
    module.Scale.factor = 5.0
    assert step(x).tolist() == [6.0, 6.0]
    module.top = 2.0
    assert step(x).tolist() == [12.0, 12.0]
    assert "open, since" not in step.explain()


def test_a_step_that_reads_a_dataclass_is_closed():
    @dataclasses.dataclass
    class Config:
        gain: float = dataclasses.field(default=2.0, metadata={"unit": "m"})

    config = Config()
    step = leafgrad.compile(lambda x: x * config.gain + len(vars(config)), closed=True)
    for gain in (2.0, 2.0, 2.0, 3.0, 3.0):
        config.gain = gain
        assert step(leafgrad.ones(2)).tolist() == [gain + 1] * 2


def test_a_step_that_may_read_whole_packages_is_open(monkeypatch):
    monkeypatch.setattr(walk, "GUARDED", 500)
    module = types.ModuleType("whole_package")
    for i in range(400):
        setattr(module, f"part{i}", types.SimpleNamespace(gain=float(i), shift=1.0))
    names = ["part3"]
    step = leafgrad.compile(lambda x: x * getattr(module, names[0]).gain)
    for gain in (1.0, 1.0, 1.0, 2.0, 2.0, 3.0):
        module.part3.gain = gain
        assert step(leafgrad.ones(2)).tolist() == [gain, gain]
    assert "more than 500 places" in step.explain()


def test_a_module_that_takes_the_place_of_its_class_module(monkeypatch):
    """``sys.modules[__name__] = Made(__name__)``, as modules do that make their names when they are asked for."""

    class Made(types.ModuleType):
        __module__ = "made_by_itself"

        def __init__(self, name):
            super().__init__(name)
            self.scale = 2.0

    made = Made("made_by_itself")
    monkeypatch.setitem(sys.modules, "made_by_itself", made)
    held = [made]

    @leafgrad.compile
    def step(x):
        return x * held[0].scale

    assert [step(leafgrad.ones(())).item() for _ in range(3)] == [2.0] * 3
    made.scale = 3.0
    assert step(leafgrad.ones(())).item() == 3.0
