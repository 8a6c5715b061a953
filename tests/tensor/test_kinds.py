"""FloatTensor and its kin, sizes, memory formats, and what Python asks of a tensor."""

from __future__ import annotations

import pytest

import leafgrad

TESTS = "devices tensor.formats tensor.size"

KINDS = {
    "BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "DoubleTensor": "float64",
    "FloatTensor": "float32", "HalfTensor": "float16", "IntTensor": "int32", "LongTensor": "int64",
    "ShortTensor": "int16",
}  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), KINDS.items())
def test_kinds_of_tensors(name, dtype):
    kind = getattr(leafgrad, name)
    x = leafgrad.ones(2, dtype=leafgrad.dtypes.BY_NAME[dtype])
    assert isinstance(x, kind)
    assert [k for k in KINDS if isinstance(x, getattr(leafgrad, k))] == [name]
    assert not isinstance(1, kind)
    assert repr(kind) == f"<class 'leafgrad.{name}'>"
    assert x.type() == f"leafgrad.{name}"
    made = kind([1, 0])
    assert made.dtype is x.dtype is kind.dtype
    assert made.tolist() == [1, 0]
    assert kind(2, 3).shape == (2, 3)
    assert kind().shape == (0,)
    assert leafgrad.ones(2).type(kind).dtype is kind.dtype
    assert x.new(3).dtype is kind.dtype
    assert x.new([1]).tolist() == [1]
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'no'"):
        kind(no=1)


def test_sizes():
    size = leafgrad.ones(2, 3).shape
    assert repr(size) == "leafgrad.Size([2, 3])"
    assert size == (2, 3)
    assert size.numel() == 6
    for made, expected in (
        (size[1:], [3]),
        (size + size[:1], [2, 3, 2]),
        (size * 2, [2, 3, 2, 3]),
        (2 * size[:1], [2, 2]),
    ):
        assert type(made) is leafgrad.Size
        assert list(made) == expected
    assert size[0] == 2
    assert leafgrad.Size() == ()
    with pytest.raises(TypeError, match="item 1 is 'float'"):
        leafgrad.Size([1, 2.5])


# ---- memory formats -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "memory_format", "strides"),
    [
        ((2, 3, 4, 5), leafgrad.channels_last, (60, 1, 15, 3)),
        ((2, 3, 4, 5, 6), leafgrad.channels_last_3d, (360, 1, 90, 18, 3)),
    ],
)
def test_channels_last(shape, memory_format, strides):
    x = leafgrad.rand(shape, requires_grad=True)
    for y in (
        x.contiguous(memory_format=memory_format),
        x.to(memory_format=memory_format),
        x.clone(memory_format=memory_format),
    ):
        assert y.stride() == strides
        assert y.is_contiguous(memory_format=memory_format)
        assert not y.is_contiguous()
        assert y.tolist() == x.tolist()
        assert y.contiguous(memory_format=memory_format) is y
    assert not x.is_contiguous(memory_format=memory_format)
    (y * 2).sum().backward()
    assert x.grad.tolist() == leafgrad.full(shape, 2.0).tolist()


def test_other_formats():
    x = leafgrad.ones(2, 3)
    assert x.contiguous(memory_format=leafgrad.contiguous_format) is x
    assert leafgrad.zeros_like(x, memory_format=leafgrad.preserve_format).shape == (2, 3)
    assert leafgrad.zeros(2, layout=leafgrad.strided, pin_memory=False).tolist() == [0, 0]
    assert repr(leafgrad.channels_last) == "leafgrad.channels_last"
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        x.contiguous(memory_format=leafgrad.channels_last)
    with pytest.raises(TypeError, match=r"'memory_format' must be leafgrad.memory_format, not str"):
        x.contiguous(memory_format="channels_last")
    with pytest.raises(TypeError, match="memory_format"):
        leafgrad.zeros(2, 3, 4, 5, memory_format=leafgrad.channels_last)


# ---- protocols ----------------------------------------------------------------------------------------------------


def test_what_python_asks():
    x = leafgrad.arange(3)
    assert 2 in x
    assert 5 not in x
    assert leafgrad.tensor([0, 1, 2]) in x
    assert [int(v) for v in reversed(x)] == [2, 1, 0]
    assert [type(v) for v in x] == [leafgrad.Tensor] * 3
    assert complex(leafgrad.tensor(1.5)) == 1.5
    assert f"{leafgrad.tensor(1.23456):.3f} {leafgrad.tensor([1.0])}" == "1.235 tensor([1.])"
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed in a <class 'str'>"):
        assert "a" in x
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor.__format__"):
        f"{leafgrad.tensor([1.0]):.3f}"
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        [0, 1][leafgrad.tensor(1.0)]


