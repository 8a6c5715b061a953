"""The stand-in device: a FakeArray computes as NumPy's arrays do, and every refusal."""

import builtins
import copy
import operator
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.backends import backend_of, by_device_type
from leafgrad.testing import fake
from leafgrad.testing.fake import surface

TESTS = "testing.fake.*"


@pytest.fixture(autouse=True)
def stand_in():
    """The stand-in device, registered and loaded."""
    fake.register()
    return by_device_type("fake")


@pytest.fixture
def xp():
    return fake.FakeBackend.xp


def on(*values, index=0, dtype=None):
    """A FakeArray of the values."""
    return fake.FakeBackend().from_host(np.array(values, dtype), index)


def host(array):
    return backend_of(array).to_host(array)


def test_fake_operators_agree_with_numpy():
    x, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 0.5], [1.0, 3.0]])
    a, b = on(*x), on(*y)
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
    ):
        apply = getattr(operator, name)
        np.testing.assert_array_equal(host(apply(a, b)), apply(x, y))
        if name != "matmul":
            np.testing.assert_array_equal(host(apply(a, 2)), apply(x, 2))
            np.testing.assert_array_equal(host(apply(2.0, a)), apply(2.0, x))
    for apply in (operator.neg, operator.pos, operator.abs):
        np.testing.assert_array_equal(host(apply(a)), apply(x))
    bits = on(6, 3)
    assert host(bits & 2).tolist() == [2, 2]
    assert host(~bits | (bits << 1) ^ (bits >> 1)).tolist() == [(~6) | (12 ^ 3), (~3) | (6 ^ 1)]
    assert [host(part).tolist() for part in divmod(bits, 4)] == [[1, 0], [2, 3]]


def test_fake_in_place_operators_keep_the_array():
    a = b = on(1.0, 2.0)
    a += 1
    a *= on(2.0, 3.0)
    a -= 0.5
    a /= 2
    a **= 2
    assert a is b
    np.testing.assert_allclose(host(a), [(3.5 / 2) ** 2, (8.5 / 2) ** 2])
    c = on(1, 2)
    with pytest.raises(TypeError, match="same_kind"):
        c += 0.5


def test_fake_results_are_arrays_without_axes():
    a = on(1.0, 2.0, dtype="float32")
    for result in (a.sum(), a[0], a.max(), a @ a, a[0] + 1, a.mean(), a.any(), a.argmax()):
        assert type(result) is fake.FakeArray
        assert result.shape == ()
    assert a.sum().dtype == np.float32


