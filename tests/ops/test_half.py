"""float16: sums are taken in float32 and rounded once, as PyTorch takes them on the CPU; compiled as in eager."""

import math

import pytest

import leafgrad as lg
from leafgrad.nn import functional as F

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


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.cumsum(0)[-1:],
        lambda x, i: x.flip(0).cumsum(0)[-1:],
        lambda x, i: lg.zeros_like(x[:1]).scatter_add(0, i[:, None], x),
        lambda x, i: lg.zeros_like(x[:1]).index_add(0, i, x),
        lambda x, i: lg.zeros_like(x[:1]).index_put((i,), x, accumulate=True),
        lambda x, i: lg.zeros_like(x[:1]).scatter_reduce(0, i[:, None], x, "sum"),
        lambda x, i: F.embedding_bag(i[None], x[:1], mode="sum"),
        lambda x, i: F.embedding_bag(i[None], x[:1], mode="sum", per_sample_weights=x.T),
    ],
)
def test_sums_along_a_dimension_and_at_indices(function, executor):
    found = run(function, executor, ones(MANY, 1), lg.zeros(MANY, dtype=lg.int64))
    assert found.dtype is lg.float16
    assert found.item() == MANY


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "function",
    [
        lambda w, i: w.index_select(0, i),
        lambda w, i: w[i],
        lambda w, i: w.gather(0, i[:, None]),
        lambda w, i: F.embedding(i, w),
    ],
)
def test_the_gradient_of_what_was_read_at_indices(function, executor):
    index = lg.zeros(MANY, dtype=lg.int64)
    assert run(gradient(lambda w: function(w, index)), executor, ones(2, 1)).tolist() == [[MANY], [0]]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_few_rows_are_added_in_float32(executor):
    rows, index = lg.tensor([[2048.0], [1.0], [1.0]], dtype=lg.float16), lg.zeros(3, dtype=lg.int64)
    found = run(lambda v, i: lg.zeros_like(v[:1]).index_add(0, i, v), executor, rows, index)
    assert found.item() == 2050


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_gradients_of_running_sums_and_products(executor):
    x = ones(MANY)
    assert run(gradient(lambda x: x.cumsum(0)), executor, x)[:2].tolist() == [MANY, MANY]
    assert run(gradient(lambda x: x.cumprod(0)), executor, x)[:2].tolist() == [MANY, MANY]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.cumprod(0)[-1],
        lambda x: lg.ones_like(x[:1]).scatter_reduce(0, lg.zeros_like(x, dtype=lg.int64), x, "prod")[0],
    ],
)
def test_products_are_rounded_once(function, executor):
    x = lg.full((1000,), 1 + 2**-10, dtype=lg.float16)
    assert run(function, executor, x).item() == pytest.approx((1 + 2**-10) ** 1000, abs=2**-10)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_logcumsumexp(executor):
    x = lg.zeros(MANY, dtype=lg.float16)
    assert run(lambda x: x.logcumsumexp(0), executor, x)[-1].item() == pytest.approx(math.log(MANY), abs=2**-8)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_transposes_of_windows(executor):
    largest = gradient(lambda x: F.max_pool1d(F.pad(x, (2999, 2999)), 3000, 1))
    assert run(largest, executor, ones(1, 1, 1)).item() == 3000
    columns = lg.tensor([2048.0, 1.0, 1.0], dtype=lg.float16).reshape(1, 1, 3).expand(1, 3, 3)
    assert run(lambda c: F.fold(c, (1, 5), (1, 3)), executor, columns)[0, 0, 0].tolist() == [2048, 2048, 2050, 2, 1]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_gradient_of_a_mean_of_more_than_float16_counts(executor):
    found = run(gradient(lambda x: x.mean() * 1024), executor, ones(100000))
    assert found[0].item() == lg.tensor(1024 / 100000).half().item()


# ---- beside numbers -------------------------------------------------------------------------------------------------

