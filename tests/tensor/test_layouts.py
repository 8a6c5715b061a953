"""How results lie in memory: copies and elementwise results as their arguments, images as images, others in order."""

from __future__ import annotations

import itertools

import pytest

import leafgrad
from leafgrad import nn

TESTS = "tensor.conversions tensor.formats"

x = leafgrad.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
IMAGES = leafgrad.arange(36.0).reshape(1, 4, 3, 3).to(memory_format=leafgrad.channels_last)

ALIKE = {
    "clone": lambda x: x.clone(),
    "clone(preserve)": lambda x: x.clone(memory_format=leafgrad.preserve_format),
    "to": lambda x: x.double(),
    "exp": lambda x: x.exp(),
    "add": lambda x: x + x,
    "add_": lambda x: x.clone().add_(1),
    "zeros_like": leafgrad.zeros_like,
    "ones_like": leafgrad.ones_like,
    "empty_like": leafgrad.empty_like,
    "rand_like": leafgrad.rand_like,
    "flip": lambda x: x.flip(0),
    "sort": lambda x: x.sort(0).indices,
    "full_like": lambda x: leafgrad.full_like(x, 2, dtype=leafgrad.int64),
}
IN_ORDER = {
    "contiguous": lambda x: x.contiguous(),
    "clone(contiguous)": lambda x: x.clone(memory_format=leafgrad.contiguous_format),
    "clone as a function": lambda x: leafgrad.clone(x, memory_format=leafgrad.contiguous_format),
    "zeros_like(contiguous)": lambda x: leafgrad.zeros_like(x, memory_format=leafgrad.contiguous_format),
    "softmax": lambda x: x.softmax(0),
    "cumsum": lambda x: x.cumsum(0),
    "sum": lambda x: x.sum(2),
    "mean": lambda x: x.mean(0),
    "max": lambda x: x.max(0).values,
    "triu": lambda x: x.triu(),
    "index": lambda x: x[leafgrad.tensor([0, 0])],
    "layer_norm": lambda x: nn.functional.layer_norm(x, x.shape[-1:]),
    "scatter_add": lambda x: x.scatter_add(0, leafgrad.zeros_like(x[:1]).long(), leafgrad.ones_like(x[:1])),
    "scatter_reduce": lambda x: x.scatter_reduce(0, leafgrad.zeros_like(x[:1]).long(), x[:1] + 1, "mean"),
    "index_add": lambda x: x.index_add(0, leafgrad.tensor([0]), leafgrad.ones_like(x[:1])),
    "addmm": lambda x: leafgrad.addmm(leafgrad.ones(2, 3).t(), leafgrad.ones(3, 4), leafgrad.ones(4, 2)),
    "cross_entropy": lambda x: nn.functional.cross_entropy(
        x, leafgrad.zeros(x.shape[0], *x.shape[2:]).long(), reduction="none"
    ),
}


@pytest.mark.parametrize("x", [x, IMAGES, x[1:]], ids=["permuted", "channels_last", "with gaps"])
@pytest.mark.parametrize("name", ALIKE)
def test_copies_and_elementwise_results_lie_as_their_argument(name, x):
    out = ALIKE[name](x)
    order = sorted(range(x.ndim), key=x.stride().__getitem__, reverse=True)
    assert out.permute(order).is_contiguous()
    assert not out.is_contiguous()
    assert out._base is None


