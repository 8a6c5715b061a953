"""Public elementwise functions, methods, operators and in-place variants."""

from __future__ import annotations

import math

import numpy as np
import parity
import pytest

import leafgrad
from leafgrad.tensor.listed import METHODS

TESTS = "tensor.operators"

# ---- operators ------------------------------------------------------------------------------------------------------

A, B = np.array([7, -7, 3]), np.array([2, 3, 2])
OPERATORS = [
    "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** abs(y)", "-x", "+x", "abs(x)", "x == y", "x != y",
    "x < y", "x <= y", "x > y", "x >= y", "2 + x", "2 - x", "2 * x", "2 / x", "7 // x", "7 % x", "2 ** y", "x == 3",
    "3 >= x", "x ** 2", "x / 2",
]  # fmt: skip
BITS = ["x & y", "x | y", "x ^ y", "~x", "x << y", "x >> y", "6 & x", "6 | x", "6 ^ x", "1 << y", "64 >> y"]


@pytest.mark.parametrize("expression", OPERATORS)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_operators_do_what_numpy_does(expression, dtype, device):
    x, y = A.astype(dtype), B.astype(dtype)
    expected = eval(expression, {"x": x, "y": y})
    actual = eval(expression, {"x": leafgrad.tensor(x, device=device), "y": leafgrad.tensor(y, device=device)})
    assert actual.device == device
    np.testing.assert_allclose(actual.tolist(), expected, rtol=1e-6)


REFLECTED = {
    "+": "radd", "-": "rsub", "*": "rmul", "/": "rtruediv", "//": "rfloordiv", "%": "rmod", "**": "rpow",
    "@": "rmatmul", "&": "rand", "|": "ror", "^": "rxor", "<<": "rlshift", ">>": "rrshift",
    "<": "gt", "<=": "ge", ">": "lt", ">=": "le",
}  # fmt: skip


def test_sequences_repeat_as_often_as_an_integer_says(device):
    n = leafgrad.tensor(2, device=device)
    assert ([0] * n, n * (1,), "ab" * n.reshape(1)) == ([0, 0], (1, 1), "abab")
    with pytest.raises(TypeError, match=r"mul\(\): y: expected a Tensor or a number, got list"):
        [0] * n.float()


@pytest.mark.parametrize("symbol", REFLECTED)
def test_an_operand_of_another_class_answers_by_its_reflected_operator(symbol):
    """In a trace, a vmap and inference mode as well; a function, or a class without one, gives the error."""
    other = type("Other", (), {f"__{REFLECTED[symbol]}__": lambda self, x: ("answered", x)})()
    x = leafgrad.tensor([1, 2])

    def answer(x):
        found, operand = eval(f"x {symbol} other", {"x": x, "other": other})
        assert found == "answered"
        return operand * 1

    assert answer(x).tolist() == [1, 2]
    assert leafgrad.func.vmap(answer)(x).tolist() == [1, 2]
    assert leafgrad.compile(answer)(x).tolist() == [1, 2]
    with leafgrad.inference_mode():
        assert answer(x).tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"expected a Tensor or a number, got Unknown; convert it with"):
        eval(f"x {symbol} other", {"x": x, "other": type("Unknown", (), {})()})


@pytest.mark.parametrize("other", [[1], (1,), "a", None, {}])
def test_operands_without_an_answer_are_refused_by_type(other):
    for operate in (lambda x: x + other, lambda x: x * other, lambda x: leafgrad.add(x, other)):
        with pytest.raises(TypeError, match=rf"y: expected a Tensor or a number, got {type(other).__name__}; convert"):
            operate(leafgrad.tensor([1.0]))
    reflecting = type("Other", (), {"__radd__": lambda self, x: "answered"})()
    with pytest.raises(TypeError, match="got Other"):
        leafgrad.add(leafgrad.tensor([1.0]), reflecting)


@pytest.mark.parametrize("expression", BITS)
def test_bit_operators_do_what_numpy_does(expression, device):
    expected = eval(expression, {"x": A, "y": B})
    actual = eval(expression, {"x": leafgrad.tensor(A, device=device), "y": leafgrad.tensor(B, device=device)})
    assert actual.tolist() == expected.tolist()


