"""New tensors: dtypes inferred, memory shared or copied, filled and evenly spaced, pickled."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import leafgrad
from leafgrad import autograd, dtypes, modes
from leafgrad.ops import create, dispatch
from leafgrad.tensor.overrides import unwrapped

TESTS = "dtypes tensor.data"

# ---- from data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "int64"),
        (1.0, "float32"),
        (True, "bool"),
        ([], "float32"),
        ([[], []], "float32"),
        ([1, True], "int64"),
        ([True, 1.0], "float32"),
        (range(3), "int64"),
        (np.float64(1), "float64"),
        (np.arange(3, dtype="int16"), "int16"),
        ([np.float64(1), 2], "float64"),
        ([np.float32(1), 2.0], "float32"),
        ([np.array([1.0, 2.0])], "float64"),
        (np.float16(2), "float16"),
    ],
)
def test_tensor_infers_the_dtype(data, dtype, device):
    t = leafgrad.tensor(data, device=device)
    assert t.dtype.name == dtype
    assert t.device == device
    assert t.tolist() == np.asarray(data).tolist()
    assert t.is_leaf


def test_tensor_follows_the_default_dtype():
    before = leafgrad.get_default_dtype()
    leafgrad.set_default_dtype(leafgrad.float64)
    try:
        assert leafgrad.tensor(1.0).dtype is leafgrad.float64
        assert leafgrad.zeros(2).dtype is leafgrad.float64
        assert leafgrad.arange(0.0, 1.0, 0.5).dtype is leafgrad.float64
    finally:
        leafgrad.set_default_dtype(before)


def test_tensor_takes_tensors_of_one_element_inside_lists(device):
    one = leafgrad.tensor(1.5, dtype=leafgrad.float64, device=device)
    t = leafgrad.tensor([[one, 2], [one[None], one]], device=device)
    assert t.tolist() == [[1.5, 2.0], [1.5, 1.5]]
    assert t.dtype is leafgrad.float64
    with pytest.raises(ValueError, match="only one element tensors"):
        leafgrad.tensor([leafgrad.ones(2), leafgrad.ones(2)])


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        ([[1, 2], [3]], ValueError, "equal lengths"),
        ("a", TypeError, "string 'a'"),
        (["a"], ValueError, "string 'a'"),
        (None, RuntimeError, "infer dtype of NoneType"),
        ({1}, RuntimeError, "infer dtype of set"),
        (2**63, RuntimeError, "overflow"),
        (np.array([1], "uint32"), TypeError, "uint32"),
    ],
)
def test_what_is_no_data_is_refused(data, error, match):
    with pytest.raises(error, match=match):
        leafgrad.tensor(data)


def test_tensor_copies_and_warns_of_tensors(device):
    array = np.ones(2, "float32")
    t = leafgrad.tensor(array, device=device)
    array[0] = 5
    assert t.tolist() == [1, 1]
    with pytest.warns(UserWarning, match=r"detach.*requires_grad_\(True\)"):
        u = leafgrad.tensor(t, dtype=leafgrad.float64)
    assert (u.device, u.dtype) == (device, leafgrad.float64)
    u[0] = 7
    assert t.tolist() == [1, 1]


def test_only_floats_may_require_grad():
    assert leafgrad.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        leafgrad.tensor([1], requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point"):
        leafgrad.zeros(2, dtype=leafgrad.int32, requires_grad=True)


def test_from_numpy_shares_memory_both_ways():
    array = np.zeros((2, 3))
    t = leafgrad.from_numpy(array)
    t[0, 1] = 4
    array[1] = 2
    assert t.tolist() == array.tolist() == [[0, 4, 0], [2, 2, 2]]
    assert leafgrad.as_tensor(array).numpy() is array
    with pytest.raises(TypeError, match=r"expected np\.ndarray, got list"):
        leafgrad.from_numpy([1])
    with pytest.raises(ValueError, match="byte order"):
        leafgrad.from_numpy(np.zeros(2, ">f4"))
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        leafgrad.from_numpy(array)


def test_as_tensor_copies_only_where_it_must(device):
    t = leafgrad.ones(2, device=device, requires_grad=True)
    assert leafgrad.as_tensor(t) is t
    assert leafgrad.as_tensor(t, dtype=leafgrad.float64).dtype is leafgrad.float64
    assert leafgrad.as_tensor([1, 2], device=device).device == device
    assert leafgrad.as_tensor(np.ones(2), device=device).device == device


# ---- filled -------------------------------------------------------------------------------------------------------


def test_filled_tensors(device):
    assert leafgrad.zeros(2, 3, device=device).tolist() == np.zeros((2, 3)).tolist()
    assert leafgrad.zeros((2,), dtype=int, device=device).dtype is leafgrad.int64
    assert leafgrad.zeros(2, dtype=float, device=device).to(float).dtype is leafgrad.float64
    assert leafgrad.ones([2], dtype=leafgrad.bool, device=device).tolist() == [True, True]
    assert leafgrad.empty(0, 3, device=device).shape == (0, 3)
    assert leafgrad.zeros((), device=device).item() == 0
    assert leafgrad.zeros(leafgrad.tensor(2), np.int64(1)).shape == (2, 1)
    for value, kind in ((1, "int64"), (1.5, "float32"), (True, "bool"), (leafgrad.tensor(2.5), "float32")):
        t = leafgrad.full((2,), value, device=device)
        assert (t.dtype.name, t.tolist()) == (kind, [float(value)] * 2)
    assert leafgrad.eye(2, 3, device=device).tolist() == np.eye(2, 3).tolist()
    assert leafgrad.tril_indices(3, 4, -1, device=device).tolist() == np.array(np.tril_indices(3, -1, 4)).tolist()
    assert leafgrad.triu_indices(3, 4, 1, device=device).tolist() == np.array(np.triu_indices(3, 1, 4)).tolist()


def test_like_and_new_keep_dtype_and_device(device):
    t = leafgrad.tensor([[1.5, 2.5]], dtype=leafgrad.float64, device=device, requires_grad=True)
    made = [
        leafgrad.zeros_like(t), leafgrad.ones_like(t), leafgrad.empty_like(t), leafgrad.full_like(t, 3),
        t.new_zeros(1, 2), t.new_ones((1, 2)), t.new_empty(1, 2), t.new_full((1, 2), 3), t.new_tensor([[3, 3]]),
    ]  # fmt: skip
    for m in made:
        assert (m.dtype, m.device, m.shape, m.requires_grad) == (t.dtype, device, t.shape, False)
    assert leafgrad.ones_like(t, dtype=leafgrad.int8).dtype is leafgrad.int8
    assert t.new_zeros(2, requires_grad=True).requires_grad
    with pytest.raises(TypeError, match="must be Tensor"):
        leafgrad.zeros_like([1])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: leafgrad.zeros(-1), RuntimeError, "non-negative"),
        (lambda: leafgrad.zeros(2.5), TypeError, "tuple of ints"),
        (lambda: leafgrad.zeros(True), TypeError, "tuple of ints"),
        (lambda: leafgrad.zeros(2, None), TypeError, "tuple of ints"),
        (lambda: leafgrad.zeros(), TypeError, "missing"),
        (lambda: leafgrad.zeros(2, dtype="float32"), TypeError, "expected a leafgrad dtype"),
        (lambda: leafgrad.full(2, 1), TypeError, "tuple of ints"),
        (lambda: leafgrad.full((2,), "a"), TypeError, "expected a number"),
        (lambda: leafgrad.eye(-1), RuntimeError, "greater or equal to 0"),
        (lambda: leafgrad.full((2,), 300, dtype=leafgrad.uint8), RuntimeError, "full: fill_value: .* without overflow"),
        (lambda: leafgrad.full((2,), 1e9, dtype=leafgrad.int8), RuntimeError, "without overflow, got 1000000000.0"),
        (lambda: leafgrad.full((2,), float("nan"), dtype=leafgrad.int64), RuntimeError, "without overflow, got nan"),
        (lambda: leafgrad.ones(2, dtype=leafgrad.int8).new_full((2,), -129), RuntimeError, "without overflow"),
        (lambda: leafgrad.full_like(leafgrad.ones(2).byte(), 256), RuntimeError, "without overflow"),
        (lambda: leafgrad.full((2,), 65505, dtype=leafgrad.float16), RuntimeError, "full: fill_value: .* overflow"),
        (lambda: leafgrad.full((2,), -1e39), RuntimeError, "leafgrad.float32 without overflow, got -1e"),
        (lambda: leafgrad.arange(0, 5, 0), RuntimeError, "nonzero"),
        (lambda: leafgrad.arange(5, 1), RuntimeError, "inconsistent with step sign"),
        (lambda: leafgrad.arange(float("inf")), RuntimeError, "finite"),
        (lambda: leafgrad.linspace(0, 1, -1), RuntimeError, "non-negative"),
        (lambda: leafgrad.tril_indices(-1, 2), RuntimeError, "non-negative"),
        (lambda: leafgrad.zeros(2, device="nowhere"), RuntimeError, "nowhere"),
    ],
)
def test_wrong_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()


# ---- evenly spaced ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds", [(5,), (2.5,), (1, 5), (1.0, 5), (5, 0, -2), (0, 1, 0.1), (-3, 4, 3), (0, 0), (2**53, 2**53 + 3)]
)
def test_arange_is_numpys(bounds, device):
    t, expected = leafgrad.arange(*bounds, device=device), np.arange(*bounds)
    assert t.dtype.name == ("int64" if expected.dtype.kind == "i" else "float32")
    np.testing.assert_array_equal(t.cpu().numpy(), expected.astype(t.dtype.name))


def test_arange_by_keyword():
    assert leafgrad.arange(end=3).tolist() == [0, 1, 2]
    assert leafgrad.arange(start=1, end=3).tolist() == [1, 2]
    with pytest.raises(TypeError, match="arange: end: expected a number, got None"):
        leafgrad.arange()


@pytest.mark.parametrize("dtype", [leafgrad.float16, leafgrad.float32, leafgrad.float64])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 100])
def test_linspace_is_exact_at_both_ends_and_symmetric(steps, dtype, device):
    t = leafgrad.linspace(-1.5, 1.5, steps, dtype=dtype, device=device).cpu().numpy()
    assert t.shape == (steps,)
    np.testing.assert_allclose(t, np.linspace(-1.5, 1.5, steps), rtol=1e-3 if dtype is leafgrad.float16 else 1e-6)
    if steps > 1:
        np.testing.assert_array_equal(t, -t[::-1])


def test_logspace_and_integer_linspace(device):
    assert leafgrad.logspace(0, 3, 4, base=2, device=device).tolist() == [1, 2, 4, 8]
    assert leafgrad.logspace(0, 2, 3).tolist() == [1, 10, 100]
    assert leafgrad.linspace(0, 10, 4, dtype=leafgrad.int64, device=device).tolist() == [0, 3, 6, 10]


def test_ops_that_only_traces_and_indices_use(device):
    made = dispatch.create(create.constant, device.resolve(), value=((1, 2), (3, 4)), dtype="float32")
    assert made.tolist() == [[1, 2], [3, 4]]
    assert (made.dtype, made.device) == (leafgrad.float32, device)
    corner = dispatch.create(create.triangle, device.resolve(), rows=2, columns=2, offset=0, lower=True, dtype="int64")
    assert corner.tolist() == [[0, 1, 1], [0, 0, 1]]


# ---- constructors of old, pickles, copies ---------------------------------------------------------------------------


def test_constructors_of_old():
    assert leafgrad.Tensor(2, 3).shape == (2, 3)
    assert leafgrad.Tensor(leafgrad.Size([2])).shape == (2,)
    assert leafgrad.Tensor().shape == (0,)
    assert leafgrad.Tensor([2, 3]).tolist() == [2.0, 3.0]
    assert leafgrad.Tensor((2, 3)).dtype is leafgrad.float32
    shared = leafgrad.tensor([1, 2])
    leafgrad.Tensor(shared)[0] = 7
    assert shared.tolist() == [7, 2]
    with pytest.raises(TypeError, match="sequence"):
        leafgrad.Tensor(2.5)
    names = {
        "Float": "float32", "Double": "float64", "Half": "float16", "Int": "int32", "Long": "int64", "Bool": "bool",
    }  # fmt: skip
    for name, dtype in names.items():
        make = getattr(leafgrad, f"{name}Tensor")
        assert make([1, 0]).dtype.name == make(2, 2).dtype.name == dtype


def test_a_subclass_is_made_by_calling_it():
    class Special(leafgrad.Tensor):
        __torch_function__ = unwrapped

    t = Special([1.0, 2.0])
    assert type(t) is Special
    assert type(copy.copy(t)) is Special  # by way of __reduce__, as pickle
    assert (t * 2).tolist() == [2, 4]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_pickle_keeps_values_device_flag_and_attributes(requires_grad, device):
    t = leafgrad.tensor([[1.0, 2.0]], device=device, requires_grad=requires_grad)
    t.note = "kept"
    back = pickle.loads(pickle.dumps(t))
    assert back.tolist() == t.tolist()
    assert (back.device, back.requires_grad, back.is_leaf, back.note) == (device, requires_grad, True, "kept")
    view = pickle.loads(pickle.dumps(t.detach()[0]))
    assert type(view) is leafgrad.Tensor
    view.fill_(9)
    assert t.tolist() == [[1, 2]]


def test_copy_shares_memory_and_deepcopy_does_not():
    t = leafgrad.ones(2)
    shallow, deep = copy.copy(t), copy.deepcopy(t)
    t[0] = 5
    assert (shallow.tolist(), deep.tolist()) == ([5, 1], [1, 1])


def test_inference_tensors_are_marked():
    with modes.inference_mode():
        made = [leafgrad.tensor([1.0]), leafgrad.ones(1), leafgrad.arange(3.0)]
    w = leafgrad.ones(1, requires_grad=True)
    for t in made:
        with pytest.raises(RuntimeError, match=r"[Ii]nference"):
            t * w
    assert autograd.grad((w * 2).sum(), w)[0].tolist() == [2]


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_the_size_may_be_given_by_name(name):
    make = getattr(leafgrad, name)
    assert make(size=(2, 3)).shape == make(size=[2, 3], dtype=leafgrad.float64).shape == (2, 3)
    with pytest.raises(TypeError):
        make(2, size=(3,))
    if hasattr(leafgrad.Tensor, f"new_{name}"):
        assert getattr(leafgrad.ones(1), f"new_{name}")(size=(2, 3)).shape == (2, 3)


def test_ranges_of_integers_cut_their_bounds():
    """As PyTorch's, the bounds that count as integers, not the points alone."""
    assert leafgrad.arange(0.0, -8.1, -4.0, dtype=leafgrad.int64).tolist() == [0, -4]
    assert leafgrad.arange(0.9, 5.1, 1.9, dtype=leafgrad.int64).tolist() == [0, 1, 2, 3, 4]
    assert leafgrad.arange(0.9, 5.1, 1.9, dtype=leafgrad.int32).tolist() == [0, 1, 2]
    assert leafgrad.linspace(4.9, -3.9, 7, dtype=leafgrad.int64).tolist() == [4, 2, 1, 0, 0, -1, -3]
    assert leafgrad.logspace(1.2, 2.9, 4, dtype=leafgrad.int64).tolist() == [10, 21, 46, 100]
    assert leafgrad.logspace(1.2, 2.9, 1, dtype=leafgrad.int64).tolist() == [15]
    with pytest.raises(ValueError, match="step must be nonzero"):
        leafgrad.arange(0, 5, 0.5, dtype=leafgrad.int64)


@pytest.mark.parametrize("kind", dtypes.ALL, ids=str)
def test_dtypes_say_of_themselves_what_numpy_says(kind):
    native = np.dtype(kind.name)
    signed = native.kind in "ifc"
    said = kind.itemsize, kind.is_floating_point, kind.is_complex, kind.is_signed, kind.is_differentiable
    assert said == (native.itemsize, native.kind == "f", native.kind == "c", signed, native.kind in "fc")
    assert kind.to_real() is (kind if native.kind != "c" else getattr(leafgrad, f"float{4 * kind.itemsize}"))
    assert leafgrad.zeros(3, dtype=kind).element_size() == native.itemsize


def test_steps_are_an_int():
    for function in (leafgrad.linspace, leafgrad.logspace):
        with pytest.raises(TypeError, match=rf"{function.__name__}: steps: expected an int, got 2.7"):
            function(0, 3, 2.7)


def test_what_is_no_number_is_true_among_bools():
    assert leafgrad.full((2,), math.nan, dtype=leafgrad.bool).tolist() == [True, True]
    assert leafgrad.zeros(1, dtype=leafgrad.bool).masked_fill(leafgrad.tensor([True]), -math.inf).tolist() == [True]
