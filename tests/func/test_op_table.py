"""Every differentiable row of the op table: its jet equals nested forward mode."""

from __future__ import annotations

import numpy as np
import pytest
from rows import ROWS

import leafgrad
from leafgrad import Tensor
from leafgrad.func import jet, jvp

ORDER = 3
DIFFERENTIABLE = [row for row in ROWS if row.order]


def moving(row, args, params):
    """The row's op as a function of its floating arguments, and these."""
    tensors = [leafgrad.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    at = [i for i, t in enumerate(tensors) if isinstance(t, Tensor) and t.dtype.is_differentiable]

    def function(*moved):
        given = {**dict(enumerate(tensors)), **dict(zip(at, moved, strict=True))}
        found = row.op(*[given[i] for i in range(len(args))], **params)
        found = found if isinstance(found, tuple) else (found,)
        return tuple([t for t in found if t.dtype.is_differentiable])

    return function, tuple([tensors[i] for i in at])


def direction(rng, x):
    real, imaginary = rng.normal(size=(2, *x.shape))
    return leafgrad.tensor(real + 1j * imaginary if x.dtype.is_complex else real, dtype=x.dtype)


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=str)
def test_jets_equal_nested_forward_mode(row):
    order = min(row.order, ORDER)
    compared = 0
    for args, params in row.draw("float64")[:4]:
        function, point = moving(row, args, params)
        if not point or not function(*point):
            continue
        rng = np.random.default_rng(0)
        v = tuple([direction(rng, x) for x in point])
        steps = [function]
        for _ in range(order):
            steps.append(lambda *x, f=steps[-1], v=v: jvp(f, x, v)[1])
        expected = [step(*point) for step in steps]
        value, found = jet(function, point, tuple([[t, *[None] * (order - 1)] for t in v]))
        for i, first in enumerate(value):
            for k, t in enumerate([first, *found[i]]):
                compared += 1
                wanted = expected[k][i].numpy()
                scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
                np.testing.assert_allclose(t.numpy(), wanted, rtol=1e-9, atol=1e-11 * scale)
    assert compared or not row.draw("float64")[0][0]
