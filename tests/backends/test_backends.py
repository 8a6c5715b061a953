"""The backend contract on NumPy and on the stand-in device, the tables, and every refusal of a FakeArray."""

import builtins
import copy
import operator
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest

import leafgrad
from leafgrad import plugins
from leafgrad.backends import BACKENDS, BackendSpec, backend_of, backend_of_type, by_device_type, contract
from leafgrad.backends.numpy import NumpyBackend, NumpyGenerator
from leafgrad.testing import fake
from leafgrad.testing.fake import surface


@pytest.fixture(autouse=True)
def stand_in():
    """The stand-in device, registered and loaded."""
    fake.register()
    return by_device_type("fake")


@pytest.fixture(params=["cpu", "fake"])
def backend(request, stand_in):
    return by_device_type(request.param)


@pytest.fixture
def xp():
    return fake.FakeBackend.xp


def on(*values, index=0, dtype=None):
    """A FakeArray of the values."""
    return fake.FakeBackend().from_host(np.array(values, dtype), index)


def host(array):
    return backend_of(array).to_host(array)


# ---- tables ----


def test_numpy_is_there_at_once():
    assert BACKENDS[np.ndarray].name == "numpy"
    assert by_device_type("cpu") is BACKENDS[np.ndarray]


@pytest.mark.parametrize("scalar", [np.float32(1), np.float64(1), np.int8(1), np.bool_(True)])
def test_scalars_of_numpy_belong_to_its_backend(scalar):
    assert backend_of(scalar) is by_device_type("cpu")
    assert BACKENDS[type(scalar)] is by_device_type("cpu")


def test_backend_of_subclasses_and_types():
    class Mine(np.ndarray):
        pass

    assert backend_of_type(Mine).name == "numpy"
    assert backend_of(np.zeros(2).view(Mine)).name == "numpy"


@pytest.mark.parametrize("value", [1, 1.0, True, [1], None, "x"])
def test_backend_of_what_is_no_array(value):
    with pytest.raises(TypeError, match=r"expected an array of a loaded backend, .*numpy \(cpu\).*; got builtins"):
        backend_of(value)


def test_the_stand_in_is_loaded_at_first_use_and_once(backend):
    assert by_device_type(backend.device_type) is backend
    assert BACKENDS[backend.array_type] is backend


def test_unknown_device_type():
    with pytest.raises(RuntimeError, match=r"unknown device type 'tpu': known are cpu, cuda"):
        by_device_type("tpu")


def test_a_target_must_make_the_backend_that_is_listed(monkeypatch):
    module = types.ModuleType("odd_backend")
    module.NumpyBackend, module.dict = NumpyBackend, dict
    monkeypatch.setitem(sys.modules, "odd_backend", module)
    with pytest.raises(TypeError, match="expected odd_backend:dict to be a subclass of Backend, got <class 'dict'>"):
        contract.load(BackendSpec("odd", "odd", "odd_backend:dict"))
    with pytest.raises(RuntimeError, match="'odd', 'odd', as listed, got 'numpy', 'cpu'"):
        contract.load(BackendSpec("odd", "odd", "odd_backend:NumpyBackend"))


def test_importing_backends_imports_no_cupy():
    program = "import sys, leafgrad.backends; print([m for m in sys.modules if 'cupy' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


# ---- the contract, on every backend ----


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float16", "float32", "float64"])
def test_host_round_trip_copies(backend, dtype):
    source = np.arange(6).reshape(2, 3).astype(dtype)
    array = backend.from_host(source)
    assert type(array) is backend.array_type
    assert backend.device_index(array) == 0
    source[...] = 0
    back = backend.to_host(array)
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, np.arange(6).reshape(2, 3).astype(dtype))


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, None, "int64"),
        (3.5, None, "float64"),
        (True, None, "bool"),
        (3, "float32", "float32"),
        ([[1, 2], [3, 4]], "int32", "int32"),
        ([], "float32", "float32"),
        ((1.5, 2), None, "float64"),
    ],
)
def test_asarray(backend, value, dtype, expected):
    array = backend.asarray(value, dtype)
    assert type(array) is backend.array_type
    assert array.dtype.name == expected
    assert array.shape == np.shape(value)
    np.testing.assert_array_equal(host(array), np.asarray(value, expected))


def test_asarray_of_an_array_copies_only_to_convert(backend):
    array = backend.asarray([1.0, 2.0], "float32")
    assert backend.asarray(array) is array
    assert backend.asarray(array, "float32") is array
    converted = backend.asarray(array, "float64")
    assert (array.dtype.name, converted.dtype.name) == ("float32", "float64")


