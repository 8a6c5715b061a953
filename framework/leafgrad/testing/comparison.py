"""``assert_close``, for tests of programs that compute with tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.comparison import isclose
from leafgrad.tensor.data import as_tensor
from leafgrad.tensor.tensor import Tensor

TOLERANCES = {
    "bfloat16": (1.6e-2, 1e-5), "float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
"""dtype -> rtol and atol where none are given; integers and bools must be equal."""

Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """An AssertionError unless ``abs(actual - expected) <= atol + rtol * abs(expected)`` everywhere.

    Args:
        actual, expected: tensors, numbers or arrays; or sequences or mappings of such, compared one by one.
        allow_subclasses: False demands the same class of both.
        rtol, atol: both or none; by default ``TOLERANCES`` of the dtypes, the larger of two.
        equal_nan: whether nan is close to nan.
        check_device, check_dtype, check_stride: whether these must agree, too. Without the first two, values are
            compared on the CPU and in the dtype in which both meet.
        check_layout: accepted; there is one layout.
        msg: the error's message, or a function that makes it of the one that there would be.

    Raises:
        ValueError: one of rtol and atol. TypeError: what cannot be compared.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close: expected both of rtol and atol or none, got rtol={rtol} and atol={atol}")
    options = {
        "allow_subclasses": allow_subclasses, "rtol": rtol, "atol": atol, "equal_nan": equal_nan,
        "check_device": check_device, "check_dtype": check_dtype, "check_stride": check_stride,
    }  # fmt: skip
    wrong = _difference(actual, expected, "", options)
    if wrong is not None:
        raise AssertionError(wrong if msg is None else msg(wrong) if callable(msg) else msg)


def _difference(actual: Any, expected: Any, where: str, options: dict[str, Any]) -> str | None:
    """What is wrong, in words, or None."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings{where} do not match: {sorted(map(str, actual.keys() ^ expected.keys()))}"
        pairs = [(f"{where}[{key!r}]", actual[key], expected[key]) for key in expected]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The lengths of the sequences{where} do not match: {len(actual)} != {len(expected)}"
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))]
    elif actual is None and expected is None:
        return None
    else:
        return _of_tensors(actual, expected, where, **options)
    found = (_difference(a, b, place, options) for place, a, b in pairs)
    return next((words for words in found if words is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _of_tensors(
    actual: Any,
    expected: Any,
    where: str,
    *,
    allow_subclasses: bool,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
    check_stride: bool,
) -> str | None:
    if type(actual) is not type(expected) and not (allow_subclasses and _related(actual, expected)):
        raise TypeError(
            f"assert_close{where}: expected two tensors, numbers, sequences or mappings, got "
            f"{type(actual).__name__} and {type(expected).__name__}"
        )
    numbers = not isinstance(actual, Tensor)
    a, b = (as_tensor(v, dtype=dtypes.float64 if type(v) is float else None).detach() for v in (actual, expected))
    for name, checked in (
        ("shape", True), ("device", check_device), ("dtype", check_dtype and not numbers), ("stride", check_stride)
    ):  # fmt: skip
        mine, theirs = (x.stride() if name == "stride" else getattr(x, name) for x in (a, b))
        if checked and mine != theirs:
            return f"The values for attribute {name!r}{where} do not match: {mine} != {theirs}"
    if rtol is None or atol is None:
        limits = [TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (a, b)]
        rtol, atol = (max(side) for side in zip(*limits, strict=True))
    kind = dtypes.promote_types(a.dtype, b.dtype)
    a, b = a.cpu().to(kind), b.cpu().to(kind)
    far = ~isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count = int(far.sum().item())
    return _words(a, b, far, count, where, rtol, atol) if count else None


def _related(actual: Any, expected: Any) -> bool:
    numbers = all(isinstance(v, (bool, int, float, complex)) for v in (actual, expected))
    return numbers or isinstance(actual, type(expected)) or isinstance(expected, type(actual))


def _words(a: Tensor, b: Tensor, far: Tensor, count: int, where: str, rtol: float, atol: float) -> str:
    allowed = f"allowed are atol={atol} and rtol={rtol}"
    if not a.ndim:
        return f"Values{where} are not close! Expected {b.item()} but got {a.item()}; {allowed}"
    wide = dtypes.promote_types(a.dtype, dtypes.float64)
    absolute = (a.to(wide) - b.to(wide)).abs()
    flat = int(absolute.nan_to_num(float("inf")).where(far, 0.0).argmax().item())
    place: list[int] = []
    for n in reversed(a.shape):
        flat, i = divmod(flat, n)
        place.insert(0, i)
    at = tuple(place)
    total = a.numel()
    return (
        f"Tensors{where} are not close! Mismatched elements: {count} / {total} ({count / total:.1%}). The greatest "
        f"difference among them is {absolute[at].item()}, at index {at}: expected {b[at].item()}, got {a[at].item()}; "
        f"{allowed}"
    )
