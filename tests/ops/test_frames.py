"""How many Python functions a plain call passes on its way: few, since each takes as long as a small NumPy call.

Counted on CPython 3.11; later ones run comprehensions without a frame.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from rows import ROWS, tensors

import leafgrad
from leafgrad.ops.op import Op

MOST = 6
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def entered(call, codes=frozenset()):
    """The Python functions that ``call`` enters, itself and what functions of ``codes`` enter aside.

    The fewest of some counts, since the garbage collector may call functions, too.
    """
    call()
    return min((entered_once(call, codes) for _ in range(5)), key=len)


def entered_once(call, codes):
    names, depth = [], 0  # depth: within one of ``codes``

    def noted(frame, event, argument):
        nonlocal depth
        if event == "call":
            if not depth and frame.f_code.co_name != "noticing":  # which there is once bfloat16 was used
                names.append(frame.f_code.co_qualname)
            depth += depth > 0 or frame.f_code in codes
        elif event == "return" and depth:
            depth -= 1

    sys.setprofile(noted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names[1:]


def public_calls():
    """The 29 ops of the benchmark, by name."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("small_ops", BENCHMARKS / "small_ops.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module.ops(leafgrad)


CALLS = public_calls()


@pytest.mark.parametrize("name", CALLS)
def test_a_public_function(name):
    names = entered(CALLS[name])
    assert len(names) <= MOST, names


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row.op, Op) and row.op.straight], ids=str)
def test_an_op_but_for_what_its_forward_does(row):
    op, codes = row.op, {f.__code__ for f in (row.op.forward, *row.op.kernels.values())}
    longest = []
    for args, params in row.few("float64" if "float64" in row.dtypes else row.dtypes[0]):
        given = tensors(args, "cpu", requires_grad=row.order > 0)
        dtypes = {a.dtype for a in args if isinstance(a, np.ndarray)}
        numbers = [a for a in args if not isinstance(a, np.ndarray)]
        if (numbers and op.signature.variadic) or (len(dtypes) > 1 and not op.mixes_dtypes):
            continue  # not on the straight line
        try:
            longest = max(longest, entered(lambda a=given, p=params: op.function(*a, **p), codes), key=len)
        except NotImplementedError:  # of this dtype
            continue
    assert len(longest) <= MOST, longest
