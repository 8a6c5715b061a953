"""Order, running extremes, reductions of any dtype and writes as kernels, against eager: with ties, nan, integers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import leafgrad
from leafgrad.lowering.forms import Form, Root, full
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram
from leafgrad_cuda.launches import OpRun
from leafgrad_cuda.patterns import written
from leafgrad_cuda.plan import CudaPlan

NAME = "cuda-emulated"
TESTS = "lowering.order_patterns"

RUNNING = [lambda x: (*x.cummax(1), *x.cummin(0), x.cumprod(1), x.cumsum(0), x.logcumsumexp(0))]
FLOATS = [
    lambda x: (x.argmax(1), x.argmin(1), x.argmax(), x.argmin(0), x.argmax(1, keepdim=True), x.max(0)[0], x.max()),
    lambda x: (x.argsort(1), x.argsort(0), x.argsort(1, descending=True), x.sort(0)[0], x.sort(descending=True)[1]),
    lambda x: (*x.topk(2, 1), *x.topk(2, 0, largest=False), *x.kthvalue(2, 1)),
    lambda x: (x.median(), x.nanmedian(), *x.median(1), *x.median(0), *x.nanmedian(1), x.min(), x.aminmax()[0]),
    lambda x: ((x > 0).any(), (x > 0).any(1), (x > 0).all(0), (x > 0.5).sum(), (x > 0).sum(1), x.count_nonzero()),
    lambda x: (x.norm(), x.norm(dim=1), x.norm(1, dim=0), x.norm(3, dim=1), x.norm(0, dim=1), x.nansum(0)),
    lambda x: (x % 0.7, x.fmod(0.7), x // 0.3, leafgrad.div(x, 0.3, rounding_mode="trunc"), x.round(), ~(x > 0)),
    lambda x: (x.roll(1, 0), x.roll((2, -1), (0, 1)), x.roll(3), x.roll(0, 1)),
]
WHOLE = [
    lambda x: (x % 3, x % 7, x.fmod(3), ~x, x.sum(), x.sum(0), x.amax(1), x.amin(0), x.prod(1), x.max(), x.min()),
    lambda x: (
        x.argmax(1),
        x.argsort(0),
        x.sort(1)[0],
        x.cummax(0)[0],
        x.any(1),
        x.all(0),
        x.cumsum(1),
        x.median(0)[0],
    ),
]

EACH = [
    lambda x, d: x.argsort(d), lambda x, d: x.sort(d, descending=True)[0], lambda x, d: x.topk(1, d)[0],
    lambda x, d: x.argmax(d, keepdim=True), lambda x, d: x.argmin(d), lambda x, d: x.argmax(), lambda x, d: x.median(),
    lambda x, d: x.median(d)[1], lambda x, d: x.nanmedian(d)[0], lambda x, d: x.cummax(d)[1],
    lambda x, d: x.cummin(d)[0], lambda x, d: x.cumsum(d), lambda x, d: x.any(d), lambda x, d: x.all(),
    lambda x, d: x.count_nonzero(d), lambda x, d: x.sum(d, keepdim=True), lambda x, d: x.sum(), lambda x, d: x.amax(d),
    lambda x, d: x.min(), lambda x, d: x.prod(d), lambda x, d: x.norm(dim=d), lambda x, d: x.norm(3), lambda x, d: ~x,
    lambda x, d: x.nansum(d), lambda x, d: x % 3, lambda x, d: x.fmod(-2), lambda x, d: x.roll(2, d),
    lambda x, d: x.tril(),
]  # fmt: skip
TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "float16": 4e-3}


def compare(function, *args, rtol=1e-12):
    """A function as kernels gives what eager gives; returns its plan."""
    run = leafgrad.compile(function, executor=NAME)
    with np.errstate(all="ignore"):
        run(*args)
        want, given = function(*args), run(*args)
    for k, (g, w) in enumerate(zip(given, want, strict=True)):
        got, expected = g.detach().numpy(), w.detach().numpy()
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), k
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol, err_msg=str(k))
    return CudaProgram(run.graph, Emulated(("forward",))).plan


def foreign(plan):
    return [part.equation.name for part in plan.parts if isinstance(part, OpRun)]


def numbers(kind):
    x = np.random.default_rng(3).normal(size=(70, 5))
    if kind != "apart":
        x = np.round(x)
    if kind == "nan":
        x[3, 2] = x[5] = np.nan
        x[7, 0], x[8, 1] = np.inf, -np.inf
    return x


@pytest.mark.parametrize("kind", ["apart", "ties", "nan"])
def test_floats(kind):
    x = leafgrad.tensor(numbers(kind))
    assert not foreign(compare(lambda x: tuple(y for f in [*FLOATS, *RUNNING] for y in f(x)), x))


@pytest.mark.parametrize("dtype", [leafgrad.int64, leafgrad.int32, leafgrad.int8, leafgrad.uint8])
def test_integers(dtype):
    x = leafgrad.tensor(np.random.default_rng(3).integers(-9, 9, size=(70, 4)))
    x = (x.abs() if dtype == leafgrad.uint8 else x).to(dtype)
    assert not foreign(compare(lambda x: tuple(y for f in WHOLE for y in f(x)), x))


def drawn(random):
    """Calls that eager takes, of tensors of random shapes and dtypes with equal elements, nan and infinities."""
    found = []
    while len(found) < 12:
        shape = random.choice([1, 2, 3, 64, 65, 130, 300], size=random.integers(1, 3))
        x = np.round(random.normal(size=shape) * 3, random.integers(0, 3))
        dtype = str(random.choice([*TOLERANCE, "int64", "int32", "int8", "bool"]))
        if dtype in TOLERANCE and random.random() < 0.3:
            x.flat[random.integers(0, x.size, 2)] = random.choice([np.nan, np.inf, -np.inf], 2)
        call, d = EACH[random.integers(len(EACH))], int(random.integers(-x.ndim, x.ndim))
        given = leafgrad.tensor((x > 0 if dtype == "bool" else x.astype(dtype)).T)
        try:
            call(given, d)
        except (RuntimeError, TypeError, IndexError, NotImplementedError):
            continue
        found.append((call, d, given))
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 60))])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_calls(seed):
    calls = drawn(np.random.default_rng(seed))
    arguments = [x for _, _, x in calls]

    def function(*xs):
        return tuple(call(x.clone(), d) for (call, d, _), x in zip(calls, xs, strict=True))

    run = leafgrad.compile(function, executor=NAME)
    run(*arguments)
    for (_, d, x), g, w in zip(calls, run(*arguments), function(*arguments), strict=True):
        got, want = g.numpy(), w.numpy()
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        rtol = TOLERANCE.get(want.dtype.name, 0.0)
        scale = float(np.abs(want[np.isfinite(want)]).max(initial=1.0))
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale, err_msg=f"{d} of {x}")


def test_signs_of_rests_are_those_of_divisors():
    x = leafgrad.arange(-7, 8)
    assert not foreign(compare(lambda x: (x % 3, x % -3, x.fmod(3), x.fmod(-3), x * 1), x))


def test_gradients_of_second_order():
    x = leafgrad.tensor(numbers("apart"), requires_grad=True)

    def both(x):
        x = x.detach().requires_grad_()
        y = x.norm() + x.cumprod(1).sum() + x.logcumsumexp(0).square().sum() + x.sort(0)[0].prod(1).sum() + x.max()
        y = y + x.median(1)[0].square().sum() + (x.roll(1, 0) * x).sum() + x.std(1).sum()
        (first,) = leafgrad.autograd.grad(y, x, create_graph=True)
        return y, first.detach(), *leafgrad.autograd.grad(first.square().sum(), x)

    compare(both, x, rtol=1e-9)


def test_counts_of_a_batch_in_a_loop_are_integers():
    x = leafgrad.rand(5000, 2)
    plan = compare(lambda x: (x.sin().count_nonzero(0), (x.sin() > 0.5).sum(0), x.exp().nansum(0)), x, rtol=1e-5)
    assert any(p.segment for p in plan.launches)


def test_roots_of_sums_are_taken_of_all_rows():
    x = leafgrad.rand(300, 3)
    compare(lambda x: (x.tanh().norm(dim=0), x.tanh().norm(), (x.tanh() * 2).sum(1)), x, rtol=1e-5)


def test_long_lines_are_left_to_a_library():
    x = leafgrad.rand(3000, 2)
    plan = CudaPlan(
        leafgrad.trace(lambda x: (x.argsort(0), x.cumsum(0), x.argmax(), x.sum(), (x > 0).sum()), x), 99 << 10
    )
    assert foreign(plan) == ["argsort", "cumsum", "argmax"]


def test_views_are_written_and_triangles_cut():
    x, y = leafgrad.tensor(numbers("apart")), leafgrad.tensor(numbers("ties"), requires_grad=True)
    t = leafgrad.tensor(np.random.default_rng(4).integers(-9, 9, size=(6, 5)))

    def writes(x, y, t):
        a, b, c, k = x * 2, x + 1, x.clone(), t * 2
        a[:, 0], a[3:5, 1:3], b.T[2], k[0] = y[:, 1], 7.0, y[:, 0].detach() * 2, t[1]
        b[::2].mul_(3)
        c.diagonal().fill_(5.0)
        c[1:7, ::2] += 1
        c[-1] = c[0]
        return a, b, c, k, t.tril(), t.triu(1), x.tril(-1), (x > 0).triu(), x.reshape(14, 5, 5).tril(1)

    assert not foreign(compare(writes, x, y, t))

    def gradients(y):
        y = y.detach().requires_grad_()
        a = y * 2
        a[:, 0] = y[:, 1].sin()
        a[2:9].mul_(y[0])
        (first,) = leafgrad.autograd.grad(
            (a * a).sum() + y.reshape(14, 5, 5).triu().square().sum(), y, create_graph=True
        )
        return first.detach(), *leafgrad.autograd.grad(first.sin().sum(), y)

    assert not foreign(compare(gradients, y, rtol=1e-9))


def test_only_views_with_each_element_once_are_written():
    x, v = leafgrad.arange(9.0), leafgrad.arange(8.0).reshape(4, 2)

    def windows(x, v):
        a = x * 1
        a.unfold(0, 3, 2)[:, :2] = v
        return a, a * 2

    assert not foreign(compare(windows, x, v))
    whole = full(Root((9,), "float32"))
    assert written(lambda memory: as_strided(memory, (4, 2), (1, 1))).place(whole) is None
    assert written(lambda memory: memory[::2].repeat(2)).place(whole) is None
    assert written(lambda memory: memory[::-2]).place(whole) == Form(whole.root, (5,), (-2,), 8)


def test_nan_to_num():
    x = leafgrad.tensor(numbers("nan"))
    plan = compare(lambda x: (x.nan_to_num(), x.nan_to_num(1.0, 2.0, 3.0), x.float().nan_to_num(posinf=9.0), x * 1), x)
    assert not foreign(plan)
