"""``t[...]``, ``t[...] = value``, and what picks and writes by index tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad
from leafgrad import backends
from leafgrad.autograd import gradcheck
from leafgrad.tensor import indexing
from leafgrad.testing.fake import no_sync

X = np.arange(60.0).reshape(3, 4, 5)
LIST, PAIR = np.array([2, 0, -1]), np.array([[0, 3], [1, -1]])
ROWS, MASK = np.array([True, False, True]), X % 3 == 1

BASIC = [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, 3), slice(-2, None), slice(None, None, 2), slice(5, 2), ..., None,
    (),
    (..., 0), (0, ..., 1), (slice(None), 1), (slice(None), slice(1, None, 2), -1), (None, 0, None, ..., None),
    (slice(0, 0), ...), np.int64(1), (slice(np.int64(1), None),),
]  # fmt: skip
SHORT = [
    5, (-3, 2), slice(2), (slice(9, 1), -1), (0, slice(None)), (0, 0, 0, 0), (None, slice(None)), (slice(None), None),
    (..., slice(None)), (0, ...), (..., ...), (0, 0, 0, 0, ...), (..., None, 0), ((), None),
]  # fmt: skip
PICKING = [
    LIST, [2, 0], (LIST, LIST), (slice(None), PAIR), (..., LIST), (LIST, None, LIST), (LIST, slice(1, 3)), ROWS, MASK,
    (ROWS, 1), (slice(None), slice(None), PAIR), (MASK[..., 0],), (0, MASK[0]), (PAIR[:, :1] % 3, LIST[:2]), [], True,
    False, (None, LIST), (ROWS, LIST[:2]),
]  # fmt: skip


def key_on(key, device):
    """``key`` with its arrays as tensors on ``device``."""
    if isinstance(key, tuple):
        return tuple(key_on(k, device) for k in key)
    return leafgrad.tensor(key, device=device) if isinstance(key, np.ndarray) else key


def numpy_key(key):
    return np.array([], int) if key == [] else key


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 0), (1,), ()], ids=str)
def test_the_short_way_chooses_what_the_plan_does(shape):
    x, short = leafgrad.zeros(shape), 0
    for key in [*BASIC, *SHORT, *PICKING]:
        at = indexing.simple_index(key, shape)
        if at is not None:
            assert at == indexing.ParsedKey(x, key).at
            short += 1
    assert short >= len(shape)


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_indices_give_views_without_waiting(key, device):
    x = leafgrad.tensor(X, device=device)
    with no_sync():
        y = x[key]
    np.testing.assert_array_equal(y.cpu().numpy(), X[key])
    y.fill_(-1)
    expected = X.copy()
    expected[key] = -1
    np.testing.assert_array_equal(x.cpu().numpy(), expected)


@pytest.mark.parametrize("key", PICKING, ids=lambda k: str(k).replace("\n", ""))
def test_arrays_and_masks_pick_copies(key, device):
    x = leafgrad.tensor(X, device=device)
    y = x[key_on(key, device)]
    np.testing.assert_array_equal(y.cpu().numpy(), X[numpy_key(key)] if isinstance(key, list) else X[key])
    y.fill_(-1)
    np.testing.assert_array_equal(x.cpu().numpy(), X)


def test_an_int_beside_arrays_chooses_first_as_in_torch(device):
    x = leafgrad.tensor(X, device=device)
    y = x[0, :, key_on(LIST, device)]
    assert y.shape == (4, 3)  # NumPy would give (3, 4)
    np.testing.assert_array_equal(y.cpu().numpy(), X[0][:, LIST])


def test_a_tensor_of_one_integer_is_an_int(device):
    x = leafgrad.tensor(X, device=device)
    x[leafgrad.tensor(1)].fill_(0)
    assert x[1].tolist() == np.zeros((4, 5)).tolist()
    assert x[leafgrad.tensor(2) :].shape == (1, 4, 5)


def test_index_tensors_may_stay_on_the_cpu(device):
    x = leafgrad.tensor(X, device=device)
    assert x[leafgrad.tensor([1, 0])].device == device
    assert x[leafgrad.tensor(ROWS)].shape == (2, 4, 5)


@pytest.mark.parametrize("key", [*BASIC[:16], *PICKING[:12]], ids=lambda k: str(k).replace("\n", ""))
def test_gradients_of_reading_and_writing(key):
    x = leafgrad.tensor(X / 10, requires_grad=True)
    k = key_on(key, "cpu")
    shape = X[key].shape
    v = leafgrad.tensor(np.full(shape[1:], 0.5), requires_grad=True)

    def write(x, v):
        y = x * 1
        y[k] = v * 1
        return y * y * y

    assert gradcheck(lambda x: x[k] ** 3, [x], fast_mode=True)
    assert gradcheck(lambda x: leafgrad.autograd.grad((x[k] ** 3).sum(), x, create_graph=True)[0], [x], fast_mode=True)
    if not isinstance(key, (np.ndarray, tuple)) or np.unique(np.arange(60).reshape(X.shape)[key]).size == np.prod(
        shape
    ):
        assert gradcheck(write, [x, v], fast_mode=True)


@pytest.mark.parametrize("key", [*BASIC[:16], *PICKING], ids=lambda k: str(k).replace("\n", ""))
def test_writing(key, device):
    plain = numpy_key(key) if isinstance(key, list) else key
    shape = X[plain].shape
    for value in (7.0, np.asarray(3.0), np.full(shape[-1:], 2.0), np.full((1, *shape), 2.5), [1.5] if shape else 1.5):
        x, expected = leafgrad.tensor(X, device=device), X.copy()
        x[key_on(key, device)] = leafgrad.tensor(value, device=device) if isinstance(value, np.ndarray) else value
        expected[plain] = np.asarray(value).reshape(np.shape(value)[1:]) if np.ndim(value) > len(shape) else value
        np.testing.assert_array_equal(x.cpu().numpy(), expected)


def test_a_scalar_goes_where_a_mask_holds_without_waiting(device):
    x, m = leafgrad.tensor(X, device=device), leafgrad.tensor(MASK, device=device)
    with no_sync():
        x[m] = 0
        x[m[:, :, 0]] = leafgrad.tensor(1.0, dtype=leafgrad.float64, device=device)
        y = x.masked_fill(m, 2.0)
    expected = np.where(MASK, 0, X)
    expected[MASK[:, :, 0]] = 1
    assert x.tolist() == expected.tolist()
    assert y.tolist() == np.where(MASK, 2, expected).tolist()


def test_writing_converts_to_the_dtype(device):
    i = leafgrad.zeros(3, dtype=leafgrad.int64, device=device)
    i[0] = 2.7
    i[1:] = leafgrad.tensor([3.9, -1.2], device=device)
    assert i.tolist() == [2, 3, -1]
    b = leafgrad.zeros(2, dtype=leafgrad.bool, device=device)
    b[0] = 5
    assert b.tolist() == [True, False]


ERRORS = [
    (lambda x: x[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x[0, -5], IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    (lambda x: x[0, 0, 0, 0], IndexError, "too many indices for tensor of dimension 3"),
    (lambda x: x[..., 0, ...], IndexError, "single ellipsis"),
    (lambda x: x[::-1], ValueError, "step must be greater than zero"),
    (lambda x: x[::0], ValueError, "step must be greater than zero"),
    (lambda x: x["a"], IndexError, "only integers, slices"),
    (lambda x: x[1.0], IndexError, "only integers, slices"),
    (lambda x: x[leafgrad.tensor([1.0], device=x.device)], IndexError, "integers or bools"),
    (lambda x: x[leafgrad.tensor([3], device=x.device)], IndexError, "index 3 is out of bounds"),
    (lambda x: x[leafgrad.tensor([True, False])], IndexError, r"shape of the mask \[2\]"),
    (lambda x: x[[0, 1], [0, 1, 2]], IndexError, "broadcast"),
    (lambda x: x.__setitem__(0, leafgrad.zeros(3, device=x.device)), RuntimeError, "doesn't match"),
    (lambda x: x.__setitem__(5, 1.0), IndexError, "out of bounds"),
    (lambda x: x.__setitem__(0, "a"), TypeError, "expected a number"),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS, ids=range(len(ERRORS)))
def test_errors(call, error, match, device):
    with pytest.raises(error, match=match):
        call(leafgrad.tensor(X, device=device))


MIXED = [
    (0, slice(None), LIST), (LIST, 0), (slice(None), 0, LIST), (LIST, slice(None), LIST), (None, LIST, None, LIST),
    (slice(None), LIST, LIST), (True, 0, LIST), (..., ROWS[:1], LIST[:1]), (ROWS, None, LIST[:2]),
]  # fmt: skip


@pytest.mark.parametrize("key", [*BASIC[:18], *PICKING, *MIXED], ids=lambda k: str(k).replace("\n", ""))
def test_parity_with_torch(key):
    torch = pytest.importorskip("torch")
    found = []
    for module in (leafgrad, torch):

        def convert(k, module=module):
            return module.tensor(k) if isinstance(k, np.ndarray) else k

        k = tuple(map(convert, key)) if isinstance(key, tuple) else convert(key)
        x = module.tensor(X / 10 - 2, requires_grad=True)
        try:
            y = x[k]
        except IndexError:
            found.append("IndexError")
            continue
        z = x * 1
        z[k] = module.full((1, *y.shape), 0.5, dtype=module.float64)
        (g,) = module.autograd.grad((y**3).sum() + (z * z).sum(), x)
        found.append([y.detach().numpy(), z.detach().numpy(), g.numpy()])
    ours, theirs = found
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- functions ------------------------------------------------------------------------------------------------------


def scattered(x, dim, index, src, combine):
    out = x.copy()
    for place in np.ndindex(index.shape):
        target = (*place[:dim], index[place], *place[dim + 1 :])
        out[target] = combine(out[target], src[place])
    return out


RNG = np.random.default_rng(0)
AT = RNG.integers(0, 4, (3, 6, 2))
SRC = RNG.standard_normal((3, 7, 2))
ONCE = np.argsort(RNG.standard_normal((3, 4, 2)), 1)[:, :2]


def test_gather_and_scatter(device):
    x, at, src, once = (leafgrad.tensor(a, device=device) for a in (X, AT, SRC, ONCE))
    cut = SRC[:, :6]
    for found, expected in (
        (x.gather(1, at), np.take_along_axis(X[..., :2], AT, 1)),
        (leafgrad.gather(x[0, 0, 0], 0, leafgrad.tensor(0, device=device)), X[0, 0, 0]),
        (x.take_along_dim(at[:, :, :1], 1), np.take_along_axis(X, np.broadcast_to(AT[:, :, :1], (3, 6, 5)), 1)),
        (x.take_along_dim(at), X.ravel()[AT.ravel()]),
        (x.take(at), X.ravel()[AT]),
        (x.scatter(1, once, src), scattered(X, 1, ONCE, SRC, lambda old, new: new)),
        (x.scatter(1, at, 2.5), scattered(X, 1, AT, np.full(AT.shape, 2.5), lambda old, new: new)),
        (x.scatter(1, at, value=2.5, reduce="add"), scattered(X, 1, AT, np.full(AT.shape, 2.5), np.add)),
        (x.scatter_add(1, at, src), scattered(X, 1, AT, SRC, np.add)),
        (x.scatter_reduce(1, at, src, "sum", include_self=False),
         scattered(scattered(X, 1, AT, 0 * cut, lambda old, new: new), 1, AT, SRC, np.add)),
        (x.scatter_reduce(1, at, src, "mean"), scattered(X, 1, AT, SRC, np.add)
         / scattered(np.ones_like(X), 1, AT, np.ones_like(SRC), np.add)),
        (x.scatter_reduce(1, at, src, "amax"), scattered(X, 1, AT, SRC, np.maximum)),
        (x.scatter_reduce(1, at, src, "amin", include_self=False),
         scattered(scattered(X, 1, AT, np.full(AT.shape, np.inf), lambda old, new: new), 1, AT, SRC, np.minimum)),
    ):  # fmt: skip
        np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-14)


def test_whole_slices(device):
    x, at, src = (leafgrad.tensor(a, device=device) for a in (X, np.array([2, 0, 2]), RNG.standard_normal((3, 3, 5))))
    added = X.copy()
    np.add.at(added, (slice(None), [2, 0, 2]), 2 * src.cpu().numpy())
    copied, filled = X.copy(), X.copy()
    copied[:, [2, 0]] = src[:, :2].cpu().numpy()
    filled[:, [2, 0]] = 7
    for found, expected in (
        (x.index_select(1, at), X[:, [2, 0, 2]]),
        (x.index_select(1, at[0]), X[:, [2]]),
        (x.index_add(1, at, src, alpha=2), added),
        (x.index_copy(1, at[:2], src[:, :2]), copied),
        (x.index_fill(1, at, 7), filled),
        (x.index_fill(1, at, leafgrad.tensor(7.0, device=device)), filled),
        (x.index_put((None, at[:2]), src[:, :2]), copied),
        (x.index_put((None, at), 2 * src, accumulate=True), added),
    ):
        np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-14)


def test_masks(device):
    x, m, src = (leafgrad.tensor(a, device=device) for a in (X, MASK, -X.ravel()))
    filled = X.copy()
    filled[MASK] = -X.ravel()[: MASK.sum()]
    assert x.masked_select(m).tolist() == X[MASK].tolist()
    assert x.masked_select(m[:1, :, :1]).tolist() == X[np.broadcast_to(MASK[:1, :, :1], X.shape)].tolist()
    assert x.masked_scatter(m, src).tolist() == filled.tolist()
    assert x.masked_fill(m, leafgrad.tensor(2.0)).tolist() == np.where(MASK, 2, X).tolist()
    assert m.nonzero().tolist() == np.argwhere(MASK).tolist()
    assert [t.tolist() for t in m.nonzero(as_tuple=True)] == [a.tolist() for a in np.nonzero(MASK)]
    assert leafgrad.nonzero(leafgrad.tensor(3, device=device)).shape == (1, 0)
    assert leafgrad.argwhere(leafgrad.tensor(0, device=device)).shape == (0, 0)


def test_in_place_forms_do_the_same(device):
    at, src, m = (leafgrad.tensor(a, device=device) for a in (np.array([2, 0]), RNG.standard_normal((3, 2, 5)), MASK))
    along = at[None, :, None].expand(3, 2, 5)
    for name, args in (
        ("index_add", (1, at, src)),
        ("index_copy", (1, at, src)),
        ("index_fill", (1, at, 3.0)),
        ("index_put", ((None, at), src)),
        ("masked_fill", (m, 3.0)),
        ("masked_scatter", (m, leafgrad.tensor(X, device=device))),
        ("scatter", (1, along, src)),
        ("scatter_add", (1, along, src)),
        ("scatter_reduce", (1, along, src, "amax")),
    ):
        x = leafgrad.tensor(X, device=device)
        expected = getattr(x, name)(*args).tolist()
        assert getattr(x, name + "_")(*args) is x
        assert x.tolist() == expected


def test_gradients_of_the_functions():
    x = leafgrad.tensor(X[:, :, :2] / 10, requires_grad=True)
    src = leafgrad.tensor(SRC[:, :6], requires_grad=True)
    at, once, i = leafgrad.tensor(AT), leafgrad.tensor(ONCE), leafgrad.tensor([2, 0])
    mask = leafgrad.tensor(MASK[:, :, :2])
    scalar = leafgrad.tensor(0.7, dtype=leafgrad.float64, requires_grad=True)
    for function in (
        lambda x, s, c: x.gather(1, at) ** 2,
        lambda x, s, c: x.scatter(1, once, s[:, :2]) ** 2,
        lambda x, s, c: x.scatter_add(1, at, s) ** 3,
        lambda x, s, c: x.scatter_reduce(1, at, s, "mean", include_self=False) ** 2,
        lambda x, s, c: x.scatter_reduce(1, at, s, "amax") ** 2,
        lambda x, s, c: x.scatter_reduce(1, at, s, "amin", include_self=False) ** 2,
        lambda x, s, c: x.index_select(1, i) ** 2,
        lambda x, s, c: x.index_add(1, i, s[:, :2], alpha=3) ** 3,
        lambda x, s, c: x.index_copy(1, i, s[:, :2]) ** 2,
        lambda x, s, c: x.index_fill(1, i, c) ** 3,
        lambda x, s, c: x.masked_fill(mask, c) ** 3,
        lambda x, s, c: x.masked_select(mask) ** 2,
        lambda x, s, c: x.masked_scatter(mask, s) ** 2,
        lambda x, s, c: x.take(at) ** 2,
        lambda x, s, c: x.sort(1, descending=True).values ** 2,
        lambda x, s, c: x.topk(2, 1).values ** 2,
        lambda x, s, c: x.kthvalue(2, 1).values ** 2,
    ):
        inputs = (x, src, scalar)
        assert gradcheck(function, inputs, fast_mode=True)

        def gradient(*args, function=function):
            found = leafgrad.autograd.grad(function(*args).sum(), args, create_graph=True, allow_unused=True)
            return tuple(g for g in found if g is not None)

        assert gradcheck(gradient, inputs, fast_mode=True)


def test_equal_candidates_share_the_gradient():
    x = leafgrad.tensor([1.0, 5.0], requires_grad=True)
    src = leafgrad.tensor([1.0, 1.0, 9.0], requires_grad=True)
    x.scatter_reduce(0, leafgrad.tensor([0, 0, 1]), src, "amax").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 3, 0], rtol=1e-6)
    np.testing.assert_allclose(src.grad.numpy(), [1 / 3, 1 / 3, 1], rtol=1e-6)


i64 = leafgrad.tensor([[0, 1]])
WRONG = [
    (lambda x: x.gather(0, i64.float()), RuntimeError, "int32/int64"),
    (lambda x: x.gather(0, i64[0]), RuntimeError, "same number of dimensions"),
    (lambda x: x.gather(0, i64.expand(1, 2).repeat(1, 3)), RuntimeError, "no larger than"),
    (lambda x: x.gather(0, i64 + 5), RuntimeError, "out of bounds"),
    (lambda x: x.gather(0, i64, sparse_grad=True), NotImplementedError, "sparse"),
    (lambda x: x.scatter(0, i64, x.double()), RuntimeError, "dtype"),
    (lambda x: x.scatter(0, i64, x[:, :1]), RuntimeError, "no larger than"),
    (lambda x: x.scatter(0, i64 + 5, 1.0), RuntimeError, "out of bounds"),
    (lambda x: x.scatter(0, i64, 1.0, reduce="max"), RuntimeError, "must be either add or multiply, got 'max'"),
    (lambda x: x.scatter_add(0, i64, 1.0), TypeError, "must be Tensor"),
    (lambda x: x.scatter_reduce(0, i64, x, "max"), RuntimeError, "amax or amin, got 'max'"),
    (lambda x: x.index_select(0, i64), IndexError, "vector"),
    (lambda x: x.index_select(0, i64[0] + 5), IndexError, "out of bounds"),
    (lambda x: x.index_add(0, i64[0], x[:1]), RuntimeError, r"expected source of shape \[2, 3\]"),
    (lambda x: x.index_fill(0, i64[0], x), RuntimeError, "0-dimensional"),
    (lambda x: x.index_put((i64[0],), x.double()), RuntimeError, "dtype"),
    (lambda x: x.masked_fill(i64, 1.0), RuntimeError, "BoolTensor"),
    (lambda x: x.masked_scatter(x == x, x[:1]), RuntimeError, "number of ones in mask"),
    (lambda x: x.take_along_dim(i64[0], 0), RuntimeError, "same number of dimensions"),
    (lambda x: x.fill_(x), RuntimeError, "0-dimension"),
]


@pytest.mark.parametrize(("call", "error", "match"), WRONG, ids=range(len(WRONG)))
def test_wrong_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call(leafgrad.arange(6.0).reshape(2, 3))


def test_scatter_multiplies(device):
    x = leafgrad.tensor([2.0, 3.0, 5.0], device=device)
    at = leafgrad.tensor([0, 2, 0, 2, 0], device=device)
    v = leafgrad.tensor([7.0, 0.0, -1.0, 2.0, 3.0], device=device)
    assert x.scatter_reduce(0, at, v, "prod").tolist() == [-42, 3, 0]
    assert x.scatter_reduce(0, at, v, "prod", include_self=False).tolist() == [-21, 3, 0]
    assert x.scatter(0, at, v, reduce="multiply").tolist() == [-42, 3, 0]
    assert x.long().scatter(0, at, 2, reduce="multiply").tolist() == [16, 3, 20]
    assert x.scatter_reduce(0, at[:0], v[:0], "prod").tolist() == [2, 3, 5]


def test_gradients_of_products_at_one_place():
    x = leafgrad.tensor([2.0, 0.0, 5.0, 0.0], requires_grad=True)
    at, v = leafgrad.tensor([0, 2, 0, 2, 1, 3]), leafgrad.tensor([7.0, 0.0, -1.0, 2.0, 3.0, 0.0], requires_grad=True)
    gx, gv = leafgrad.autograd.grad(x.scatter_reduce(0, at, v, "prod").sum(), (x, v))
    assert gx.tolist() == [-7, 3, 0, 0]
    assert gv.tolist() == [-2, 10, 14, 0, 0, 0]


BACK = leafgrad.tensor([0, -1])
NOT_FROM_THE_END = [
    (lambda x, v: x.gather(0, BACK), RuntimeError), (lambda x, v: x.scatter(0, BACK, v), RuntimeError),
    (lambda x, v: x.scatter_add(0, BACK, v), RuntimeError),
    (lambda x, v: x.scatter_reduce(0, BACK.int(), v, "amax"), RuntimeError),
    (lambda x, v: x.index_select(0, BACK), IndexError), (lambda x, v: x.index_add(0, BACK, v), IndexError),
    (lambda x, v: x.index_copy(0, BACK, v), IndexError),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error"), NOT_FROM_THE_END)
def test_negative_indices_are_out_of_range_along_a_dimension(call, error):
    with pytest.raises(error, match="index -1 is out of bounds for dimension 0 with size 3"):
        call(leafgrad.arange(3.0), leafgrad.ones(2))


def test_negative_indices_that_count_from_the_end():
    x = leafgrad.arange(3.0)
    assert x.take(BACK).tolist() == x.take_along_dim(BACK, 0).tolist() == x.take_along_dim(BACK).tolist() == [0, 2]
    assert x.index_fill(0, BACK, 7.0).tolist() == [7, 1, 7]


# ---- order and search -----------------------------------------------------------------------------------------------

TIES = RNG.integers(0, 4, (3, 9)).astype("float32")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
def test_sort_is_stable(dim, descending, device):
    x = leafgrad.tensor(TIES, device=device)
    order = np.argsort(-TIES if descending else TIES, dim, "stable")
    values, indices = x.sort(dim, descending)
    assert indices.tolist() == leafgrad.argsort(x, dim, descending).tolist() == order.tolist()
    assert values.tolist() == np.take_along_axis(TIES, order, dim).tolist()
    assert x.msort().tolist() == np.sort(TIES, 0).tolist()


def test_nan_sorts_as_the_largest(device):
    x = leafgrad.tensor([1.0, float("nan"), -1.0], device=device)
    assert x.argsort().tolist() == [2, 0, 1]
    assert x.argsort(descending=True).tolist() == [1, 0, 2]


def test_topk_and_kthvalue(device):
    x = leafgrad.tensor(TIES, device=device)
    assert x.topk(3).values.tolist() == (-np.sort(-TIES, 1)[:, :3]).tolist()
    assert x.topk(2, 0, largest=False).values.tolist() == np.sort(TIES, 0)[:2].tolist()
    assert x.kthvalue(4, keepdim=True).values.tolist() == np.sort(TIES, 1)[:, 3:4].tolist()
    zero_d = leafgrad.tensor(2.0, device=device)
    for found in (zero_d.sort(), zero_d.topk(1), zero_d.kthvalue(1)):
        assert (found.values.item(), found.indices.item()) == (2, 0)
    with pytest.raises(RuntimeError, match="out of range"):
        x.topk(10)
    with pytest.raises(RuntimeError, match="out of range"):
        x.kthvalue(0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sort(2)


def test_searchsorted_among_no_sequence_is_refused():
    for x in (1.0, leafgrad.tensor(1.0), leafgrad.ones(2)):
        with pytest.raises(RuntimeError, match="boundaries tensor should have positive dimension, but got 0 dimension"):
            leafgrad.searchsorted(leafgrad.tensor(1.0), x)


def test_searchsorted_of_nan_is_as_in_pytorch():
    edges = leafgrad.tensor([1.0, 2.0, 3.0])
    x = leafgrad.tensor([math.nan, 0.0, 2.0, math.inf])
    assert leafgrad.searchsorted(edges, x).tolist() == [3, 0, 1, 3]
    assert leafgrad.searchsorted(edges.expand(2, 3), x.expand(2, 4), right=True).tolist() == [[3, 0, 2, 3]] * 2
    edges = leafgrad.tensor([1.0, math.inf, math.inf, math.nan])
    assert leafgrad.searchsorted(edges, x).tolist() == [4, 0, 1, 1]
    assert leafgrad.bucketize(x, edges, right=True).tolist() == [4, 0, 1, 4]


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_and_bucketize(right, device):
    edges, values = np.array([[1, 2, 2, 3], [1, 1, 4, 5]]), np.array([[2, 3, 0], [4, 4, 1]])
    e, v = leafgrad.tensor(edges, device=device), leafgrad.tensor(values, device=device)
    side = "right" if right else "left"
    rows = [np.searchsorted(a, b, side).tolist() for a, b in zip(edges, values, strict=True)]
    assert leafgrad.searchsorted(e, v, right=right).tolist() == rows
    assert leafgrad.searchsorted(e.flip(1), v, side=side, sorter=e.flip(1).argsort()).tolist() == rows
    flat = leafgrad.bucketize(v, e[0], right=right, out_int32=True)
    assert flat.tolist() == np.searchsorted(edges[0], values, side).tolist()
    assert flat.dtype is leafgrad.int32
    assert leafgrad.searchsorted(e[0], 2, right=right).item() == (3 if right else 1)
    assert leafgrad.searchsorted(e[0], 2.5, right=right).item() == 3
    assert leafgrad.bucketize(-math.inf, e[0], right=right).item() == 0
    assert leafgrad.bucketize(-1, e[0] > 0, right=right).item() == 0


def test_searchsorted_refuses():
    e = leafgrad.zeros(2, 3)
    with pytest.raises(RuntimeError, match="side can only be"):
        leafgrad.searchsorted(e, e, side="middle")
    with pytest.raises(RuntimeError, match="opposites"):
        leafgrad.searchsorted(e, e, side="left", right=True)
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        leafgrad.searchsorted(e, e[0])
    with pytest.raises(RuntimeError, match="1 dimension"):
        leafgrad.bucketize(e, e)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_with_an_index_without_dimensions(accumulate):
    one, ends = np.array(1), np.array([0, -1])
    for indices, values in (((one,), np.ones(3)), ((one, ends), np.ones(2)), ((ends, one), np.array(4.0))):
        wanted = np.arange(6.0).reshape(2, 3)
        if accumulate:
            np.add.at(wanted, indices, values)
        else:
            wanted[indices] = values
        x = leafgrad.arange(6.0, dtype=leafgrad.float64).reshape(2, 3)
        given = tuple(map(leafgrad.tensor, indices))
        np.testing.assert_array_equal(x.index_put(given, leafgrad.tensor(values), accumulate).numpy(), wanted)


@pytest.mark.parametrize("met", [False, True], ids=["not met", "met before"])
@pytest.mark.parametrize("key", [np.True_, np.float32(1)], ids=repr)
def test_scalars_of_numpy_are_no_masks_whatever_was_met_before(key, met):
    """As in PyTorch. What had been seen of NumPy's classes decided."""
    x = leafgrad.ones(2, 3)
    if met:
        backends.backend_of(key)
    with pytest.raises(IndexError, match=f"only integers, slices .* got {type(key).__name__}"):
        x[key]