def test_operators_on_bools_are_logic():
    x, y = leafgrad.tensor([True, True, False]), leafgrad.tensor([True, False, False])
    assert (x & y).tolist() == [True, False, False]
    assert (x | y).tolist() == [True, True, False]
    assert (x ^ y).tolist() == [False, True, False]
    assert (~x).tolist() == [False, False, True]


@pytest.mark.parametrize("other", [None, "a", object(), [1.0]])
def test_a_tensor_is_not_equal_to_what_is_no_number(other):
    x = leafgrad.ones(1)
    assert (x == other) is False
    assert (x != other) is True


def test_an_array_is_not_silently_unequal():
    x = leafgrad.ones(2)
    assert (x == np.array([1.0, 2.0])).tolist() == [True, False]
    assert (np.array([1.0, 2.0]) != x).tolist() == [False, True]


def test_tensors_hash_by_identity():
    x, y = leafgrad.ones(1), leafgrad.ones(1)
    assert len({x, y, x}) == 2


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x += 2", [9, -5, 5]), ("x -= y", [5, -10, 1]), ("x *= y", [14, -21, 6]), ("x //= 2", [3, -4, 1]),
        ("x %= 4", [3, 1, 3]), ("x **= 2", [49, 49, 9]), ("x &= 3", [3, 1, 3]), ("x |= 8", [15, -7, 11]),
        ("x ^= y", [5, -6, 1]), ("x <<= 1", [14, -14, 6]), ("x >>= 1", [3, -4, 1]),
    ],
)  # fmt: skip
def test_in_place_operators_write_the_same_tensor(statement, expected, device):
    scope = {"x": leafgrad.tensor(A, device=device), "y": leafgrad.tensor(B, device=device)}
    before, view = scope["x"], scope["x"].detach()
    exec(statement, scope)
    assert scope["x"] is before
    assert before.tolist() == view.tolist() == expected


def test_true_division_in_place_needs_a_floating_tensor():
    x = leafgrad.tensor(A)
    with pytest.raises(RuntimeError, match=r"result type leafgrad\.float32 can't be cast"):
        x /= 2
    y = leafgrad.tensor([1.0, 2.0])
    y /= 2
    assert y.tolist() == [0.5, 1.0]


# ---- in-place methods -----------------------------------------------------------------------------------------------

ARGUMENTS = {
    **dict.fromkeys(["clamp", "clip"], (0.4, 0.6)),
    **dict.fromkeys(["addcdiv", "addcmul"], (np.array([0.5, 0.7]), np.array([0.6, 0.9]))),
    "lerp": (np.array([0.5, 0.7]), 0.3),
    **dict.fromkeys(
        """add arctan2 atan2 clamp_max clamp_min copysign div divide eq float_power floor_divide fmod ge greater
        greater_equal gt heaviside hypot ldexp le less less_equal logical_and logical_or logical_xor lt mul multiply ne
        nextafter not_equal pow remainder sub subtract true_divide xlogy""".split(),
        (np.array([0.5, 0.7]),),
    ),
}
IN_PLACE = [name.rstrip("_") for name in METHODS["leafgrad.tensor.pointwise"].split() if name[-1] == "_" != name[0]]
FLOAT_NAMES = [name for name in IN_PLACE if "bitwise" not in name and name not in ("gcd", "lcm")]


@pytest.mark.parametrize("name", FLOAT_NAMES)
def test_in_place_methods_agree_with_functions_and_keep_gradients(name):
    start = np.array([1.3, 1.8]) if "acosh" in name or "arccosh" in name else np.array([0.3, 0.8])
    arguments = [leafgrad.tensor(a) if isinstance(a, np.ndarray) else a for a in ARGUMENTS.get(name, ())]
    x = leafgrad.tensor(start, requires_grad=True)
    want = getattr(leafgrad, name)(x, *arguments)
    y = x * 1
    assert getattr(y, name + "_")(*arguments) is y
    np.testing.assert_array_equal(y.tolist(), want.tolist())
    if want.requires_grad and name not in ("floor_divide", "heaviside", "nextafter"):
        (a,), (b,) = leafgrad.autograd.grad(want.sum(), x), leafgrad.autograd.grad(y.sum(), x)
        np.testing.assert_allclose(b.tolist(), a.tolist(), rtol=1e-15)


