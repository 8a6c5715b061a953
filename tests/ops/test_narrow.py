"""bfloat16: every op computes in float32 and rounds once, to the bit, whatever the route."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from rows import ROWS

import leafgrad as lg

TESTS = "backends.bfloat16"

bf16 = lg.bfloat16
CASES = [row for row in ROWS if "float32" in row.dtypes and hasattr(row.op, "traits") and "complex" not in str(row)]
ALL_BITS = np.arange(2**16, dtype=np.uint16)


def from_bits(bits):
    return lg.from_numpy(np.asarray(bits, np.uint16).view(np.int16)).view(bf16)


def bits(t):
    assert t.dtype is bf16
    assert type(t._data) is type(lg.zeros((), dtype=bf16)._data)  # what dispatch knows it by
    return np.ascontiguousarray(t.detach().view(lg.int16).numpy()).view(np.uint16)


def nearest(x):
    """The bits of the nearest bfloat16 to float32 numbers, ties to even, by integer arithmetic; nan is one nan."""
    u = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def same(found, want):
    """The same bits, but for the kind of nan."""
    found = np.where((found & 0x7FFF) > 0x7F80, np.uint16(0x7FC0), found)
    np.testing.assert_array_equal(found, want)


def converted(value, dtype):
    """An argument of an op: float32 arrays as tensors of bfloat16's numbers, in ``dtype``."""
    if not isinstance(value, np.ndarray):
        return value
    t = lg.tensor(value)
    return t.to(bf16).to(dtype) if t.dtype is lg.float32 else t


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("row", CASES, ids=str)
def test_each_op_is_that_of_float32_rounded_once(row):
    for args, params in row.draw("float32"):
        wide = outputs(row.op(*[converted(a, lg.float32) for a in args], **params))
        found = outputs(row.op(*[converted(a, bf16) for a in args], **params))
        for f, w in zip(found, wide, strict=True):
            if w.dtype is lg.float32 and params.get("dtype") in (None, "bfloat16"):
                same(bits(f), nearest(w.numpy()))
            else:
                assert f.dtype is w.dtype
                np.testing.assert_array_equal(f.numpy(), w.numpy())


def test_rounding_of_float32_numbers():
    halves = (ALL_BITS.astype(np.uint32) << 16)[:, None] + np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    x = halves.view(np.float32)
    same(bits(lg.from_numpy(x).to(bf16)), nearest(x))
    exact = from_bits(ALL_BITS).to(lg.float32)
    np.testing.assert_array_equal(exact.numpy().view(np.uint32)[~np.isnan(exact.numpy())] & 0xFFFF, 0)
    same(bits(exact.to(bf16)), nearest(exact.numpy()))


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64", "float16", "float64", "bool"])
def test_other_dtypes_go_by_way_of_float32(name):
    rng = np.random.default_rng(0)
    kind = getattr(lg, name)
    x = lg.from_numpy(rng.normal(size=500) * (1e4 if name[0] == "f" else 60)).to(kind)
    same(bits(x.to(bf16)), nearest(x.float().numpy()))
    y = lg.from_numpy(np.abs(rng.normal(size=500)) * 50).to(bf16)
    np.testing.assert_array_equal(y.to(kind).numpy(), y.float().to(kind).numpy())


