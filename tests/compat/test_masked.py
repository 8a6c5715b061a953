"""``leafgrad.masked``: what is masked out is as if it were not there, in values and in gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad import masked
from leafgrad.autograd import grad, gradcheck

TESTS = "compat.torch.masked"

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(3, 4, 5))
MASK = RNG.random((4, 5)) < 0.6
MASK[:, 0] = True
NUMPYS = {
    "sum": lambda row: row.sum(),
    "prod": lambda row: row.prod(),
    "amax": lambda row: row.max(),
    "amin": lambda row: row.min(),
    "mean": lambda row: row.mean(),
    "std": lambda row: row.std(ddof=min(1, row.size - 1)),
    "var": lambda row: row.var(ddof=min(1, row.size - 1)),
    "norm": lambda row: np.linalg.norm(row),
    "logsumexp": lambda row: np.log(np.exp(row).sum()),
    "median": lambda row: np.sort(row)[(row.size - 1) // 2],
}


@pytest.mark.parametrize("name", NUMPYS)
def test_reductions_are_those_of_what_is_left(name):
    x, mask = leafgrad.tensor(VALUES, requires_grad=True), leafgrad.tensor(MASK)
    options = {} if name not in ("std", "var") else {"correction": 0}
    reference = {"std": np.std, "var": np.var}.get(name, NUMPYS[name])
    found = getattr(masked, name)(x, dim=-1, mask=mask, **options)
    expected = [[reference(row[m]) for row, m in zip(rows, MASK, strict=True)] for rows in VALUES]
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    assert not grad(found.sum(), x)[0][:, ~mask].any()
    assert gradcheck(lambda x: getattr(masked, name)(x, dim=-1, keepdim=True, mask=mask, **options), (x,))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "cumsum", "cumprod", "normalize"])
def test_rows_are_those_of_what_is_left(name):
    x, mask = leafgrad.tensor(VALUES), leafgrad.tensor(MASK)
    more = {"ord": 2.0} if name == "normalize" else {}
    found = getattr(masked, name)(x, dim=-1, mask=mask, **more)
    for i, keep in enumerate(mask):
        alone = getattr(masked, name)(x[:, i, keep], dim=-1, **more)
        leafgrad.testing.assert_close(found[:, i, keep], alone)


def test_whole_tensors_and_no_mask():
    x, mask = leafgrad.tensor(VALUES), leafgrad.tensor(MASK)
    leafgrad.testing.assert_close(masked.mean(x, mask=mask), leafgrad.tensor(VALUES[:, MASK].mean()))
    leafgrad.testing.assert_close(masked.std(x, (0, 2)), x.std((0, 2)))
    leafgrad.testing.assert_close(masked.prod(x, mask=mask), leafgrad.tensor(VALUES[:, MASK].prod()))
    assert masked.sum(mask).dtype is leafgrad.int64


def test_of_nothing():
    x, none = leafgrad.arange(3.0), leafgrad.zeros(3).bool()
    found = {name: getattr(masked, name)(x, dim=0, mask=none).item() for name in NUMPYS}
    nan = [name for name, value in found.items() if math.isnan(value)]
    assert nan == ["mean", "std", "var", "median"]
    assert [found[name] for name in ("sum", "prod", "amax", "amin", "norm")] == [0, 1, -math.inf, math.inf, 0]
    assert masked.amax(x.long(), mask=none) == leafgrad.iinfo(leafgrad.int64).min
    assert masked.softmax(x, 0, mask=none).isnan().all()


def test_places_and_pairs():
    x = leafgrad.tensor([3.0, 9.0, 1.0])
    mask = leafgrad.tensor([True, False, True])
    assert masked.argmax(x, mask=mask) == 0
    assert masked.argmin(x, 0, mask=~mask) == 1
    found = masked.logaddexp(x, x, input_mask=mask, other_mask=~mask)
    assert found.tolist() == x.tolist()


def test_what_is_masked_out_may_be_nan():
    x = leafgrad.tensor([1.0, math.nan, 3.0], requires_grad=True)
    mask = leafgrad.tensor([True, False, True])
    for function in (masked.mean, masked.var, masked.norm):
        slope = grad(function(x, mask=mask), x)[0]
        assert slope.isfinite().all()
        assert slope[1] == 0


def test_they_compile():
    def step(x, mask):
        return grad(masked.std(x.sin(), mask=mask), x)[0]

    compiled, x = leafgrad.compile(step), leafgrad.tensor(VALUES, requires_grad=True)
    for mask in (leafgrad.tensor(MASK), leafgrad.tensor(~MASK), leafgrad.tensor(MASK)):
        leafgrad.testing.assert_close(compiled(x, mask), step(x, mask))


def test_what_is_refused():
    x = leafgrad.ones(3)
    for call, error, words in [
        (lambda: masked.sum(x, mask=leafgrad.ones(2, 3)), IndexError, r"broadcasts to \[3\], got \[2, 3\]"),
        (lambda: masked.mean(x.long()), ValueError, r"mean\(\): Could not infer output dtype"),
        (lambda: masked.var(x, unbiased=True, correction=1), ValueError, "one of unbiased and correction"),
        (lambda: masked.var(x, dtype=leafgrad.int64), ValueError, r"dtype: expected a floating .* got leafgrad.int64"),
        (lambda: masked.median(x.long(), mask=x < 0), ValueError, "no fully masked out rows"),
    ]:
        with pytest.raises(error, match=words):
            call()