@pytest.mark.parametrize("x", [x, IMAGES], ids=["permuted", "channels_last"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_other_results_lie_in_order(name, x):
    out = IN_ORDER[name](x.requires_grad_(False))
    assert out.is_contiguous()
    assert (out.view(-1) == IN_ORDER[name](x.contiguous()).view(-1)).all()


def test_copies_of_expanded_tensors_lie_in_order():
    wide = leafgrad.arange(6.0).reshape(2, 3).expand(4, 2, 3)
    assert wide.clone().stride() == leafgrad.zeros_like(wide).stride() == (6, 3, 1)
    assert wide.clone().view(-1)[:12].tolist() == [0, 1, 2, 3, 4, 5] * 2
    moved = leafgrad.arange(15.0).reshape(3, 1, 5).expand(3, 4, 5).permute(2, 0, 1)
    for copy in (moved.clone(), moved.double(), leafgrad.zeros_like(moved)):
        assert copy.stride() == (4, 20, 1)  # PyTorch's
    assert leafgrad.equal(moved.clone(), moved)


def test_gradients_of_results_in_order():
    a = x.clone().requires_grad_()
    (a.softmax(0).view(-1) * leafgrad.arange(24.0)).sum().backward()
    b = x.contiguous().requires_grad_()
    (b.softmax(0).view(-1) * leafgrad.arange(24.0)).sum().backward()
    assert leafgrad.allclose(a.grad, b.grad, atol=1e-6)


def test_modules_take_memory_formats():
    layer = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(2, 2)).to(memory_format=leafgrad.channels_last)
    assert layer[0].weight.stride() == (27, 1, 9, 3)
    assert layer[0].weight.is_contiguous(memory_format=leafgrad.channels_last)
    assert layer[0].weight.requires_grad
    assert layer[0].weight.is_leaf
    images = leafgrad.randn(2, 3, 5, 5)
    plain = nn.Conv2d(3, 4, 3)
    plain.load_state_dict(layer[0].state_dict())
    assert leafgrad.allclose(layer[0](images), plain(images))
    layer.to(leafgrad.float64, memory_format=leafgrad.contiguous_format)
    assert layer[0].weight.is_contiguous()
    assert layer[0].weight.dtype is leafgrad.float64


# ---- as in PyTorch ------------------------------------------------------------------------------------------------

SHAPE = (2, 3, 4, 5)
LAYOUTS = {
    "in order": lambda t, x: x,
    "channels_last": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "transposed": lambda t, x: x.mT.contiguous().mT,
    "permuted": lambda t, x: x.permute(1, 0, 2, 3).contiguous().permute(1, 0, 2, 3),
    "expanded": lambda t, x: x[:1].expand(SHAPE),
    "with gaps": lambda t, x: t.cat([x, x], -1)[..., ::2],
    "channels_last with gaps": lambda t, x: t.cat([x, x], 1).contiguous(memory_format=t.channels_last)[:, ::2],
}
OF_ONE = {
    "flip": lambda t, x: x.flip((1, 3)),
    "rot90": lambda t, x: x.rot90(1, (2, 3)),
    "roll": lambda t, x: x.roll(1, 2),
    "sort": lambda t, x: x.sort(1).values,
    "index_fill": lambda t, x: x.index_fill(1, t.tensor([0]), 1.0),
    "masked_fill": lambda t, x: x.masked_fill(x > 3, 0.0),
    "double": lambda t, x: x.double(),
    "nan_to_num": lambda t, x: x.nan_to_num(),
    "rand_like": lambda t, x: t.rand_like(x) * 0,
    "normalize": lambda t, x: t.nn.functional.normalize(x, dim=1),
    "kernel": lambda t, x: t.nn.functional.conv2d(x, t.ones(2, 3, 2, 2).contiguous(memory_format=t.channels_last)),
    "conv2d": lambda t, x: t.nn.functional.conv2d(x, t.ones(2, 3, 2, 2)),
    "max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x, 2),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, t.zeros(3), t.ones(3)),
    "batch_norm in training": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x[..., :4], 2),
    "broadcast": lambda t, x: t.ones(3, 1, 1) * x,
}
OF_TWO = {
    "add": lambda t, x, y: x + y,
    "where": lambda t, x, y: t.where(x > 3, x, y),
    "lerp": lambda t, x, y: t.lerp(x, y, 0.5),
    "addcmul": lambda t, x, y: t.addcmul(x, x, y),
    **{f"cat {d}": lambda t, x, y, d=d: t.cat([x, y], d) for d in (0, 1, 3)},
    **{f"stack {d}": lambda t, x, y, d=d: t.stack([x, y], d) for d in range(5)},
}


def laid(t, name):
    return LAYOUTS[name](t, t.arange(120.0).reshape(SHAPE))


def same(ours, theirs):
    """The same values, in the same places of memory."""
    steps = [[s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1] for x in (ours, theirs)]
    assert steps[0] == steps[1]
    assert leafgrad.allclose(ours.detach(), leafgrad.tensor(theirs.detach().numpy()), atol=1e-5)


