"""Tensors and what is not leafgrad: NumPy, DLPack, buffers, the array API, pickles, copies, einops, notebooks."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.testing import fake
from leafgrad.utils import dlpack

TESTS = "compat.einops tensor.notebook tensor.protocols utils.dlpack"

# ---- NumPy ----------------------------------------------------------------------------------------------------------


def test_numpy_shares_memory(t):
    array = np.arange(3.0)
    tensor = t.from_numpy(array)
    tensor[0] = 7
    assert array[0] == 7
    for view in (tensor.numpy(), np.asarray(tensor)):
        view[1] += 1
    assert (tensor[1].item(), tensor.dtype) == (3, t.float64)


def test_arrays_of_what_requires_grad_are_given_where_nothing_is_recorded(t):
    w = t.ones(2, requires_grad=True)
    for quiet in (t.no_grad, t.inference_mode):
        with quiet():
            w.numpy()[0] += 1
            assert np.asarray(w).tolist() == w.tolist()
    assert w.tolist() == [3, 1]
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        w.numpy()


class Matrix(np.ndarray):
    """As np.matrix is, of which NumPy warns."""

    __mul__ = np.ndarray.__matmul__


@pytest.mark.parametrize("make", ["from_numpy", "as_tensor", "tensor"])
def test_arrays_of_other_classes_are_plain_ones(t, make):
    x = getattr(t, make)(np.array([[1.0, 2.0], [3.0, 4.0]]).view(Matrix))
    assert (x * x).tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert getattr(t, make)(np.ma.array([1.0, 2.0])).sum().item() == 3.0


@pytest.mark.parametrize("make", [leafgrad.from_numpy, leafgrad.as_tensor, leafgrad.tensor])
def test_masked_elements_are_no_numbers(make):
    with pytest.raises(TypeError, match=r"array without masked elements; put numbers there by array.filled"):
        make(np.ma.array([1.0, 2.0], mask=[False, True]))


def test_array_takes_dtype_and_copy():
    x = leafgrad.tensor([1, 2])
    assert np.asarray(x, dtype="float32").dtype == np.float32
    assert np.shares_memory(np.array(x, copy=False), x.numpy())
    assert np.shares_memory(np.asarray(x, dtype=np.int64), x.numpy())
    assert not np.shares_memory(np.array(x, copy=True), x.numpy())
    with pytest.raises(ValueError, match="int64 can become float32 only in a copy"):
        np.array(x, dtype="float32", copy=False)


def test_what_requires_grad_is_no_array(t):
    x = t.ones(2, requires_grad=True)
    for convert in (np.asarray, lambda x: x.numpy(), lambda x: (x * 2).numpy()):
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
            convert(x)
    assert x.numpy(force=True).tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")  # PyTorch's does not
def test_functions_of_numpy_give_tensors(t):
    x = t.tensor([1.0, 4.0, 9.0])
    for found, expected in [
        (np.sqrt(x), [1, 2, 3]),
        (np.add(x, np.float32(1)), [2, 5, 10]),
        (np.maximum(np.full(3, 2, "float32"), x), [2, 4, 9]),
        (np.where(x > 2, x, 0), None),
    ]:
        assert isinstance(found, t.Tensor if expected else np.ndarray)
        assert found.tolist() == (expected or [0, 4, 9])
    assert np.exp(t.zeros((), dtype=t.float16)).dtype is t.float16
    assert (np.argmax(x).item(), np.sin(t.tensor([1])).dtype) == (2, t.float64)
    assert [part.tolist() for part in np.modf(x / 2)] == [[0.5, 0, 0.5], [0, 2, 4]]


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
def test_arrays_on_the_right_of_operators_make_tensors_as_numpy_promotes(t):
    x, n = t.tensor([1.0, 4.0]), t.tensor([1, 4])
    a, k = np.array([2.0, 4.0]), np.array([2, 4])
    for found, dtype, expected in [
        (x + a, t.float64, [3, 8]),
        (x * a.astype("float32"), t.float32, [2, 16]),
        (x - k, t.float64, [-1, 0]),
        (n / k, t.float64, [0.5, 1]),
        (n**k, t.int64, [1, 256]),
        (x == a, t.bool, [False, True]),
        (k == n, t.bool, [False, True]),
        (x + np.array(2.0), t.float64, [3, 6]),
        (x * np.bool_(True), t.float32, [1, 4]),
        (x @ np.ones((2, 2)), t.float64, [5, 5]),
        (a / x, t.float64, [2, 1]),
        (k / n, t.float64, [2, 1]),
    ]:
        assert isinstance(found, t.Tensor)
        assert (found.dtype, found.tolist()) == (dtype, expected)
    y = x
    y += a
    assert (y.tolist(), x.tolist()) == ([3, 8], [1, 4])
    with pytest.raises(TypeError, match=r"ndarray|NumPy arrays"):
        a + x
    with pytest.raises(TypeError, match="ndarray"):
        t.add(x, a)


def test_functions_of_numpy_refuse_what_requires_grad(t):
    x = t.ones(2, requires_grad=True)
    for function in (np.sqrt, lambda x: np.multiply(np.ones(2), x), lambda x: x * np.ones(2)):
        with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\) instead"):
            function(x)


def test_numbers_of_numpy_take_part_in_derivatives(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = np.float64(2) * x + np.float32(3) / x - np.int64(1) + np.float64(1) - x * np.float64(1)
    y.sum().backward()
    assert (y.dtype, y.tolist(), x.grad.tolist()) == (t.float32, [4.0, 3.5], [-2.0, 0.25])
    assert (np.float64(1.5) < x).tolist() == [False, True]


def test_where_functions_of_numpy_differ_from_pytorch():
    assert np.isnan(leafgrad.tensor([1.0, np.nan])).dtype is leafgrad.bool  # PyTorch's is uint8
    assert (leafgrad.ones(2) != np.ones(2)).tolist() == [False, False]  # PyTorch's is True
    assert np.add(leafgrad.ones(2), 1j).dtype is leafgrad.complex64
    with pytest.raises(RuntimeError, match=r"vmap.*\.numpy\(\)"):
        leafgrad.vmap(np.sqrt)(leafgrad.ones(2, 2))


def test_functions_of_numpy_in_compiled_functions():
    @leafgrad.compile
    def step(x):
        return np.sqrt(x) * 2 + np.float64(1) * x

    for i in range(5):
        assert step(leafgrad.full((2,), float(i))).tolist() == pytest.approx([2 * i**0.5 + i] * 2)


def test_a_tensor_is_no_buffer(t):
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'Tensor'"):
        memoryview(t.ones(2))


def test_nothing_leaves_a_device_unasked():
    fake.register()
    x = leafgrad.ones(2, device="fake:0")
    with pytest.raises(TypeError, match=r"can't convert fake:0 tensor to numpy.*\.cpu\(\)"):
        np.asarray(x)
    with pytest.raises(BufferError, match=r"arrays on fake:0 have no DLPack; copy the tensor with \.cpu\(\)"):
        x.__dlpack__()
    with pytest.raises(ValueError, match="DLPack knows no device fake:0"):
        x.__dlpack_device__()


def test_tolist(t):
    assert t.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert t.tensor(True).tolist() is True
    assert t.zeros(2, 0).tolist() == [[], []]
    assert t.ones(1, requires_grad=True).tolist() == [1.0]


# ---- DLPack and buffers ---------------------------------------------------------------------------------------------


def test_dlpack_both_ways(t):
    array = np.arange(3.0)
    tensor = t.from_dlpack(array)
    tensor[0] = 7
    back = np.from_dlpack(tensor)
    back[1] = 8
    assert array.tolist() == [7, 8, 2]
    assert tuple(tensor.__dlpack_device__()) == (1, 0)
    copied = t.from_dlpack(array, copy=True)
    copied[0] = 0
    assert array[0] == 7
    assert t.from_dlpack(array, device="cpu").tolist() == [7, 8, 2]


def test_dlpack_capsules():
    x = leafgrad.ones(2)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y[0] = 5
    assert x.tolist() == [5, 1]


def test_dlpack_with_pytorch():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(3.0)
    ours = leafgrad.from_dlpack(theirs)
    ours[0] = 7
    assert theirs[0] == 7
    assert torch.from_dlpack(ours)[0] == 7


def test_dlpack_refuses(t):
    x = t.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor.detach\(\)"):
        x.__dlpack__()
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        t.ones(2).__dlpack__(stream=1)


def test_from_dlpack_refuses():
    with pytest.raises(TypeError, match="ext_tensor: expected an object with __dlpack__, or a capsule, got int"):
        leafgrad.from_dlpack(3)
    with pytest.raises(TypeError, match="no dtype 'uint16'"):
        leafgrad.from_dlpack(np.zeros(2, np.uint16))
    fake.register()
    with pytest.raises(ValueError, match="copy=False, but getting from cpu to fake:0 takes a copy"):
        leafgrad.from_dlpack(np.zeros(2), device="fake:0", copy=False)


def test_frombuffer(t):
    memory = bytearray(np.arange(4, dtype=np.int16).tobytes())
    x = t.frombuffer(memory, dtype=t.int16)
    assert x.tolist() == [0, 1, 2, 3]
    x[0] = 9
    assert memory[0] == 9
    assert t.frombuffer(memory, dtype=t.int16, count=2, offset=2).tolist() == [1, 2]
    assert t.frombuffer(bytearray(4), dtype=t.float32, requires_grad=True).requires_grad
    for wrong in ({"dtype": t.int64, "offset": 4}, {"dtype": t.int16, "count": 5}, {"dtype": t.int32, "offset": 2}):
        with pytest.raises(ValueError, match=r"bytes|buffer|offset|size"):
            t.frombuffer(memory, **wrong)


# ---- the array API standard -----------------------------------------------------------------------------------------

x = leafgrad.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
i = leafgrad.tensor([2, 0, 1])

CALLS = {
    "sum": lambda xp, x, i: xp.sum(x, axis=(0, 1)),
    "sum keepdims": lambda xp, x, i: xp.sum(x, axis=1, keepdims=True),
    "prod": lambda xp, x, i: xp.prod(x, axis=(0, 1), keepdims=True),
    "prod all": lambda xp, x, i: xp.prod(x),
    "mean": lambda xp, x, i: xp.mean(x, axis=0),
    "std": lambda xp, x, i: xp.std(x, axis=1),
    "var": lambda xp, x, i: xp.var(x, correction=1.0),
    "max": lambda xp, x, i: xp.max(x, axis=1),
    "min": lambda xp, x, i: xp.min(x),
    "all": lambda xp, x, i: xp.all(x > 1, axis=1),
    "any": lambda xp, x, i: xp.any(x > 5),
    "argmax": lambda xp, x, i: xp.argmax(x, axis=1, keepdims=True),
    "argmin": lambda xp, x, i: xp.argmin(x),
    "argsort": lambda xp, x, i: xp.argsort(x, axis=1, stable=True),
    "sort": lambda xp, x, i: xp.sort(x),
    "cumulative_sum": lambda xp, x, i: xp.cumulative_sum(x, axis=1),
    "count_nonzero": lambda xp, x, i: xp.count_nonzero(x - 1, axis=1),
    "concat": lambda xp, x, i: xp.concat([x, x], axis=1),
    "stack": lambda xp, x, i: xp.stack([x, x], axis=1),
    "unstack": lambda xp, x, i: xp.unstack(x, axis=1)[2],
    "expand_dims": lambda xp, x, i: xp.expand_dims(x, axis=1),
    "squeeze": lambda xp, x, i: xp.squeeze(xp.expand_dims(x, axis=1), axis=1),
    "permute_dims": lambda xp, x, i: xp.permute_dims(x, (1, 0)),
    "matrix_transpose": lambda xp, x, i: xp.matrix_transpose(x),
    "reshape": lambda xp, x, i: xp.reshape(x, (3, 2)),
    "flip": lambda xp, x, i: xp.flip(x),
    "flip axis": lambda xp, x, i: xp.flip(x, axis=1),
    "roll": lambda xp, x, i: xp.roll(x, 1, axis=1),
    "repeat": lambda xp, x, i: xp.repeat(x, 2, axis=0),
    "tile": lambda xp, x, i: xp.tile(x, (2, 1)),
    "take": lambda xp, x, i: xp.take(x, i, axis=1),
    "take_along_axis": lambda xp, x, i: xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1),
    "where": lambda xp, x, i: xp.where(x > 3, x, -x),
    "clip": lambda xp, x, i: xp.clip(x, 2.0, 5.0),
    "nonzero": lambda xp, x, i: xp.nonzero(x > 3)[1],
    "unique_values": lambda xp, x, i: xp.unique_values(i // 2),
    "searchsorted": lambda xp, x, i: xp.searchsorted(xp.sort(i), i, side="right"),
    "unique_all": lambda xp, x, i: xp.stack(xp.unique_all(i // 2 - 1)[1:2] + xp.unique_all(i // 2 - 1)[3:]),
    "unique_counts": lambda xp, x, i: xp.unique_counts(i // 2).counts,
    "unique_inverse": lambda xp, x, i: xp.unique_inverse(i // 2).inverse_indices,
    "take from the end": lambda xp, x, i: xp.take(x, -i - 1, axis=1),
    "cumulative_sum from 0": lambda xp, x, i: xp.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda xp, x, i: xp.cumulative_prod(x, axis=0, include_initial=True),
    "cumulative_prod plain": lambda xp, x, i: xp.cumulative_prod(i),
    "diff": lambda xp, x, i: xp.diff(x, axis=0),
    "nextafter": lambda xp, x, i: xp.nextafter(x, x * 2),
    "matmul": lambda xp, x, i: xp.matmul(x, xp.matrix_transpose(x)),
    "tensordot": lambda xp, x, i: xp.tensordot(x, x, axes=((1,), (1,))),
    "vecdot": lambda xp, x, i: xp.vecdot(x, x),
    "equal": lambda xp, x, i: xp.equal(x, x),
    "bitwise_invert": lambda xp, x, i: xp.bitwise_invert(i),
    "linspace": lambda xp, x, i: xp.linspace(0.0, 1.0, 4, endpoint=False, dtype=xp.float64),
    "eye": lambda xp, x, i: xp.eye(3, 4, k=1, dtype=xp.float64),
    "full": lambda xp, x, i: xp.full(3, 2.5, dtype=xp.float32),
    "asarray": lambda xp, x, i: xp.asarray([1, 2]),
    "astype": lambda xp, x, i: xp.astype(x, xp.int32),
    "meshgrid": lambda xp, x, i: xp.meshgrid(i, i)[0],
    "broadcast_arrays": lambda xp, x, i: xp.broadcast_arrays(x, i)[1],
    "pow": lambda xp, x, i: xp.pow(x, 2) + xp.pi,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_array_api_as_numpy_has_it(call):
    xp = x.__array_namespace__()
    ours, theirs = call(xp, x, i), call(np, x.numpy(), i.numpy())
    assert (ours.dtype.name, tuple(ours.shape)) == (theirs.dtype.name, theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_the_namespace():
    xp = x.__array_namespace__(api_version="2024.12")
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.uint8, ("bool", "integral"))
    assert not xp.isdtype(xp.bool, "numeric")
    with pytest.raises(ValueError, match=r"api_version: expected '2024\.12', got '2020'"):
        x.__array_namespace__(api_version="2020")
    with pytest.raises(ValueError, match="kind: expected one of bool, signed integer"):
        xp.isdtype(xp.float32, "float")
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray([1], copy=False)
    with pytest.raises(ValueError, match="expected dimensions of size 1, got size 2 at 0"):
        xp.squeeze(x, 0)


def test_types_in_the_namespace():
    xp = x.__array_namespace__()
    assert xp.finfo(x).bits == xp.finfo(x.dtype).bits
    assert xp.iinfo(leafgrad.tensor(1)).max == 2**63 - 1
    assert xp.can_cast(xp.int8, xp.int16)
    assert xp.can_cast(leafgrad.ones(1), xp.float64)
    assert not xp.can_cast(xp.float64, xp.float32)
    assert xp.result_type(leafgrad.ones((), dtype=xp.float64), leafgrad.ones(1), 1) is xp.float64
    assert xp.result_type(xp.int8, 1.5) is leafgrad.get_default_dtype()
    assert xp.result_type(xp.uint8, xp.int8) is xp.int16
    with pytest.raises(ValueError, match="at least one tensor or dtype"):
        xp.result_type(1, 2.0)


def test_what_the_namespace_says_of_itself():
    info = x.__array_namespace__().__array_namespace_info__()
    assert info.capabilities()["boolean indexing"]
    assert info.default_device() == leafgrad.device("cpu")
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["integral"] is leafgrad.int64
    assert set(info.dtypes(kind="real floating")) == {"float16", "float32", "float64"}
    assert info.dtypes(kind=("bool", "unsigned integer")) == {"bool": leafgrad.bool, "uint8": leafgrad.uint8}


def test_gradients_flow_through_the_namespace():
    y = x.clone().requires_grad_()
    xp = y.__array_namespace__()
    xp.sum(xp.exp(xp.mean(y, axis=1))).backward()
    assert y.grad.shape == y.shape


# ---- NumPy's argument names -----------------------------------------------------------------------------------------


def test_numpy_names_of_arguments(t):
    m = t.arange(6.0).reshape(2, 3)
    assert m.sum(axis=1, keepdims=True).tolist() == t.sum(m, dim=1, keepdim=True).tolist() == [[3], [12]]
    assert t.cat([m, m], axis=1).shape == t.Size([2, 6])
    assert m.max(axis=0).indices.tolist() == [1, 1, 1]
    assert t.mean(m, axis=(0, 1)).item() == 2.5
    for wrong in ({"axes": 1}, {"axis": 1, "dim": 1}):
        with pytest.raises(TypeError):
            m.sum(**wrong)


# ---- pickles and copies ---------------------------------------------------------------------------------------------


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("repeat", [again, copy.deepcopy, copy.copy])
def test_leaves_and_modules_are_copied(t, repeat):
    leaf = t.tensor([1.0, 2.0], requires_grad=True)
    other = repeat(leaf)
    assert (other.tolist(), other.requires_grad, other.is_leaf, other.dtype) == ([1, 2], True, True, t.float32)
    net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.Tanh())
    twin = repeat(net)
    assert repr(twin) == repr(net)
    assert [p.tolist() for p in twin.parameters()] == [p.tolist() for p in net.parameters()]
    assert type(twin[0].weight) is t.nn.Parameter


# ---- einops ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.modules.get("torch") is not None, reason="einops looks for PyTorch first")
def test_einops():
    einops = pytest.importorskip("einops")
    import leafgrad.compat.einops  # makes einops know tensors

    a = leafgrad.arange(24.0).reshape(2, 3, 4).requires_grad_()
    host = a.detach().numpy()
    for call in (
        lambda a: einops.rearrange(a, "b (h c) w -> c (b w) h", c=3),
        lambda a: einops.reduce(a, "b h w -> w", "mean"),
        lambda a: einops.reduce(a, "b h (w two) -> h w", "max", two=2),
        lambda a: einops.reduce(a, "b h w -> b", "prod"),
        lambda a: einops.repeat(a, "b h w -> b (h two) w r", two=2, r=3),
        lambda a: einops.einsum(a, a, "b h w, b k w -> h k"),
        lambda a: einops.rearrange([a, a], "n b h w -> b n (h w)"),
    ):
        np.testing.assert_allclose(call(a).detach().numpy(), call(host))
    einops.reduce(a, "b h w -> b w", "sum").sum().backward()
    assert a.grad.tolist() == leafgrad.ones(2, 3, 4).tolist()


def test_einops_by_the_array_api():
    array_api = pytest.importorskip("einops.array_api")
    assert array_api.rearrange(leafgrad.arange(6).reshape(2, 3), "a b -> (b a)").tolist() == [0, 3, 1, 4, 2, 5]
    assert array_api.reduce(leafgrad.ones(2, 3), "a b -> b", "sum").tolist() == [2, 2, 2]


# ---- notebooks ------------------------------------------------------------------------------------------------------


def test_a_tensor_in_a_notebook():
    y = leafgrad.ones(2, requires_grad=True) * 2
    html = y._repr_html_()
    for part in ("leafgrad.float32", "(2,)", "<td>cpu</td>", "MulBackward0", "grad_fn=&lt;MulBackward0&gt;"):
        assert part in html
    assert "<th>requires_grad</th>" in leafgrad.ones(2)._repr_html_()
    assert len(leafgrad.zeros(1000, 1000)._repr_html_()) < 2000


def test_a_module_in_a_notebook():
    html = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Tanh()))._repr_html_()
    assert html.count("<details") == html.count("</details>") == 2
    assert html.count(" open ") == 1
    assert "(0): <code>Linear(in_features=2, out_features=3, bias=True)</code> <small>9 parameters</small>" in html


def test_to_takes_one_device_and_one_dtype():
    x = leafgrad.ones(2)
    with pytest.raises(TypeError, match=r"to\(\): expected one device, got cpu and cpu"):
        x.to("cpu", "cpu")
    with pytest.raises(TypeError, match=r"to\(\): expected one dtype"):
        x.to(leafgrad.float64, leafgrad.float32)
    assert x.to("cpu", leafgrad.float64).dtype is leafgrad.float64


def test_to_takes_non_blocking_and_copy_by_place():
    x = leafgrad.ones(2)
    for place in ("cpu", leafgrad.float32, x):
        assert x.to(place, True) is x.to(place, True, False) is x
        assert x.to(place, False, True).data_ptr() != x.data_ptr()
