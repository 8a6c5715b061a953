"""``import leafgrad``: what it leaves for later, and that all of it is there when asked for."""

from __future__ import annotations

import ast
import functools
import inspect
import subprocess
import sys

import pytest

import leafgrad
from leafgrad import autograd, plugins
from leafgrad.ops.define import op
from leafgrad.ops.signature import REQUIRED, declared
from leafgrad.tensor import listed

TESTS = "lazy ops.signature"

LATER = (
    "leafgrad.nn leafgrad.optim leafgrad.func leafgrad.distributions leafgrad.compat leafgrad.batching "
    "leafgrad.autograd leafgrad.random leafgrad.ops.elementwise leafgrad.tensor.inplace leafgrad.tensor.operators "
    "leafgrad.plugins.manager leafgrad.compile.run.compiled leafgrad.linalg leafgrad.special leafgrad.return_types "
    "leafgrad.utils importlib.metadata json dataclasses threading numpy.random"
).split()


def printed(program):
    """What a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return ast.literal_eval(done.stdout)


def test_what_few_programs_need_is_not_imported():
    program = "import sys, numpy\nbefore = set(sys.modules)\nimport leafgrad\nprint(sorted(set(sys.modules) - before))"
    found = printed(program)
    assert not {*LATER} & set(found)
    assert not set(listed.FUNCTIONS) & set(found)
    known = {"leafgrad", *sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in found} <= known  # nor pluggy, nor what plugins or extras need


def test_threads_may_be_the_first_to_use_operators():
    program = """
import leafgrad, threading
def compute():
    start.wait()
    x = leafgrad.tensor(2.0, requires_grad=True)
    y = (1 + x) * x**2 / 3 - 1
    y.backward()
    found.append((y.item(), x.grad.item(), bool(x == 2)))
start, found = threading.Barrier(8), []
threads = [threading.Thread(target=compute) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(found)
"""
    assert printed(program) == [(3.0, pytest.approx(16 / 3), True)] * 8


def test_numpy_is_imported_from_as_few_modules_deep_as_can_be():
    """From further inside, Python 3.11 gets and gives back a page of its stack at hundreds of calls."""
    program = """
import sys
class Finder:
    def find_spec(name, *_):
        if name == "numpy":
            print([module for module in sys.modules if module.startswith("leafgrad")])
sys.meta_path.insert(0, Finder)
import leafgrad
"""
    assert printed(program) == ["leafgrad", "leafgrad.backends", "leafgrad.backends.communicator"]


def test_methods_that_come_later_are_those_of_their_modules():
    program = """
from leafgrad.tensor.listed import METHODS
from leafgrad.tensor.methods import Later, Methods
import leafgrad
from importlib import import_module
before = {name: value.module for name, value in vars(Methods).items() if isinstance(value, Later)}
names = set(vars(Methods))
for module in METHODS:
    import_module(module)
left = [name for name, value in vars(Methods).items() if isinstance(value, Later)]
print((len(before) > 100, left, set(vars(Methods)) - names or []))
"""
    assert printed(program) == (True, [], [])


def test_a_method_that_comes_later_is_there_on_the_class_and_on_tensors():
    program = "import leafgrad; m = leafgrad.Tensor.max; print((m(leafgrad.ones(2)).item(), leafgrad.ones(2).mH.ndim))"
    assert printed(program.replace("ones(2).mH", "ones(2, 2).mH")) == (1.0, 2)


def test_a_method_that_comes_later_may_be_asked_for_by_super():
    program = """
import leafgrad
class Counting(leafgrad.Tensor):
    calls = 0
    def amax(self):
        Counting.calls += 1
        return super().amax()
print((leafgrad.ones(2).as_subclass(Counting).amax().item(), Counting.calls))
"""
    assert printed(program) == (1.0, 1)


@pytest.mark.parametrize("module", [leafgrad, autograd, plugins], ids=lambda m: m.__name__)
def test_every_name_of_a_module_is_there(module):
    names = dir(module)
    assert set(getattr(module, "__all__", [])) <= set(names)
    for name in names:
        assert getattr(module, name) is not None or name in ("__doc__", "__file__", "newaxis")
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        _ = module.nothing


def test_the_names_that_come_later_are_listed():
    assert {"nn", "optim", "func", "distributions", "compat", "vmap"} <= set(dir(leafgrad))
    assert leafgrad.vmap is leafgrad.func.vmap


def test_vmap_knows_its_rules_in_a_program_that_imports_nothing_else():
    program = "import leafgrad; print(leafgrad.vmap(leafgrad.dot)(leafgrad.ones(2, 3), leafgrad.ones(2, 3)).tolist())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("[3.0, 3.0]\n", "")


# ---- signatures are read from the code of plain functions -----------------------------------------------------------


def plain(xp, x, y=None, *, dim, keepdim=False):
    return x


def variadic(xp, *xs, dim=0):
    return xs


def anything(xp, /, x, **rest):
    return x


@functools.wraps(plain)
def wrapped(*args, **kwargs):
    return plain(*args, **kwargs)


@pytest.mark.parametrize(
    "function", [plain, variadic, anything, wrapped, functools.partial(plain, dim=1), lambda: 0, lambda g: g]
)
def test_a_function_declares_what_inspect_finds(function):
    kinds = inspect.Parameter
    found = inspect.signature(function).parameters.values()
    positional, keyword, star, stars = declared(function)
    assert positional == {
        p.name: p.default for p in found if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    }
    assert list(keyword.items()) == [(p.name, p.default) for p in found if p.kind is kinds.KEYWORD_ONLY]
    assert [star] == ([p.name for p in found if p.kind is kinds.VAR_POSITIONAL] or [None])
    assert [stars] == ([p.name for p in found if p.kind is kinds.VAR_KEYWORD] or [None])


def test_the_signature_of_an_op():
    made = op(plain)
    assert made.signature.arguments == ("x", "y")
    assert made.signature.required == 1
    assert made.signature.parameters == {"dim": REQUIRED, "keepdim": False}
    assert str(op(variadic).signature) == "*xs, dim=0"


def test_a_misspelt_name_is_told_what_was_meant():
    ran = subprocess.run([sys.executable, "-c", "import leafgrad; leafgrad.sofmax"], capture_output=True, text=True)
    assert "module 'leafgrad' has no attribute 'sofmax'. Did you mean: 'softmax'?" in ran.stderr
