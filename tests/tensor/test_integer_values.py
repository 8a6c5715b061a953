"""Integers and bools: results, dtypes, and errors where the processor would wrap around in silence."""

from __future__ import annotations

import operator

import pytest

import leafgrad
from leafgrad.nn import functional as F

UINT8, INT8 = leafgrad.uint8, leafgrad.int8

DIVISIONS = [
    operator.floordiv,
    operator.mod,
    leafgrad.fmod,
    leafgrad.remainder,
    lambda x, y: leafgrad.div(x, y, rounding_mode="floor"),
    lambda x, y: leafgrad.div(x, y, rounding_mode="trunc"),
]


@pytest.mark.parametrize("divide", DIVISIONS)
@pytest.mark.parametrize("dtype", [leafgrad.int64, leafgrad.int32, UINT8])
def test_a_tensor_that_holds_0_divides_no_integers(divide, dtype):
    x, y = leafgrad.tensor([1, 7], dtype=dtype), leafgrad.tensor([0, 2], dtype=dtype)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(x, y)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(7, y)
    divide(x, y + 1)
    divide(x.float(), y.float())


@pytest.mark.parametrize("divide", DIVISIONS)
def test_bools_are_not_divided(divide):
    x = leafgrad.tensor([True])
    with pytest.raises(NotImplementedError, match="got bools"):
        divide(x, x)


def test_the_square_of_a_bool_is_an_integer(device):
    x = leafgrad.tensor([True, False], device=device).square()
    assert (x.dtype, x.tolist()) == (leafgrad.int64, [1, 0])


def test_addcmul_and_addcdiv_compute_in_the_dtype_in_which_all_meet(device):
    one, two, three = (leafgrad.tensor([n], device=device) for n in (1, 2, 3))
    narrow = leafgrad.addcmul(one.to(UINT8), two.bool(), three.bool(), value=2)
    assert (narrow.dtype, narrow.item()) == (UINT8, 3)
    wide = leafgrad.addcdiv(one.double(), two.half(), three.half(), value=2)
    assert (wide.dtype, wide.item()) == (leafgrad.float64, pytest.approx(1 + 4 / 3, rel=1e-15))
    with pytest.raises(RuntimeError, match="value must not be a floating"):
        leafgrad.addcmul(one, two, three, value=0.5)
    with pytest.raises(NotImplementedError, match="got bools"):
        leafgrad.addcmul(one.bool(), two.bool(), three.bool())


@pytest.mark.parametrize("dtype", [leafgrad.int64, leafgrad.int32, INT8])
def test_hardtanh_of_integers(dtype):
    x = leafgrad.tensor([-5, 0, 9], dtype=dtype)
    cut = F.hardtanh(x)
    assert (cut.dtype, cut.tolist()) == (dtype, [-1, 0, 1])
    assert F.relu6(x).tolist() == [0, 0, 6]
    assert F.hardtanh(x, -0.5, 2.7).tolist() == [0, 0, 2]
    assert F.hardtanh_(x) is x
    assert x.tolist() == [-1, 0, 1]


def test_numbers_too_large_for_a_dtype_are_errors():
    x = leafgrad.tensor([-128, 7], dtype=INT8)
    for call in (
        lambda: leafgrad.where(x > 0, x, 300),
        lambda: leafgrad.where(x > 0, -129, x),
        lambda: x.masked_fill(x > 0, 300),
        lambda: x.index_fill(0, leafgrad.tensor([0]), 128),
        lambda: x + 300,
    ):
        with pytest.raises(RuntimeError, match=r"without overflow|out of bounds"):
            call()
    assert leafgrad.where(x > 0, x, 127).tolist() == [127, 7]


def test_the_area_under_small_integers_does_not_wrap_around():
    y, x = leafgrad.tensor([200, 100, 255], dtype=UINT8), leafgrad.tensor([5, 3, 4], dtype=UINT8)
    assert leafgrad.trapz(y).item() == 327.5
    assert leafgrad.trapz(y, x).item() == -122.5
    assert leafgrad.cumulative_trapezoid(y).tolist() == [150, 327.5]


def test_a_number_with_decimals_is_in_no_tensor_of_integers():
    x = leafgrad.tensor([0, 1])
    assert leafgrad.isin(x, 0.5).tolist() == [False, False]
    assert leafgrad.isin(0.5, x).item() is False
    assert leafgrad.isin(x, 1.0).tolist() == [False, True]


def test_bools_to_the_power_of_bools_are_bools():
    x, y = leafgrad.tensor([True, True, False, False]), leafgrad.tensor([True, False, True, False])
    for power in (x**y, leafgrad.pow(x, y)):
        assert (power.dtype, power.tolist()) == (leafgrad.bool, [True, True, False, True])
    assert (x**True).tolist() == x.tolist()


