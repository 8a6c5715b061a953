"""Convolutions, pooling and running sums as C: in loops over a batch and on whole arrays, beside eager."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.lowering.kernels import Convolve, Slide
from leafgrad.lowering.window_patterns import seen
from leafgrad.ops import convolution, cumulative, windows
from leafgrad.ops.geometry import window_count
from leafgrad.ops.windows import Windows
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

ROWS = [3, 130]  # whole arrays, and a loop over chunks with a rest


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """The executor's own check runs each time, and must refuse nothing."""
    monkeypatch.setenv("LEAFGRAD_NATIVE_CHECK", "1")


def over(*sizes):
    """Windows of (length, kernel, stride, padding, dilation) in each dimension."""
    length, kernel, stride, padding, dilation = zip(*sizes, strict=True)
    size = tuple(window_count(n, k, s, 2 * p, d) for n, k, s, p, d in sizes)
    return Windows(length, kernel, stride, padding, dilation, size)


def numbers(rng, shape, dtype=leafgrad.float64, grad=False):
    return leafgrad.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=grad)


def check(step, *given, exact=False):
    """Run twice as C, compare with eager, see that NumPy runs nothing: the kernels, and whether they are in loops."""
    c = leafgrad.compile(step, executor="native")
    want = [t.detach().numpy().copy() for t in step(*given)]
    c(*given)
    for _ in range(2):
        for ours, right in zip((t.detach().numpy() for t in c(*given)), want, strict=True):
            assert ours.dtype == right.dtype
            if exact:
                np.testing.assert_array_equal(ours, right)
            else:
                eps = float(np.finfo(right.dtype).eps)
                np.testing.assert_allclose(ours, right, rtol=0, atol=1e3 * eps * max(1, np.abs(right).max()))
    assert "NumPy:" not in c.explain()
    assert "refused" not in c.explain()
    segments = c._calls.runner().program.plan.segments
    return [(k.maker.name, s.loop is not None) for s in segments for k in s.kernels if isinstance(k, (Convolve, Slide))]


# ---- convolutions ---------------------------------------------------------------------------------------------------


def convolutions(rng, w, rows, inputs, outputs, groups, dtype=leafgrad.float64, turned=False):
    """A function of all three ops, and its arguments."""
    x = numbers(rng, (rows, inputs * groups, *w.length), dtype)
    y = numbers(rng, (rows, outputs * groups, *w.size), dtype)
    weight = numbers(rng, (outputs * groups, inputs, *w.kernel), dtype)
    bias, other = numbers(rng, (outputs * groups,), dtype), numbers(rng, (inputs * groups,), dtype)

    def step(x, y, weight, bias, other):
        if turned:  # strides that go backwards, and in another order
            x, y, weight = x.flip(-1), y.flip(1), weight.flip(0).flip(-1)
        return (
            convolution.convolution(x, weight, bias, windows=w, groups=groups),
            convolution.convolution(x, weight, windows=w, groups=groups),
            convolution.convolution_input(y, weight, other, windows=w, groups=groups),
            convolution.convolution_weight(x, y, windows=w, groups=groups),
        )

    return step, (x, y, weight, bias, other)


SHAPES = {
    "line": over((11, 3, 1, 1, 1)),
    "plane": over((8, 3, 1, 1, 1), (8, 3, 1, 1, 1)),
    "solid": over((4, 2, 1, 0, 1), (3, 3, 2, 1, 1), (5, 2, 1, 1, 2)),
    "one element": over((1, 1, 1, 0, 1), (1, 1, 1, 0, 1)),
    "stride above kernel": over((9, 2, 4, 0, 1), (10, 1, 3, 0, 1)),
    "padding above kernel": over((3, 2, 1, 4, 1), (2, 1, 2, 3, 1)),
    "stride and dilation": over((12, 3, 4, 2, 2), (11, 3, 2, 3, 3)),
    "long rows": over((3, 3, 1, 1, 1), (70, 3, 1, 1, 1)),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_convolutions(shape, rows):
    step, given = convolutions(np.random.default_rng(0), SHAPES[shape], rows, 3, 7, 1, leafgrad.float32)
    found = check(step, *given)
    names = ["convolution", "convolution", "convolution_input", "convolution_weight"]
    assert sorted(found) == [(name, rows == ROWS[1]) for name in names]


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("inputs", "outputs", "groups"), [(1, 1, 5), (2, 3, 2), (9, 13, 1)])
def test_groups_and_strides(inputs, outputs, groups, rows):
    w = SHAPES["stride and dilation"]
    step, given = convolutions(np.random.default_rng(1), w, rows, inputs, outputs, groups, turned=True)
    check(step, *given)