def test_fake_indexing_and_views():
    a = on([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert a.base is None
    for view in (a[0], a[:, 1:], a[0, 1], a.T, a.reshape(3, 2), a[None], a[..., 0], a.T[0].reshape(2, 1)):
        assert view.base is a
        assert not view.flags.owndata
    assert a.copy().base is None
    a[0, 1] += 10
    a[1] = on(7.0, 8.0, 9.0)
    element = a[0, 0]
    element += 1  # a view, as on a GPU, where NumPy alone gives a scalar
    assert host(a).tolist() == [[2, 12, 3], [7, 8, 9]]
    assert host(a[on(1, 0), on(0, 2)]).tolist() == [7, 3]
    assert host(a[a > 7]).tolist() == [12, 8, 9]
    assert host(a[[1, 0], 0]).tolist() == [7, 2]
    a[a > 8] = 0
    assert host(a).tolist() == [[2, 0, 3], [7, 8, 0]]
    with pytest.raises(IndexError):
        a[5]


def test_fake_attributes_and_methods():
    a = on([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], dtype="float32")
    assert (a.shape, a.ndim, a.size, a.itemsize, a.nbytes, a.strides) == ((2, 3), 2, 6, 4, 24, (12, 4))
    assert (a.device.id, len(a), len(list(a))) == (0, 2, 2)
    assert a.flags.c_contiguous
    assert a.T.flags.f_contiguous
    assert a.astype("float64").dtype == np.float64
    assert a.transpose(1, 0).shape == a.swapaxes(0, 1).shape == (3, 2)
    assert host(a.sum(axis=0, keepdims=True)).tolist() == [[5, 7, 9]]
    assert host(a.real).tolist() == host(a).tolist()
    assert not host(a.imag).any()
    a.fill(2)
    assert host(a).tolist() == [[2, 2, 2]] * 2
    for twin in (copy.copy(a), copy.deepcopy(a)):
        assert twin is not a
        assert host(twin).tolist() == host(a).tolist()
    assert repr(on(1, 2)) == "FakeArray([1, 2], device='fake:0')"


def test_fake_namespace(xp):
    a = on(1.0, 4.0)
    assert xp.pi == np.pi
    assert xp.newaxis is None
    assert xp.float32 is np.float32
    assert xp.ndarray is fake.FakeArray
    assert xp.finfo(a.dtype).bits == 64
    assert (xp.sin.nin, xp.add.nin, xp.sin.__name__) == (1, 2, "sin")
    assert host(xp.sqrt(a)).tolist() == [1, 2]
    out = xp.empty(2)
    assert xp.sqrt(a, out=out) is out
    assert xp.sqrt(a, out=(out,)) is out
    assert xp.sum(on([1.0, 2.0]), axis=0, out=out) is out
    assert host(xp.concatenate([a, out])).tolist() == [1, 4, 1, 2]
    assert host(xp.where(a > 2, a, 0.0)).tolist() == [0, 4]
    assert host(xp.einsum("i,i->", a, a)).tolist() == 17
    assert host(xp.linalg.norm(a)) == pytest.approx(17**0.5)
    assert type(xp.linalg.slogdet(xp.eye(2)).sign) is fake.FakeArray
    assert xp.asarray(a) is a
    assert host(xp.stack((a, a))[1]).tolist() == [1, 4]
    assert xp.result_type(a, xp.float32) == np.float64
    assert xp.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert type(xp.allclose(a, a)) is type(xp.array_equal(a, a)) is fake.FakeArray
    assert xp.frexp(a)[1].dtype.kind == "i"
    assert isinstance(xp.split(a, 2), list)
    xp.copyto(out, a)
    assert host(out).tolist() == [1, 4]


def test_fake_ufunc_methods(xp):
    a = on([1, 2], [3, 4])
    assert host(xp.add.reduce(a)).tolist() == [4, 6]
    assert host(xp.multiply.accumulate(a, axis=1)).tolist() == [[1, 2], [3, 12]]
    assert host(xp.subtract.outer(on(1, 2), on(1, 1))).tolist() == [[0, 0], [1, 1]]
    total = xp.zeros(3)
    xp.add.at(total, on(0, 2, 0), on(1.0, 2.0, 3.0))
    assert host(total).tolist() == [4, 0, 2]


# ---- FakeArray: refusals ----


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (np.sin, "__array_ufunc__"),
        (np.sum, "numpy.sum was called on a device array; use the backend's xp.sum"),
        (lambda a: np.add(np.ones(2), a), "__array_ufunc__"),
        (lambda a: np.concatenate([a, a]), r"xp.concatenate"),
        (np.asarray, "implicit conversion"),
        (np.array, "implicit conversion"),
        (lambda a: np.array([a, a]), "implicit conversion"),
        (lambda a: a * np.ones(2), "host value, ndarray"),
        (lambda a: np.ones(2) * a, "host value, ndarray"),
        (lambda a: a + np.float64(1), "host value, float64"),
        (lambda a: np.float32(1) + a, "host value, float32"),
        (lambda a: a[np.array([0])], "host value, ndarray"),
        (lambda a: a[np.int64(0)], "host value, int64"),
        (lambda a: operator.setitem(a, 0, np.float64(1)), "host value, float64"),
        (lambda a: operator.iadd(a, np.ones(2)), "host value, ndarray"),
        (lambda a: a.dot(np.ones(2)), "host value, ndarray"),
        (lambda a: a + "x", "ufunc|unsupported|did not contain"),
        (lambda a: a + object(), "got object"),
        (lambda a: operator.add(a, [object()]), "got object"),
        (hash, "unhashable"),
        (operator.index, "integer"),
        (lambda a: range(a), "integer"),
        (np.from_dlpack, "dlpack|DLPack"),
        (fake.FakeArray, "made by its namespace"),
    ],
)
def test_fake_arrays_refuse_the_host(attempt, message):
    error = AttributeError if attempt is np.from_dlpack else TypeError
    with pytest.raises((error, TypeError), match=message):
        attempt(on(1.0, 2.0))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda xp, a: xp.sin(np.ones(2)),
        lambda xp, a: xp.add(a, np.ones(2)),
        lambda xp, a: xp.add(a, a, out=np.ones(2)),
        lambda xp, a: xp.add(a, a, out=(np.ones(2),)),
        lambda xp, a: xp.asarray(np.ones(2)),
        lambda xp, a: xp.concatenate([a, np.ones(2)]),
        lambda xp, a: xp.where(a > 0, a, np.zeros(2)),
        lambda xp, a: xp.full((2,), np.float32(1)),
        lambda xp, a: xp.einsum("i,i", a, np.ones(2)),
        lambda xp, a: xp.linalg.norm(np.ones(2)),
        lambda xp, a: xp.add.at(a, np.array([0]), 1.0),
        lambda xp, a: xp.sum(a, axis=np.int64(0)),
        lambda xp, a: xp.trim_zeros(lambda: a),
    ],
)
def test_the_namespace_refuses_host_values(xp, attempt):
    with pytest.raises(TypeError, match=r"got a host value|got function"):
        attempt(xp, on(1.0, 2.0))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda xp, a: xp.add(a, a, where=a > 0),
        lambda xp, a: xp.add(a, a, subok=False),
        lambda xp, a: xp.sum(a, where=a > 0),
        lambda xp, a: xp.sum(a, initial=1.0),
        lambda xp, a: a.sum(where=a > 0),
        lambda xp, a: a.max(initial=0.0),
        lambda xp, a: xp.std(a, correction=1),
        lambda xp, a: xp.zeros(2, device="cpu"),
        lambda xp, a: xp.clip(a, min=0.0),
        lambda xp, a: xp.take(a, 0, mode="wrap"),
        lambda xp, a: xp.sort(a, stable=True),
        lambda xp, a: xp.linalg.svd(xp.eye(2), hermitian=True),
    ],
)
def test_keywords_that_cupy_lacks(xp, attempt):
    with pytest.raises(TypeError, match="CuPy's has no argument"):
        attempt(xp, on(1.0, 2.0))