@pytest.mark.parametrize(
    ("expression", "wide"),
    [
        (lambda x: x + 0.1, lambda x, c: x + c),
        (lambda x: 0.1 - x, lambda x, c: c - x),
        (lambda x: x.remainder(0.1), lambda x, c: x.remainder(c)),
        (lambda x: x * 0.1, lambda x, c: x * 0.1),
        (lambda x: x / 0.1, lambda x, c: x / 0.1),
        (lambda x: x // 0.1, lambda x, c: x // 0.1),
        (lambda x: x.clone().add_(0.1), lambda x, c: x + c),
        (lambda x: x.clone().mul_(0.1), lambda x, c: x * 0.1),
        (lambda x: x.add(x, alpha=0.1), lambda x, c: x + x * c),
        (lambda x: lg.addcmul(x, x, x, value=0.1), lambda x, c: x + x * x * 0.1),
    ],
)
def test_python_numbers_are_rounded_where_pytorch_rounds_them(expression, wide):
    x = from_bits(ALL_BITS[::7])
    c = lg.tensor(0.1, dtype=bf16).item()
    same(bits(expression(x)), nearest(wide(x.float(), c).numpy()))


def test_a_comparison_with_a_number_is_with_the_rounded_one():
    x = lg.tensor([0.1], dtype=bf16)
    assert (x == 0.1).item()
    assert not (x > 0.1).item()


def test_ops_about_the_numbers_of_a_dtype():
    x = from_bits([0x3F80, 0x0000, 0xBF80])
    assert bits(lg.nextafter(x, lg.full((3,), 2.0, dtype=bf16))).tolist() == [0x3F81, 0x0001, 0xBF7F]
    assert bits(lg.nan_to_num(from_bits([0x7F80, 0xFF80, 0x7FC0]))).tolist() == [0x7F7F, 0xFF7F, 0]
    assert bits(lg.nan_to_num(from_bits([0x7F80]), posinf=1.0)).tolist() == [0x3F80]
    limits = lg.finfo(bf16)
    assert (limits.bits, limits.eps, limits.max) == (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127)
    assert (1 + lg.tensor(limits.eps, dtype=bf16)).item() == 1 + limits.eps


@pytest.mark.parametrize(
    ("other", "want"),
    [
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int64", "bfloat16"),
        ("uint8", "bfloat16"),
        ("bool", "bfloat16"),
        ("bfloat16", "bfloat16"),
    ],
)
def test_promotion_is_pytorchs(other, want):
    kind = getattr(lg, other)
    assert lg.promote_types(bf16, kind) is lg.promote_types(kind, bf16) is getattr(lg, want)
    assert (lg.ones(2, dtype=bf16) + lg.ones(2, dtype=kind)).dtype is getattr(lg, want)
    assert (lg.ones(2, dtype=bf16) + lg.ones((), dtype=kind)).dtype is bf16


def test_sums_and_products_are_added_up_in_float32():
    ones = lg.ones(100_000, dtype=bf16)
    assert ones.sum().item() == 99840  # 100000, rounded
    assert ones.mean().item() == 1
    assert (ones @ ones).item() == 99840
    assert ones.sum(dtype=lg.float32).item() == 100_000
    with pytest.raises(RuntimeError, match="same dtype, but got: bfloat16 != float32"):
        ones @ lg.ones(100_000)


def test_gradients_are_bfloat16_and_those_of_float32():
    rng = np.random.default_rng(1)
    x, w = (lg.from_numpy(rng.normal(size=s)).to(bf16) for s in ((5, 4), (3, 4)))
    grads = []
    for kind in (bf16, lg.float64):
        a, b = x.to(kind).detach().clone().requires_grad_(), w.to(kind).detach().clone().requires_grad_()
        ((lg.nn.functional.linear(a, b).tanh() * 2).exp().mean()).backward()
        assert a.grad.dtype is b.grad.dtype is kind
        grads.append([a.grad.double().numpy(), b.grad.double().numpy()])
    for found, want in zip(*grads, strict=True):
        np.testing.assert_allclose(found, want, atol=0.02 * np.abs(want).max())


def test_views_share_the_memory():
    x = lg.zeros(3, 4, dtype=bf16)
    x.T[1:, ::2].add_(1.5)
    x[0].view(lg.int16)[0] = 0x4000
    x.as_strided((2,), (5,), 2).fill_(0.1)
    assert x.tolist() == [[2.0, 1.5, 0.10009765625, 1.5], [0, 0, 0, 0.10009765625], [0, 1.5, 1.5, 1.5]]
    assert bits(x.unfold(1, 2, 1)).shape == (3, 3, 2)


def test_random_numbers_are_those_that_bfloat16_holds():
    lg.manual_seed(0)
    drawn = lg.rand(20_000, dtype=bf16)
    assert drawn.max().item() < 1
    assert set((drawn.float() * 256).tolist()) == set(range(256))
    assert abs(lg.randn(20_000, dtype=bf16).float().std().item() - 1) < 0.03
    assert lg.empty(1000, dtype=bf16).random_().max().item() <= 256


def test_numpy_and_back():
    x = lg.tensor([1.5, -2.0], dtype=bf16)
    array = x.numpy()
    assert type(array) is np.ndarray
    assert array.dtype.name == "bfloat16"
    array[0] = 3
    assert x.tolist() == [3, -2]
    assert lg.from_numpy(array)[0].item() == 3
    assert bits(lg.tensor(array) + 0.1).tolist() == bits(x + 0.1).tolist()
    with pytest.raises(BufferError, match=r"export tensor\.view"):
        np.from_dlpack(x)


def test_numpys_functions_on_raw_arrays_round_once_too():
    x = lg.tensor([1.0, 2.0], dtype=bf16)._data
    assert type(np.exp(x)) is type(x)
    assert np.add.reduce(np.ones_like(x, shape=(5000,))).item() == 4992
    assert (x + np.float64(0.5)).dtype == np.float64
    x += 0.1
    assert lg.from_numpy(x).tolist() == [1.1015625, 2.09375]


def test_a_device_without_it_says_so(device):
    if device.type == "cpu":
        assert lg.zeros(2, dtype=bf16, device=device).dtype is bf16
        return
    for make in (
        lambda: lg.zeros(2, dtype=bf16, device=device),
        lambda: lg.ones(2, device=device).to(bf16),
        lambda: lg.ones(2, dtype=bf16).to(device),
        lambda: lg.tensor([1.0], dtype=bf16, device=device),
    ):
        with pytest.raises((TypeError, RuntimeError), match="bfloat16 is there on the CPU only"):
            make()


def test_nothing_is_imported_before_its_name_is_read():
    program = """
        import sys
        import leafgrad as lg
        from leafgrad import nn
        kind = lg.bfloat16
        lg.ones(2).to(lg.float16) + lg.ones(2)
        assert "ml_dtypes" not in sys.modules
        assert lg.ones(2, dtype=kind).sum().item() == 2
        assert "ml_dtypes" in sys.modules
    """
    lines = "\n".join(line.strip() for line in program.splitlines())
    subprocess.run([sys.executable, "-c", lines], check=True, timeout=60)


def test_a_pickle_brings_it_to_another_process(tmp_path):
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(lg.tensor([1.0, 2.0], dtype=bf16)))
    program = f"""import pickle, leafgrad
where = leafgrad.where(leafgrad.ones(2) > 0, leafgrad.ones(2), 2.0)
x = pickle.loads(open({str(path)!r}, "rb").read())
assert (x.softmax(0) * 100).tolist() == {(lg.tensor([1.0, 2.0], dtype=bf16).softmax(0) * 100).tolist()}
assert leafgrad.where(leafgrad.ones(2) > 0, x, x).add(0.1).tolist() == [1.1015625, 2.09375]"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_it_is_a_default_dtype_too():
    lg.set_default_dtype(bf16)
    try:
        assert lg.tensor([1.5]).dtype is lg.nn.Linear(2, 2).weight.dtype is bf16
        assert (lg.arange(3) / 2).dtype is bf16
    finally:
        lg.set_default_dtype(lg.float32)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_step_in_bfloat16(name):
    p, q = (lg.tensor([1.0, -2.0], dtype=kind, requires_grad=True) for kind in (bf16, lg.float32))
    for t in (p, q):
        optimizer = getattr(lg.optim, name)([t], lr=0.01)
        for _ in range(10):
            optimizer.zero_grad()
            (t * t).sum().backward()
            optimizer.step()
    assert p.dtype is bf16
    np.testing.assert_allclose(p.detach().float().numpy(), q.detach().numpy(), atol=0.03)  # ten steps' roundings
    assert math.isfinite(p.sum().item())


@pytest.mark.parametrize("op", [lg.exp, lg.clone, lg.neg, lambda x: x * 2, lambda x: x.double(), lambda x: x > 0])
def test_results_of_expanded_tensors_lie_as_those_of_other_dtypes(op):
    x = lg.ones(2, 3, 4, 5)
    for show in (lambda x: x[:1].expand(3, 3, 4, 5), lambda x: x.permute(3, 1, 0, 2)[:1].expand(3, 3, 2, 4)):
        assert op(show(x.to(bf16))).stride() == op(show(x.half())).stride()
