"""The backend contract on NumPy and on the stand-in device, and the tables."""

import subprocess
import sys
import types

import numpy as np
import pytest

from leafgrad.backends import BACKENDS, BackendSpec, backend_of, backend_of_type, by_device_type, contract
from leafgrad.backends.numpy import NumpyBackend, NumpyGenerator
from leafgrad.testing import fake

TESTS = "backends.numpy backends.philox backends.place"


@pytest.fixture(autouse=True)
def stand_in():
    """The stand-in device, registered and loaded."""
    fake.register()
    return by_device_type("fake")


@pytest.fixture(params=["cpu", "fake"])
def backend(request, stand_in):
    return by_device_type(request.param)


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


def test_generators_of_one_seed_are_independent_of_each_other():
    first, second = NumpyGenerator(), NumpyGenerator()
    first.normal((3,), "float32")
    untouched = NumpyGenerator().normal((2,), "float32")
    np.testing.assert_array_equal(second.normal((2,), "float32"), untouched)