# ---- parts replaced -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "part"),
    [
        ("select_scatter", (1, 2), lambda x: x.select(1, 2)),
        ("slice_scatter", (1, 0, 3, 2), lambda x: x[:, 0:3:2]),
        ("diagonal_scatter", (1,), lambda x: x.diagonal(1)),
        ("as_strided_scatter", ((2,), (3,), 1), lambda x: x.as_strided((2,), (3,), 1)),
    ],
)
def test_parts_replaced(name, args, part):
    x = leafgrad.arange(12.0).view(3, 4).clone().requires_grad_()
    src = (-part(x) - 1).detach().clone().requires_grad_()
    out = getattr(leafgrad, name)(x, src, *args)
    assert part(out).tolist() == src.tolist()
    assert x.tolist() == leafgrad.arange(12.0).view(3, 4).tolist()
    assert (out != x).sum() == src.numel()
    out.sum().backward()
    assert x.grad.sum() == 12 - src.numel()
    assert src.grad.sum() == src.numel()
    with pytest.raises(RuntimeError, match=f"{name}: expected src to have a size equal to the slice of self"):
        getattr(x, name)(leafgrad.ones(5, 5), *args)


def test_put():
    x = leafgrad.zeros(2, 2)
    at = leafgrad.tensor([0, -1])
    assert x.put_(at, leafgrad.tensor([5.0, 6.0])).tolist() == [[5, 0], [0, 6]]
    assert x.put(leafgrad.tensor([0, 0]), leafgrad.ones(2), accumulate=True).tolist() == [[7, 0], [0, 6]]
    for call, error in (
        (lambda: x.put(leafgrad.tensor([4]), leafgrad.ones(1)), IndexError),
        (lambda: x.put(at, leafgrad.ones(3)), RuntimeError),
        (lambda: x.put(at.int(), leafgrad.ones(2)), RuntimeError),
        (lambda: x.put(at, at), RuntimeError),
    ):
        with pytest.raises(error, match=r"put_\(\)"):
            call()


def test_functions_of_python():
    x, y = leafgrad.arange(3.0), leafgrad.tensor([2.0])
    assert x.clone().apply_(lambda a: a * a).tolist() == [0, 1, 4]
    assert x.clone().map_(y, lambda a, b: a + b).tolist() == [2, 3, 4]
    assert x.clone().map2_(y, x, lambda a, b, c: a + b * c).tolist() == [0, 3, 6]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        leafgrad.ones(2, requires_grad=True).apply_(abs)


def test_classes_whose_operations_give_tensors():
    from leafgrad.compat.torch import _C

    class Plain(leafgrad.Tensor):
        __torch_function__ = _C._disabled_torch_function_impl

    x = Plain([1.0, 2.0])
    assert type(x) is Plain
    assert type(x * 2) is leafgrad.Tensor


# ---- the default device -------------------------------------------------------------------------------------------


def test_the_default_device():
    from leafgrad.testing import fake

    fake.register()
    made = [
        lambda: leafgrad.zeros(2), lambda: leafgrad.tensor([1.0]), lambda: leafgrad.rand(2), lambda: leafgrad.arange(3),
        lambda: leafgrad.nn.Linear(1, 1).weight, lambda: leafgrad.Tensor(2), lambda: leafgrad.eye(2),
    ]  # fmt: skip
    with leafgrad.device("fake:0") as place:
        assert leafgrad.get_default_device() == place
        assert [m().device for m in made] == [place] * len(made)
        assert leafgrad.zeros(1, device="cpu").device.type == "cpu"
        assert leafgrad.ones_like(leafgrad.zeros(1, device="cpu")).device.type == "cpu"
        assert leafgrad.FloatTensor(2).device.type == "cpu"
        with leafgrad.device("cpu"):
            assert leafgrad.zeros(1).device.type == "cpu"
    assert {m().device.type for m in made} == {"cpu"}
    leafgrad.set_default_device("fake:0")
    try:
        assert leafgrad.zeros(1).device == leafgrad.device("fake:0") == leafgrad.get_default_device()
    finally:
        leafgrad.set_default_device(None)
    assert leafgrad.zeros(1).device.type == "cpu"
    with pytest.raises(RuntimeError, match="device cpu:1: expected an index below 1"):
        leafgrad.zeros(1, device="cpu:1")
    with pytest.raises(RuntimeError, match="expected an index below"):
        leafgrad.set_default_device("fake:99")
    with pytest.raises(ValueError, match="inside"), leafgrad.device("fake:0"):
        raise ValueError("inside")
    assert leafgrad.get_default_device().type == "cpu"
