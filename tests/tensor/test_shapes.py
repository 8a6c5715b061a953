"""Rearranging, joining and taking apart, against NumPy on every device."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.autograd import gradcheck
from leafgrad.testing.fake import no_sync

TESTS = "tensor.rearranging"


def cube(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape or (3, 4, 5))


# What leafgrad does with tensors, and NumPy with arrays of the given shapes.
X, M, V = (3, 4, 5), (4, 4), (5,)
CASES = [
    (lambda x: x.reshape(4, -1), lambda a: a.reshape(4, -1), X),
    (lambda x: leafgrad.reshape(x, (60,)), lambda a: a.reshape(60), X),
    (lambda x: x.permute(2, 0, 1).reshape(5, 12), lambda a: a.transpose(2, 0, 1).reshape(5, 12), X),
    (lambda x: x.view(12, 5), lambda a: a.reshape(12, 5), X),
    (lambda x: x.view_as(leafgrad.zeros(20, 3)), lambda a: a.reshape(20, 3), X),
    (lambda x: x.reshape_as(leafgrad.zeros(20, 3)), lambda a: a.reshape(20, 3), X),
    (lambda x: x.flatten(1), lambda a: a.reshape(3, 20), X),
    (lambda x: x.flatten(), lambda a: a.reshape(1), ()),
    (lambda x: x.unflatten(1, (2, -1)), lambda a: a.reshape(3, 2, 2, 5), X),
    (lambda x: x.ravel(), lambda a: a.ravel(), X),
    (lambda x: x.squeeze(), lambda a: a.squeeze(), (1, 3, 1)),
    (lambda x: x.squeeze(1), lambda a: a, (1, 3, 1)),
    (lambda x: x.squeeze((0, -1)), lambda a: a.squeeze((0, 2)), (1, 3, 1)),
    (lambda x: x.unsqueeze(-2), lambda a: a[:, :, None], X),
    (lambda x: leafgrad.unsqueeze(x, 0), lambda a: a[None], ()),
    (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2), X),
    (lambda x: x.swapaxes(0, 1).swapdims(1, 2), lambda a: a.transpose(1, 2, 0), X),
    (lambda x: x.T + x.t() + x.mT, lambda a: 3 * a.T, M),
    (lambda x: x.t(), lambda a: a, V),
    (lambda x: x.mT, lambda a: a.swapaxes(1, 2), X),
    (lambda x: leafgrad.permute(x, (2, 0, -2)), lambda a: a.transpose(2, 0, 1), X),
    (lambda x: x.movedim((0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0)), X),
    (lambda x: leafgrad.moveaxis(x, 0, -1), lambda a: np.moveaxis(a, 0, -1), X),
    (lambda x: x.expand(2, -1, 4), lambda a: np.broadcast_to(a, (2, 3, 4)), (3, 1)),
    (lambda x: x.expand_as(leafgrad.zeros(3, 4)), lambda a: np.broadcast_to(a, (3, 4)), (3, 1)),
    (lambda x: leafgrad.broadcast_to(x, (2, 5)), lambda a: np.broadcast_to(a, (2, 5)), V),
    (lambda x, y: leafgrad.broadcast_tensors(x, y), lambda a, b: np.broadcast_arrays(a, b), (3, 1), (4,)),
    (lambda x: x.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3)), (2, 3)),
    (lambda x: x.repeat(1, 1), lambda a: a, (2, 3)),
    (lambda x: x.repeat(3), lambda a: np.tile(a, 3), (1,)),
    (lambda x: x.tile(2), lambda a: np.tile(a, 2), (2, 3)),
    (lambda x: x.repeat_interleave(2), lambda a: a.repeat(2), (2, 3)),
    (lambda x: x.repeat_interleave(3, 1), lambda a: a.repeat(3, 1), (2, 3)),
    (lambda x: leafgrad.cat([x, x[:, :1]], 1), lambda a: np.concatenate([a, a[:, :1]], 1), (2, 3)),
    (lambda x, e: leafgrad.cat([e, x, e]), lambda a, e: a, (2, 3), (0,)),
    (lambda x, y: leafgrad.stack([x, y], -1), lambda a, b: np.stack([a, b], -1), (2, 3), (2, 3)),
    (lambda x: leafgrad.hstack([x, x]), lambda a: np.hstack([a, a]), (2, 3)),
    (lambda x: leafgrad.vstack([x, x]), lambda a: np.vstack([a, a]), V),
    (lambda x: leafgrad.dstack([x, x]), lambda a: np.dstack([a, a]), V),
    (lambda x: leafgrad.column_stack([x, x]), lambda a: np.column_stack([a, a]), V),
    (lambda x: x.split(2, 1), lambda a: [a[:, :2], a[:, 2:]], X),
    (lambda x: x.split([1, 3], 1), lambda a: [a[:, :1], a[:, 1:]], X),
    (lambda x: x.chunk(3, 2), lambda a: [a[..., :2], a[..., 2:4], a[..., 4:]], X),
    (lambda x: x.unbind(1), lambda a: list(a.swapaxes(0, 1)), X),
    (lambda x: x.tensor_split(3, 2), lambda a: np.array_split(a, 3, 2), X),
    (lambda x: x.tensor_split((1, -1), 2), lambda a: np.array_split(a, (1, 4), 2), X),
    (lambda x: leafgrad.hsplit(x, 2), lambda a: np.hsplit(a, 2), X),
    (lambda x: leafgrad.vsplit(x, 3), lambda a: np.vsplit(a, 3), X),
    (lambda x: leafgrad.dsplit(x, [2]), lambda a: np.dsplit(a, [2]), X),
    (lambda x: x.narrow(1, -2, 2), lambda a: a[:, 2:], X),
    (lambda x: x.select(1, -1), lambda a: a[:, -1], X),
    (lambda x: x.unfold(2, 3, 2), lambda a: np.stack([a[..., :3], a[..., 2:]], 2), X),
    (lambda x: x.diagonal(1, 0, 2), lambda a: a.diagonal(1, 0, 2), X),
    (lambda x: leafgrad.diag(x), lambda a: np.diag(a), M),
    (lambda x: leafgrad.diag(x, -1), lambda a: np.diag(a, -1), V),
    (lambda x: leafgrad.diag_embed(x)[1], lambda a: np.diag(a[1]), (2, 3)),
    (lambda x: leafgrad.diagflat(x, 1), lambda a: np.diagflat(a, 1), (2, 2)),
    (lambda x: x.flip(0, 2), lambda a: np.flip(a, (0, 2)), X),
    (lambda x: leafgrad.flipud(leafgrad.fliplr(x)), lambda a: a[::-1, ::-1], M),
    (lambda x: x.roll(2), lambda a: np.roll(a, 2), X),
    (lambda x: x.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2)), X),
    (lambda x: [x.rot90(k, (0, 2)) for k in (3, 0, 2, 5)], lambda a: [np.rot90(a, k, (0, 2)) for k in (3, 0, 2, 1)], X),
    (lambda x: x.tril(1) + 2 * x.triu(-1), lambda a: np.tril(a, 1) + 2 * np.triu(a, -1), X),
    (lambda x: leafgrad.atleast_1d(x), lambda a: np.atleast_1d(a), ()),
    (lambda x, y: leafgrad.atleast_2d(x, y), lambda a, b: np.atleast_2d(a, b), (), V),
    (lambda x, y: leafgrad.atleast_3d(x, y), lambda a, b: np.atleast_3d(a, b), V, M),
    (lambda x, y: leafgrad.meshgrid(x, y), lambda a, b: np.meshgrid(a, b, indexing="ij"), (2,), (3,)),
    (lambda x, y: leafgrad.meshgrid([x, y, x], indexing="xy"), lambda a, b: np.meshgrid(a, b, a), (2,), (3,)),
    (lambda x, y: leafgrad.cartesian_prod(x, y), lambda a, b: [[p, q] for p in a for q in b], (2,), (3,)),
    (
        lambda x, y: leafgrad.block_diag(x, y),
        lambda a, b: np.block([[a, np.zeros((2, 5))], [np.zeros((1, 3)), b[None]]]),
        (2, 3),
        V,
    ),
]  # fmt: skip


def outputs(result):
    return result if isinstance(result, (tuple, list)) else (result,)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_values_without_waiting_for_the_device(case, device):
    function, expected, *shapes = case
    arrays = [cube(*s) if s else np.asarray(1.5) for s in shapes]
    tensors = [leafgrad.tensor(a, device=device) for a in arrays]
    with no_sync():
        found = outputs(function(*tensors))
    want = expected(*arrays)
    want = want if isinstance(want, (tuple, list)) and isinstance(want[0], np.ndarray) else [np.asarray(want)]
    assert len(found) == len(want)
    for t, w in zip(found, want, strict=True):
        assert (t.device, t.dtype) == (device, leafgrad.float64)
        np.testing.assert_array_equal(t.cpu().numpy(), w)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_first_and_second_gradients(case):
    function, _, *shapes = case
    leaves = [leafgrad.tensor(cube(*s) if s else np.asarray(1.5), requires_grad=True) for s in shapes if s != (0,)]
    extra = [leafgrad.zeros(0, dtype=leafgrad.float64) for s in shapes if s == (0,)]

    def gradient(*xs):
        loss = sum((y * y * y).sum() for y in outputs(function(*xs, *extra)))
        return leafgrad.autograd.grad(loss, xs, create_graph=True)

    assert gradcheck(lambda *xs: tuple(outputs(function(*xs, *extra))), leaves, fast_mode=True)
    assert gradcheck(gradient, leaves, fast_mode=True)


def test_repeats_from_a_tensor(device):
    x = leafgrad.tensor(cube(2, 3), device=device, requires_grad=True)
    y = x.repeat_interleave(leafgrad.tensor([1, 3], device=device), 0)
    assert y.tolist() == x.detach().cpu().numpy().repeat([1, 3], 0).tolist()
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [3, 3, 3]]


def test_repeats_alone(device):
    assert leafgrad.tensor([0, 2, 1], device=device).repeat_interleave().tolist() == [1, 1, 2]
    none = leafgrad.ones(0, dtype=leafgrad.int64, device=device)
    assert none.repeat_interleave().shape == none.repeat_interleave(none).shape == (0,)
    with pytest.raises(RuntimeError, match="1D vector"):
        leafgrad.ones(1, 2).long().repeat_interleave()


def test_fill_diagonal():
    def filled(*shape, wrap=False):
        return leafgrad.zeros(*shape).fill_diagonal_(1, wrap)

    assert filled(4, 2).tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    for rows, columns in ((4, 2), (9, 2), (7, 3), (8, 3), (5, 1), (2, 4), (3, 3)):
        expected = np.zeros((rows, columns))
        np.fill_diagonal(expected, 1, wrap=True)
        assert filled(rows, columns, wrap=True).tolist() == expected.tolist()
    assert filled(3, 3, 3).nonzero().tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    x = leafgrad.ones(2, 2, requires_grad=True)
    x.clone().fill_diagonal_(3).sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0]]
    for shape, match in (((3,), "larger than 1"), ((2, 2, 3), "equal length")):
        with pytest.raises(RuntimeError, match=match):
            filled(*shape)


def test_cat_promotes(device):
    f, i = leafgrad.ones(2, device=device, requires_grad=True), leafgrad.arange(2, device=device)
    y = leafgrad.cat([f, i, f.to(leafgrad.float64)])
    assert y.dtype is leafgrad.float64
    y.sum().backward()
    assert (f.grad.dtype, f.grad.tolist()) == (leafgrad.float32, [2, 2])


@pytest.mark.parametrize("compiled", [False, True])
def test_cat_with_a_tensor_of_no_elements(compiled, device):
    """Its dtype counts, as in ``all = cat([all, part])`` that begins with ``tensor([])``."""
    cat = leafgrad.compile(leafgrad.cat) if compiled else leafgrad.cat
    none = leafgrad.tensor([], device=device, requires_grad=True)
    for part in (leafgrad.arange(3, device=device), leafgrad.ones(2, 3, dtype=leafgrad.float16, device=device)):
        for parts in ([none, part], [part, none]):
            y = cat(parts, -1)
            assert (y.dtype, y.shape, y.requires_grad) == (leafgrad.float32, part.shape, True)
            assert y.tolist() == part.tolist()
    y.sum().backward()
    assert none.grad.shape == (0,)
    with pytest.raises(RuntimeError, match=r"zero-dimensional tensor \(at position 1\)"):
        leafgrad.cat([none, none.sum()])


def test_unflatten_without_elements(device):
    x = leafgrad.zeros(0, 6, device=device)
    assert x.unflatten(1, (2, -1)).shape == (0, 2, 3)
    with pytest.raises(RuntimeError, match="only one dimension can be inferred"):
        x.unflatten(1, (-1, -1))


def test_sizes_and_strides(device):
    x = leafgrad.zeros(3, 4, 5, device=device)
    assert x.size() == x.shape == (3, 4, 5)
    assert (x.size(-1), x.dim(), x.ndimension(), x.numel(), x.nelement(), x.element_size()) == (5, 3, 3, 60, 60, 4)
    assert isinstance(x.size(), leafgrad.Size)
    assert (x.stride(), x.stride(1)) == ((20, 5, 1), 5)
    y = x.transpose(0, 2)
    assert (y.stride(), y.is_contiguous(), x.is_contiguous()) == ((1, 5, 20), False, True)
    assert x.contiguous() is x
    assert y.contiguous().stride() == (12, 3, 1)
    assert leafgrad.numel(x) == 60
    assert leafgrad.broadcast_shapes((3, 1), (4,), 1) == (3, 4)


def test_copies_do_not_share_memory(device):
    x = leafgrad.ones(1, 1, device=device)
    copies = [
        x.repeat(1, 1), x.repeat(3, 1), x.flip(0), x.roll(0), x.rot90(0), x.tril(), x.triu(), x.diag(), x.tile(1),
        x.repeat_interleave(1, 0), leafgrad.cat([x]), leafgrad.stack([x]), x.flip(()),
        x.diag_embed(), leafgrad.diag(x),
    ]  # fmt: skip
    for i, y in enumerate(copies):
        y.fill_(5)
        assert x.item() == 1, i


def test_conversions_by_name(device):
    x = leafgrad.tensor([0.0, 1.7, -2.2], device=device)
    names = "double half short int long char byte bool".split()
    kinds = "float64 float16 int16 int32 int64 int8 uint8 bool".split()
    for name, kind in zip(names, kinds, strict=True):
        y = getattr(x.abs() if kind == "uint8" else x, name)()
        assert (y.dtype.name, y.device) == (kind, device)
        assert y.float().dtype is leafgrad.float32
    assert x.long().tolist() == [0, 1, -2]
    assert x.float() is x
    assert x.type_as(x.int()).dtype is leafgrad.int32
    assert x.type(leafgrad.int64).type("leafgrad.HalfTensor").dtype is leafgrad.float16
    assert x.type() == ("leafgrad.FloatTensor" if device.type == "cpu" else f"leafgrad.{device.type}.FloatTensor")
    assert leafgrad.is_tensor(x)
    assert not leafgrad.is_tensor([1])
    assert x.is_floating_point()
    assert not leafgrad.is_floating_point(x.long())
    assert leafgrad.is_nonzero(x[1])
    with pytest.raises(ValueError, match="invalid type"):
        x.type("Float")


x, v = leafgrad.zeros(3, 4, 5), leafgrad.zeros(3)
ERRORS = [
    (lambda: x.reshape(7, -1), RuntimeError, r"shape '\[7, -1\]' is invalid for input of size 60"),
    (lambda: x.reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda: x.reshape(-2, 30), RuntimeError, "invalid shape dimension -2"),
    (lambda: x.reshape("a"), TypeError, "tuple of ints"),
    (lambda: leafgrad.zeros(0, 3).reshape(0, -1), RuntimeError, "ambiguous"),
    (lambda: x.permute(2, 0, 1).view(60), RuntimeError, r"Use \.reshape"),
    (lambda: x.flatten(2, 1), RuntimeError, "start_dim cannot come after end_dim"),
    (lambda: x.unflatten(1, (3, 2)), RuntimeError, "don't multiply up"),
    (lambda: x.unflatten(1, ()), RuntimeError, "non-empty"),
    (lambda: x.unsqueeze(4), IndexError, r"\[-4, 3\], but got 4"),
    (lambda: x.squeeze(3), IndexError, "Dimension out of range"),
    (lambda: x.transpose(0, 3), IndexError, "Dimension out of range"),
    (lambda: x.t(), RuntimeError, "<= 2 dimensions"),
    (lambda: v.mT, RuntimeError, "matrices"),
    (lambda: x.permute(0, 1), RuntimeError, "does not match the length"),
    (lambda: x.permute(0, 1, 1), RuntimeError, "duplicate dims"),
    (lambda: x.movedim((0, 1), (0,)), RuntimeError, "same number of dims"),
    (lambda: x.movedim((0, 0), (1, 2)), RuntimeError, "repeated dim in `source`"),
    (lambda: v.expand(4), RuntimeError, r"expanded size of the tensor \(4\) must match the existing size \(3\)"),
    (lambda: x.expand(5), RuntimeError, "greater or equal to the number of dimensions"),
    (lambda: v.expand(-1, 3), RuntimeError, "expanded size"),
    (lambda: leafgrad.broadcast_shapes((3, 2), (4,)), RuntimeError, "Shape mismatch"),
    (lambda: x.repeat(2), RuntimeError, "can not be smaller"),
    (lambda: v.repeat(-1), RuntimeError, "negative"),
    (lambda: v.repeat_interleave(leafgrad.tensor([1, 2]), 0), RuntimeError, "same size as input"),
    (lambda: v.repeat_interleave(leafgrad.tensor([1, 2, -1]), 0), RuntimeError, "negative"),
    (lambda: v.repeat_interleave(-1), RuntimeError, "negative"),
    (lambda: leafgrad.cat([]), ValueError, "non-empty"),
    (lambda: leafgrad.cat(x), TypeError, "tuple of Tensors"),
    (lambda: leafgrad.cat([x, 1]), TypeError, r"'tensors\[1\]' must be Tensor, not int"),
    (lambda: leafgrad.cat([x, v]), RuntimeError, "same number of dimensions"),
    (lambda: leafgrad.cat([x[:, 1:], x]), RuntimeError, "Expected size 3 but got size 4 for tensor number 1"),
    (lambda: leafgrad.cat([x[0, 0, 0]]), RuntimeError, "zero-dimensional"),
    (lambda: leafgrad.stack([]), RuntimeError, "non-empty"),
    (lambda: leafgrad.stack([x, v]), RuntimeError, "stack expects each tensor to be equal size"),
    (lambda: plugins.op("stack")(x[:2], x[:1], x, dim=0), RuntimeError, "size"),  # as many rows as 3 times two
    (lambda: x.split(0, 1), RuntimeError, "split_size=0"),
    (lambda: x.split([1, 2], 1), RuntimeError, "sum exactly to 4"),
    (lambda: x[0, 0, 0].split(1), RuntimeError, "1-dimensional"),
    (lambda: x.chunk(0), RuntimeError, "greater than 0"),
    (lambda: x.tensor_split(0), RuntimeError, "larger than 0"),
    (lambda: leafgrad.hsplit(x, 3), RuntimeError, "not divisible"),
    (lambda: leafgrad.dsplit(v, 1), RuntimeError, "at least 3"),
    (lambda: x[0, 0, 0].unbind(), IndexError, "no dimensions"),
    (lambda: x.narrow(1, 3, 2), RuntimeError, "exceeds dimension size"),
    (lambda: x.narrow(1, 9, 0), IndexError, "start out of range"),
    (lambda: x.narrow(1, 0, -1), RuntimeError, "non-negative"),
    (lambda: x.select(1, 4), IndexError, "out of range"),
    (lambda: x.unfold(2, 6, 1), RuntimeError, "maximum size"),
    (lambda: x.unfold(2, 2, 0), RuntimeError, "must be > 0"),
    (lambda: x.diagonal(0, 1, 1), RuntimeError, "identical"),
    (lambda: x.diag(), RuntimeError, "1D or 2D"),
    (lambda: x.flip(1, 1), RuntimeError, "multiple times"),
    (lambda: v.fliplr(), RuntimeError, ">= 2-d"),
    (lambda: x.roll((1, 2), 0), RuntimeError, "must align"),
    (lambda: x.roll(()), RuntimeError, "shifts"),
    (lambda: leafgrad.tensor(1.0).roll(1, -1), IndexError, "-1 but tensor has no dimensions; leave out dims"),
    (lambda: x.rot90(1, (0, 0)), RuntimeError, "different"),
    (lambda: v.tril(), RuntimeError, "at least 2 dimensions"),
    (lambda: leafgrad.meshgrid(x), RuntimeError, "0D or 1D"),
    (lambda: leafgrad.meshgrid(v, indexing="yx"), RuntimeError, "xy"),
    (lambda: leafgrad.block_diag(x), RuntimeError, "2 or fewer"),
    (lambda: x[0, 0, 0].size(0), IndexError, "no dimensions"),
    (lambda: leafgrad.flip([1], (0,)), TypeError, "must be Tensor"),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS, ids=range(len(ERRORS)))
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("padding", [(1, 2), (0, 1, 2, 0), (-1, 1, 0, -2), (0, 0), ()])
def test_constant_pad(padding, device):
    from leafgrad.tensor.rearranging import constant_pad

    a = cube(2, 3, 4)
    leaf = leafgrad.tensor(a, device=device, requires_grad=True)
    y = constant_pad(leaf, padding, 7.0)
    pairs = [(0, 0)] * 3
    for i in range(len(padding) // 2):
        pairs[2 - i] = padding[2 * i : 2 * i + 2]
    cut = a[tuple(slice(max(-p, 0), n - max(-q, 0)) for (p, q), n in zip(pairs, a.shape, strict=True))]
    want = np.pad(cut, [(max(p, 0), max(q, 0)) for p, q in pairs], constant_values=7.0)
    np.testing.assert_array_equal(y.detach().cpu().numpy(), want)
    y.sum().backward()
    assert leaf.grad.sum().item() == cut.size
    with pytest.raises(RuntimeError, match="negative output size"):
        constant_pad(leaf, (-5, 0), 0.0)


def test_ravel_leaves_no_gaps():
    x = leafgrad.arange(10.0)
    assert x.ravel().data_ptr() == x.data_ptr()
    assert x[::2].ravel().is_contiguous()
    assert x[::2].ravel().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_what_cannot_be_cut_is_refused():
    x = leafgrad.arange(12).view(4, 3)
    assert [p.shape[0] for p in x.tensor_split(leafgrad.tensor([1, 3]))] == [1, 2, 1]
    assert x.narrow(0, leafgrad.tensor(1), 2).tolist() == x[1:3].tolist()
    for start in (leafgrad.tensor([1]), leafgrad.tensor([0, 1])):
        with pytest.raises(RuntimeError, match=r"narrow\(\): start"):
            x.narrow(0, start, 1)
    for places in (leafgrad.tensor([1.0, 2.0]), leafgrad.tensor([[1]])):
        with pytest.raises(RuntimeError, match="tensor_indices_or_sections"):
            x.tensor_split(places)
    with pytest.raises(RuntimeError, match=r"leafgrad\.hsplit requires a tensor with at least 1 dimension"):
        leafgrad.tensor(1.0).hsplit(2)
    with pytest.raises(RuntimeError, match=r"tensor\.H is only supported on matrices \(2-D tensors\)\. Got 3-D tensor"):
        _ = x.view(2, 2, 3).H
    with pytest.raises(ValueError, match="expected sizes of at least 0"):
        leafgrad.broadcast_shapes((2,), -1)


def test_sizes_and_dimensions_by_keyword():
    x = leafgrad.arange(6.0).reshape(2, 3)
    assert x.flip(dims=(0, 1)).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert x.permute(dims=(1, 0)).shape == x.view(size=(3, 2)).shape == x.reshape(shape=(3, 2)).shape == (3, 2)
    assert x.repeat(repeats=(2, 1)).shape == x.tile(dims=(2, 1)).shape == (4, 3)
    assert x.expand(size=(4, 2, 3)).shape == x.broadcast_to(size=(4, 2, 3)).shape == (4, 2, 3)
    assert [part.shape for part in x.split_with_sizes(split_sizes=[1, 2], dim=1)] == [(2, 1), (2, 2)]
    assert leafgrad.randint(high=3, size=(2,)).shape == (2,)
    assert x.clone().uniform_(to=0).tolist() == (x * 0).tolist()
    assert x.clone().uniform_(**{"from": 3, "to": 3}).tolist() == (x * 0 + 3).tolist()
    assert x.clone().random_(to=1).tolist() == x.clone().random_(**{"from": 0, "to": 1}).tolist() == (x * 0).tolist()
    with pytest.raises(TypeError, match="unexpected keyword argument 'dims'; it takes size, dtype"):
        x.view(dims=(3, 2))


def test_no_dimensions_are_squeezed_if_none_are_named():
    x = leafgrad.ones(1, 2, 1)
    assert x.squeeze([]).shape == x.squeeze(()).shape == x.clone().squeeze_([]).shape == (1, 2, 1)


def test_sums_to_sizes_that_broadcast():
    x = leafgrad.arange(24.0).reshape(2, 3, 4)
    for size in ((2, 3, 4), (3, 4), (4,), (1,), (3, 1), (1, 3, 1), (2, 1, 1)):
        ones = leafgrad.ones(size, requires_grad=True)
        (expected,) = leafgrad.autograd.grad((ones.expand(2, 3, 4) * x).sum(), ones)
        assert (x.sum_to_size(size) == expected).all()
        assert x.sum_to_size(*size).shape == size
    for whole in (x.bool(), x.to(leafgrad.uint8), x.int()):
        for summed in (leafgrad.Tensor.sum_to_size, leafgrad.compile(leafgrad.Tensor.sum_to_size)):
            assert summed(whole, 1, 3, 1).dtype is leafgrad.int64
    for number in (x[0, 0, 0], x[0, 0, 0].int()):
        total = number.sum_to_size(())
        assert (total.dtype, total.data_ptr() == number.data_ptr()) == (number.sum().dtype, False)
    for size in ((2,), (1, 1, 3, 4), (3, 2)):
        with pytest.raises(RuntimeError, match="is not expandable to size"):
            x.sum_to_size(size)


def test_what_cannot_be_viewed_is_refused_inside_vmap_too(t):
    batch = t.arange(12.0).reshape(3, 2, 2)

    def write(x):
        x.view(-1)[0] = 50
        return x

    assert t.func.vmap(write)(batch.clone())[0].tolist() == [[50, 1], [2, 3]]
    for function, in_dim in ((write, 1), (lambda x: x.t().view(-1), 0), (lambda x: x.t().view(1, 6), 2)):
        with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
            t.func.vmap(function, in_dims=in_dim)(batch)
    assert t.func.vmap(lambda x: x.t().reshape(-1))(batch)[0].tolist() == [0, 2, 1, 3]


def test_numbers_count_less_for_the_dtype_of_a_block_matrix(t):
    number, matrix = t.tensor(2.0, dtype=t.float64), t.ones(1, 1).half()
    assert t.block_diag(number, matrix).dtype is t.float16
    assert t.block_diag(number, matrix.int()).dtype is t.float64
    assert t.block_diag(number.long(), matrix.int()).tolist() == [[2, 0], [0, 1]]