# ---- dtypes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("i + 1", "int64"), ("i + 1.5", "float32"), ("i * True", "int64"), ("h * 1e3", "float16"), ("d + s", "float64"),
        ("i / i", "float32"), ("i ** 2", "int64"), ("i ** 2.0", "float32"), ("2 ** i", "int64"), ("b + b", "bool"),
        ("b + 1", "int64"), ("b * 1.5", "float32"), ("u + i8", "int16"), ("s + scalar", "float32"),
        ("i + scalar", "float64"),
        ("lg.exp(i)", "float32"), ("lg.floor(i)", "int64"), ("lg.clamp(i, 0.5)", "float32"), ("i < 1.5", "bool"),
        ("lg.float_power(i, 2)", "float64"), ("lg.where(b, 1, 2.5)", "float32"), ("lg.where(b, i, 2)", "int64"),
        ("lg.where(b, s, d)", "float64"), ("lg.div(i, i, rounding_mode='floor')", "int64"),
        ("s * c", "complex64"), ("d * c", "complex128"), ("i * c", "complex128"), ("s * 1j", "complex64"),
    ],
)  # fmt: skip
def test_result_types(expression, dtype):
    t = leafgrad.tensor
    scope = {
        "lg": leafgrad, "i": t([1, 2]), "b": t([True, False]), "s": t([1.0, 2.0]),
        "d": t([1.0, 2.0], dtype=leafgrad.float64), "h": t([1.0, 2.0], dtype=leafgrad.float16),
        "u": t([1, 2], dtype=leafgrad.uint8), "i8": t([1, 2], dtype=leafgrad.int8),
        "scalar": t(1.0, dtype=leafgrad.float64), "c": t(1j, dtype=leafgrad.complex128),
    }  # fmt: skip
    assert eval(expression, scope).dtype.name == dtype


# ---- arguments and errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "exception", "pattern"),
    [
        (lambda x, i: x + None, TypeError, "y: expected a Tensor or a number, got NoneType"),
        (lambda x, i: leafgrad.add(x, np.ones(2)), TypeError, "from_numpy"),
        (
            lambda x, i: x + leafgrad.ones(3, device=x.device),
            RuntimeError,
            r"tensor a \(2\) must match the size of tensor b \(3\)",
        ),
        (lambda x, i: leafgrad.exp(3), TypeError, "expected at least one Tensor"),
        (lambda x, i: i.add(1, alpha=1.5), RuntimeError, "alpha must not be a floating point number"),
        (lambda x, i: i.sub_(True), RuntimeError, "with a bool tensor is not supported"),
        (lambda x, i: True - x, RuntimeError, "with a bool tensor is not supported"),
        (lambda x, i: x.sub(True, alpha=2), RuntimeError, "with a bool tensor is not supported"),
        (lambda x, i: x.div(2, rounding_mode="up"), RuntimeError, "None, 'trunc', or 'floor' but found 'up'"),
        (lambda x, i: i // 0, RuntimeError, "ZeroDivisionError"),
        (lambda x, i: x.clamp(), RuntimeError, "At least one of 'min' or 'max' must not be None"),
        (lambda x, i: leafgrad.where(x, x, x), RuntimeError, "expected condition to be a boolean tensor"),
        (lambda x, i: leafgrad.where(x > 0, x), TypeError, "where"),
        (lambda x, i: x.lerp(i, 0.5), RuntimeError, "end: expected dtype leafgrad.float32"),
        (lambda x, i: i.addcdiv(i, i), RuntimeError, "Integer division with addcdiv"),
        (lambda x, i: x.isclose(i), RuntimeError, "did not match"),
        (lambda x, i: x.isclose(x, rtol=-1), RuntimeError, "rtol: expected a tolerance of at least 0"),
        (lambda x, i: x & 1, NotImplementedError, "expected integers or bools, got floats"),
        (lambda x, i: x.round(decimals=1.5), TypeError, "'decimals' .*must be int, not float"),
        (lambda x, i: leafgrad.sinc("a"), TypeError, "'input' .*must be Tensor, not str"),
        (lambda x, i: leafgrad.xlogy(2, 3), TypeError, "must be Tensor, not int"),
        (lambda x, i: leafgrad.relu(i > 0), RuntimeError, "Boolean inputs not supported"),
        (lambda x, i: leafgrad.celu(x, 0), RuntimeError, "alpha: expected a number other than 0"),
        (lambda x, i: i.floor_divide(0), RuntimeError, "ZeroDivisionError"),
        (lambda x, i: i.exp_(), RuntimeError, "can't be cast to the desired output type"),
    ],
)
def test_errors(call, exception, pattern, device):
    with pytest.raises(exception, match=pattern):
        call(leafgrad.tensor([1.0, 2.0], device=device), leafgrad.tensor([1, 2], device=device))