@pytest.mark.parametrize("name", ["reduce", "accumulate", "reduceat"])
def test_ufunc_methods_that_cupy_lacks(xp, name):
    with pytest.raises(NotImplementedError, match=rf"xp.maximum.{name}: CuPy has none"):
        getattr(xp.maximum, name)
    with pytest.raises(NotImplementedError, match=r"xp.multiply.at"):
        xp.multiply.at(xp.zeros(2), on(0), 1.0)
    with pytest.raises(AttributeError, match="no attribute 'types'"):
        operator.attrgetter("types")(xp.maximum)


@pytest.mark.parametrize(
    "name",
    """nditer random errstate vectorize block geomspace object_ matrix ma testing mgrid r_ c_ broadcast poly1d
    memmap _core no_such_name frompyfunc load""".split(),
)
def test_names_that_are_not_for_ops(xp, name):
    with pytest.raises(AttributeError, match=rf"xp.{name}"):
        getattr(xp, name)
    assert not hasattr(xp, name)


def test_names_of_linalg_that_cupy_lacks(xp):
    with pytest.raises(AttributeError, match=r"xp.linalg.multi_dot"):
        xp.linalg.multi_dot([xp.eye(2)])


@pytest.mark.parametrize("name", ["ctypes", "data", "resize", "setflags", "scatter", "__array_interface__", "get"])
def test_attributes_that_arrays_lack(name):
    assert not hasattr(on(1.0), name)


@pytest.mark.parametrize("values", [["a"], [None], [b"x"]])
def test_dtypes_that_cupy_lacks(xp, values):
    with pytest.raises(TypeError, match=r"CuPy has no arrays of|got bytes"):
        xp.asarray(values)
    with pytest.raises(TypeError, match="CuPy has no arrays of object"):
        xp.zeros(2, object)


# ---- two devices ----


def test_two_devices_do_not_mix():
    backend = fake.FakeBackend()
    a, b = on(1.0, index=0), on(2.0, index=1)
    assert (backend.device_index(a), backend.device_index(b)) == (0, 1)
    for attempt in (lambda: a + b, lambda: b + a, lambda: backend.xp.add(a, b), lambda: b + 1, lambda: b.sum()):
        with pytest.raises(RuntimeError, match="expected arrays on the current device, fake:0, got one on fake:1"):
            attempt()
    with backend.device_scope(1):
        assert backend.device_index(b + 1) == 1
        assert backend.device_index(backend.xp.zeros(2)) == 1
        assert backend.device_index(b.T.reshape(1, 1)) == 1
        with pytest.raises(RuntimeError, match="current device, fake:1, got one on fake:0"):
            a + b
    assert backend.device_index(backend.xp.zeros(2)) == 0