@pytest.mark.parametrize(
    ("value", "dtype", "error", "message"),
    [
        ([[1, 2], [3]], None, ValueError, "equal lengths"),
        ("abc", None, TypeError, "got str"),
        ("abc", "float32", TypeError, "expected numbers"),
        ([1, "a"], None, TypeError, "got str"),
        ([1, None], None, TypeError, "got NoneType"),
        (object, None, TypeError, "expected"),
        (300, "uint8", RuntimeError, "without overflow"),
        (-1, "uint8", RuntimeError, "without overflow"),
        (2**70, "int64", RuntimeError, "without overflow"),
        (2**70, None, TypeError, "expected numbers"),
    ],
)
def test_asarray_refuses(backend, value, dtype, error, message):
    with pytest.raises(error, match=message):
        backend.asarray(value, dtype)


def test_wrap(backend):
    array = backend.asarray([1.0])
    assert backend.wrap(array) is array
    for value in (1.0, [1.0], (array,), None):
        with pytest.raises(TypeError, match="expected"):
            backend.wrap(value)


def test_wrap_of_numpy_scalars():
    wrapped = by_device_type("cpu").wrap(np.float32(3))
    assert type(wrapped) is np.ndarray
    assert (wrapped.shape, wrapped.dtype) == ((), np.float32)


def test_a_reduction_never_leaves_the_device(backend):
    total = backend.wrap(backend.asarray([1.0, 2.0], "float32").sum())
    assert type(total) is backend.array_type
    assert (total.shape, total.dtype.name) == ((), "float32")


def test_item(backend):
    assert backend.item(backend.asarray(2.5)) == 2.5
    assert type(backend.item(backend.asarray([3]))) is int
    assert backend.item(backend.asarray(True)) is True


def test_device_scope_and_synchronize(backend):
    with backend.device_scope(0):
        backend.synchronize(0)
    assert backend.device_count() >= 1


# ---- random numbers ----


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_random_moments(backend, dtype):
    generator = backend.generator()
    normal, uniform = generator.normal((20000,), dtype), generator.uniform((20000,), dtype)
    assert normal.dtype.name == uniform.dtype.name == dtype
    normal, uniform = host(normal).astype(float), host(uniform).astype(float)
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert abs(uniform.mean() - 0.5) < 0.01
    assert uniform.min() >= 0
    assert uniform.max() < 1


def test_float32_numbers_are_drawn_as_float32(backend):
    numbers = host(backend.generator().uniform((1000,), "float32")).astype(np.float64)
    np.testing.assert_array_equal(numbers * 2**24 % 1, 0)
    assert len(np.unique(numbers)) > 990


def test_integers_permutation_bernoulli(backend):
    generator = backend.generator()
    numbers = generator.integers(-2, 3, (1000,), "int32")
    assert numbers.dtype.name == "int32"
    assert set(host(numbers).tolist()) == {-2, -1, 0, 1, 2}
    assert generator.integers(0, 5, (2, 3), "float32").dtype.name == "float32"
    assert generator.integers(-(2**63), 2**63, (), "int64").shape == ()
    order = generator.permutation(10)
    assert order.dtype.name == "int64"
    assert sorted(host(order).tolist()) == list(range(10))
    assert abs(host(generator.bernoulli(0.2, (20000,), "float32")).mean() - 0.2) < 0.02
    chances = backend.asarray([0.0, 1.0])
    np.testing.assert_array_equal(host(generator.bernoulli(chances, (5, 2), "bool")), [[False, True]] * 5)


@pytest.mark.parametrize(("low", "high"), [(3, 3), (4, 3), (0, 2**63 + 1), (-(2**63) - 1, 0)])
def test_integers_refuse_an_empty_range(backend, low, high):
    with pytest.raises(RuntimeError, match="expected low < high"):
        backend.generator().integers(low, high, (2,), "int64")


@pytest.mark.parametrize("seed", [0, 7, -1, 2**64 - 1, -(2**63)])
def test_seeds(backend, seed):
    generator, again = backend.generator(), backend.generator()
    generator.manual_seed(seed)
    again.manual_seed(seed)
    assert generator.initial_seed() == seed % 2**64
    np.testing.assert_array_equal(host(generator.normal((5,), "float32")), host(again.normal((5,), "float32")))


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_out_of_range(backend, seed):
    with pytest.raises(RuntimeError, match=r"expected a seed in \[-2\*\*63, 2\*\*64\)"):
        backend.generator().manual_seed(seed)


def test_generators_start_alike_and_entropy_differs(backend):
    first, second = backend.generator(), backend.generator()
    assert first.initial_seed() == 67280421310721
    np.testing.assert_array_equal(host(first.uniform((3,), "float64")), host(second.uniform((3,), "float64")))
    assert first.seed() == first.initial_seed() != second.seed()