def test_functions_with_parameters(device):
    x, y = leafgrad.tensor([1.0, -2.0], device=device), leafgrad.tensor([3.0, 5.0], device=device)
    assert leafgrad.add(x, y, alpha=2).tolist() == [7, 8]
    assert x.sub(1, alpha=3).tolist() == [-2, -5]
    assert leafgrad.rsub(x, 1).tolist() == [0, 3]
    assert leafgrad.sub(x.half(), leafgrad.tensor([1, 2], device=device), alpha=1.5).dtype is leafgrad.float16
    assert leafgrad.add(x > 0, x < 0, alpha=2).tolist() == [True, True]
    assert leafgrad.add(x > 0, x < 0, alpha=0).tolist() == [True, False]
    assert leafgrad.div(y, 2, rounding_mode="trunc").tolist() == [1, 2]
    assert leafgrad.div(-y, 2, rounding_mode="floor").tolist() == [-2, -3]
    assert leafgrad.addcmul(x, x, y, value=2).tolist() == [7, -22]
    assert leafgrad.addcdiv(x, y, y, value=2).tolist() == [3, 0]
    assert leafgrad.lerp(x, y, 1.0).tolist() == y.tolist()
    assert leafgrad.lerp(x, y, leafgrad.tensor([0.0, 1.0], device=device)).tolist() == [1, 5]
    assert leafgrad.clamp(x, max=0).tolist() == [0, -2]
    assert x.clamp(leafgrad.tensor(-1.0, device=device), y).tolist() == [1, -1]
    small = leafgrad.tensor([0, 5, 255], dtype=leafgrad.uint8, device=device)
    assert [small.clamp(-1, 1).tolist(), small.clip(-255, 2).tolist()] == [[1, 1, 1], [1, 2, 2]]
    assert small.clamp(-1, 2.5).tolist() == [0, 2.5, 2.5]
    assert leafgrad.where(x > 0, x, 0).tolist() == x.where(x > 0, 0).tolist() == [1, 0]
    assert [i.tolist() for i in leafgrad.where(x > 0)] == [[0]]
    assert [i.tolist() for i in leafgrad.where(x.outer(y) < 0)] == [[1, 1], [0, 1]]
    assert leafgrad.round(x * 1.26, decimals=1).tolist() == pytest.approx([1.3, -2.5])
    assert leafgrad.deg2rad(leafgrad.tensor([180], device=device)).item() == pytest.approx(math.pi)
    assert leafgrad.rad2deg(leafgrad.tensor(math.pi, device=device)).item() == pytest.approx(180)
    assert leafgrad.xlogy(leafgrad.zeros(2, device=device), x).tolist() == [0, 0]
    assert leafgrad.xlogy(x, 1).tolist() == [0, 0]