def test_arrays_of_a_class_of_their_own_are_indices():
    class Own(np.ndarray):
        pass

    assert leafgrad.arange(3)[np.array([2, 0]).view(Own)].tolist() == [2, 0]


def test_index_fill_counts_a_repeated_index_once():
    value = leafgrad.tensor(2.0, requires_grad=True)
    out = leafgrad.zeros(2, 3).index_fill(1, leafgrad.tensor([0, 0, -1]), value)
    assert out.tolist() == [[2, 0, 2], [2, 0, 2]]
    assert leafgrad.autograd.grad(out.sum(), value)[0].item() == 4


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_short_lists_with_more_than_numbers_are_tuples():
    x = leafgrad.tensor(X)
    one, two = leafgrad.tensor([0, 1]), leafgrad.tensor([1, 2])
    keys = [
        [[0, 1], [1, 2]], [slice(0, 2), 1], [..., 0], [None, 0], [one, two], [one, 1], [[0, 1]], [[[0, 1], [1, 2]]],
        [np.array([0, 1]), [1, 2]], [range(2), range(2)], [[True, False, True]], [one[0], one[1]],
    ]  # fmt: skip
    for key in keys:
        assert (x[key] == x[tuple(key)]).all()
        written = x.clone()
        written[key] = 7.0
        assert (written[tuple(key)] == 7).all()
    for key in ([0, 1], [True, False, True], [[0]] * 33, np.array([[0, 1], [1, 2]])):
        assert (x[key] == x[leafgrad.tensor(key)]).all()


