"""One instruction for each variable that code loads or stores, on every version of Python."""

from __future__ import annotations

import math

from leafgrad.compile.record.bytecode import instructions
from leafgrad.compile.record.names import handed, handed_of


def test_each_variable_has_an_instruction():
    def function(a, b):
        c, d = a, b
        e = c
        return (c is d, e, ("a", "b"))

    steps = [(step.opname, step.argval) for step in instructions(function.__code__)]
    loaded = [name for opname, name in steps if opname.startswith("LOAD_FAST")]
    assert loaded == ["a", "b", "c", "c", "d", "e"]
    assert sorted(name for opname, name in steps if opname == "STORE_FAST") == ["c", "d", "e"]
    assert ("LOAD_CONST", ("a", "b")) in steps


def test_functions_of_modules_that_are_called_at_once():
    def function(x):
        return math.sin(math.cos(x)), math.tan

    assert {name for _, name in handed_of(function.__code__)} == {"tan"}
    assert handed(function.__code__) == {"math"}
