"""``@op(transpose_of=...)``: gradients of every order, shapes and batches of two ops from each other."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import func, op
from leafgrad.autograd import gradcheck, gradgradcheck
from leafgrad.errors import OpDefinitionError
from leafgrad.ops import classes, diagonals, shape, windows
from leafgrad.ops.shifted import behind, shifted

PAIRS = [
    (shape.expand, shape.sum_to),
    (diagonals.diagonal, diagonals.undiagonal),
    (shape.part, shape.unslice),
    (classes.pick, classes.place),
    (windows.unfold, windows.fold),
    (windows.window_pick, windows.window_place),
]


def make(batched=None):
    """Every other element of a dimension from ``start`` on, times a weight, and the transpose."""

    @op
    def thinned(xp, x, w, *, dim, start=0):
        """x[start::2] w along dim."""
        return xp.moveaxis(xp.moveaxis(x, dim, -1)[..., start::2], -1, dim) * w

    if batched is not None:
        thinned.batched(batched)

    @op(transpose_of=thinned)
    def thickened(xp, x, w, *, dim, start=0, shape):
        """Zeros of shape with x w in x[start::2] along dim."""
        out = xp.zeros(shape, dtype=x.dtype)
        xp.moveaxis(out, dim, -1)[..., start::2] = xp.moveaxis(x * w, dim, -1)
        return out

    return thinned, thickened


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].name)
def test_pairs_of_the_core(pair):
    one, other = pair
    assert one.transpose is other
    assert other.transpose is one
    for a, b in (pair, pair[::-1]):
        assert a.origins[f"vjp {a.signature.arguments[0]}"] == f"transpose of {b.name}"
        assert ("shape" in a.signature.parameters) <= (a.shaping is not None)
    assert ["transpose", other.name] in [line.split() for line in str(one).splitlines()]


def test_gradients_of_every_order():
    thinned, thickened = make()
    rng = np.random.default_rng(0)
    x = leafgrad.tensor(rng.normal(size=(2, 5)), requires_grad=True)
    y = leafgrad.tensor(rng.normal(size=(2, 2)), requires_grad=True)
    w = leafgrad.tensor(3.0, dtype=leafgrad.float64)
    for check in (gradcheck, gradgradcheck):
        assert check(lambda x: leafgrad.sin(thinned(x, w, dim=1, start=1)), (x,))
        assert check(lambda y: leafgrad.sin(thickened(y, w, dim=1, start=1, shape=(2, 5))), (y,))
    tangent = leafgrad.tensor(rng.normal(size=(2, 5)))
    assert leafgrad.equal(
        func.jvp(lambda x: thinned(x, w, dim=1), (x,), (tangent,))[1].detach(), thinned(tangent, w, dim=1)
    )


def test_a_rule_that_is_given_goes_first():
    thinned, thickened = make()
    thinned.vjp(x=lambda g, w, x_shape, *, dim, start: 10 * thickened(g, w, dim=dim, start=start, shape=x_shape))
    thinned.vjp(w=lambda g: g)
    x = leafgrad.ones(3, requires_grad=True)
    (gradient,) = leafgrad.autograd.grad(thinned(x, 2.0, dim=0).sum(), x)
    assert gradient.tolist() == [20, 0, 20]
    with pytest.raises(OpDefinitionError, match="already has a vjp rule for argument 'x'"):
        thinned.vjp(x=lambda g: g)


def test_the_partner_may_have_a_rule():
    for _ in range(2):  # as for an op of somebody else

        @op(transpose_of=shape.flip)
        def unflipped(xp, x, *, dims):
            """x in reverse order along dims."""
            return xp.flip(x, dims).copy()

        x = leafgrad.ones(2, 3, dtype=leafgrad.float64, requires_grad=True)
        assert gradgradcheck(lambda x, f=unflipped: leafgrad.sin(f(x, dims=(1,))), (x,))
    assert shape.flip.transpose is None
    assert "leafgrad/ops/shape.py:" in shape.flip.origins["vjp x"]


def test_batches_of_both():
    for rule in (shifted(dim=behind), lambda call: None):
        thinned, thickened = make(rule)
        assert (thickened.batching is not None) == (rule is thinned.batching and hasattr(rule, "changes"))
    thinned, thickened = make(shifted(dim=behind))
    x = leafgrad.arange(24.0).reshape(3, 2, 4)
    w = leafgrad.ones(2, 1)
    y = func.vmap(lambda x: thinned(x, w, dim=1))(x)
    assert leafgrad.equal(y, x[:, :, ::2])
    back = func.vmap(lambda y: thickened(y, w, dim=1, shape=(2, 4)))(y)
    assert leafgrad.equal(back, leafgrad.stack([thickened(each, w, dim=1, shape=(2, 4)) for each in y]))


@pytest.mark.filterwarnings("ignore:There is a performance drop because vmap has no batching rule")
@pytest.mark.parametrize("weight", [(), (1,), (2,), (3, 1), (3, 2), (2, 3, 1)], ids=str)
@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (1, -1)], ids=str)
def test_other_arguments_broadcast(weight, dims):
    """Also where a weight for each sample has the size of some other dimension."""
    thinned, thickened = make(shifted(dim=behind))
    rng = np.random.default_rng(0)
    size, sample = 2, (3, 4)
    whole = []
    for own, d in zip((sample, weight), dims, strict=True):
        at = None if d is None else d % (len(own) + 1)
        whole.append(leafgrad.tensor(rng.normal(size=own if at is None else (*own[:at], size, *own[at:]))))

    def there_and_back(x, w):
        y = thinned(x, w, dim=1)
        if y.ndim > 2:
            return y
        return leafgrad.sin(thickened(y, w, dim=-1, shape=(3, 4))) + func.grad(lambda x: thinned(x, w, dim=1).sum())(x)

    found = func.vmap(there_and_back, dims)(*whole)
    for k in range(size):
        own = [a if d is None else a.select(d, k) for a, d in zip(whole, dims, strict=True)]
        np.testing.assert_allclose(found[k].numpy(), there_and_back(*own).numpy(), rtol=1e-13)


def test_what_does_not_fit():
    thinned, _ = make()
    with pytest.raises(OpDefinitionError, match="'thinned' has its gradient from 'thickened' already"):

        @op(transpose_of=thinned)
        def again(xp, x, w, *, dim, start=0, shape):
            return x

    @op
    def free(xp, x, *, dim):
        return x

    @op
    def many(xp, *xs):
        return xs[0]

    for wrong in (
        lambda xp, x: x,
        lambda xp, x, y, *, dim: x,
        lambda xp, x, *, dim, other: x,
        lambda xp, *, dim: xp.zeros(3),
    ):
        with pytest.raises(OpDefinitionError, match=r"op 'wrong': transpose_of: .* the same as free\(x, \*, dim\)"):
            op(transpose_of=free, name="wrong")(wrong)
    with pytest.raises(OpDefinitionError, match="expected a first argument"):
        op(transpose_of=many, name="wrong")(lambda xp, *xs: xs[0])
    with pytest.raises(OpDefinitionError, match="transpose_of: expected an op, got 'free'"):
        op(transpose_of="free", name="wrong")(lambda xp, x: x)
    assert free.transpose is None