def random_windows(rng, largest_padding=5):
    """Windows of which there is at least one."""
    while True:
        count = int(rng.integers(1, 4))
        highest = {1: 20, 2: 9, 3: 6}[count]
        sizes = [rng.integers((1, 1, 1, 0, 1), (highest, 4, 5, largest_padding, 4)).tolist() for _ in range(count)]
        w = over(*sizes)
        if min(w.size) > 0:
            return w


def random_convolutions(seed):
    rng = np.random.default_rng(seed)
    steps, given = [], []
    for _ in range(6):
        w, rows = random_windows(rng), int(rng.choice([1, 2, 5, 17, 64, 130]))
        inputs, outputs, groups = int(rng.integers(1, 9)), int(rng.integers(1, 10)), int(rng.choice([1, 1, 2, 3]))
        dtype = leafgrad.float64 if rng.random() < 0.5 else leafgrad.float32
        step, some = convolutions(rng, w, rows, inputs, outputs, groups, dtype, rng.random() < 0.3)
        steps.append(step)
        given += some
    check(lambda *all_: tuple(t for k, s in enumerate(steps) for t in s(*all_[5 * k : 5 * k + 5])), *given)


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", range(2))
def test_random_convolutions(seed):
    random_convolutions(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 60))
def test_many_random_convolutions(seed):
    random_convolutions(seed)


@pytest.mark.parametrize("rows", ROWS)
def test_what_is_not_finite_stays_where_it_is(rows):
    """Rows end in memory that others use; nothing of it may reach a result."""
    rng = np.random.default_rng(2)
    w = over((5, 3, 1, 0, 1), (7, 2, 2, 0, 1))
    step, (x, y, *rest) = convolutions(rng, w, rows, 2, 3, 1)
    x[0, 0, 0, 0] = x[1, 1, 4, 6] = float("nan")
    y[0, 0, 0, 0] = float("inf")
    c = leafgrad.compile(step, executor="native")
    c(x, y, *rest)
    for ours, right in zip(c(x, y, *rest), step(x, y, *rest), strict=True):
        np.testing.assert_allclose(ours.numpy(), right.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("rows", ROWS)
def test_weights_that_are_not_finite_meet_no_zeros_around_an_image(rows):
    rng = np.random.default_rng(7)
    w = over((5, 3, 1, 1, 1), (6, 3, 2, 1, 1))
    y, weight = numbers(rng, (rows, 3, *w.size)), numbers(rng, (3, 2, 3, 3))
    c = leafgrad.compile(lambda y, v: convolution.convolution_input(y, v, windows=w, groups=1), executor="native")
    for number in (1.0, float("inf"), float("nan"), 2.0):
        weight[1, 0, 0, 2] = number
        c(y, weight)
        want = convolution.convolution_input(y, weight, windows=w, groups=1).numpy()
        np.testing.assert_allclose(c(y, weight).numpy(), want, rtol=1e-9, atol=1e-11)


def test_large_sums_over_windows_are_left_to_blas():
    rng = np.random.default_rng(3)
    w = over((3, 3, 1, 1, 1))
    x, y = numbers(rng, (2, 80, 3)), numbers(rng, (2, 80, 3))
    c = leafgrad.compile(lambda x, y: convolution.convolution_weight(x, y, windows=w, groups=1), executor="native")
    for _ in range(2):
        c(x, y)
    assert "NumPy: convolution_weight" in c.explain()


# ---- pooling and windows --------------------------------------------------------------------------------------------


def with_ties(rng, shape, dtype):
    """Many equal numbers, nan and infinities."""
    values = np.round(rng.normal(size=shape) * 2) / 2
    for number, share in ((np.nan, 0.05), (np.inf, 0.05), (-np.inf, 0.3)):
        values[rng.random(shape) < share] = number
    return leafgrad.tensor(values, dtype=dtype)


def pooling(rng, w, lead, dtype, turned=False):
    x, y = with_ties(rng, (*lead, *w.length), dtype), numbers(rng, (*lead, *w.size), dtype)
    columns = numbers(rng, (*lead, *w.kernel, *w.size), dtype)

    def step(x, y, columns):
        if turned:
            x, y, columns = x.flip(-1), y.flip(-1), columns.flip(-2)
        found = (windows.unfold(x, windows=w), windows.fold(columns, windows=w))
        if not all(map(seen, *w)):
            return found
        at = windows.window_argmax(x, windows=w)
        moved = windows.window_pick(x, at, windows=w), windows.window_place(y, at, windows=w)
        return (*found, windows.window_max(x, windows=w), at, *moved)

    return step, (x, y, columns)


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shape", ["line", "plane", "solid", "stride above kernel", "one element"])
def test_pooling(shape, rows):
    step, given = pooling(np.random.default_rng(4), SHAPES[shape], (rows, 2), leafgrad.float32)
    names = ["fold", "unfold", "window_argmax", "window_max"]
    assert sorted(check(step, *given, exact=True)) == [(name, rows == ROWS[1]) for name in names]


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(3))
def test_random_pooling(seed):
    rng = np.random.default_rng(seed)
    steps, given = [], []
    for _ in range(8):
        lead = [(1,), (2, 3), (130,), (64, 2)][rng.integers(4)]
        dtype = leafgrad.float64 if rng.random() < 0.5 else leafgrad.float32
        step, some = pooling(rng, random_windows(rng), lead, dtype, rng.random() < 0.4)
        steps.append(step)
        given += some
    check(lambda *all_: tuple(t for k, s in enumerate(steps) for t in s(*all_[3 * k : 3 * k + 3])), *given, exact=True)


