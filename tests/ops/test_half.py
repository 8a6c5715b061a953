"""float16: sums are taken in float32 and rounded once, as PyTorch takes them on the CPU; compiled as in eager."""

import pytest

import leafgrad as lg

EXECUTORS = [None, "numpy", "native"]
MANY = 5000  # as many ones as float16 cannot add up: from 2048 on, one more is none


def run(function, executor, *args):
    """What a function gives, in eager mode or compiled."""
    if executor is None:
        return function(*args)
    if executor == "native":
        pytest.importorskip("leafgrad_native")
    return lg.compile(function, executor=executor)(*args)


def ones(*shape, **options):
    return lg.ones(*shape, dtype=lg.float16, **options)


def gradient(function, *shape):
    """A function of a tensor that gives the gradient of what another one makes of it, of which all is added up."""

    def pulled(x):
        x = x.detach().requires_grad_()
        return lg.autograd.grad(function(x).sum(dtype=lg.float32), x)[0]

    return pulled


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "spread",
    [
        lambda b: ones(MANY, 2) + b,
        lambda b: ones(50, 100, 2) * b,
        lambda b: b.expand(MANY, 2),
        lambda b: b.reshape(2, 1).expand(2, MANY),
        lambda b: b.repeat(MANY, 1),
        lambda b: lg.broadcast_to(b.reshape(1, 2, 1), (100, 2, 50)),
    ],
)
def test_the_gradient_of_what_was_broadcast(spread, executor):
    found = run(gradient(spread), executor, ones(2))
    assert found.dtype is lg.float16
    assert found.tolist() == [MANY, MANY]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sum_to_size(executor):
    assert run(lambda x: x.sum_to_size(1, 2), executor, ones(MANY, 2)).tolist() == [[MANY, MANY]]
