"""``import leafgrad``: what it leaves for later, and that all of it is there when asked for."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys

import pytest

import leafgrad
from leafgrad import autograd, plugins
from leafgrad.ops.define import op
from leafgrad.ops.signature import REQUIRED, declared

LATER = (
    "leafgrad.nn leafgrad.optim leafgrad.func leafgrad.distributions leafgrad.compat leafgrad.batching "
    "leafgrad.autograd.forward leafgrad.autograd.functional leafgrad.plugins.manager leafgrad.compile.compiled "
    "pluggy importlib.metadata json dataclasses numpy.random"
).split()


def test_what_few_programs_need_is_not_imported():
    program = "import sys, numpy\nbefore = set(sys.modules)\nimport leafgrad\nfound = set(sys.modules) - before\n"
    program += f"print([m for m in {LATER} if m in found])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("module", [leafgrad, autograd, plugins], ids=lambda m: m.__name__)
def test_every_name_of_a_module_is_there(module):
    names = dir(module)
    assert set(getattr(module, "__all__", [])) <= set(names)
    for name in names:
        assert getattr(module, name) is not None or name in ("__doc__", "__file__")
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
