"""Random zeros and ones in kernels: the bits of eager mode, of both streams, and the generator's state after them."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import backends, nn
from leafgrad.backends.contract import Generator
from leafgrad.lowering.kernels import Draw
from leafgrad.ops import dispatch
from leafgrad.ops.random import bernoulli_full
from leafgrad.testing import fake
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram
from leafgrad_cuda.launches import OpRun

NAME = "cuda-emulated"


def same_as_eager(step, *given, rtol=0.0):
    """The compiled step, after calls that give what eager mode does with the same seed."""
    run = leafgrad.compile(step, executor=NAME)
    run(*given)
    for seed in range(3):
        leafgrad.manual_seed(seed)
        expected = step(*given)
        state = leafgrad.get_rng_state()
        leafgrad.manual_seed(seed)
        for got, want in zip(run(*given), expected, strict=True):
            np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=rtol)
        np.testing.assert_array_equal(leafgrad.get_rng_state(), state)
    return CudaProgram(run.graph, Emulated(("forward",))).plan


def drawn(plan):
    """Whether each draw of a program is in a loop over the batch."""
    return [s.loop is not None for s in plan.segments for k in s.kernels if isinstance(k, Draw)]


def left(plan):
    return [p.equation.name for p in plan.parts if isinstance(p, OpRun)]


@pytest.mark.parametrize("dtype", [leafgrad.float32, leafgrad.float64])
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (1001,), (3, 5), (130, 3), (300, 2, 2)], ids=str)
def test_bits_are_those_of_eager(shape, dtype):
    x = leafgrad.zeros(shape, dtype=dtype)
    plan = same_as_eager(lambda x: (x + leafgrad.bernoulli(x, 0.3), leafgrad.bernoulli(x, 0.7)), x)
    assert drawn(plan)
    assert not left(plan)


@pytest.mark.parametrize("rows", [7, 64, 65, 300])
def test_dropout_is_made_in_the_loop_that_reads_it(rows):
    leafgrad.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 30), nn.ReLU(), nn.Dropout(0.3), nn.Linear(30, 9), nn.Tanh(), nn.Dropout(0.5))
    x, y = leafgrad.randn(rows, 5), leafgrad.randint(0, 9, (rows,))

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        return loss.detach(), *leafgrad.autograd.grad(loss, list(net.parameters()))

    plan = same_as_eager(step, x, y, rtol=1e-5)
    assert drawn(plan) == [rows >= 64] * 2
    assert not left(plan)


def test_ops_that_draw_by_themselves_keep_their_turn():
    def step(x):
        a = nn.functional.dropout(x, 0.4)
        b = a * leafgrad.rand(90, 4)
        c = nn.functional.dropout(b.cumsum(0), 0.2)
        return a, b, c + leafgrad.randn(90, 4), nn.functional.dropout(x.exp(), 0.6)

    plan = same_as_eager(step, leafgrad.rand(90, 4), rtol=1e-5)
    assert len(drawn(plan)) == 3
    assert left(plan) == ["uniform", "normal"]


def test_probabilities_at_the_ends():
    x = leafgrad.ones(100)
    ps = (0.0, 2**-24, 0.1, 1 - 2**-24, 1.0)
    same_as_eager(lambda x: tuple(leafgrad.bernoulli(x, p) for p in ps), x)


def test_on_the_device_of_tests():
    fake.register()
    x = leafgrad.ones(200, 5)
    run = leafgrad.compile(lambda x: nn.functional.dropout(x * 2, 0.3), executor=NAME)
    for seed in range(3):
        found = []
        for f, y in ((run, x.to("fake:0")), (lambda y: nn.functional.dropout(y * 2, 0.3), x.to("fake:0"))):
            leafgrad.manual_seed(seed)
            found.append(f(y).cpu().numpy())
        np.testing.assert_array_equal(*found)


class Counted(Generator):
    """Draws as the generator of CuPy arrays does, in NumPy."""

    stream = "philox4x32"

    def __init__(self):
        self.at = 3

    def manual_seed(self, seed): ...
    def seed(self): ...
    def initial_seed(self): ...
    def normal(self, shape, dtype): ...
    def uniform(self, shape, dtype): ...
    def integers(self, low, high, shape, dtype): ...
    def permutation(self, n): ...

    def get_state(self):
        return np.array([self.at], "u8").view("u1")

    def set_state(self, state):
        self.at = int(state.view("u8")[0])

    def words(self, count):
        self.at += count
        return 0x1234567_89ABCDEF, self.at - count

    def bernoulli(self, p, shape, dtype):
        """Philox4x32-10 of Salmon et al. (2011), as cupy.PHILOX has it."""
        key, at = self.words(int(np.prod(shape)))
        numbers = at + np.arange(np.prod(shape), dtype="u8")
        low = np.uint64(0xFFFFFFFF)
        a, b, c, d = numbers & low, numbers >> np.uint64(32), numbers * np.uint64(0), numbers * np.uint64(0)
        k, m = key & 0xFFFFFFFF, key >> 32
        for _ in range(10):
            p_, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
            a, b = (q >> np.uint64(32)) ^ b ^ np.uint64(k), q & low
            c, d = (p_ >> np.uint64(32)) ^ d ^ np.uint64(m), p_ & low
            k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
        uniform = (a >> np.uint64(8)).astype("f4") * np.float32(2**-24)
        return (uniform < np.float32(p)).astype(dtype).reshape(shape)


@pytest.mark.parametrize("rows", [5, 130])
def test_the_stream_of_gpus(rows):
    generator = Counted()

    def function(x):
        place = leafgrad.device("cpu").resolve()
        coins = dispatch.create(bernoulli_full, place, generator=generator, shape=(rows, 3), dtype="float32", p=0.3)
        return x * coins + 1, coins

    graph = leafgrad.trace(function, leafgrad.rand(rows, 3))
    program = CudaProgram(graph, Emulated())
    assert drawn(program.plan) == [rows == 130]
    x = np.random.default_rng(0).random((rows, 3)).astype("f4")
    generator.at = 2**32 - 7
    _, got = program([x])
    _, other = program([x])
    assert generator.at == 2**32 - 7 + 6 * rows
    generator.at = 2**32 - 7
    np.testing.assert_array_equal(got, generator.bernoulli(0.3, (rows, 3), "float32"))
    np.testing.assert_array_equal(other, generator.bernoulli(0.3, (rows, 3), "float32"))


def test_the_generators_of_backends_say_how_they_draw():
    assert backends.by_device_type("cpu").generator(0).stream == "philox4x64"