@pytest.mark.parametrize(("function", "pole"), [(leafgrad.xlogy, 0.0), (leafgrad.special.xlog1py, -1.0)])
def test_a_masked_element_whose_logarithm_is_infinite_has_no_gradient(function, pole):
    x = leafgrad.tensor([2.0, 3.0, 4.0], requires_grad=True)
    y = leafgrad.tensor([pole + 1, pole, pole - 1])
    function(x, y)[:1].sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_comparing_whole_tensors(device):
    x = leafgrad.tensor([1.0, math.nan, math.inf], device=device)
    assert leafgrad.isclose(x, x).tolist() == [True, False, True]
    assert leafgrad.isclose(x, x, equal_nan=True).tolist() == [True, True, True]
    assert leafgrad.allclose(x, x, equal_nan=True) is True
    assert leafgrad.allclose(x, x) is False
    assert leafgrad.equal(x[:1], leafgrad.ones(1, device=device)) is True
    assert leafgrad.equal(x[:1], leafgrad.ones(2, device=device)) is False


# ---- derivatives where they need care -------------------------------------------------------------------------------


def nth_derivative(f, at, order):
    x = leafgrad.tensor(at, dtype=leafgrad.float64, requires_grad=True)
    y = f(x)
    for _ in range(order):
        (y,) = leafgrad.autograd.grad(y, x, create_graph=True)
    return y.item()


@pytest.mark.parametrize(
    ("f", "at", "order", "expected"),
    [
        (lambda x: x**3, 0.0, 3, 6.0), (lambda x: x**2, 0.0, 2, 2.0), (lambda x: x**2, 3.0, 3, 0.0),
        (leafgrad.square, 3.0, 3, 0.0), (leafgrad.sinc, 0.0, 2, -math.pi**2 / 3),
        (leafgrad.sinc, 0.0, 4, math.pi**4 / 5),
        (leafgrad.tanh, 0.0, 3, -2.0), (leafgrad.atan, 0.0, 5, 24.0), (leafgrad.erf, 0.0, 3, -4 / math.sqrt(math.pi)),
        (leafgrad.relu, 1.0, 2, 0.0), (leafgrad.abs, 0.0, 1, 0.0), (leafgrad.relu, 0.0, 1, 0.0),
        (lambda x: 0.0**x, 2.0, 1, 0.0), (lambda x: x**0, 0.0, 1, 0.0),
    ],
)  # fmt: skip
def test_nth_derivatives(f, at, order, expected):
    assert nth_derivative(f, at, order) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("function", [leafgrad.maximum, leafgrad.minimum])
def test_equal_arguments_share_the_gradient(function):
    x, y = leafgrad.ones(1, requires_grad=True), leafgrad.ones(1, requires_grad=True)
    gx, gy = leafgrad.autograd.grad(function(x, y).sum(), (x, y))
    assert gx.item() == gy.item() == 0.5


# ---- the same as PyTorch --------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
N, M, P, Q = rng.normal(size=(3, 4)), rng.normal(size=4), rng.uniform(0.3, 2, (3, 4)), rng.uniform(0.3, 2, 4)
WHOLE, DIVISORS = rng.integers(-5, 6, 12), rng.integers(1, 5, 12) * rng.choice([-1, 1], 12)
EDGES = np.array([0.0, 1.0, -1.0, 2.5, -2.5, 0.5])
UNARY = """abs sign square exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh sigmoid relu erf floor ceil trunc frac
    neg sinc deg2rad rad2deg selu celu round isnan isfinite isinf signbit logical_not nan_to_num""".split()
