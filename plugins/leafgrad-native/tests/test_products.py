"""Products of whole matrices, whose right one is brought into order block by block."""

from __future__ import annotations

import ctypes
import itertools
import re

import numpy as np
import pytest

import leafgrad
from leafgrad_native import packed
from leafgrad_native.compiler import NoCompiler, compiler
from leafgrad_native.executor import Call

TESTS = "lowering.product_patterns"

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


pytestmark = pytest.mark.usefixtures("threads")


def normal(*shape, dtype=leafgrad.float64):
    return leafgrad.tensor(np.random.default_rng(sum(shape)).normal(size=shape), dtype=dtype)


def check(product, arrays, threads=1):
    """The source of a step that gives products, after a comparison with eager.

    Arrays come in one vector, so that none of them is a batch for a loop.
    """
    leafgrad.set_num_threads(threads)
    shapes, sizes = [a.shape for a in arrays], [a.numel() for a in arrays]

    def step(x):
        return product(*[part.reshape(shape) for part, shape in zip(x.split(sizes), shapes, strict=True)])

    x = leafgrad.cat([a.reshape(-1) for a in arrays])
    c = leafgrad.compile(step, executor="native")
    c(x)
    for _ in range(2):
        for ours, right in zip(c(x), step(x), strict=True):
            ours, right = ours.numpy(), right.numpy()
            rtol = 1e-12 if right.dtype == np.float64 else 1e-4
            largest = abs(right).max(initial=0, where=np.isfinite(right))
            np.testing.assert_allclose(ours, right, rtol=rtol, atol=rtol * largest)
    assert "in one function" in c.explain()
    assert not any(word in c.explain() for word in ("NumPy:", "refused", "loop over"))
    return str(c.source())


SIZES = [(1, 300, 7), (13, 1, 70), (37, 530, 130), (130, 41, 300), (8, 1500, 17)]  # rows, inner, columns


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [leafgrad.float64, leafgrad.float32])
@pytest.mark.parametrize("sizes", SIZES)
def test_matrices_of_any_size(dtype, sizes):
    """As they are, transposed, and with every second column."""
    m, k, n = sizes
    a, b, at, bt, wide = (normal(*s, dtype=dtype) for s in ((m, k), (k, n), (k, m), (n, k), (k, 2 * n)))

    def step(a, b, at, bt, wide):
        return a @ b, at.t() @ b, a @ bt.t(), at.t() @ bt.t(), a @ wide[:, ::2], at.t() @ wide[:, 1::2]

    check(step, [a, b, at, bt, wide], threads=2)


def test_every_block_of_a_large_matrix(monkeypatch):
    """Blocks in which a left row that lies in order is read once are larger; here both kinds have several."""
    monkeypatch.setattr(packed, "PACKED", 1 << 12)
    monkeypatch.setattr(packed, "LARGEST", 1 << 14)
    a, b, at = normal(40, 1030), normal(1030, 260), normal(1030, 40)
    source = check(lambda a, b, at: (a @ b, at.t() @ b), [a, b, at])
    sizes = sorted(int(deep) * int(wide) for deep, wide in re.findall(r"lg_sizes\){(?:\d+, ){8}(\d+), (\d+)", source))
    assert len(sizes) == 2
    assert sizes[0] < sizes[1] <= (1 << 14) // 8 * 2


def test_matrices_that_lie_apart_and_share_the_right_one_are_one_product():
    x, w = normal(9, 4, 6), normal(6, 50)
    source = check(lambda x, w: (x.transpose(0, 1) @ w, x[:, :, ::2] @ w[:3]), [x, w])
    assert source.count("// 36 x 6 and 6 x 50") == 1
    assert source.count("// 36 x 3 and 3 x 50") == 1


def test_products_of_all_shapes_share_their_functions():
    shapes = [(40, 70, 50), (70, 40, 50), (40, 50, 60), (36, 3, 64)]
    arrays = [normal(*shape, dtype=leafgrad.float32) for m, k, n in shapes for shape in ((m, k), (k, n))]
    source = check(lambda *x: [a @ b for a, b in zip(x[::2], x[1::2], strict=True)], arrays)
    assert source.count("= call->product_f32(call") == len(shapes)
    assert "tile" not in source


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_block_there_is(dtype):
    """Of all numbers of rows and columns, in two stretches of rows."""
    look = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    call = Call(look=ctypes.cast(look, ctypes.c_void_p))
    arguments = ctypes.c_int, *[ctypes.c_void_p] * 5, ctypes.c_long, ctypes.c_long
    multiply = ctypes.CFUNCTYPE(*arguments)(packed.address(dtype))
    rng = np.random.default_rng(0)
    for m, k, n in itertools.product([*range(1, 20), 65], (1, 9), [*range(1, 70, 3), 8, 16, 32, 48, 64, 400]):
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        o, numbers = np.full((m, n), np.nan, dtype), packed.sizes(dtype, m, k, n, k, 1, n, 1, n, 1)
        sizes, last = (ctypes.c_long * len(numbers))(*numbers), packed.units(m, n, dtype)
        data = [array.ctypes.data for array in (a, b, o)]
        for first, end in ((0, last // 2), (last // 2, last)):
            assert multiply(ctypes.addressof(call), *data, ctypes.addressof(sizes), first, end) == 0
        np.testing.assert_allclose(o, a @ b, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


def test_nan_and_infinity_stay_in_their_rows():
    x, w = normal(7, 30, 5).numpy().copy(), normal(5, 19)
    x[2, 3, 1], x[4, 0, 0] = np.nan, np.inf
    check(lambda x, w: (x.transpose(0, 1) @ w, x[:, 3] @ w), [leafgrad.tensor(x), w])
