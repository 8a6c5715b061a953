"""When results are the same but for rounding."""

import numpy as np
import pytest

import leafgrad
from leafgrad.compile.ir.rounding import Moved, bits_of, close, nudged, within

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_close_by_their_parts(dtype):
    a = np.array([1 + 2j, 300 - 1j, 0], dtype)
    eps = np.finfo(dtype).eps
    assert close(a * (1 + eps), a)
    assert not close(a + np.array([0, 1j, 0], dtype), a)
    assert not close(a.conj(), a)
    assert close(np.asfortranarray(a.reshape(3, 1)), a.reshape(3, 1))


def test_complex_numbers_that_are_not_finite():
    a = np.array([complex(INF, NAN), 1j, complex(NAN, 2)])
    assert close(np.array([complex(INF, INF), 1j, complex(3, NAN)]), a)
    assert not close(np.array([complex(INF, INF), NAN * 1j, complex(3, NAN)]), a)
    assert not close(np.array([1.0, 1j, complex(3, NAN)]), a)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32"])
def test_nudged_numbers_are_near(dtype):
    a = np.array([[1 + 2j, 300 - 1j], [0, 5j]]).astype(dtype) if dtype[0] == "c" else np.ones((2, 2), dtype)
    moved = nudged(a, 0)
    assert (moved.dtype, moved.shape) == (a.dtype, a.shape)
    assert close(moved, a)
    assert (moved != a).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
def test_equal_numbers_move_alike_and_those_that_were_given_stay(dtype):
    a = np.array([[0.3, 0.7], [0.7, 0.3]], dtype)
    moved = nudged(a, 3)
    assert moved[0, 0] == moved[1, 1] != a[0, 0]
    assert moved[0, 1] == moved[1, 0]
    assert (nudged(moved[:1], 3, [moved.ravel().view(moved.real.dtype)]) == moved[:1]).all()
    assert nudged(np.array(0.7, dtype), 3) == moved[0, 1]
    assert (nudged(a, 4) != moved).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_move_both_ways_and_those_of_about_one_size_together(dtype):
    a = np.random.default_rng(0).uniform(1, 2, 4000).astype(dtype)
    eps = np.finfo(dtype).eps
    for seed in range(8):
        moved = (nudged(a, seed) / a.astype("float64") - 1) / eps
        assert np.abs(moved).max() < 9
        assert moved.std() > 1
    together = [np.mean(nudged(a, seed) / a.astype("float64") - 1) / eps for seed in range(20)]
    assert np.std(together) > 1
    assert min(together) < 0 < max(together)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_of_other_numbers_few_seem_to_be_within(dtype):
    rng = np.random.default_rng(0)
    a, b = (bits_of(rng.uniform(low, low + 1, 300).astype(dtype)) for low in (1, 3))
    assert within(a, np.concatenate([b, a[::-1]])).all()
    assert within(a, b).mean() < 0.2
    assert not within(a, a[:0]).any()


def test_a_gradient_that_cancels_behind_a_maximum_is_explained():
    """Whose rule asks which elements are the maximum: moved apart, none would be, and 0 / 0 explains nothing."""

    def step(x):
        x = x.detach().requires_grad_()
        centered = x - x.mean(0)
        (centered.amax(1) ** 2).sum().backward()
        return x.grad.sum(0)

    run = leafgrad.compile(step, executor="numpy")
    x = leafgrad.randn(200, 5, dtype=leafgrad.float64)
    for _ in range(3):
        run(x)
    runner = run._calls.last.runner
    (right,), (value,) = runner.program([x.numpy()]), runner.graph.results
    moved = Moved(runner.graph, [x.numpy()])
    assert abs(right).max() < 1e-10
    assert moved.explain(value, right + 1e-15, right)
    assert not moved.explain(value, right + 1e-10, right)


def test_a_long_sum_of_equal_numbers_may_round_to_one_side():
    """Of 5003 equal numbers sums in two orders were 700 units apart, and nothing but that is left beside their mean."""

    def step(x):
        t = (x.T @ x)[None].expand(len(x), 3, 3).sum(1)
        return t - t.mean(0)

    rng = np.random.default_rng(0)
    x = leafgrad.from_numpy(rng.integers(0, 10, (5003, 3)) * rng.standard_normal((5003, 3)))
    compiled = leafgrad.compile(step, executor="native", closed=True)
    for _ in range(3):
        assert compiled(x).abs().max() <= 1e-9 * (x.T @ x).abs().max()
