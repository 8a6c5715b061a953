"""Memory, strides and what a tensor says of them."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad.autograd import gradcheck
from leafgrad.tensor.overrides import unwrapped
from leafgrad.testing import fake

TESTS = "tensor.bits"

fake.register()


@pytest.fixture(params=["cpu", "fake:0"])
def device(request):
    return leafgrad.device(request.param)


def test_views_share_a_storage(device):
    x = leafgrad.zeros(3, 4, device=device)
    part = x[1:, 2:]
    assert part.untyped_storage() is x.untyped_storage()
    assert x.untyped_storage().nbytes() == len(x.untyped_storage()) == 48
    assert part.storage_offset() == 6
    assert part.data_ptr() == x.data_ptr() + 24 == x.untyped_storage().data_ptr() + 24
    assert x.clone().untyped_storage() is not x.untyped_storage()
    assert x.detach().data_ptr() == x.data_ptr()
    assert leafgrad.ones(0, device=device).data_ptr() == 0
    assert x.untyped_storage().device == device
    assert x.is_set_to(x[...])
    assert not x.is_set_to(x.t())


def test_bytes_come_as_they_lie_in_memory(device):
    t = leafgrad.arange(6, dtype=leafgrad.uint8, device=device).reshape(3, 2).t().clone()
    memory = t.untyped_storage()
    assert [memory[i] for i in range(6)] == [*t.storage()] == [*range(6)]
    assert [*memory[2:4]] == [2, 3]


def test_repr_of_a_storage():
    assert repr(leafgrad.zeros(2).untyped_storage()) == "[UntypedStorage(device=cpu) of size 8]"


def test_kinds_of_tensors():
    x = leafgrad.ones(2)
    assert x.is_cpu
    others = (x.is_cuda, x.is_meta, x.is_mps, x.is_sparse, x.is_quantized, x.is_nested, x.is_mkldnn)
    assert not any((*others, x.is_pinned("cpu"), x.is_shared()))
    with pytest.raises(RuntimeError, match="'cpu' copies from no page-locked memory"):
        x.pin_memory("cpu")
    with pytest.raises(RuntimeError, match="pin_memory: expected a device of type 'nowhere', which is not there"):
        x.pin_memory("nowhere")
    assert x.layout is leafgrad.strided
    assert repr(x.layout) == "leafgrad.strided"
    assert (x.element_size(), x.itemsize, x.nbytes, x.get_device()) == (4, 4, 8, -1)
    assert x.is_signed()
    assert leafgrad.uint8.is_signed is leafgrad.bool.is_signed is False
    assert leafgrad.int8.is_signed is leafgrad.float16.is_signed is True
    assert leafgrad.float32.is_complex is False


@pytest.mark.parametrize(
    ("size", "stride", "offset", "expected"),
    [
        ((2, 2), (1, 1), 0, [[0, 1], [1, 2]]),
        ((3, 2), (2, 3), 1, [[1, 4], [3, 6], [5, 8]]),
        ((2, 3), (0, 5), 2, [[2, 7, 12], [2, 7, 12]]),
        ((), (), 11, 11),
        ((0, 3), (1, 1), 0, []),
    ],
)
def test_as_strided(device, size, stride, offset, expected):
    x = leafgrad.arange(13.0, device=device)
    y = x.as_strided(size, stride, offset)
    assert y.tolist() == expected
    assert y.shape == size
    if 0 not in size:
        assert y.stride() == stride
        assert y._base is x
    assert leafgrad.as_strided(x, size, stride, offset).tolist() == expected


def test_as_strided_of_a_view_reaches_the_memory_around_it():
    x = leafgrad.arange(12.0, requires_grad=True)
    row = x.view(3, 4)[1]
    assert row.as_strided((2,), (2,)).tolist() == [4, 6]
    whole = row.as_strided((12,), (1,), 0)
    assert whole.tolist() == list(range(12))
    (g,) = leafgrad.autograd.grad(whole.sum(), x)
    assert g.tolist() == [1] * 12
    t = leafgrad.arange(6.0).view(2, 3).t()
    assert t.as_strided((6,), (1,)).tolist() == [0, 1, 2, 3, 4, 5]


def test_as_strided_of_a_view_follows_its_base():
    x = leafgrad.zeros(2, 3)
    column = x[:, 1]
    again = column.as_strided((2,), (3,))
    w = leafgrad.ones(2, requires_grad=True)
    column.copy_(w)
    again.mul_(3)
    x.sum().backward()
    assert w.grad.tolist() == [3, 3]
    with leafgrad.no_grad():
        column = (w * 1).view(1, 2)[:, 1]
        again = column.as_strided((1,), (2,))
    assert not again.requires_grad


def test_gradients_of_overlapping_elements_add_up():
    x = leafgrad.arange(5.0, requires_grad=True)
    (x.as_strided((4, 2), (1, 1)) * leafgrad.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1, 11, 11, 11, 10]
    y = leafgrad.rand(3, 4, dtype=leafgrad.float64, requires_grad=True)
    assert gradcheck(lambda v: (v * v).as_strided((2, 3, 2), (4, 2, 1), 1), (y,))
    assert gradcheck(lambda v: (v * v).t().unfold(0, 3, 1), (y,))


SEEN_OTHERWISE = {
    "real": (lambda z: z.real, [0, 1, 2]),
    "imag": (lambda z: z[1:].imag, [0, 1, 2]),
    "of one": (lambda z: z[1].real, [0, 1, 2]),
    "bits": (lambda z: leafgrad.view_as_real(z).view(leafgrad.int64)[1:].view(leafgrad.float64), [0, 1, 2]),
    "complex": (lambda z: leafgrad.view_as_real(z).reshape(-1).view(leafgrad.complex128)[1:], [1j, 2 + 3j, 4 + 5j]),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", SEEN_OTHERWISE)
def test_as_strided_of_memory_that_is_seen_as_another_dtype(name, compiled):
    see, expected = SEEN_OTHERWISE[name]
    z = leafgrad.tensor([1j, 2 + 3j, 4 + 5j], dtype=leafgrad.complex128)

    def read(z):
        return see(z).as_strided((3,), (1,), 0)

    assert (leafgrad.compile(read) if compiled else read)(z).tolist() == expected


def test_gradients_and_writes_through_as_strided_reach_complex_numbers():
    z = leafgrad.tensor([[1j, 2 + 3j, 4 + 5j]], dtype=leafgrad.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * 1).T.real.as_strided((2, 2), (3, 1), 1) ** 2, (z,))
    for part in (z.real, z.mT.imag):
        assert leafgrad.autograd.grad(part.as_strided((2,), (2,), 1).sum(), z)[0].tolist() == [[1j, 1j, 0]]
    w = z.detach().clone()
    w.imag.as_strided((2,), (3,), 0).mul_(10)
    assert w.tolist() == [[1j, 2 + 30j, 4 + 5j]]


def test_as_strided_under_vmap():
    x = leafgrad.arange(12.0).view(3, 4)
    y = leafgrad.func.vmap(lambda v: v.as_strided((2, 2), (2, 1), 1 - 1))(x)
    assert y.tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    g = leafgrad.func.vmap(leafgrad.func.grad(lambda v: (v.as_strided((3, 2), (1, 1)) ** 2).sum()))(x)
    assert g[0].tolist() == [0, 4, 8, 6]
    assert leafgrad.func.vmap(lambda v: v.unfold(0, 2, 2))(x).tolist() == x.unfold(1, 2, 2).tolist()


def test_as_strided_compiled():
    x = leafgrad.arange(12.0).view(3, 4)

    @leafgrad.compile
    def f(v):
        w = v * 2
        w.as_strided((2,), (5,), 1).zero_()
        return w, v.t().as_strided((2, 2), (4, 1), 1), v.unfold(1, 2, 2).sum(-1)

    for scale in (1, 3):
        w, part, sums = f(x * scale)
        expected = x * (2 * scale)
        expected.view(-1)[1::5][:2] = 0
        assert w.tolist() == expected.tolist()
        assert part.tolist() == (x * scale)[:2, 1:3].tolist()
        assert sums.tolist() == (x * scale).unfold(1, 2, 2).sum(-1).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2, 2), (1,)), "mismatch in length of strides and shape"),
        (((2,), (-1,)), "Negative strides are not supported"),
        (((-2,), (1,)), "must be non-negative"),
        (((2,), (1,), -1), "storage_offset"),
        (((4, 4), (4, 1)), "reach outside the 12 elements"),
    ],
)
def test_what_as_strided_refuses(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        leafgrad.zeros(3, 4).as_strided(*arguments)


def test_a_view_with_gaps_is_not_reached_around():
    array = np.arange(12.0).reshape(3, 4)[:, ::2]
    with pytest.raises(RuntimeError, match="reach outside"):
        leafgrad.from_numpy(array).as_strided((2,), (1,))
    with pytest.raises(RuntimeError, match="has no place"):
        leafgrad.ones(4)[2:2].as_strided((1,), (1,))


def test_empty_strided():
    x = leafgrad.empty_strided((2, 3), (1, 2))
    assert (x.shape, x.stride(), x._is_view()) == ((2, 3), (1, 2), False)
    assert x.fill_(2).sum() == 12
    assert leafgrad.ones(1, dtype=leafgrad.int8).new_empty_strided((2,), (3,)).dtype is leafgrad.int8


# ---- unfold -------------------------------------------------------------------------------------------------------


def test_unfold_is_a_view(device):
    x = leafgrad.arange(8.0, device=device).view(2, 4)
    windows = x.unfold(1, 2, 2)
    assert windows.tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert windows._base is x._base
    windows[:, 1] *= 10
    assert x.tolist() == [[0, 1, 20, 30], [4, 5, 60, 70]]
    assert x.t().unfold(0, 3, 1).tolist() == [[[0, 1, 20], [4, 5, 60]], [[1, 20, 30], [5, 60, 70]]]
    assert leafgrad.tensor(5.0, device=device).unfold(0, 1, 1).tolist() == [5]


def test_writes_through_windows_are_recorded():
    x = leafgrad.arange(6.0, requires_grad=True)
    w = leafgrad.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y.unfold(0, 2, 3).mul_(w)
    assert y.tolist() == [0, 3, 2, 6, 12, 5]
    y.sum().backward()
    assert x.grad.tolist() == [2, 3, 1, 2, 3, 1]
    assert w.grad.tolist() == [0 + 3, 1 + 4]


def test_overlapping_windows_are_not_written():
    x = leafgrad.arange(4.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.unfold(0, 2, 1).add_(1)
    x.unfold(0, 2, 1).fill_(7)
    assert x.tolist() == [7, 7, 7, 7]


# ---- bytes as another dtype: the op reinterpret -----------------------------------------------------------------


def test_view_as_another_dtype(device):
    x = leafgrad.tensor([[1.0, -2.0]], device=device)
    bits = x.view(leafgrad.int32)
    assert bits.tolist() == [[0x3F800000, -0x40000000]]
    bits[0, 0] = 0x40400000
    assert x.tolist() == [[3, -2]]
    assert x.view(leafgrad.uint8).shape == (1, 8)
    assert x.view(dtype=leafgrad.float64).shape == (1, 1)
    assert x.view(leafgrad.float32).tolist() == x.tolist()
    assert leafgrad.func.vmap(lambda v: v.view(leafgrad.int16))(x).shape == (1, 4)


@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        (lambda: leafgrad.tensor(1.0), leafgrad.float64, "cannot be 0 to view"),
        (lambda: leafgrad.ones(3), leafgrad.float64, "must be divisible by 2"),
        (lambda: leafgrad.ones(2, 4).t(), leafgrad.float64, "must be 1 to view|must be divisible"),
    ],
)
def test_what_a_view_as_another_dtype_refuses(x, dtype, message):
    with pytest.raises(RuntimeError, match=message):
        x().view(dtype)


def test_orders_of_memory():
    x = leafgrad.empty_permuted((2, 3, 4), (2, 0, 1))
    assert x.stride() == (3, 1, 6)
    assert x.dim_order() == (2, 0, 1)
    assert leafgrad.ones(2, 3).t().dim_order() == (1, 0)
    assert leafgrad.adjoint(x).shape == x.adjoint().shape == (2, 4, 3)
    with pytest.raises(RuntimeError, match="expected each of the 2 dimensions once"):
        leafgrad.empty_permuted((2, 3), (0, 0))


def test_as_subclass():
    class Mine(leafgrad.Tensor):
        __torch_function__ = unwrapped

    x = leafgrad.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Mine)
    assert type(y) is Mine
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    plain = leafgrad.zeros(2)
    plain.as_subclass(Mine)[0] = 3
    assert plain[0] == 3
    with pytest.raises(TypeError, match="a subclass of Tensor"):
        plain.as_subclass(int)


# ---- storage of a dtype ---------------------------------------------------------------------------------------------


def test_a_storage_has_the_elements_of_the_whole_memory():
    x = leafgrad.arange(6.0).view(2, 3)
    storage = x[1:, 1:].storage()
    assert storage.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (len(storage), storage.size(), storage.nbytes(), storage.element_size()) == (6, 6, 24, 4)
    assert (storage[2], storage[-2:]) == (2.0, [4.0, 5.0])
    assert storage.data_ptr() == x.data_ptr() == x.t().storage().data_ptr()
    assert storage.untyped() is x.untyped_storage()
    assert (storage.dtype, storage.device, storage.is_cuda) == (leafgrad.float32, x.device, False)
    assert repr(storage) == "[TypedStorage(dtype=leafgrad.float32, device=cpu) of size 6]"


def test_set_takes_elements_of_a_storage():
    x, y = leafgrad.arange(6.0), leafgrad.empty(0)
    y.set_(x.storage(), 1, (2, 2), (3, 1))
    assert y.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    y[0, 0] = 9.0
    assert x[1] == 9.0
    assert leafgrad.empty(0).set_(x.view(2, 3), 2, (2,)).tolist() == [2.0, 3.0]
    assert leafgrad.empty(0).set_(x.storage(), 4).tolist() == [4.0, 5.0]
    with pytest.raises(RuntimeError, match="reach outside"):
        y.set_(x.storage(), 1, (2, 3), (3, 1))
    with pytest.raises(RuntimeError, match=r"expected a source of dtype leafgrad\.float32, got leafgrad\.int64"):
        y.set_(leafgrad.arange(3).storage())
    with pytest.raises(TypeError, match="source"):
        y.set_([1.0])


def test_bytes_are_read_as_wider_elements_only_where_all_divide():
    x = leafgrad.arange(12, dtype=leafgrad.int16).view(2, 6)
    assert x.view(leafgrad.int32).shape == (2, 3)
    assert x.view(leafgrad.int32).view(leafgrad.int16).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"self\.size\(-1\) must be divisible by 2"):
        x[:, :5].view(leafgrad.int32)
    with pytest.raises(RuntimeError, match=r"self\.storage_offset\(\) must be divisible by 2"):
        x[:, 1:5].view(leafgrad.int32)
    with pytest.raises(RuntimeError, match=r"self\.stride\(0\) must be divisible by 2"):
        leafgrad.arange(10, dtype=leafgrad.int16).as_strided((2, 2), (5, 1)).view(leafgrad.int32)
    with pytest.raises(RuntimeError, match=r"self\.stride\(-1\) must be 1"):
        x[:, ::2].view(leafgrad.int8)


def test_storages_of_files(t, tmp_path):
    path = str(tmp_path / "numbers")
    leafgrad.arange(4.0).numpy().tofile(path)
    storage = t.UntypedStorage.from_file(path, shared=False, nbytes=16)
    assert (len(storage), storage.untyped()[0], storage[6]) == (16, 0, 128)
    bytes_of = t.asarray(storage[4:12], dtype=t.uint8)
    assert bytes_of.view(t.float32).tolist() == [1.0, 2.0]
    bytes_of.view(t.float32)[0] = 5.0
    assert t.asarray(storage, dtype=t.uint8).view(t.float32).tolist() == [0.0, 5.0, 2.0, 3.0]
    assert t.asarray(storage[16:], dtype=t.uint8).view(t.float32).tolist() == []
    written = t.UntypedStorage.from_file(path, shared=True, nbytes=16)
    assert t.asarray(written, dtype=t.uint8).view(t.float32).tolist() == [0.0, 1.0, 2.0, 3.0]
    t.asarray(written, dtype=t.uint8).view(t.float32)[3] = 7.0
    del written
    assert t.asarray(t.UntypedStorage.from_file(path, nbytes=16), dtype=t.uint8)[-1] == 64


def test_strides_in_the_memory_of_a_sample(t):
    batch = t.arange(24.0).reshape(2, 3, 4)

    def lower(x, start=None):
        return t.as_strided(x.t()[1:], (2, 2), (4, 1), start)

    vmap = t.func.vmap
    assert vmap(lower)(batch).tolist() == [[[1, 2], [5, 6]], [[13, 14], [17, 18]]]
    assert vmap(lambda x: x[1:].storage_offset() * x)(batch)[0, 0].tolist() == [0, 4, 8, 12]
    if t is leafgrad:
        assert vmap(lower, in_dims=(0, None))(batch, 0).tolist() == [[[0, 1], [4, 5]], [[12, 13], [16, 17]]]
        assert leafgrad.compile(vmap(lower))(batch).tolist() == [[[1, 2], [5, 6]], [[13, 14], [17, 18]]]
        with pytest.raises(RuntimeError, match=r"reach outside the 8 elements .* clone\(\) it first"):
            vmap(lambda x: t.as_strided(x, (2,), (1,)), in_dims=1)(batch)  # others lie between its elements
