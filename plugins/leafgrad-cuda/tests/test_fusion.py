"""Which tasks share a launch, a block or a thread, and that what they make is the same in all orders."""

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram


def program(function, *args):
    """The program of a function, whose results are compared with eager's."""
    found = CudaProgram(leafgrad.trace(function, *args), Emulated())
    made = found([a.numpy() for a in args])
    want = function(*args)
    for got, w in zip(made, want if isinstance(want, tuple) else (want,), strict=False):
        near = 1e-5 if w.dtype == leafgrad.float32 else 1e-9
        np.testing.assert_allclose(got, w.numpy(), rtol=near, atol=near)
    return found.plan


def test_rows_go_through_phases_of_one_launch():
    (launch,) = program(lambda x: leafgrad.softmax(x * 2, -1) * 3, leafgrad.randn(24, 100)).launches
    (section,) = launch.sections
    assert section.rows > 1
    assert 24 % section.rows == 0
    assert len(section.phases) > 1


def test_items_that_need_each_other_are_one_phase():
    (launch,) = program(lambda x, b: ((x + b).exp() * x, x - 1), leafgrad.randn(24, 30), leafgrad.randn(30)).launches
    assert [len(s.phases) for s in launch.sections] == [1]


def test_parts_of_an_array_are_read_by_the_threads_that_made_it():
    def parts(x):
        y = x.exp()
        return y, y[:30].reshape(5, 6) + 1, y[30:] * 2

    (launch,) = program(parts, leafgrad.randn(9000)).launches
    ((group,),) = launch.phases
    assert sorted(group.starts)[-1] == 30


def test_columns_wait_for_the_launch_before():
    x = leafgrad.randn(24, 300)
    first, *rest = program(lambda x: (x * 2).exp().sum(0), x).launches
    assert rest
    assert [s.rows for s in first.sections] == [0]


def test_little_rides_along_with_squares():
    x, w = leafgrad.randn(128, 128, dtype=leafgrad.float64), leafgrad.randn(20, 30)
    launch, *_ = program(lambda x, w: (x @ x, w.sum(0)), x, w).launches
    squares, *rest = launch.sections
    assert squares.squares
    assert rest


@pytest.mark.parametrize("seed", range(12))
def test_random_chains_of_rows_and_columns(seed):
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.choice([1, 2, 3, 8, 17, 64], 3))
    ways = random.integers(0, 9, 7)

    def chain(x):
        for way in ways:
            if way == 0:
                x = x - x.mean(-1, keepdim=True)
            elif way == 1:
                x = x / (1 + x.abs().sum((1, 2), keepdim=True))
            elif way == 2:
                x = x.transpose(0, 1).contiguous().transpose(0, 1) * 1.5
            elif way == 3:
                x = leafgrad.softmax(x, int(way) % 3 - 1)
            elif way == 4:
                x = leafgrad.cat([x[1:], x[:1]]) + x
            elif way == 5:
                x = x + x.amax(0, keepdim=True)
            elif way == 6:
                x = leafgrad.tanh(x).reshape(-1).flip(0).reshape(x.shape)
            elif way == 7:
                x = x.reshape(x.shape[0], -1).cumsum(0).reshape(x.shape) / 3
            else:
                x = x.reshape(-1, x.shape[-1]).softmax(-1).reshape(x.shape) - x
        return x, x.sum(), x[..., 0]

    program(chain, leafgrad.from_numpy(random.standard_normal(shape)))


def test_what_is_kept_when_a_program_stops_waits_for_whoever_stops_it():
    net = nn.Linear(4, 3)
    x, y = leafgrad.randn(8, 4), leafgrad.randint(0, 3, (8,))

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        with leafgrad.no_grad():
            net.bias.add_(loss)
        return loss

    run = leafgrad.compile(step, executor="cuda-emulated")
    for _ in range(3):
        run(x, y)
    before = net.bias.detach().clone()
    with pytest.raises(IndexError):
        run(x, y + 3)
    assert leafgrad.equal(net.bias, before)