def test_windows_of_padding_alone_and_integers_are_left_to_numpy():
    x = leafgrad.ones(3, 4)
    far, near = over((4, 1, 1, 2, 1)), over((4, 2, 2, 0, 1))

    def step(x):
        return windows.window_max(x, windows=far), windows.window_max(x.to(leafgrad.int64), windows=near)

    c = leafgrad.compile(step, executor="native")
    want = step(x)
    for _ in range(2):
        for ours, right in zip(c(x), want, strict=True):
            np.testing.assert_array_equal(ours.numpy(), right.numpy())
    assert c.explain().count("NumPy: window_max") == 2


@pytest.mark.parametrize("rows", ROWS)
def test_running_sums(rows):
    x = numbers(np.random.default_rng(5), (rows, 4, 3), leafgrad.float32)
    ways = [(dim, reverse) for dim in range(3) for reverse in (False, True)]
    check(lambda x: tuple(cumulative.cumsum(x, dim=dim, reverse=way) for dim, way in ways), x, exact=True)


# ---- derivatives and training ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("stride", "padding", "groups"), [(1, 1, 1), (2, 0, 2)])
def test_two_derivatives(stride, padding, groups, rows):
    rng = np.random.default_rng(6)
    x = numbers(rng, (rows, 2, 7, 6), grad=True)
    weight, bias = numbers(rng, (4, 2 // groups, 3, 2), grad=True), numbers(rng, (4,), grad=True)

    def step(x, weight, bias):
        out = nn.functional.conv2d(x, weight, bias, stride=stride, padding=padding, groups=groups)
        out = leafgrad.tanh(nn.functional.max_pool2d(out, 2, stride=1))
        inputs = (x, weight, bias)
        first = leafgrad.autograd.grad((out * out).sum(), inputs, create_graph=True)
        second = leafgrad.autograd.grad(sum((g * g).sum() for g in first), inputs)
        return out.detach(), *(g.detach() for g in first), *second

    names = {name for name, _ in check(step, x, weight, bias)}
    assert names >= {"convolution", "convolution_input", "convolution_weight", "window_argmax"}


@pytest.mark.parametrize("normalized", [False, True])
def test_a_network_learns_as_in_eager(normalized):
    def losses(compiled):
        leafgrad.manual_seed(0)
        layers = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        if normalized:
            layers.insert(1, nn.BatchNorm2d(4))
        model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(96, 10)).to(leafgrad.float64)
        optimizer = leafgrad.optim.Adam(model.parameters(), lr=1e-2)
        x, y = leafgrad.randn(64, 1, 8, 8, dtype=leafgrad.float64), leafgrad.randint(0, 10, (64,))

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run = leafgrad.compile(step, executor="native") if compiled else step
        found = [run(x, y).item() for _ in range(6)]
        assert not compiled or "NumPy:" not in run.explain()
        return found

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-9)
