"""Products by squares: each block makes one, from slices in shared memory, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad_cuda import tiles
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram
from leafgrad_cuda.plan import CudaPlan

pytestmark = pytest.mark.usefixtures("whole")
NEAR = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3}


@pytest.fixture
def whole(monkeypatch):
    """No loops over rows."""
    monkeypatch.setattr(CudaPlan, "chunked", lambda self, e: False)


def made(function, *arrays):
    """What a program of kernels makes of arrays, in three orders of threads and blocks, and how many are of squares."""
    tensors = [leafgrad.tensor(a) for a in arrays]
    program = CudaProgram(leafgrad.trace(function, *tensors), Emulated())
    (found,) = program([arrays[source.index] for source in program.graph.inputs.values()])
    squares = [launch for launch in program.plan.launches if launch.squares]
    np.testing.assert_allclose(
        found.astype("float64"),
        function(*tensors).numpy().astype("float64"),
        atol=NEAR[str(found.dtype)] * np.abs(found.astype("float64")).max(),
    )
    return squares


def numbers(*shape, dtype="float32"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (65, 130, 150), (33, 200, 170), (300, 40, 97)])
def test_sides_that_squares_do_not_divide(m, n, k, dtype):
    (launch,) = made(leafgrad.matmul, numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype))
    assert launch.shared == launch.squares[0].tile.shared


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_transposed_operands_and_parts(left, right):
    x, y = numbers(*((90, 150) if left else (150, 90))), numbers(*((200, 91) if right else (91, 200)))

    def function(x, y):
        x, y = x.t() if left else x, y.t() if right else y
        return x[:, 1:] @ y[2:, ::2]

    assert made(function, x, y)


def test_stacked_matrices_and_one_that_they_share():
    assert made(leafgrad.matmul, numbers(3, 2, 70, 40), numbers(3, 2, 40, 66))
    assert made(leafgrad.matmul, numbers(4, 80, 64), numbers(64, 72))
    assert made(lambda x: x @ x.mT, numbers(2, 96, 64))


def test_long_sums_are_cut_into_parts_that_are_added_in_order():
    (launch,) = made(leafgrad.matmul, numbers(64, 3000), numbers(3000, 70))
    (product,) = launch.squares
    parts = -(-3000 // product.tile.terms)
    assert product.count == 12 * parts
    assert 1 < parts <= tiles.PROCESSORS // 12
    assert product.tile.terms % product.tile.depth == 0


def test_products_that_do_not_need_each_other_are_of_one_launch():
    x, v, w = numbers(90, 64), numbers(64, 200), numbers(64, 300)
    (launch,) = made(lambda x, v, w: (x @ v).sum() + (x @ w).sum() + x.sum(), x, v, w)
    assert [task.count for task in launch.squares] == [21, 30]
    assert launch.sections[0].blocks == 51


def test_what_is_beyond_the_sum_counts_nothing():
    """Threads put zeros there: nan and infinity of other parts and lines stay where they are."""
    x, y = numbers(64, 1000), numbers(1000, 64)
    x[3, 999], y[0, 5] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        want = x @ y
    tensors = leafgrad.tensor(x), leafgrad.tensor(y)
    program = CudaProgram(leafgrad.trace(leafgrad.matmul, *tensors), Emulated())
    (found,) = program([x, y])
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))


def test_small_products_are_not_by_squares():
    assert not made(leafgrad.matmul, numbers(64, 20), numbers(20, 64))
    assert not made(leafgrad.matmul, numbers(4000, 64), numbers(64, 10))


@pytest.mark.parametrize("shape", [(64, 40, 700), (600, 600, 40), (4, 33, 66, 200)])
def test_what_needs_an_element_of_a_square_follows_in_its_thread(shape):
    *lead, m, n, k = shape
    x, y, c = numbers(*lead, m, k, dtype="float64"), numbers(*lead, k, n, dtype="float64"), numbers(n, dtype="float64")
    (launch, *_) = made(lambda x, y, c: (x @ y + c).relu().mT * 2, x, y, c)
    (group,) = [g for phase in launch.phases for g in phase if g.tasks[0].tile]
    assert (len(group.tasks) > 1) == (tiles.Shape("float64", tuple(lead), m, n, k).parts == 1)


def test_large_products_have_tall_squares():
    x, y, c = numbers(1100, 35), numbers(35, 1000), numbers(1000)
    (launch,) = made(lambda x, y, c: (x @ y + c).relu(), x, y, c)
    (product,) = launch.squares
    assert (product.count, product.tile.elements) == (9 * 16, tiles.TALL.high * tiles.TALL.wide)


def test_two_products_that_one_nest_needs_are_made_together():
    (launch,) = made(lambda x: (x @ x.t() + x.t() @ x).tanh(), numbers(128, 128, dtype="float64"))
    assert [len(g.tasks) for phase in launch.phases for g in phase] == [1, 1]


def convolved(transposed, w, **options):
    conv = leafgrad.nn.functional.conv_transpose2d if transposed else leafgrad.nn.functional.conv2d
    return lambda x, w, b: conv(x, w, b, **options)


@pytest.mark.every(2)  # all pairs of values
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2, "padding": 1, "groups": 2}, {"dilation": 2}])
def test_convolutions_are_squares_of_what_is_gathered(options, transposed, dtype):
    groups = options.get("groups", 1)
    w = numbers(36, 34 // groups if not transposed else 40 // groups, 3, 3, dtype=dtype)
    x, b = numbers(24, 36 if transposed else 34, 9, 8, dtype=dtype), numbers(40 if transposed else 36, dtype=dtype)
    assert made(convolved(transposed, w, **options), x, w, b)


def test_gradients_of_convolutions_are_squares():
    def gradients(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = leafgrad.nn.functional.conv2d(x, w, padding=1)
        return leafgrad.cat([g.reshape(-1) for g in leafgrad.autograd.grad((y * y).sum(), [x, w])])

    launches = made(gradients, numbers(16, 20, 8, 8, dtype="float64"), numbers(18, 20, 3, 3, dtype="float64"))
    found = [e.name for launch in launches for task in launch.squares for e in task.equations]
    assert sorted(found) == ["convolution", "convolution_input", "convolution_weight"]


def test_infinite_weights_meet_nothing_outside_of_a_transposed_convolution():
    x, w = np.abs(numbers(9, 34, 9, 8)) + 1, numbers(34, 36, 3, 3)
    w[0, 0] = np.inf
    tensors = leafgrad.tensor(x), leafgrad.tensor(w), leafgrad.zeros(36)
    function = convolved(True, w, padding=1)
    program = CudaProgram(leafgrad.trace(function, *tensors), Emulated())
    assert any(launch.squares for launch in program.plan.launches)
    given = [x, w, tensors[2].numpy()]
    (found,) = program([given[source.index] for source in program.graph.inputs.values()])
    want = function(*tensors).numpy()
    assert np.isposinf(want[:, 0]).all()
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(want))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