def test_a_list_that_is_a_tuple_says_so():
    with pytest.warns(UserWarning, match=r"use x\[tuple\(seq\)\] instead of x\[seq\]"):
        assert leafgrad.tensor(X)[[[0, 1], [1, 2]]].shape == (2, 5)


@pytest.mark.filterwarnings("ignore:indexing with dtype leafgrad.uint8")
def test_bytes_are_masks():
    x = leafgrad.tensor(X)
    rows = leafgrad.tensor([1, 0, 2], dtype=leafgrad.uint8)
    assert (x[rows] == x[leafgrad.tensor(ROWS)]).all()
    assert x[:, 0, leafgrad.zeros(5, dtype=leafgrad.uint8)].shape == (3, 0)
    assert x[leafgrad.tensor(1, dtype=leafgrad.uint8)].shape == (1, 3, 4, 5)
    x[rows] = 0.0
    assert (x.sum((1, 2)) == 0).tolist() == [True, False, True]


def test_bytes_as_masks_are_deprecated():
    with pytest.warns(UserWarning, match="please use a dtype leafgrad.bool instead"):
        leafgrad.ones(2)[leafgrad.tensor([1, 0], dtype=leafgrad.uint8)]


def test_samples_may_choose_differently_many_elements():
    x = leafgrad.tensor([[0.1, -0.2, 0.3], [-0.4, -0.5, 0.6]])
    source = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def f(x, source):
        return x.masked_scatter(x > 0, source)

    for function in (leafgrad.vmap(f), leafgrad.compile(leafgrad.vmap(f))):
        assert (
            function(x, source).tolist() == leafgrad.stack([f(*pair) for pair in zip(x, source, strict=True)]).tolist()
        )
    leafgrad.vmap(f)(x, source).sum().backward()
    assert source.grad.tolist() == [[1, 1], [1, 0]]
    with pytest.raises(RuntimeError, match="number of ones in mask, got 1 and more"):
        leafgrad.vmap(f)(x, source[:, :1])