def test_state_restores_the_stream(backend):
    generator, other = backend.generator(), backend.generator()
    generator.manual_seed(5)
    generator.integers(0, 3, (3,), "int32")
    generator.uniform((3,), "float32")  # an odd number: PCG64 keeps half a word back
    state = generator.get_state()
    assert state.dtype == np.uint8
    expected = host(generator.uniform((7,), "float32")), host(generator.normal((3,), "float64"))
    other.set_state(state)
    assert other.initial_seed() == 5
    np.testing.assert_array_equal(host(other.uniform((7,), "float32")), expected[0])
    np.testing.assert_array_equal(host(other.normal((3,), "float64")), expected[1])


@pytest.mark.parametrize("state", [np.zeros(3, np.uint8), np.zeros(56), np.zeros((56, 1), np.uint8)])
def test_a_state_of_another_kind_is_refused(backend, state):
    with pytest.raises(RuntimeError, match="expected a generator state of 56 uint8 values, got shape"):
        backend.generator().set_state(state)


def test_numpy_error_state_is_left_alone(backend):
    errors = np.geterr()
    backend.generator().normal((3,), "float32")
    backend.asarray([1.0]).sum()
    assert np.geterr() == errors


# ---- FakeArray: computes as NumPy does ----


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


# ---- CuPy ----


def load_cupy(monkeypatch, cupy):
    """Import the CuPy backend afresh with `cupy` in the place of the package, and make it."""
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.delitem(sys.modules, "leafgrad.backends.cupy", raising=False)
    try:
        return contract.load(plugins.backend("cupy"))
    finally:
        sys.modules.pop("leafgrad.backends.cupy", None)


class CUDARuntimeError(RuntimeError):
    """Stands for CuPy's error."""


def stub(count):
    """As much of the cupy package as it takes to ask for devices."""

    def get_device_count():
        if isinstance(count, str):
            raise CUDARuntimeError(count)
        return count

    cupy = types.ModuleType("cupy")
    cupy.ndarray = type("ndarray", (), {})
    runtime = types.SimpleNamespace(getDeviceCount=get_device_count, CUDARuntimeError=CUDARuntimeError)
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=lambda index: index)
    return cupy


def test_cupy_missing(monkeypatch):
    with pytest.raises(ImportError, match=r'"cuda" needs CuPy.*pip install "leafgrad\[cuda12\]"'):
        load_cupy(monkeypatch, None)


def test_no_driver(monkeypatch):
    error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
    with pytest.raises(RuntimeError, match=r"no NVIDIA driver that serves this CuPy \(cudaErrorInsufficientDriver"):
        load_cupy(monkeypatch, stub(error))


@pytest.mark.parametrize("count", [0, "cudaErrorNoDevice: no CUDA-capable device is detected"])
def test_no_gpu(monkeypatch, count):
    with pytest.raises(RuntimeError, match="the NVIDIA driver finds no GPU"):
        load_cupy(monkeypatch, stub(count))


@pytest.mark.parametrize("index", [-1, 2])
def test_cuda_index_out_of_range(monkeypatch, index):
    backend = load_cupy(monkeypatch, stub(2))
    assert backend.device_count() == 2
    for use in (backend.device_scope, backend.generator, backend.synchronize):
        with pytest.raises(RuntimeError, match=f"expected a CUDA device from cuda:0 to cuda:1, got cuda:{index}"):
            use(index)


def test_cupy_refuses_host_values(monkeypatch):
    backend = load_cupy(monkeypatch, stub(1))
    for value in (1.0, np.float32(1), np.ones(2)):
        with pytest.raises(TypeError, match="expected an array of CuPy's, got a host value"):
            backend.wrap(value)


def philox(seed, at):
    """Philox4x32-10 in Python: four words from counter and key, as the kernel computes them."""
    counter = [at % 2**32, at >> 32, 0, 0]
    key = [seed % 2**32, seed >> 32]
    for _ in range(10):
        low, high = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [high >> 32 ^ counter[1] ^ key[0], high % 2**32, low >> 32 ^ counter[3] ^ key[1], low % 2**32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return counter


def test_philox_known_answer():
    """The first vector of kat_vectors in Random123."""
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.gpu
@pytest.mark.parametrize(("seed", "at"), [(0, 0), (2**64 - 1, 2**40 + 3), (123456789, 7)])
def test_the_kernel_is_philox(seed, at):
    generator = by_device_type("cuda").generator()
    generator.set_state(np.array([seed, at], "<u8").view(np.uint8))
    bits = host(generator._draw("bits", (3,), "uint64")).tolist()
    assert bits == [philox(seed, at + i)[0] << 32 | philox(seed, at + i)[1] for i in range(3)]


def test_generators_of_one_seed_are_independent_of_each_other():
    first, second = NumpyGenerator(), NumpyGenerator()
    first.normal((3,), "float32")
    untouched = NumpyGenerator().normal((2,), "float32")
    np.testing.assert_array_equal(second.normal((2,), "float32"), untouched)


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