POSITIVE = "sqrt rsqrt reciprocal log log2 log10 log1p".split()
BINARY = """add sub mul div remainder fmod atan2 hypot maximum minimum fmax fmin logaddexp copysign eq ne lt le gt ge
    logical_and logical_or logical_xor""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_agree_with_pytorch(name):
    parity.compare(lambda lib, x: getattr(lib, name)(x), N)
    parity.compare(lambda lib, x: getattr(lib, name)(x), EDGES, order=1)
    parity.compare(lambda lib, x: getattr(lib, name)(x), N.astype("float32"), order=1)
    if name not in ("selu", "celu", "frac"):
        parity.compare(lambda lib, x: getattr(lib, name)(x), WHOLE)


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_positive_numbers_agree_with_pytorch(name):
    parity.compare(lambda lib, x: getattr(lib, name)(x), P)
    parity.compare(lambda lib, x: getattr(lib, name)(x), np.array([0.0, 1.0]))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_agree_with_pytorch(name):
    def call(lib, x, y):
        return getattr(lib, name)(x, y)

    parity.compare(call, N, M)
    parity.compare(call, np.array([1.0, 2.0, 0.5]), np.array([1.0, 1.0, 0.5]), order=1)
    if name not in ("hypot", "logaddexp"):
        parity.compare(call, WHOLE, DIVISORS)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 1.5, 2.0, True])
def test_powers_agree_with_pytorch(exponent):
    parity.compare(lambda lib, x: x**exponent, P, order=4)
    parity.compare(lambda lib, x: x**exponent, np.array([-1.0, 0.0, 2.0]), order=1)
    parity.compare(lambda lib, x: lib.pow(x, exponent), P.astype("float32"))


def test_the_mixed_derivatives_of_a_power_are_one_at_exponent_zero(device):
    x = leafgrad.tensor([0.5, 2.0, 3.0], dtype=leafgrad.float64, device=device, requires_grad=True)
    y = leafgrad.zeros(3, dtype=leafgrad.float64, device=device, requires_grad=True)
    for inner, outer in ((x, y), (y, x)):
        (first,) = leafgrad.autograd.grad((x**y).sum(), inner, create_graph=True)
        (mixed,) = leafgrad.autograd.grad(first.sum(), outer)
        np.testing.assert_allclose(mixed.tolist(), [2, 0.5, 1 / 3], rtol=1e-15)  # x**(y - 1) (1 + y log x)


@pytest.mark.parametrize("base", [0.0, 1e-310, math.inf, math.nan, -2.0])
def test_a_power_of_exponent_zero_is_constant(base, device):
    x = leafgrad.tensor(base, dtype=leafgrad.float64, device=device, requires_grad=True)
    y = leafgrad.zeros((), dtype=leafgrad.float64, device=device)
    (plain,) = leafgrad.autograd.grad(x**y, x)
    (first,) = leafgrad.autograd.grad(x**y, x, create_graph=True)
    assert float(plain) == float(first) == 0
    if base in (0.0, 1e-310):
        assert leafgrad.autograd.grad(first, x)[0].item() == 0


@pytest.mark.parametrize(
    ("call", "arrays", "order"),
    [
        (lambda lib, x, y: lib.pow(x, y), (P, Q), 3),
        (lambda lib, x, y: lib.pow(x, y), (np.array([0.0, 0.0, 2.0, -2.0]), np.array([0.0, 2.0, 0.0, 3.0])), 1),
        (lambda lib, x, y: lib.xlogy(x, y), (P, Q), 2),
        (lambda lib, x, y: lib.xlogy(x, y), (np.array([0.0, 0, 1, 0]), np.array([0.0, np.nan, 2, 1])), 1),
        (lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"), (N * 5, M), 1),
        (lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"), (WHOLE, DIVISORS), 0),
        (lambda lib, x, y: lib.div(x, y, rounding_mode="floor"), (WHOLE, DIVISORS), 0),
        (lambda lib, x, y: lib.floor_divide(x, y), (WHOLE, DIVISORS), 0),
        (lambda lib, x, y, z: lib.addcmul(x, y, z, value=0.5), (N, M, P), 2),
        (lambda lib, x, y, z: lib.addcdiv(x, y, z, value=0.5), (N, M, P), 2),
        (lambda lib, x, y, w: lib.lerp(x, y, w), (N, M, Q), 2),
        (lambda lib, x: lib.clamp(x, -0.5, 0.5), (EDGES,), 1),
        (lambda lib, x: lib.clamp(x, 1.0, -1.0), (N,), 1),
        (lambda lib, x, low, high: lib.clamp(x, low, high), (N, M, P), 1),
        (lambda lib, x, y: lib.where(x > 0, x, y), (N, M), 2),
        (lambda lib, x: lib.where(x > 0, 1.5, x), (N,), 1),
        (lambda lib, x: lib.nan_to_num(x, posinf=2.0), (np.array([np.nan, np.inf, -np.inf, 1.0]),), 1),
        (lambda lib, x: lib.round(x, decimals=1), (N * 10,), 1),
        (lambda lib, x, y: lib.logaddexp(x, y), (np.array([np.inf, -np.inf, 1e3]), np.array([1.0, 1, 1001])), 1),
    ],
)
def test_other_functions_agree_with_pytorch(call, arrays, order):
    parity.compare(call, *arrays, order=order)


def test_divisors_in_place_and_across_dtypes():
    a, b = leafgrad.tensor([12, -18, 0]), leafgrad.tensor([8, 12, 0], dtype=leafgrad.int32)
    assert a.gcd(b).tolist() == [4, 6, 0]
    assert a.clone().gcd_(b).dtype is leafgrad.int64
    assert a.clone().lcm_(b).tolist() == [24, 36, 0]


@pytest.mark.parametrize("executor", [None, "numpy", "native"])
@pytest.mark.parametrize("dtype", [leafgrad.float16, leafgrad.bfloat16])
def test_sums_of_products_in_16_bits_are_rounded_once(dtype, executor):
    if executor == "native":
        pytest.importorskip("leafgrad_native")
    x, y, z = (leafgrad.tensor(a * 100).to(dtype) for a in (N, M, P))
    alpha = leafgrad.tensor(0.1, dtype=dtype).item()
    functions = [
        (lambda x, y, z: leafgrad.add(x, y, alpha=0.1), lambda x, y, z: x + y * alpha),
        (lambda x, y, z: leafgrad.sub(x, y, alpha=0.1), lambda x, y, z: x - y * alpha),
        (lambda x, y, z: leafgrad.add(x, 0.1, alpha=3), lambda x, y, z: x + 3 * alpha),
        (lambda x, y, z: leafgrad.addcmul(x, y, z, value=0.1), lambda x, y, z: x + y * z * 0.1),
        (lambda x, y, z: leafgrad.addcdiv(x, y, z, value=0.1), lambda x, y, z: x + y / z * 0.1),
    ]
    for function, want in functions:
        found = (leafgrad.compile(function, executor=executor) if executor else function)(x, y, z)
        assert found.dtype is dtype
        assert found.tolist() == want(x.float(), y.float(), z.float()).to(dtype).tolist()


def test_factors_beyond_all_of_float16():
    x = leafgrad.ones(2, dtype=leafgrad.float16)
    for function in (leafgrad.add, leafgrad.sub, leafgrad.rsub):
        with pytest.raises(RuntimeError, match=r"alpha: value cannot be converted to type leafgrad\.float16"):
            function(x, x, alpha=1e5)
    assert leafgrad.addcmul(x, x, x * 0.01, value=1e5).tolist() == [1001, 1001]


def test_nextafter_of_a_tie_does_not_move_with_it():
    x = leafgrad.tensor([0.1, 0.2, float("nan")], requires_grad=True)
    (g,) = leafgrad.autograd.grad(leafgrad.nextafter(x, leafgrad.tensor([1.0, 0.2, 1.0])).sum(), x)
    assert g.tolist() == [1, 0, 1]


def test_powers_of_zero_with_an_unknown_exponent_have_unknown_slopes():
    y = leafgrad.tensor([float("nan"), 1.0, -1.0], requires_grad=True)
    (g,) = leafgrad.autograd.grad((0.0**y).sum(), y)
    assert g.isnan().tolist() == [True, False, False]
    assert g.tolist()[1:] == [0, -float("inf")]


def test_decimals_of_halves_are_those_of_floats():
    x = leafgrad.tensor([2.5, 0.123, 100.25, 15.9434, -7.0], dtype=leafgrad.float16)
    for decimals in (1, 2, 3, 5):
        assert leafgrad.round(x, decimals=decimals).tolist() == x.float().round(decimals=decimals).half().tolist()
