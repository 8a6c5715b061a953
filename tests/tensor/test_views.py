"""Properties of broadcasting, indexing, views and writes through views: random programs against NumPy, differences
and, where it is installed, PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import leafgrad
from leafgrad.autograd import gradcheck
from leafgrad.testing import fake

fake.register()
devices = st.sampled_from(["cpu", "fake:0"])
shapes = hnp.array_shapes(min_dims=1, max_dims=3, max_side=3)


def filled(shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


# ---- programs: each step takes a view of an earlier tensor, or writes one in place --------------------------------


def part(t, k):
    """Every second of some dimension, or one of it."""
    d = k % t.ndim
    index = slice(k % 2, None, 2) if k % 3 or not t.shape[d] else -1
    return t[(*(slice(None),) * d, index, ...)]  # the ellipsis, since NumPy would give a scalar without it


def squared(t):
    """Of a copy, since what a product needs must not be written."""
    c = t.clone()
    return c * c


VIEWS = [
    (lambda t, k: part(t, k) if t.ndim else t[None], lambda a, k: part(a, k) if a.ndim else a[None]),
    (lambda t, k: t.transpose(0, -1) if t.ndim else t[...], lambda a, k: a.swapaxes(0, -1) if a.ndim else a[...]),
    (lambda t, k: t[None, ...], lambda a, k: a[None, ...]),
    (
        lambda t, k: t.diagonal(k % 3 - 1, 0, -1) if t.ndim > 1 else t[...],
        lambda a, k: np.einsum("ii...->...i", shifted(np.moveaxis(a, -1, 1), k % 3 - 1)) if a.ndim > 1 else a[...],
    ),
    (lambda t, k: t.flatten() if t.is_contiguous() else t[...], lambda a, k: a.reshape(-1) if in_order(a) else a[...]),
]
WRITES = [
    (lambda t, k: t.mul_(1 + k / 4), lambda a, k: np.multiply(a, 1 + k / 4, out=a)),
    (lambda t, k: t.fill_(k / 2), lambda a, k: a.fill(k / 2)),
    (lambda t, k: t.copy_(squared(t).flip(tuple(range(t.ndim)))), lambda a, k: np.copyto(a, np.flip(a * a))),
    (lambda t, k: t.add_(t * 0.5), lambda a, k: np.add(a, a * 0.5, out=a)),
    (lambda t, k: t.masked_fill_(t > 1, 0.25), lambda a, k: np.copyto(a, 0.25, where=a > 1)),
    (
        lambda t, k: t.__setitem__([0], t[-1:].clone() * t[0].clone()) if t.ndim and t.shape[0] else t.zero_(),
        lambda a, k: a.__setitem__(0, a[-1] * a[0]) if a.ndim and a.shape[0] else a.fill(0),
    ),
]


def in_order(a):
    return a.flags.c_contiguous


def shifted(a, offset):
    """``a`` so that its main diagonal in dimensions 0 and 1 is the one at ``offset``, and square there."""
    a = a[max(-offset, 0) :, max(offset, 0) :]
    n = min(a.shape[:2])
    return a[:n, :n]


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 11), st.integers(0, 9), st.integers(0, 5)), max_size=8)


def run(t, program, which):
    """All tensors (``which`` = 0) or arrays (1) of a program that starts with ``t``."""
    made = [t]
    for writes, choice, source, k in program:
        target = made[source % len(made)]
        if writes:
            WRITES[choice % len(WRITES)][which](target, k)
        else:
            made.append(VIEWS[choice % len(VIEWS)][which](target, k))
    return made


@given(shapes, steps, devices)
@settings(max_examples=200)
def test_views_see_every_write_as_numpys_do(shape, program, device):
    arrays = run(filled(shape), program, 1)
    tensors = run(leafgrad.tensor(filled(shape), device=device), program, 0)
    recorded = run(leafgrad.tensor(filled(shape), device=device, requires_grad=True) * 1, program, 0)
    for a, t, r in zip(arrays, tensors, recorded, strict=True):
        np.testing.assert_array_equal(t.cpu().numpy(), a)
        np.testing.assert_array_equal(r.detach().cpu().numpy(), a)


def everything(x, program, backwards):
    """A scalar that depends on all tensors of a program, whose first may lie with its dimensions backwards."""
    first = x.permute(*range(x.ndim)[::-1]).clone() if backwards else x * 1
    return sum((t * t * (i + 1)).sum() for i, t in enumerate(run(first, program, 0)))


@given(shapes, steps, st.booleans())
@settings(max_examples=60)
def test_gradients_through_writes_are_those_of_differences(shape, program, backwards):
    x = leafgrad.tensor(filled(shape), requires_grad=True)
    assert gradcheck(lambda x: everything(x, program, backwards), [x], fast_mode=True, atol=1e-4)


@given(shapes, steps, st.booleans())
@settings(max_examples=60)
def test_gradients_through_writes_are_torchs(shape, program, backwards):
    torch = pytest.importorskip("torch")
    ours = leafgrad.tensor(filled(shape), requires_grad=True)
    theirs = torch.tensor(filled(shape), requires_grad=True)
    grads = []
    for module, x in ((leafgrad, ours), (torch, theirs)):
        (g,) = module.autograd.grad(everything(x, program, backwards), x, create_graph=True)
        (h,) = module.autograd.grad((g * g).sum(), x, allow_unused=True) if g.requires_grad else (None,)
        grads.append([None if v is None else v.detach().numpy() for v in (g, h)])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(0 if a is None else a, 0 if b is None else b, rtol=1e-10)


@pytest.mark.parametrize("device", ["cpu", "fake:0"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_flat_view_of_what_lies_with_its_dimensions_backwards_is_written(device, compiled):
    def step(x):
        b = x.t().clone()
        b.t().view(-1)[1:].mul_(3)
        b.sum().backward()

    run_step = leafgrad.compile(step) if compiled else step
    for _ in range(4):
        x = leafgrad.ones(2, 3, device=device).requires_grad_()
        run_step(x)
        assert x.grad.tolist() == [[1, 3, 3], [3, 3, 3]]


# ---- broadcasting and indexing ------------------------------------------------------------------------------------


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3), devices)
def test_broadcasting_is_numpys_and_gradients_are_summed_back(broadcast, device):
    arrays = [filled(s, seed) for seed, s in enumerate(broadcast.input_shapes)]
    x, y, z = leaves = [leafgrad.tensor(a, device=device, requires_grad=True) for a in arrays]
    out = x * y + z
    np.testing.assert_allclose(out.detach().cpu().numpy(), arrays[0] * arrays[1] + arrays[2], rtol=1e-15)
    assert out.shape == broadcast.result_shape == leafgrad.broadcast_shapes(*broadcast.input_shapes)
    out.sum().backward()
    for leaf, g in zip(leaves, (arrays[1], arrays[0], np.ones(())), strict=True):
        full = np.broadcast_to(g, out.shape)
        extra = full.ndim - leaf.ndim
        axes = tuple(i for i in range(full.ndim) if i < extra or leaf.shape[i - extra] == 1)
        np.testing.assert_allclose(leaf.grad.cpu().numpy(), full.sum(axes).reshape(leaf.shape), rtol=1e-14)


@given(st.data(), shapes, devices)
@settings(max_examples=200)
def test_basic_indices_are_numpys(data, shape, device):
    a = filled(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    steps = [k.step for k in (key if isinstance(key, tuple) else (key,)) if isinstance(k, slice)]
    x = leafgrad.tensor(a, device=device)
    if any(s is not None and s < 0 for s in steps):
        with pytest.raises(ValueError, match="step must be greater than zero"):
            x[key]
        return
    np.testing.assert_array_equal(x[key].cpu().numpy(), a[key])
    x[key] = 5.0
    a[key] = 5.0
    np.testing.assert_array_equal(x.cpu().numpy(), a)


@given(st.data(), shapes, devices)
def test_index_arrays_are_numpys_and_their_gradient_counts(data, shape, device):
    a = filled(shape)
    key = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    x = leafgrad.tensor(a, device=device, requires_grad=True)
    y = x[tuple(leafgrad.tensor(k, device=device) for k in key)]
    np.testing.assert_array_equal(y.detach().cpu().numpy(), a[key])
    y.sum().backward()
    counts = np.zeros(shape)
    np.add.at(counts, key, 1)
    np.testing.assert_array_equal(x.grad.cpu().numpy(), counts)


@given(hnp.arrays(bool, shapes), devices)
def test_masks_are_numpys(mask, device):
    a = filled(mask.shape)
    x, m = leafgrad.tensor(a, device=device, requires_grad=True), leafgrad.tensor(mask, device=device)
    y = x[m]
    np.testing.assert_array_equal(y.detach().cpu().numpy(), a[mask])
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.where(mask, 2 * a, 0))
    with leafgrad.no_grad():
        x[m] = y * 3
    a[mask] *= 3
    np.testing.assert_array_equal(x.detach().cpu().numpy(), a)


# ---- versions and leaves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill_(1),
        lambda x: x[0].fill_(1),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.normal_(),
        lambda x: x.copy_(leafgrad.zeros(3)),
        lambda x: x.masked_fill_(x > 0, 0.0),
        lambda x: x.view(3).zero_(),
    ],
)
def test_a_leaf_that_requires_grad_is_written_only_without_recording(write):
    x = leafgrad.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        write(x)
    with leafgrad.no_grad():
        write(x)
    assert x.requires_grad
    assert x.is_leaf


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.fill_(1),
        lambda y: y[0].fill_(1),
        lambda y: y.__setitem__([0], 1.0),
        lambda y: y.uniform_(),
        lambda y: y.index_fill_(0, leafgrad.tensor([0]), 1.0),
        lambda y: y.detach().zero_(),
    ],
)
def test_writing_what_a_rule_needs_is_found(write):
    x = leafgrad.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    write(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_expanded_tensors_are_not_written():
    x = leafgrad.ones(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.expand(3).add_(2)
    x.expand(1, 1).add_(1)
    assert x.item() == 2
    x.expand(3).fill_(3)
    assert x.item() == 3
    x.expand(3)[1] = 4
    assert x.item() == 4


def test_empty_tensors_are_written(device):
    x = leafgrad.zeros(2, 0, 3, device=device)
    x.fill_(1)
    x[:, 0:0] = leafgrad.ones(2, 0, 3, device=device)
    x[[0, 0]] = 2.0
    assert x.shape == (2, 0, 3)


BY_NAME = {
    "T": lambda x: x.T,
    "row": lambda x: x[0],
    "diagonal": lambda x: x.diagonal(),
    "reshape": lambda x: x.reshape(2, 8),
    "expand": lambda x: x[0].expand(2, 4),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2)),
    "another dtype": lambda x: x.view(leafgrad.int8),
    "chunk": lambda x: x.chunk(2)[1],
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "complex64"])
@pytest.mark.parametrize("name", BY_NAME)
def test_views_are_known_as_such_in_every_dtype(name, dtype):
    x = leafgrad.zeros(4, 4).to(getattr(leafgrad, dtype))
    view = BY_NAME[name](x)
    assert view._base is x
    if name not in ("expand", "unfold"):
        view.fill_(1)
        assert (x._version, bool((x != 0).any())) == (1, True)


def test_a_write_through_a_view_has_a_gradient_in_bfloat16():
    x, v = (leafgrad.ones(n, dtype=leafgrad.bfloat16, requires_grad=True) for n in ((3, 3), (3,)))
    y = x * 2
    y.diagonal().copy_(v * 3)
    gradients = leafgrad.autograd.grad(y.sum(), [x, v])
    assert [g.tolist() for g in gradients] == [[[0.0, 2, 2], [2, 0, 2], [2, 2, 0]], [3.0] * 3]