def test_moving_between_devices():
    backend = fake.FakeBackend()
    a = on(1.0, 2.0)
    moved = backend.asarray(a, index=1)
    assert backend.device_index(moved) == 1
    assert host(moved).tolist() == [1, 2]
    assert backend.asarray(moved, index=1) is moved
    assert backend.device_index(backend.asarray(3, index=1)) == 1
    assert backend.device_index(backend.generator(1).normal((2,), "float32")) == 1


@pytest.mark.parametrize("index", [-1, 2, 7])
def test_device_index_out_of_range(index):
    backend = fake.FakeBackend()
    for use in (
        lambda: backend.from_host(np.ones(1), index),
        lambda: backend.asarray(1, index=index),
        lambda: backend.generator(index),
        lambda: backend.device_scope(index).__enter__(),
    ):
        with pytest.raises(RuntimeError, match=f"expected a device index from 0 to 1, got fake:{index}"):
            use()


def test_from_host_takes_numpy_arrays_only():
    with pytest.raises(TypeError, match="expected a NumPy array, got list"):
        fake.FakeBackend().from_host([1.0])


# ---- synchronisation ----


@pytest.mark.parametrize(
    "wait",
    [
        bool, int, float, complex, repr, str,
        lambda a: a.item(),
        lambda a: a.tolist(),
        lambda a: fake.FakeBackend().to_host(a),
        lambda a: fake.FakeBackend().item(a),
        lambda a: fake.FakeBackend().synchronize(),
        lambda a: a[a > 0],
        lambda a: a.reshape(1)[(a > 0).reshape(1),],
        lambda a: operator.setitem(a, a > 0, 1.0),
        lambda a: fake.FakeBackend.xp.nonzero(a.reshape(1)),
        lambda a: a.reshape(1).nonzero(),
        lambda a: fake.FakeBackend.xp.where(a.reshape(1)),
        lambda a: fake.FakeBackend.xp.unique(a),
        lambda a: fake.FakeBackend.xp.repeat(a.reshape(1), on(2)),
        lambda a: 1 if a > 0 else 2,
        lambda a: builtins.max(a, a + 1),
    ],
)  # fmt: skip
def test_what_synchronises_is_counted(wait):
    array = fake.FakeBackend().asarray(1.0)
    before = fake.sync_count()
    wait(array)
    assert fake.sync_count() == before + 1
    with pytest.raises(AssertionError, match="expected no synchronisation with the device, got"), fake.no_sync():
        wait(array)


def test_what_does_not_synchronise(xp):
    a = on(1.0, 2.0)
    with fake.no_sync():
        b = xp.where(a > 1, a, 0.0) @ a + a.sum()
        a[0] = b
        a += xp.repeat(b.reshape(1), 2)
        assert a.shape == (2,)
        assert len(a) == 2
        a.fill(0)
        fake.FakeBackend().generator().normal((2,), "float32")


def test_no_sync_lets_other_errors_through():
    def step():
        return 1 / on(0).tolist()[0]

    with pytest.raises(ZeroDivisionError), fake.no_sync():
        step()


def test_registering_the_stand_in_twice():
    fake.register()
    fake.register()
    assert [record.name for record in plugins.status()].count("fake-device") == 1
    assert plugins.backend("fake").target == "leafgrad.testing.fake:FakeBackend"


def test_the_surface_names_things_that_numpy_has():
    for name in surface.METHODS | surface.OPERATORS:
        assert hasattr(np.ndarray, name), name
    for name in surface.SYNCHRONISING | surface.GIVES_0D | surface.UFUNC_METHODS.keys():
        assert hasattr(np, name) or hasattr(np.ufunc, name), name
    assert not surface.ABSENT & surface.SYNCHRONISING


def test_the_stand_in_in_a_program_of_its_own():
    program = textwrap.dedent(
        """
        from leafgrad.testing.fake import FakeBackend, no_sync, register
        register()
        with no_sync():
            FakeBackend().asarray([1.0]).sum()
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_ops_run_on_the_second_device():
    x = leafgrad.ones(3, device="fake:1", requires_grad=True)
    y = (leafgrad.tanh(x) * 2 + x[0]).sum()
    y.backward()
    assert x.grad is not None
    assert str(x.grad.device) == "fake:1"
