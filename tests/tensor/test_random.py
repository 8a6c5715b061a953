"""Random tensors: distributions, generators and their states."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad.ops import random as random_ops
from leafgrad.tensor import random as random_module

TESTS = "ops.drawing tensor.writes"

MANY = 20_000

LOG_NORMAL = math.exp(0.125), math.exp(0.125) * math.sqrt(math.expm1(0.25))

# name, draw(generator, device), mean, standard deviation
DISTRIBUTIONS = [
    ("uniform", lambda g, d: leafgrad.rand(MANY, generator=g, device=d), 0.5, 12**-0.5),
    ("normal", lambda g, d: leafgrad.randn(MANY, generator=g, device=d), 0, 1),
    ("normal f64", lambda g, d: leafgrad.randn(MANY, generator=g, device=d, dtype=leafgrad.float64), 0, 1),
    ("normal f16", lambda g, d: leafgrad.randn(MANY, generator=g, device=d, dtype=leafgrad.float16), 0, 1),
    ("normal(3, 2)", lambda g, d: leafgrad.normal(3.0, 2.0, (MANY,), generator=g, device=d), 3, 2),
    ("normal(tensor)", lambda g, d: leafgrad.normal(leafgrad.full((MANY,), 3.0, device=d), 2, generator=g), 3, 2),
    ("integers", lambda g, d: leafgrad.randint(-2, 3, (MANY,), generator=g, device=d), 0, 2**0.5),
    ("permutation", lambda g, d: leafgrad.randperm(MANY, generator=g, device=d), (MANY - 1) / 2, MANY / 12**0.5),
    ("bernoulli", lambda g, d: leafgrad.bernoulli(leafgrad.full((MANY,), 0.3, device=d), generator=g), 0.3, 0.21**0.5),
    ("bernoulli_full", lambda g, d: leafgrad.zeros(MANY, device=d).bernoulli(0.3, generator=g), 0.3, 0.21**0.5),
    ("normal_", lambda g, d: leafgrad.zeros(MANY, device=d).normal_(1, 3, generator=g), 1, 3),
    ("uniform_", lambda g, d: leafgrad.zeros(MANY, device=d).uniform_(-1, 3, generator=g), 1, 4 / 12**0.5),
    ("exponential", lambda g, d: leafgrad.zeros(MANY, device=d).exponential_(2, generator=g), 0.5, 0.5),
    ("bernoulli_", lambda g, d: leafgrad.zeros(MANY, device=d).bernoulli_(0.3, generator=g), 0.3, 0.21**0.5),
    (
        "bernoulli_(tensor)",
        lambda g, d: leafgrad.zeros(MANY, device=d).bernoulli_(leafgrad.tensor(0.3, device=d), generator=g),
        0.3,
        0.21**0.5,
    ),
    ("log_normal_", lambda g, d: leafgrad.zeros(MANY, device=d).log_normal_(0, 0.5, generator=g), *LOG_NORMAL),
    ("geometric_", lambda g, d: leafgrad.zeros(MANY, device=d).geometric_(0.3, generator=g), 1 / 0.3, 0.7**0.5 / 0.3),
    (
        "cauchy_",
        lambda g, d: leafgrad.zeros(MANY, device=d).cauchy_(2, 3, generator=g).sub_(2).div_(3).atan_(),
        0,
        math.pi / 12**0.5,
    ),  # uniform angles
    ("random_", lambda g, d: leafgrad.zeros(MANY, device=d).random_(0, 10, generator=g), 4.5, (99 / 12) ** 0.5),
    (
        "multinomial",
        lambda g, d: leafgrad.multinomial(leafgrad.tensor([1.0, 0.0, 1.0], device=d), MANY, True, generator=g),
        1,
        1,
    ),
]


@pytest.mark.parametrize(("name", "draw", "mean", "std"), DISTRIBUTIONS, ids=[d[0] for d in DISTRIBUTIONS])
def test_moments_and_repetition(name, draw, mean, std, device):
    generator = leafgrad.Generator(device).manual_seed(11)
    t = draw(generator, device)
    assert t.device == device
    values = t.cpu().to(leafgrad.float64).numpy()
    assert abs(values.mean() - mean) < 5 * std / math.sqrt(MANY)
    assert abs(values.std() / std - 1) < 0.05
    assert draw(generator, device).tolist() != t.tolist()
    assert draw(generator.manual_seed(11), device).tolist() == t.tolist()


def test_ranges(device):
    assert set(leafgrad.randint(3, (200,), device=device).tolist()) == {0, 1, 2}
    assert sorted(leafgrad.randperm(50, device=device).tolist()) == list(range(50))
    u = leafgrad.rand(5000, dtype=leafgrad.float16, device=device).cpu().numpy()
    assert u.min() >= 0
    assert u.max() < 1
    assert leafgrad.randint(2, 3, (2, 2), dtype=leafgrad.float32, device=device).tolist() == [[2, 2], [2, 2]]
    assert leafgrad.zeros(100, dtype=leafgrad.uint8).random_().numpy().max() > 127
    assert leafgrad.rand_like(leafgrad.zeros(2, 3, dtype=leafgrad.float64, device=device)).dtype is leafgrad.float64
    assert leafgrad.randn_like(leafgrad.zeros(2, 3, device=device)).shape == (2, 3)
    assert leafgrad.randint_like(leafgrad.zeros(4, device=device), 1, 2).tolist() == [1, 1, 1, 1]
    assert leafgrad.randn(2, requires_grad=True).requires_grad


@pytest.mark.parametrize("dtype", [leafgrad.float16, leafgrad.bfloat16])
def test_halves_are_drawn_in_float32_and_rounded(dtype):
    g = leafgrad.Generator().manual_seed(0)
    x = leafgrad.empty(100_000, dtype=dtype)
    for low, high in ((2, 3), (-3, -2)):
        x.uniform_(low, high, generator=g)
        assert (x >= low).all()
        assert (x < high).all()
        assert abs(x.double().mean().item() - low - 0.5) < 0.02
    x.exponential_(generator=g)
    assert (x > 0).all()
    assert x.max() > 9
    for drawn in (x.cauchy_(generator=g), x.log_normal_(0, 4, generator=g)):
        assert drawn.unique().numel() > leafgrad.rand(100_000, dtype=dtype, generator=g).unique().numel()
    leafgrad.manual_seed(0)
    assert leafgrad.distributions.Exponential(leafgrad.ones(100_000, dtype=dtype)).sample().max() > 9
    assert leafgrad.nn.functional.gumbel_softmax(leafgrad.zeros(10_000, 10, dtype=dtype)).isfinite().all()
    leafgrad.manual_seed(1)
    want = x.exponential_().clone()
    leafgrad.manual_seed(1)
    assert leafgrad.equal(leafgrad.compile(leafgrad.Tensor.exponential_)(x), want)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_exponential_numbers_are_above_zero_also_where_zero_is_drawn(dtype):
    class Zero:
        def uniform(self, shape, dtype):
            return np.zeros(shape, dtype)

    drawn = random_ops.exponential.forward(np, generator=Zero(), shape=(2,), dtype=dtype, rate=1.0)
    assert drawn.dtype == dtype
    assert (drawn > 0).all()


def test_manual_seed_restarts_all_devices_also_those_not_used_yet(device):
    leafgrad.manual_seed(5)
    first = leafgrad.rand(3, device=device)
    leafgrad.manual_seed(5)
    assert leafgrad.rand(3, device=device).tolist() == first.tolist()
    assert leafgrad.initial_seed() == 5
    taken = leafgrad.seed()
    assert leafgrad.initial_seed() == taken
    assert leafgrad.rand(3, device=device).tolist() != first.tolist()


def test_states_are_restored():
    state = leafgrad.get_rng_state()
    assert (state.dtype, state.device.type) == (leafgrad.uint8, "cpu")
    first = leafgrad.randn(4)
    leafgrad.set_rng_state(state)
    assert leafgrad.randn(4).tolist() == first.tolist()
    generator, other = leafgrad.Generator().manual_seed(1), leafgrad.Generator()
    other.set_state(generator.get_state())
    assert leafgrad.rand(2, generator=other).tolist() == leafgrad.rand(2, generator=generator).tolist()
    assert other.initial_seed() == 1
    assert str(generator.device) == "cpu"
    assert generator.seed() == generator.initial_seed()
    assert "initial seed" in repr(generator)
    with pytest.raises(RuntimeError, match="generator state"):
        generator.set_state(leafgrad.zeros(3, dtype=leafgrad.uint8))


def test_a_fork_leaves_the_generators_as_they_were(device):
    leafgrad.manual_seed(3)
    expected = leafgrad.rand(2, device=device).tolist(), leafgrad.rand(2).tolist()
    leafgrad.manual_seed(3)
    first = leafgrad.rand(2, device=device).tolist()
    with leafgrad.random.fork_rng():
        leafgrad.manual_seed(7)
        leafgrad.rand(5, device=device)
        leafgrad.rand(5)
    assert (first, leafgrad.rand(2).tolist()) == expected
    with leafgrad.random.fork_rng(enabled=False):
        leafgrad.manual_seed(7)
    assert leafgrad.random.initial_seed() == 7
    with leafgrad.random.fork_rng(devices=[]):
        leafgrad.random.manual_seed(8)
    assert leafgrad.random.get_rng_state().tolist() == leafgrad.Generator().manual_seed(7).get_state().tolist()


def test_geometric_numbers_fit_integers_and_start_at_one():
    drawn = leafgrad.zeros(500, dtype=leafgrad.int64).geometric_(0.8)
    assert drawn.min().item() == 1
    assert drawn.dtype is leafgrad.int64


@pytest.mark.parametrize(
    ("draw", "error", "match"),
    [
        (lambda: leafgrad.rand(2, dtype=leafgrad.int64), NotImplementedError, "floating point"),
        (lambda: leafgrad.randint(3, 3, (2,)), RuntimeError, "low"),
        (
            lambda: leafgrad.randint(0, 1000, (3,), dtype=leafgrad.int8),
            RuntimeError,
            "from -128 to 127, which leafgrad.int8",
        ),
        (lambda: leafgrad.randint(-1, 3, (3,), dtype=leafgrad.uint8), RuntimeError, "from 0 to 255"),
        (lambda: leafgrad.zeros(3, dtype=leafgrad.uint8).random_(-5, 5), RuntimeError, "random_: expected low"),
        (lambda: leafgrad.zeros(3, dtype=leafgrad.bool).random_(0, 3), RuntimeError, "from 0 to 1"),
        (lambda: leafgrad.randint(3, 5), TypeError, "size"),
        (lambda: leafgrad.randint(0, 5, 3), TypeError, "tuple of ints"),
        (lambda: leafgrad.randperm(-1), RuntimeError, "non-negative"),
        (lambda: leafgrad.randperm(257, dtype=leafgrad.uint8), RuntimeError, "at most 256 in leafgrad.uint8, got 257"),
        (lambda: leafgrad.randperm(2050, dtype=leafgrad.float16), RuntimeError, "at most 2049"),
        (lambda: leafgrad.zeros(3).random_(0), RuntimeError, "low 0 and high 0"),
        (lambda: leafgrad.normal(0.0, -1.0, (2,)), RuntimeError, "std >= 0"),
        (lambda: leafgrad.normal(0.0, 1.0), TypeError, "size"),
        (lambda: leafgrad.normal(leafgrad.zeros(2), 1.0, (2,)), TypeError, "size"),
        (lambda: leafgrad.normal(leafgrad.zeros(2), 1.0, dtype=leafgrad.float64), TypeError, "dtype"),
        (lambda: leafgrad.normal(leafgrad.zeros(2), 1.0, device="cpu"), TypeError, "device"),
        (lambda: leafgrad.normal(0.0, leafgrad.tensor([1.0, -1.0])), RuntimeError, "all elements of std >= 0"),
        (lambda: leafgrad.normal(0.0, leafgrad.tensor([1.0, math.nan])), RuntimeError, "all elements of std >= 0"),
        (lambda: leafgrad.normal(0.0, math.nan, (2,)), RuntimeError, "std >= 0"),
        (lambda: leafgrad.normal(leafgrad.tensor([1]), 1.0), NotImplementedError, "mean: expected floats"),
        (lambda: leafgrad.bernoulli(leafgrad.zeros(2), 1.5), RuntimeError, r"in \[0, 1\]"),
        (lambda: leafgrad.bernoulli(leafgrad.zeros(2, dtype=leafgrad.int64)), RuntimeError, "floating point"),
        (lambda: leafgrad.multinomial(leafgrad.ones(3), 4), RuntimeError, "without replacement"),
        (lambda: leafgrad.multinomial(leafgrad.ones(3), 0), RuntimeError, "n_sample <= 0"),
        (lambda: leafgrad.multinomial(leafgrad.ones(1, 2, 3), 1), RuntimeError, "1 or 2 dim"),
        (lambda: leafgrad.poisson(leafgrad.tensor([-1.0])), RuntimeError, "rate to be non-negative"),
        (lambda: leafgrad.poisson(leafgrad.tensor([1])), RuntimeError, "floating point"),
        (lambda: leafgrad.rand(2, generator=3), TypeError, "expected a Generator"),
        (lambda: leafgrad.zeros(2).uniform_(3, 1), RuntimeError, "from=3 > to=1"),
        (lambda: leafgrad.zeros(2).normal_(0, -1), RuntimeError, "std >= 0"),
        (lambda: leafgrad.zeros(2).normal_(0, math.nan), RuntimeError, "std >= 0"),
        (lambda: leafgrad.zeros(2).uniform_(0, math.inf), RuntimeError, "to is out of bounds"),
        (lambda: leafgrad.zeros(2).uniform_(math.nan, 1), RuntimeError, "from is out of bounds"),
        (lambda: leafgrad.zeros(2).exponential_(0), RuntimeError, "lambda"),
        (lambda: leafgrad.zeros(2).exponential_(math.nan), RuntimeError, "lambda"),
        (lambda: leafgrad.zeros(2).log_normal_(0, math.nan), RuntimeError, "std > 0.0"),
        (lambda: leafgrad.zeros(2).log_normal_(0, 0), RuntimeError, "std > 0.0"),
        (lambda: leafgrad.zeros(2).cauchy_(0, 0), RuntimeError, "sigma > 0.0"),
        (lambda: leafgrad.zeros(2).geometric_(1.0), RuntimeError, r"p to be in \(0, 1\)"),
        (lambda: leafgrad.zeros(2, dtype=leafgrad.int64).normal_(), RuntimeError, "floating point"),
        (lambda: leafgrad.Generator().manual_seed(2**64), RuntimeError, "seed"),
        (lambda: leafgrad.manual_seed(1.5), TypeError, "must be int"),
    ],
)
def test_wrong_arguments(draw, error, match):
    with pytest.raises(error, match=match):
        draw()


def test_permutations_are_of_as_many_numbers_as_a_dtype_has():
    for dtype, n in ((leafgrad.uint8, 256), (leafgrad.int8, 128), (leafgrad.float16, 2049), (leafgrad.bool, 2)):
        assert leafgrad.randperm(n, dtype=dtype).unique().numel() == n


def test_an_error_shows_what_the_caller_passed():
    with pytest.raises(IndexError, match=r"index\(x: float32 \(2,\), at\[0\]: int64 \(1,\), dims=\(0,\)\): "):
        leafgrad.ones(2)[leafgrad.tensor([7])]


def test_a_generator_of_another_device_is_refused(device):
    if device.type != "cpu":
        with pytest.raises(RuntimeError, match="device type for generator"):
            leafgrad.rand(2, generator=leafgrad.Generator(), device=device)
    assert leafgrad.rand(2, generator=leafgrad.Generator(device), device=device).device == device


def test_normal_numbers_that_require_grad():
    assert leafgrad.normal(0.0, 1.0, (2,), requires_grad=True).requires_grad
    drawn = leafgrad.normal(leafgrad.zeros(2, requires_grad=True), 1.0, requires_grad=True)
    assert (drawn.is_leaf, drawn.requires_grad) == (True, True)
    assert not leafgrad.normal(leafgrad.zeros(2), 1.0).requires_grad


def test_a_seed_that_is_refused_is_not_the_seed_of_devices_that_come_later(monkeypatch):
    monkeypatch.setattr(random_module, "_seed", 5)
    with pytest.raises((ValueError, RuntimeError, OverflowError)):
        leafgrad.manual_seed(2**70)
    assert random_module._seed == 5


def test_uniform_of_complex_numbers_draws_both_parts():
    x = leafgrad.zeros(1000, dtype=leafgrad.complex64).uniform_(2, 3)
    for part in (x.real, x.imag):
        assert 2 <= part.min() < 2.1
        assert 2.9 < part.max() < 3
