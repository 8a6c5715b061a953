"""Random programs of views, in-place writes and in-place changes of shape, as PyTorch runs them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import leafgrad

VIEWS = [
    lambda t, d, k: t.select(d, k % t.shape[d]),
    lambda t, d, k: t.narrow(d, k % t.shape[d], 1),
    lambda t, d, k: t.permute(tuple(range(t.ndim))[::-1]),
    lambda t, d, k: t.transpose(d, -1),
    lambda t, d, k: t.unsqueeze(k % (t.ndim + 1)),
    lambda t, d, k: t.squeeze(),
    lambda t, d, k: t.squeeze((d, -1)) if d != t.ndim - 1 else t.squeeze(d),
    lambda t, d, k: t.expand(2, *t.shape),
    lambda t, d, k: t.diagonal(k % 3 - 1, 0, -1),
    lambda t, d, k: t.unfold(d, 1 + k % t.shape[d], 1 + k % 2),
    lambda t, d, k: t[..., :: 1 + k % 2],
    lambda t, d, k: t.view(-1),
    lambda t, d, k: t.reshape(-1),
    lambda t, d, k: t.movedim(d, 0),
    lambda t, d, k: t.detach(),
    lambda t, d, k: t.unbind(d)[k % t.shape[d]],
    lambda t, d, k: t.split(1 + k % 2, d)[0],
    lambda t, d, k: t.unflatten(d, (1, -1)),
    lambda t, d, k: t.as_strided(t.shape, t.stride()),
]
WRITES = [
    lambda t, d, k, w: t.mul_(1 + k),
    lambda t, d, k, w: t.mul_(w),
    lambda t, d, k, w: t.add_(w),
    lambda t, d, k, w: t.copy_(w),
    lambda t, d, k, w: t.fill_(k),
    lambda t, d, k, w: t.zero_(),
    lambda t, d, k, w: t.sin_(),
    lambda t, d, k, w: t.masked_fill_(t > 1, 0.5),
    lambda t, d, k, w: t.__setitem__(0, k),
    lambda t, d, k, w: t.t_(),
    lambda t, d, k, w: t.transpose_(d, -1),
    lambda t, d, k, w: t.swapaxes_(0, d),
    lambda t, d, k, w: t.unsqueeze_(d),
    lambda t, d, k, w: t.squeeze_(),
]
# PyTorch refuses these, or notices them later, where nothing is wrong: views whose base was written since they were
# made without recording or with others; values that were overwritten altogether.
NEEDLESS = ("multiple views", "no_grad mode", "leaf Variable", "modified by an inplace operation", "memory location")
STRICTER = "memory location"  # overlapping windows are written by PyTorch, in an order that it leaves open


def attempt(call, *args):
    try:
        return call(*args), None
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError) as error:
        return None, error


def agree(expected, actual):
    assert tuple(expected.shape) == tuple(actual.shape)
    np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)


def run(torch, seed):
    """One program; whether it came to its end on both sides."""
    rng = random.Random(seed)
    start = np.random.default_rng(seed).uniform(0.5, 1.5, [rng.randrange(1, 4) for _ in range(rng.randrange(1, 4))])
    leaves = [
        (torch.tensor(a, requires_grad=True), leafgrad.tensor(a, requires_grad=True)) for a in (start, start.sum())
    ]
    (x, ours), (w, our_w) = leaves
    tensors = [(x * 1, ours * 1)]
    for _ in range(rng.randrange(2, 10)):
        theirs, mine = rng.choice(tensors)
        d, k = rng.randrange(max(theirs.ndim, 1)), rng.randrange(6)
        if rng.random() < 0.55:
            view = rng.choice(VIEWS)
            (a, e), (b, f) = attempt(view, theirs, d, k), attempt(view, mine, d, k)
            if e is None and f is None:
                tensors.append((a, b))
        else:
            write = rng.choice(WRITES)
            (_, e), (_, f) = attempt(write, theirs, d, k, w), attempt(write, mine, d, k, our_w)
        if (e is None) != (f is None):
            assert any(text in str(e) for text in NEEDLESS) or STRICTER in str(f), (e, f)
            return False
        if e is not None:
            assert type(e) is type(f) or any(text in str(e) for text in NEEDLESS), (e, f)
        for a, b in tensors:
            agree(a, b)
    sums = [sum(((t[i] * (n + 1)).sum() for n, t in enumerate(tensors)), 0 * leaves[0][i].sum()) for i in (0, 1)]
    (_, e), (_, f) = attempt(sums[0].backward), attempt(sums[1].backward)
    if e is not None:
        assert f is not None or any(text in str(e) for text in NEEDLESS), e
        return False
    assert f is None, f
    for a, b in leaves:
        ga, gb = a.grad, b.grad
        agree(torch.zeros_like(a) if ga is None else ga, leafgrad.zeros_like(b) if gb is None else gb)
    return True


@pytest.mark.filterwarnings("ignore")
def test_programs_do_what_pytorch_makes_of_them():
    torch = pytest.importorskip("torch")
    ended = 0
    for seed in range(400):
        try:
            ended += run(torch, seed)
        except Exception as error:
            if not any(text in str(error) for text in NEEDLESS):  # PyTorch's, at the first look at such a view
                raise AssertionError(f"program {seed}: {error}") from error
    assert ended > 150
