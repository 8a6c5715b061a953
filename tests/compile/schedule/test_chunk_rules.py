"""Chunk rules of all ops, wherever the batch is: what they say of chunks is what the forward does on them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leafgrad.compile.ir.graph import Equation, Value
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.schedule.axes import carried
from leafgrad.errors import CompileError
from leafgrad.ops import (
    attention,
    classes,
    combine,
    convert,
    convolution,
    cumulative,
    diagonals,
    elementwise,
    extremes,
    index,
    matmul,
    normalize,
    reduce,
    select,
    shape,
    softmax,
    sort,
    windows as sliding,
)
from leafgrad.ops.define import op
from leafgrad.ops.windows import Windows

TESTS = "compile.schedule.axes"

N = 11  # rows of the batch; nothing else has this size but where it says so
HERE = ("cpu", 0)
PLANE = Windows((5, 6), (2, 3), (1, 2), (1, 0), (1, 1), (6, 2))
LINE = Windows((7,), (3,), (2,), (1,), (1,), (4,))


def ints(high):
    """Class numbers and indices below ``high``."""
    return lambda rng, shape: rng.integers(0, high, shape)


# Op, shapes of inputs (or a pair of a shape and how its elements are drawn), parameters.
CASES = [
    (elementwise.add, [(N, 3), (3,)], {}),
    (elementwise.add, [(N, 3), (N, 1)], {}),
    (elementwise.mul, [(N, N), (N,)], {}),
    (elementwise.mul, [(2, N, 3), (N, 3)], {}),
    (select.where, [((N, 3), ints(2)), (N, 3), (3,)], {}),
    (select.clamp, [(N, 3), (3,), None], {}),
    (convert.to_dtype, [(2, N)], {"dtype": "float32", "source": "float64"}),
    (convert.new_full, [(N, 3)], {"shape": (N, 4), "value": 2.0, "dtype": None}),
    (convert.new_full, [(3, N)], {"shape": (3,), "value": 2.0, "dtype": None}),
    (convert.clone, [(3, N)], {}),
    (shape.reshape, [(N, 2, 3)], {"shape": (N, 6)}),
    (shape.reshape, [(2, N, 3)], {"shape": (2 * N, 3)}),
    (shape.reshape, [(2, N, 6)], {"shape": (1, 2, N, 2, 3)}),
    (shape.reshape, [(N, N, 2)], {"shape": (N, 2, N)}),
    (shape.permute, [(2, N, 3)], {"dims": (1, 2, 0)}),
    (shape.permute, [(N, N)], {"dims": (1, 0)}),
    (shape.expand, [(N, 1)], {"shape": (2, N, 4)}),
    (shape.expand, [(1, N)], {"shape": (N, N)}),
    (shape.sum_to, [(N, 3)], {"shape": (3,)}),
    (shape.sum_to, [(N, 3)], {"shape": (1, 3)}),
    (shape.sum_to, [(2, N, 3)], {"shape": (N, 1)}),
    (shape.sum_to, [(N, N)], {"shape": (N,)}),
    (diagonals.diagonal, [(3, N, 4)], {"offset": 1, "dims": (0, 2)}),
    (diagonals.diagonal, [(N, 3, 4)], {"offset": -1, "dims": (2, 1)}),
    (diagonals.diagonal, [(N, N)], {"offset": 0, "dims": (0, 1)}),
    (diagonals.undiagonal, [(N, 3)], {"shape": (3, N, 4), "offset": 0, "dims": (0, 2)}),
    (diagonals.undiagonal, [(2, N)], {"shape": (2, N, N), "offset": 0, "dims": (1, 2)}),
    (diagonals.tril, [(N, 3, 4)], {"diagonal": 0}),
    (diagonals.triu, [(N, N, 4)], {"diagonal": 1}),
    (shape.flip, [(N, 3)], {"dims": (1,)}),
    (shape.flip, [(N, 3)], {"dims": (0,)}),
    (shape.roll, [(2, N, 3)], {"shifts": (1, 2), "dims": (0, 2)}),
    (shape.roll, [(2, N, 3)], {"shifts": (1,), "dims": (1,)}),
    (shape.part, [(N, 5)], {"at": ((0, N, 1), (1, 4, 2))}),
    (shape.part, [(N, 5)], {"at": ((0, N - 1, 1),)}),
    (shape.part, [(4, N, 5)], {"at": (2, None, (0, N, 1))}),
    (shape.part, [(4, N, N)], {"at": (None, 2)}),
    (shape.unslice, [(N, 2)], {"at": ((0, N, 1), (1, 3, 1)), "shape": (N, 5)}),
    (shape.unslice, [(N, 2)], {"at": ((0, N, 1), (1, 3, 1)), "shape": (N + 1, 5)}),
    (shape.unslice, [(N,)], {"at": ((0, N, 1),), "shape": (N + 1,)}),
    (shape.unslice, [(N, 5)], {"at": (2,), "shape": (4, N, 5)}),
    (shape.unslice, [(N, 5)], {"at": ((1, N + 1, 1),), "shape": (N + 4, 5)}),
    (shape.unslice, [(1, N)], {"at": (None,), "shape": (N,)}),
    (shape.pad, [(N, 2)], {"at": ((0, N, 1), (1, 3, 1)), "shape": (N, 5), "value": -math.inf}),
    (shape.cat, [(N, 2), (N, 3)], {"dim": 1}),
    (shape.cat, [(N, 2), (N, 2)], {"dim": 0}),
    (reduce.sum, [(N, 3)], {"dim": (0,)}),
    (reduce.sum, [(2, N, 3)], {"dim": (0,)}),
    (reduce.sum, [(2, N, 3)], {"dim": (0, 1), "keepdim": True}),
    (reduce.nansum, [(N, 3)], {"dim": (0, 1)}),
    (reduce.mean, [(N, 3)], {"dim": (0,)}),
    (reduce.mean, [(N, 3)], {"dim": (1,)}),
    (reduce.var, [(N, 3)], {"dim": (1,), "keepdim": True}),
    (reduce.norm, [(N, 3)], {"p": 3.0, "dim": (1,)}),
    (reduce.amax, [(2, N, 3)], {"dim": (0,)}),
    (reduce.prod, [(2, N, 3)], {"dim": (0, 1)}),
    (softmax.logsumexp, [(2, N, 3)], {"dim": (2,)}),
    (reduce.count_nonzero, [(N, 3)], {"dim": (0,)}),
    (reduce.any, [(N, 3)], {"dim": (1,)}),
    (softmax.softmax, [(N, 3)], {"dim": 1}),
    (softmax.softmax, [(N, N)], {"dim": 0}),
    (softmax.log_softmax, [(3, N)], {"dim": 0}),
    (extremes.argmax, [(N, 3)], {"dim": 1}),
    (extremes.argmax, [(N, 3)], {"dim": None}),
    (extremes.argmin, [(N, 3)], {"dim": 0, "keepdim": True}),
    (extremes.argmedian, [(N, 3)], {"dim": 1}),
    (extremes.argmode, [(N, 3)], {"dim": 1}),
    (sort.argsort, [(N, 3)], {"dim": 1, "descending": True}),
    (cumulative.cumsum, [(N, 3)], {"dim": 1}),
    (cumulative.cumsum, [(N, 3)], {"dim": 0, "reverse": True}),
    (cumulative.cumprod, [(3, N)], {"dim": 0}),
    (cumulative.shift, [(3, N)], {"dim": 0, "by": 1}),
    (cumulative.recurrence, [(N, 3), (N, 3)], {"dim": 1}),
    (cumulative.logcumsumexp, [(N, 3)], {"dim": 1}),
    (cumulative.cummax, [(N, 3)], {"dim": 1}),
    (normalize.standardize, [(N, 3, 4)], {"dim": (1, 2), "eps": 1e-5}),
    (normalize.standardize, [(N, 3, 4)], {"dim": (0, 2), "eps": 1e-5}),
    (normalize.standardize_slope, [(N, 3), (N, 3)], {"dim": (1,), "eps": 1e-5, "centered": False}),
    (normalize.affine, [(N, 3), (3,), (3,)], {}),
    (matmul.matmul, [(N, 3), (3, 4)], {}),
    (matmul.matmul, [(3, 4), (4, N)], {}),
    (matmul.matmul, [(3, N), (N, 4)], {}),
    (matmul.matmul, [(N, N), (N, N)], {}),
    (matmul.matmul, [(N, 2, 3), (N, 3, 4)], {}),
    (matmul.matmul, [(N, 2, 3), (3, 4)], {}),
    (matmul.matmul, [(2, N, 3), (3, 4)], {}),
    (matmul.matmul, [(2, 3, N), (N, 4)], {}),
    (matmul.matmul, [(2, 3), (N, 3, 4)], {}),
    (matmul.matmul, [(N,), (N, 4)], {}),
    (matmul.matmul, [(2, N, 3, 4), (N, 4, 2)], {}),
    (matmul.linear, [(N, 3), (4, 3), (4,)], {}),
    (matmul.linear, [(2, N, 3), (4, 3)], {}),
    (matmul.linear, [(N, N), (N, N), (N,)], {}),
    (classes.pick, [(N, 4), ((N,), ints(4))], {"dim": 1, "ignore": 2}),
    (classes.pick, [(4, N), ((N,), ints(4))], {"dim": 0, "ignore": -1}),
    (classes.pick, [(N, 4, 2), ((N, 2), ints(4))], {"dim": 1, "ignore": 2}),
    (classes.pick, [(N, N), ((N,), ints(N))], {"dim": 1, "ignore": 2}),
    (classes.place, [(N,), ((N,), ints(4))], {"dim": 1, "ignore": 2, "shape": (N, 4)}),
    (classes.place, [(2, N), ((2, N), ints(4))], {"dim": 1, "ignore": 2, "shape": (2, 4, N)}),
    (index.index, [(5, 3), ((N,), ints(5))], {"dims": (0,)}),
    (index.index, [(3, 5, 4), ((N, 2), ints(5))], {"dims": (1,)}),
    (index.index, [(N, 5, 4), ((3,), ints(5))], {"dims": (1,)}),
    (index.index, [(N, 5, 4), ((N,), ints(5)), ((2, 1), ints(4))], {"dims": (1, 2)}),
    (index.index, [(5, N, 4), ((3,), ints(5)), ((3,), ints(4))], {"dims": (0, 2)}),
    (index.index_sum, [(N, 3), ((3,), ints(5))], {"dims": (1,), "shape": (N, 5)}),
    (index.index_sum, [(N, 3), ((N,), ints(5))], {"dims": (0,), "shape": (5, 3)}),
    (index.index_sum, [(3, N), ((3,), ints(5)), ((3,), ints(4))], {"dims": (0, 2), "shape": (5, N, 4)}),
    (index.gather, [(N, 5), ((N, 3), ints(5))], {"dim": 1}),
    (index.gather, [(N + 2, 5), ((N, 3), ints(5))], {"dim": 1}),
    (index.gather, [(5, N), ((3, N), ints(5))], {"dim": 0}),
    (index.gather_sum, [(N, 3), ((N, 3), ints(5))], {"dim": 1, "shape": (N, 5)}),
    (index.gather_sum, [(N, 3), ((N, 3), ints(5))], {"dim": 1, "shape": (N + 2, 5)}),
    (index.scatter, [(N, 5), ((N, 3), ints(5)), (N, 3)], {"dim": 1}),
    (index.scatter, [(N, 5), ((N, 3), ints(5)), 2.0], {"dim": 1}),
    (combine.scatter_best, [(N, 5), ((N, 3), ints(5)), (N, 3)], {"dim": 1, "largest": True}),
    (combine.scatter_product, [(N, 5), ((N, 3), ints(5)), (N, 3)], {"dim": 1}),
    (convolution.convolution, [(N, 4, 5, 6), (6, 2, 2, 3), (6,)], {"windows": PLANE, "groups": 2}),
    (convolution.convolution, [(N, 2, 7), (N, 2, 3), None], {"windows": LINE, "groups": 1}),
    (convolution.convolution_input, [(N, 6, 6, 2), (6, 2, 2, 3), (4,)], {"windows": PLANE, "groups": 2}),
    (convolution.convolution_weight, [(N, 4, 5, 6), (N, 6, 6, 2)], {"windows": PLANE, "groups": 2}),
    (sliding.unfold, [(N, 2, 5, 6)], {"windows": PLANE}),
    (sliding.unfold, [(2, N, 7)], {"windows": LINE}),
    (sliding.fold, [(2, N, 3, 4)], {"windows": LINE}),
    (sliding.window_max, [(N, 2, 5, 6)], {"windows": PLANE}),
    (sliding.window_argmax, [(2, N, 5, 6)], {"windows": PLANE}),
    (sliding.window_pick, [(N, 2, 7), ((N, 2, 4), ints(7))], {"windows": LINE}),
    (sliding.window_place, [(2, N, 4), ((2, N, 4), ints(7))], {"windows": LINE}),
    (attention.attention, [(N, 3, 2), (N, 4, 2), (N, 4, 5), None], {"scale": 0.5, "causal": False}),
    (attention.attention, [(N, 2, 3, 2), (N, 2, 3, 2), (N, 2, 3, 5), (N, 1, 1, 3)], {"scale": 0.5, "causal": True}),
    (attention.attention, [(2, N, 2), (2, N, 2), (2, N, 5), (N, N)], {"scale": 0.5, "causal": True}),
    (attention.attention_gradients, [(N, 3, 5), (N, 3, 2), (N, 4, 2), (N, 4, 5), (N, 3, 5), (N, 3, 1), (3, 4)],
     {"scale": 0.5, "causal": False}),
]  # fmt: skip


def arrays(inputs, rng):
    for each in inputs:
        if isinstance(each, tuple) and each and isinstance(each[0], tuple):
            yield each[1](rng, each[0])
        else:
            yield rng.uniform(0.5, 1.5, each) if isinstance(each, tuple) else each


def made(what):
    return list(what) if isinstance(what, tuple) else [what]


def equation_of(of, given, params):
    def value(a):
        return Value(a.shape, a.dtype.name, HERE) if isinstance(a, np.ndarray) else a

    whole = of.forward(np, *given, **params)
    outputs = tuple(Value(np.shape(w), w.dtype.name, HERE) for w in made(whole))
    inputs = tuple(value(a) for a in given)
    return Equation(of, inputs, params, outputs, Line("", 0), type(whole) is tuple), made(whole)


def in_chunks(equation, given, axes, found, rows):
    """What the forward makes of chunks of the batch, as the rule says."""
    parts = []
    for lo in range(0, N, rows):
        hi, chunk = min(lo + rows, N), []
        for i, a in enumerate(given):
            axis = axes[i] if axes[i] is not None else found.slices.get(i)
            chunk.append(a if axis is None else a[(slice(None),) * axis + (slice(lo, hi),)])
        params = dict(equation.params)
        if found.resized:
            full = equation.out.shape
            params["shape"] = (*full[: found.axis], hi - lo, *full[found.axis + 1 :])
        parts.append(made(equation.op.forward(np, *chunk, **params)))
    if found.axis is None:
        return [sum(p[0] for p in parts)]
    return [np.concatenate(same, found.axis) for same in zip(*parts, strict=True)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_a_forward_does_on_chunks_what_its_rule_says(case):
    of, inputs, params = case
    given = list(arrays(inputs, np.random.default_rng(0)))
    equation, whole = equation_of(of, given, of.signature.bind(params))
    options = [[None, *(i for i, n in enumerate(np.shape(a)) if n == N)] for a in given]
    for axes in itertools.product(*options):
        if set(axes) == {None}:
            continue
        found = carried(equation, axes, N)
        if found is not None:
            for rows in (4, N):
                for got, want in zip(in_chunks(equation, given, axes, found, rows), whole, strict=True):
                    assert got.shape == want.shape, axes
                    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=f"{axes}")


@pytest.mark.parametrize(
    ("of", "inputs", "params", "expected"),
    [
        (softmax.softmax, [(N, 3)], {"dim": 1}, 0),
        (softmax.softmax, [(N, 3)], {"dim": 0}, "whole"),
        (reduce.mean, [(N, 3)], {"dim": (0,)}, "whole"),
        (reduce.sum, [(N, 3)], {"dim": (0,)}, None),
        (reduce.amax, [(2, N, 3)], {"dim": (0,)}, 0),
        (extremes.argmax, [(N, 3)], {"dim": None}, "whole"),
        (convolution.convolution, [(N, 4, 5, 6), (6, 2, 2, 3), (6,)], {"windows": PLANE, "groups": 2}, 0),
        (convolution.convolution_input, [(N, 6, 6, 2), (6, 2, 2, 3), (4,)], {"windows": PLANE, "groups": 2}, 0),
        (convolution.convolution_weight, [(N, 4, 5, 6), (N, 6, 6, 2)], {"windows": PLANE, "groups": 2}, None),
        (sliding.window_max, [(N, 2, 5, 6)], {"windows": PLANE}, 0),
        (sliding.fold, [(2, N, 3, 4)], {"windows": LINE}, 1),
        (attention.attention, [(N, 3, 2), (N, 4, 2), (N, 4, 5), None], {"scale": 0.5, "causal": False}, 0),
        (normalize.standardize, [(N, 3, 4)], {"dim": (1, 2), "eps": 1e-5}, 0),
        (cumulative.cumsum, [(N, 3)], {"dim": 1}, 0),
        (shape.roll, [(2, N, 3)], {"shifts": (1, 2), "dims": (0, 2)}, 1),
        (index.gather, [(N, 5), ((N, 3), ints(5))], {"dim": 1}, 0),
    ],
)  # fmt: skip
def test_where_the_batch_goes(of, inputs, params, expected):
    given = list(arrays(inputs, np.random.default_rng(0)))
    equation, _ = equation_of(of, given, of.signature.bind(params))
    axes = [np.shape(a).index(N) if N in np.shape(a) else None for a in given]
    found = carried(equation, axes, N)
    assert (found.axis if found else "whole") == expected


# ---- rules that are wrong -------------------------------------------------------------------------------------------


def rule_of(rule):
    @op
    def chunked(xp, x):
        return x.copy()

    chunked.chunk(rule)
    equation, _ = equation_of(chunked, [np.ones((N, 3))], {})
    return lambda: carried(equation, (0,), N)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda call: call.on(1, 0), r"op 'chunked', chunk rule from .*test_chunk_rules.py:\d+: the result should"),
        (lambda call: 0, "expected what a method of the call returns, or None, got 0"),
        (lambda call: call.nonsense(), "AttributeError"),
    ],
)
def test_a_wrong_rule_is_named(rule, message):
    with pytest.raises(CompileError, match=message):
        rule_of(rule)()
