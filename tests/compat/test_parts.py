"""Functions of torch that are parts of others give PyTorch's numbers."""

from __future__ import annotations

import pytest

import leafgrad as lg
from leafgrad.compat import torch as compat


def numbers(shape, seed=0, dtype=lg.float64):
    return lg.randn(shape, generator=lg.Generator().manual_seed(seed), dtype=dtype)


N, SIZE, HIDDEN = 3, 4, 5


def cell(gates):
    return [
        (N, SIZE),
        (N, HIDDEN),
        (gates * HIDDEN, SIZE),
        (gates * HIDDEN, HIDDEN),
        (gates * HIDDEN,),
        (gates * HIDDEN,),
    ]


CALLS = {
    "rnn_tanh_cell": (cell(1), ()),
    "rnn_relu_cell": (cell(1), ()),
    "gru_cell": (cell(3), ()),
    "conv_tbc": ([(6, N, SIZE), (3, SIZE, HIDDEN), (HIDDEN,)], (1,)),
    "frobenius_norm": ([(3, 4)], ([0, 1], True)),
    "grid_sampler": ([(2, 3, 4, 5), (2, 3, 3, 2)], (0, 1, False)),
    "grid_sampler_2d": ([(2, 3, 4, 5), (2, 3, 3, 2)], (1, 2, True)),
    "grid_sampler_3d": ([(2, 3, 4, 5, 2), (2, 3, 3, 2, 3)], (0, 0, True)),
    "affine_grid_generator": ([(2, 2, 3)], ([2, 3, 4, 5], False)),
    "unsafe_split": ([(7, 2)], (3,)),
    "unsafe_split_with_sizes": ([(2, 7)], ([3, 4], 1)),
    "unsafe_chunk": ([(7, 2)], (3,)),
    "_shape_as_tensor": ([(7, 2)], ()),
    "_cast_Long": ([(7, 2)], ()),
    "_cast_Float": ([(7, 2)], (True,)),
}


@pytest.mark.filterwarnings("ignore:at..frobenius_norm is deprecated")
@pytest.mark.parametrize("name", CALLS)
def test_parts_of_functions_give_pytorchs_numbers(name):
    theirs = pytest.importorskip("torch")

    shapes, rest = CALLS[name]
    given = [numbers(shape, i) for i, shape in enumerate(shapes)]
    expected = getattr(theirs, name)(*[theirs.from_numpy(g.numpy()) for g in given], *rest)
    found = getattr(lg, name, None) or getattr(compat, name)
    found = found(*given, *rest)
    for a, b in zip(*[x if isinstance(x, (tuple, list)) else (x,) for x in (found, expected)], strict=True):
        assert str(b.dtype) == f"torch.{a.dtype.name}"
        assert a.shape == tuple(b.shape)
        assert abs(a.double().numpy() - b.double().numpy()).max() < 1e-12