def test_bools_are_close_as_0_and_1_are():
    x, y = leafgrad.tensor([True, False]), leafgrad.tensor([True, True])
    assert leafgrad.isclose(x, y).tolist() == [True, False]
    assert leafgrad.isclose(x, y, atol=1.0).tolist() == [True, True]
    assert not leafgrad.allclose(x, y)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [UINT8, INT8, leafgrad.int16, leafgrad.int32, leafgrad.int64])
def test_integers_are_close_by_their_difference_also_where_the_dtype_cannot_hold_it(dtype, compiled):
    ends = leafgrad.iinfo(dtype)
    numbers = [ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max]
    x = leafgrad.tensor(numbers, dtype=dtype)
    for rtol, atol in [(0.0, 0.0), (0.1, 0.0), (0.0, 3.0), (0.5, 0.0), (0.0, 200.0)]:
        close = leafgrad.compile(leafgrad.isclose) if compiled else leafgrad.isclose
        found = close(x[:, None], x, rtol=rtol, atol=atol)
        assert found.tolist() == [[abs(a - b) <= atol + rtol * abs(b) for b in numbers] for a in numbers]


INTEGERS = {
    "bilinear": (lambda i: F.bilinear(i, i, i.new_ones(1, 2, 2)), [9]),
    "addr": (lambda i: leafgrad.addr(i.new_zeros(2, 2), i, i, beta=3, alpha=2), [[2, 4], [4, 8]]),
    "index_add": (lambda i: leafgrad.index_add(i, 0, i.new_tensor([0]).long(), i[:1], alpha=-1), [0, 2]),
}


@pytest.mark.parametrize("dtype", [UINT8, INT8, leafgrad.int32])
@pytest.mark.parametrize("name", INTEGERS)
def test_results_of_integers_have_their_dtype(name, dtype):
    call, expected = INTEGERS[name]
    found = call(leafgrad.tensor([1, 2], dtype=dtype))
    assert (found.dtype, found.tolist()) == (dtype, expected)


def test_outer_products_of_bools_are_bools():
    x = leafgrad.tensor([True, False])
    for beta, alpha, expected in ((3, 2, [True, True]), (0, 2, [True, False]), (1, 0, [False, True])):
        found = leafgrad.addr(leafgrad.tensor([[False, True]] * 2), x, x, beta=beta, alpha=alpha)[0]
        assert (found.dtype, found.tolist()) == (leafgrad.bool, expected)


def test_a_factor_beyond_the_dtype_is_no_wrong_index():
    x = leafgrad.tensor([5], dtype=UINT8)
    with pytest.raises(RuntimeError, match=r"alpha: value cannot be converted to type leafgrad\.uint8 .*, got 300"):
        leafgrad.index_add(x, 0, leafgrad.tensor([0]), x, alpha=300)


def test_a_margin_makes_floats_of_integers():
    x, y = leafgrad.tensor([1, 2]), leafgrad.tensor([2, 1])
    for reduction, expected in (("none", [1, 0]), ("sum", 1), ("mean", 0.5)):
        loss = F.margin_ranking_loss(x, y, y.sign(), reduction=reduction)
        assert (loss.dtype, loss.tolist()) == (leafgrad.float32, expected)


@pytest.mark.parametrize("dtype", [leafgrad.int32, leafgrad.int64])
def test_common_multiples_are_not_negative(dtype):
    x, y = leafgrad.tensor([2, 6], dtype=dtype), leafgrad.tensor([leafgrad.iinfo(dtype).max, -4], dtype=dtype)
    assert leafgrad.lcm(x, y).tolist() == [2, 12]


def test_large_integers_that_differ_are_not_close_without_tolerances():
    x = leafgrad.tensor([2**62])
    leafgrad.testing.assert_close(x, x)
    with pytest.raises(AssertionError):
        leafgrad.testing.assert_close(x, x + 1)


def test_the_area_of_integers_over_floats_takes_their_dtype():
    y, x = leafgrad.tensor([100, 100], dtype=INT8), leafgrad.tensor([0.0, 1.0]).half()
    area = leafgrad.trapz(y, x)
    assert (area.dtype, area.item()) == (leafgrad.float16, 100)


def test_bools_scattered_and_added_stay_bools():
    x, at = leafgrad.tensor([True, True]), leafgrad.tensor([0, 0])
    v = leafgrad.tensor([True, False])
    assert x.scatter_reduce(0, at, v, "prod").tolist() == [False, True]
    assert x.index_add(0, at, v, alpha=2).dtype is leafgrad.bool


@pytest.mark.parametrize("zero", [0, leafgrad.tensor(0)], ids=["number", "tensor"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_nothing_may_be_divided_by_zero(name, zero):
    assert getattr(leafgrad, name)(leafgrad.arange(0), zero).tolist() == []
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(leafgrad, name)(leafgrad.arange(3), zero)