NUMBERS = [1e5, 0.1, 1e-8, -3.7, 70000, 2.0, 65504.0, math.inf, True]
OPERATIONS = {
    "product": lambda x, c: x * c,
    "reflected product": lambda x, c: c * x,
    "quotient": lambda x, c: x / c,
    "reflected quotient": lambda x, c: c / x,
    "rounded down": lambda x, c: lg.div(x, c, rounding_mode="floor"),
    "rounded to 0": lambda x, c: lg.div(x, c, rounding_mode="trunc"),
    "floor division": lambda x, c: x // c,
}


def same(found, want):
    assert found.dtype is want.dtype is lg.float16
    assert found.numpy().tobytes() == want.numpy().tobytes()


def halves():
    """Numbers of each size, and those at both ends."""
    x = 2.0 ** lg.linspace(-24, 15.9, 500)
    return lg.cat([x, -x]).to(lg.float16)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("number", NUMBERS, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_number_beside_float16_is_taken_in_float32(operation, number, executor):
    x = halves()
    same(run(lambda x: operation(x, number), executor, x), operation(x.float(), number).to(lg.float16))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("number", [65536.0, 0.1, 70000])
def test_so_is_a_second_argument_without_dimensions(number, executor):
    x, y = halves(), lg.tensor(number)
    for name in ("product", "quotient", "rounded to 0"):
        want = OPERATIONS[name](x.float(), y.float()).to(lg.float16)
        same(run(OPERATIONS[name], executor, x, y), want)
    assert (y.half() * lg.tensor(65536.0)).dtype is lg.float32


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_gradient_beside_a_number(executor):
    x = lg.tensor([0.5, 0.25], dtype=lg.float16)
    pulled = gradient(lambda x: (x * 1e5) * 0.3e-5)
    want = (lg.tensor(0.3e-5).half().float() * 1e5).half().item()  # rounded by either op
    assert run(pulled, executor, x).tolist() == [want] * 2
    scale = lg.tensor(65536.0, requires_grad=True)
    ((x * scale) / 65536.0).sum().backward()
    assert scale.grad.dtype is lg.float32
    assert scale.grad.item() == pytest.approx(0.75 / 65536)


def test_what_is_recorded_is_shown_as_one_node():
    x = ones(2, requires_grad=True)
    node = (x * 0.1).grad_fn
    assert type(node).__name__ == "MulBackward0"
    assert len(node.next_functions) == 2
    assert node.next_functions[0][0] is (x * 2.0).grad_fn.next_functions[0][0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("number", [1e5, 0.1, 2.0])
def test_in_place(number, executor):
    def function(x):
        y = x.clone()
        y *= number
        z = x.clone().div_(number)
        return y, z

    x = halves()
    for found, want in zip(run(function, executor, x), (x.float() * number, x.float() / number), strict=True):
        same(found, want.to(lg.float16))


def test_a_number_that_a_recording_follows():
    program = lg.compile(lambda x, c: x * c)
    x = halves()
    for c in (0.1, 2.0, 1e5, 0.3, 7.0):
        same(program(x, c), (x.float() * c).to(lg.float16))


def test_in_a_batch():
    x, y = halves().reshape(10, 100), lg.linspace(0.1, 1e5, 10)
    same(lg.vmap(lambda x: x * 0.1)(x), (x.float() * 0.1).half())
    same(lg.vmap(lambda x, y: x * y)(x, y), (x.float() * y[:, None]).half())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x**1e5,
        lambda x: x.clone().pow_(-70000),
        lambda x: x.clamp(max=1e5),
        lambda x: x.clamp_min(-70000),
        lambda x: lg.clip(x, -1e5, 0.7),
    ],
)
def test_numbers_beyond_all_of_float16(function, executor):
    x = lg.tensor([0.5, 3.0], dtype=lg.float16)
    with pytest.raises(RuntimeError, match=r"cannot be converted to type leafgrad\.float16 without overflow"):
        run(function, executor, x)
    assert run(lambda x: x.clamp(0.7, math.inf) ** 2.0, executor, x).tolist() == [0.490234375, 9]
    assert (x.float() ** 1e5).tolist() == [0, math.inf]
    assert (1e5**x).dtype is lg.float16
