"""Each kind of kernel looks for signals while it works, and ends when it is told to."""

from __future__ import annotations

import ctypes

import pytest

import leafgrad
from leafgrad.lowering.kernels import LOOK
from leafgrad.nn import functional as F
from leafgrad.ops.recurrent import rnn
from leafgrad_native import pool
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

N = 24 * LOOK  # the work of each call, about
MANY = 12  # looks in so much work
TOLD = 3  # the look that says to stop


def rand(*shape):
    return leafgrad.rand(*shape, dtype=leafgrad.float32)


def places(size, count):
    return leafgrad.randint(0, size, (count,))


KINDS = {
    "nest": (lambda x: x * 2 + 1, lambda: (rand(N),)),
    "nest of rows": (lambda x: (x * 2).tanh().sum((1, 2)), lambda: (rand(64, 32, N // 2048),)),
    "copy": (lambda x: x.T.contiguous(), lambda: (rand(1000, N // 1000),)),
    "join": (lambda x: leafgrad.cat([x, x]), lambda: (rand(N // 2),)),
    "sum": (lambda x: x.sum(), lambda: (rand(N),)),
    "sum of columns": (lambda x: x.sum(0), lambda: (rand(N // 8, 8),)),
    "amax": (lambda x: x.amax(), lambda: (rand(N),)),
    "amax of rows": (lambda x: x.amax(1), lambda: (rand(3, N // 3),)),
    "prod": (lambda x: x.prod(), lambda: (rand(N),)),
    "softmax": (lambda x: x.softmax(0), lambda: (rand(N),)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda: (rand(N // 100, 100),)),
    "cumsum": (lambda x: x.cumsum(1), lambda: (rand(N // 100, 100),)),
    "index": (lambda x, at: x[at], lambda: (rand(1000), places(1000, N))),
    "gather": (lambda x, at: x.gather(0, at), lambda: (rand(1000), places(1000, N))),
    "index_add": (lambda x, at: leafgrad.zeros(1000).index_add(0, at, x), lambda: (rand(N), places(1000, N))),
    "scatter": (lambda x, at: leafgrad.zeros(N).scatter(0, at, x), lambda: (rand(N), places(N, N))),
    "cross_entropy": (F.cross_entropy, lambda: (rand(N // 4, 4), places(4, N // 4))),
    "dropout": (lambda x: F.dropout(x, 0.5), lambda: (rand(N),)),
    "dropout of rows": (lambda x: F.dropout(x.exp(), 0.5).sum((1, 2)), lambda: (rand(64, 32, N // 2048),)),
    "strided product": (lambda x: x[:, ::2] @ x[::2], lambda: (rand(500, 500),)),
    "batch of products": (lambda x, y: x @ y, lambda: (rand(40, 60, 60), rand(40, 60, 60))),
    "wide layer": (lambda x, w: (x.exp() @ w).tanh().sum(1), lambda: (rand(64, 400), rand(400, 900))),
    "weights": (lambda x, y: x.exp().T @ y.tanh(), lambda: (rand(128, 400), rand(128, 300))),
    "recurrent layer": (lambda *args: rnn(*args, relu=False), lambda: (rand(200, 16, 64), rand(64, 64), rand(16, 64))),
    "step of a recurrent layer": (
        lambda *args: rnn(*args, relu=True),
        lambda: (rand(2, 40, 600), rand(600, 600), rand(40, 600)),
    ),
    "image": (F.conv2d, lambda: (rand(1, 4, 300, 300), rand(8, 4, 3, 3))),
    "row": (F.conv1d, lambda: (rand(1, 2, N // 10), rand(4, 2, 5))),
    "images": (F.conv2d, lambda: (rand(64, 8, 20, 20), rand(16, 8, 3, 3))),
    "transposed": (F.conv_transpose2d, lambda: (rand(1, 4, 300, 300), rand(4, 8, 3, 3))),
    "pool": (lambda x: F.max_pool2d(x, 9, 1), lambda: (rand(1, 1, 280, 280),)),
    "unfold": (lambda x: F.unfold(x, 3), lambda: (rand(1, 1, 850, 850),)),
    "fold": (lambda x: F.fold(x, (850, 850), 3), lambda: (rand(1, 9, 848 * 848),)),
}

FEW = ["prod", "index_add", "image"]  # the others are slow tests: each has its own C


class Looks:
    """What programs call instead of ``lg_look``: counts, and from a certain call on says to stop."""

    def __init__(self):
        self.count, self.told = 0, None
        self.function = ctypes.CFUNCTYPE(ctypes.c_int)(self.look)

    def look(self):
        self.count += 1
        return -3 if self.told is not None and self.count >= self.told else 0


@pytest.fixture
def looks(monkeypatch):
    found, address = Looks(), pool.address
    here = ctypes.cast(found.function, ctypes.c_void_p).value
    monkeypatch.setattr(pool, "address", lambda name: here if name == "lg_look" else address(name))
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "0")
    before = leafgrad.get_num_threads()
    leafgrad.set_num_threads(1)
    yield found
    leafgrad.set_num_threads(before)


@pytest.mark.parametrize(
    "kind", [kind if kind in FEW else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
def test_looks(looks, kind):
    function, make = KINDS[kind]
    leafgrad.manual_seed(0)
    arguments = make()
    step = leafgrad.compile(function, executor="native")
    step(*arguments)
    step(*arguments)
    looks.count = 0
    step(*arguments)
    assert MANY <= looks.count < 200 * MANY
    looks.count, looks.told = 0, TOLD
    step(*arguments)
    assert looks.count == TOLD
