"""Random programs of many dtypes, of tensors without dimensions or elements, with numbers and names that are alike."""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import leafgrad

DTYPES = ("float64", "float64", "float32", "int64", "int32", "uint8", "bool")
SHAPES = ((), (), (1,), (3,), (70, 3), (70, 3), (70, 1), (1, 3), (0, 3), (3, 3), (2, 35))
NUMBERS = (True, False, 0, 1, -1, 2, 3, 300, 0.5, 0.0, -0.0, 1.0, -1.5)


class Key:
    """Keys of one name."""

    def __repr__(self) -> str:
        return "<Key>"


NAMES = ("a b", "a-b", "a_b", "v0", "enc", "enc.w", "enc_w", ("enc", "w"), 1, True, "lo", "xp", "inputs", "b0_0")

ONE: tuple[Callable[[Any], Any], ...] = (
    leafgrad.sin, leafgrad.tanh, leafgrad.abs, leafgrad.neg, leafgrad.square, leafgrad.sigmoid, leafgrad.relu,
    leafgrad.sign, leafgrad.logical_not, leafgrad.isnan, lambda x: leafgrad.sqrt(x.abs() + 1),
    lambda x: x.sum(), lambda x: x.mean(), lambda x: x.amax(), lambda x: x.sum(0), lambda x: x.sum(-1, keepdim=True),
    lambda x: x.mean(0), lambda x: x.amin(-1), lambda x: x.any(), lambda x: x.all(0), lambda x: leafgrad.softmax(x, 0),
    lambda x: leafgrad.cumsum(x, 0), lambda x: leafgrad.logsumexp(x, 0), lambda x: leafgrad.count_nonzero(x),
    lambda x: x.reshape(-1), lambda x: x.unsqueeze(0), lambda x: x.squeeze(), lambda x: x[-1], lambda x: x[1:],
    lambda x: x[2:2], lambda x: x[..., ::2], lambda x: x.T, lambda x: x.flip(0), lambda x: x.expand(70, 3),
    lambda x: x.clone(), lambda x: x.detach(), lambda x: x.to(leafgrad.float64), lambda x: x.to(leafgrad.float32),
    lambda x: x.to(leafgrad.bool), lambda x: x.clamp(0, 2), lambda x: x.clamp(min=True), lambda x: x * x + x,
    lambda x: leafgrad.full_like(x, True), lambda x: leafgrad.zeros_like(x), lambda x: leafgrad.ones(()) * x,
    lambda x: x.unbind(0)[-1], lambda x: leafgrad.nn.functional.pad(x, (1, 2), value=1.5), lambda x: x.median(),
    lambda x: x.clone().mul_(2), lambda x: x.clone().add_(True), lambda x: x.clone().fill_(False),
)  # fmt: skip
TWO: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add, operator.add, operator.sub, operator.mul, operator.mul, operator.eq, operator.lt, operator.ge,
    operator.and_, operator.or_, operator.matmul, leafgrad.maximum, leafgrad.minimum,
    lambda x, y: leafgrad.where(x > 0, x, y), lambda x, y: x / (y * y + 1), lambda x, y: leafgrad.cat([x, y]),
    lambda x, y: leafgrad.stack([x, y]), lambda x, y: x.clone().copy_(y), lambda x, y: x.masked_fill(y > 0, True),
    lambda x, y: x[y.to(leafgrad.int64) % 2], lambda x, y: leafgrad.addcmul(x, x, y),
)  # fmt: skip

REFUSALS = (RuntimeError, TypeError, IndexError, ValueError, AttributeError)  # of eager; a number has no method
Step = Callable[[list[Any]], Any]


def step(rng: random.Random, count: int) -> Step:
    """An op on some of the latest of ``count`` values, or on one and a number."""
    i, j = (-1 - min(int(rng.expovariate(0.4)), count - 1) for _ in range(2))
    kind, number = rng.random(), rng.choice(NUMBERS)
    if kind < 0.45:
        one = rng.choice(ONE)
        return lambda values: one(values[i])
    two = rng.choice(TWO)
    if kind < 0.75:
        return lambda values: two(values[i], values[j])
    return lambda values: two(values[i], number) if kind < 0.9 else two(number, values[i])


def tensor(rng: random.Random, numbers: np.random.Generator) -> Any:
    array = numbers.normal(size=rng.choice(SHAPES)) * 2
    dtype = rng.choice(DTYPES)
    return leafgrad.tensor(array > 0) if dtype == "bool" else leafgrad.tensor(abs(array)).to(getattr(leafgrad, dtype))


def program(seed: int, length: int = 12) -> tuple[Callable[[dict[Any, Any]], list[Any]], dict[Any, Any]]:
    """A function of a dict of tensors that returns what it computed, with gradients, and such a dict."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    names = [Key() if rng.random() < 0.3 else rng.choice(NAMES) for _ in range(rng.randrange(1, 5))]
    given = {name: tensor(rng, numbers) for name in names}
    for t in given.values():
        if t.is_floating_point():
            t.requires_grad_()
    values, steps = list(given.values()), list[Step]()
    while len(steps) < length:
        attempt = step(rng, len(values))
        try:
            made = attempt(values)
        except REFUSALS:
            continue
        if made.numel() < 20_000:
            values.append(made)
            steps.append(attempt)

    def function(given: dict[Any, Any]) -> list[Any]:
        values = list(given.values())
        for one in steps:
            values.append(one(values))
        results = [v * 1 for v in values[len(given) :]]
        leaves = [t for t in given.values() if t.requires_grad]
        if leaves:
            terms = [v.to(leafgrad.float64).sum() for v in results if v.requires_grad]
            loss = sum(terms) + sum((0 * t).sum() for t in leaves)
            results += leafgrad.autograd.grad(loss, leaves)
        return results

    return function, given


def compare(seed: int, executor: str) -> None:
    """Assert that a program, compiled, gives what eager gives."""
    function, given = program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [t.detach().numpy() for t in function(given)]
        compiled = leafgrad.compile(function, executor=executor)
        for _ in range(3):
            results = [t.detach().numpy() for t in compiled(given)]
    for got, want in zip(results, expected, strict=True):
        assert (type(got), got.dtype, got.shape) == (np.ndarray, want.dtype, want.shape)
        scale = float(np.max(np.abs(want[np.isfinite(want)].astype("float64")), initial=1.0))
        rtol = 1e-5 if want.dtype == "float32" else 3e-6
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale)