@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_strides_of_results(name):
    torch = pytest.importorskip("torch")
    of = OF_ONE.get(name) or OF_TWO[name]
    for layouts in itertools.product(LAYOUTS, repeat=1 if name in OF_ONE else 2):
        same(*(of(t, *(laid(t, layout) for layout in layouts)) for t in (leafgrad, torch)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_of_gradients_are_those_of_their_leaves(layout):
    torch = pytest.importorskip("torch")
    losses = {
        "sum": lambda t, x: x.sum(),
        "in another order": lambda t, x: (x.mT * t.arange(120.0).reshape(2, 3, 5, 4)).sum(),
        "two": lambda t, x: (x.permute(0, 2, 3, 1).reshape(-1) * t.arange(120.0)).sum() + (x * x).sum(),
        "conv2d": lambda t, x: t.nn.functional.conv2d(x, t.ones(2, 3, 2, 2)).pow(2).sum(),
        "a part": lambda t, x: x[:, 1].pow(2).sum(),
    }
    for loss in losses.values():
        leaves = [laid(t, layout).detach().requires_grad_() for t in (leafgrad, torch)]
        for _ in range(2):
            for t, x in zip((leafgrad, torch), leaves, strict=True):
                loss(t, x).backward()
            same(leaves[0].grad, leaves[1].grad)


def test_attention_lies_as_its_queries_where_its_heads_do():
    def attended(t, width, heads):
        shapes = ((2, 4, 3, 8), (2, 6, heads, 8), (2, 6, heads, width))
        q, k, v = (t.ones(s).transpose(1, 2) for s in shapes)
        return t.nn.functional.scaled_dot_product_attention(q, k, v)

    out = attended(leafgrad, 8, 3)
    assert out.transpose(1, 2).view(2, 4, 24).shape == (2, 4, 24)
    torch = pytest.importorskip("torch")
    for case in ((8, 3), (7, 3), (8, 1)):
        same(attended(leafgrad, *case), attended(torch, *case))


def test_strides_of_what_nobody_compares_with():
    """The rules in short, for those who have no PyTorch."""
    last = IMAGES
    assert leafgrad.cat([last, last], 1).is_contiguous(memory_format=leafgrad.channels_last)
    assert leafgrad.cat([last, last.contiguous()], 1).is_contiguous()
    assert (last + last.contiguous()).stride() == last.stride()
    assert (last.contiguous() + last).is_contiguous()
    assert last.masked_fill(last > 3, 0.0).is_contiguous()
    leaf = last.detach().requires_grad_()
    leaf.sum().backward()
    assert leaf.grad.stride() == last.stride()


# ---- memory formats -----------------------------------------------------------------------------------------------

FORMATTED = {
    "to": lambda t, x, f: x.to(memory_format=f),
    "to(copy)": lambda t, x, f: x.to(t.float32, copy=True, memory_format=f),
    "to another dtype": lambda t, x, f: x.double(memory_format=f),
    "clone": lambda t, x, f: x.clone(memory_format=f),
    "zeros_like": lambda t, x, f: t.zeros_like(x, memory_format=f),
}


@pytest.mark.parametrize("name", FORMATTED)
def test_strides_are_those_of_the_format_even_where_a_size_is_1(name, t):
    for shape, steps in (((2, 1, 2, 2), (4, 1, 2, 1)), ((2, 3, 1, 1), (3, 1, 3, 3)), ((1, 3, 1, 2), (6, 1, 6, 3))):
        x = t.ones(shape, requires_grad=name != "zeros_like")
        y = FORMATTED[name](t, x, t.channels_last)
        assert (y.stride(), y is x, y._base) == (steps, False, None)
        y.detach_().mul_(2)
        assert x.sum() == x.numel()
        if t is leafgrad:
            compiled = leafgrad.compile(FORMATTED[name])(t, x, t.channels_last)
            assert (compiled is x, compiled._base, compiled.shape) == (False, None, x.shape)
        again = FORMATTED[name](t, y.to(x.dtype), t.channels_last)
        assert (again.stride(), again is y) == (steps, name == "to")
        assert FORMATTED[name](t, y, t.contiguous_format).is_contiguous()


def test_a_tensor_that_is_no_image_is_in_the_contiguous_format_already(t):
    x = t.arange(6.0).reshape(2, 3).t()
    assert x.to(memory_format=t.contiguous_format) is x
    for y in (
        x.to(t.float32, copy=True, memory_format=t.contiguous_format),
        x.double(memory_format=t.contiguous_format),
    ):
        assert y.stride() == (2, 1)
    assert x.contiguous().stride() == x.clone(memory_format=t.contiguous_format).stride() == (2, 1)
    images = t.zeros(2, 3, 4, 5).contiguous(memory_format=t.channels_last)
    assert images.to(memory_format=t.channels_last) is images
    assert images.to(memory_format=t.contiguous_format).stride() == (60, 20, 5, 1)


OWN = {
    "roll": lambda t, x: x.roll(1),
    "rot90": lambda t, x: x.rot90(),
    "max": lambda t, x: x.max(-1).values,
    "median": lambda t, x: x.median(0).values,
    "kthvalue": lambda t, x: x.kthvalue(1).values,
    "topk": lambda t, x: x.topk(2).indices,
    "quantile": lambda t, x: t.quantile(x, 0.5, 0),
    "kron": lambda t, x: t.kron(x, x),
    "index_select": lambda t, x: x.sum().index_select(0, t.tensor([0])),
}


@pytest.mark.parametrize("name", OWN)
def test_what_shares_memory_with_nothing_is_no_view(t, name):
    x = t.arange(4.0).reshape(2, 2).requires_grad_()

    def cut(x):
        y = OWN[name](t, x)
        assert (y._is_view(), y._base) == (False, None)
        part = y.unsqueeze(0)
        y[...] = y * 0 + 3
        assert y.detach_() is y
        y.add_(1)
        return y, part * 1

    for function in (cut, leafgrad.compile(cut) if t is leafgrad else cut):
        y, part = function(x)
        assert (y == 4).all()
        assert (part == 4).all()
        assert not y.requires_grad


# ---- inside vmap --------------------------------------------------------------------------------------------------


def test_samples_lie_in_memory_as_their_batch_says(t):
    seen, flat = [], t.arange(12.0)

    def note(x):
        seen.append((x.is_contiguous(), x.stride()))
        return x

    for batch, in_dim in ((flat.reshape(2, 3, 2), 0), (flat.reshape(3, 2, 2), 1), (flat.reshape(2, 2, 3).mT, 0)):
        t.func.vmap(note, in_dims=in_dim)(batch)
    t.func.vmap(t.func.vmap(note, in_dims=1))(flat.reshape(2, 1, 2, 3))
    t.func.vmap(note)(t.zeros(2, 3, 0, 4).mT)
    assert [plain for plain, _ in seen] == [True, False, False, True, True]
    assert [steps for _, steps in seen][:4] == [(2, 1), (4, 1), (1, 3), (6, 1)]


def test_a_copy_in_order_of_a_sample_has_memory_of_its_own(t):
    batch = t.arange(12.0).reshape(2, 2, 3)

    def written(x):
        y = x.t().contiguous()
        y.zero_()
        z = x[0].expand(2, 3).contiguous()
        z[0] = 5
        return x.sum(), z

    sums, z = t.func.vmap(written)(batch)
    assert (sums.tolist(), batch.sum().item()) == ([15, 51], 66)
    assert z.tolist() == [[[5, 5, 5], [0, 1, 2]], [[5, 5, 5], [6, 7, 8]]]

    def strided(x):
        return (t.as_strided(x.t().contiguous(), (2,), (1,)) * t.arange(2.0)).sum()

    assert t.func.vmap(t.func.grad(strided))(batch).tolist() == [[[0, 0, 0], [1, 0, 0]]] * 2
    if t is leafgrad:
        assert leafgrad.compile(leafgrad.func.vmap(strided))(batch).tolist() == [3, 9]


def group_norm(x):
    return nn.functional.group_norm(x, 2)


def max_unpool(x):
    return nn.functional.max_unpool2d(*nn.functional.max_pool2d(x, 1, return_indices=True), 1)


@pytest.mark.parametrize("function", [group_norm, max_unpool])
def test_results_in_a_format_share_compiled_what_they_do_uncompiled(function):
    def step(x):
        y = function(x)
        y.reshape(-1).fill_(7)
        return y

    compiled, expected = leafgrad.compile(step), step(IMAGES)
    for _ in range(3):
        found = compiled(IMAGES)
        assert found.stride() == expected.stride()
        assert leafgrad.equal(found, expected)
