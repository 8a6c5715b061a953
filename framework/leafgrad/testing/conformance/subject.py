"""What is checked: an op or a function of tensors, with samples, as arrays and as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leafgrad import backends, devices
from leafgrad.forks import cached_property
from leafgrad.ops import dispatch, messages, promotion
from leafgrad.ops.op import Op
from leafgrad.tensor.random import manual_seed
from leafgrad.tensor.tensor import Tensor
from leafgrad.testing.conformance.declared import author_of, declarations_in_words, raised_in
from leafgrad.testing.conformance.report import Fault

TOLERANCES = {"float32": 2e-5, "float16": 1e-2}
"""Relative and absolute tolerance of values in the lower precisions."""


@dataclass(frozen=True)
class Sample:
    """One call: arguments (NumPy arrays, numbers or None) and parameters.

    Attributes:
        number: its place in the list of samples.
        made: how the kit made it of the sample of that number; "" if it is that one.
    """

    number: int
    args: tuple[Any, ...]
    params: dict[str, Any]
    made: str = ""

    def __str__(self) -> str:
        return f"sample {self.number}" + (f" {self.made}" if self.made else "")

    @property
    def arrays(self) -> list[int]:
        """The places of the arguments that are arrays."""
        return [i for i, a in enumerate(self.args) if isinstance(a, np.ndarray)]

    @property
    def floats(self) -> list[int]:
        """The places of those of floating-point numbers."""
        return [i for i in self.arrays if self.args[i].dtype.kind == "f"]

    def of(self, dtype: str) -> Sample:
        """The same with floating-point arrays of another precision."""
        return self.mapped(self.floats, lambda a: a.astype(dtype))

    def mapped(self, places: Sequence[int], function: Callable[[Any], Any]) -> Sample:
        """The same with ``function`` applied to some of the arguments."""
        args = [np.asarray(function(a)) if i in places else a for i, a in enumerate(self.args)]
        return replace(self, args=tuple(args))


class Samples(list[Sample]):
    """Calls, and which of them is the last that a check took up, of which an exception then tells."""

    def __init__(self, found: Iterable[Sample]) -> None:
        super().__init__(found)
        self.current: Sample | None = None

    def __iter__(self) -> Iterator[Sample]:
        for sample in super().__iter__():
            self.current = sample
            yield sample


@dataclass(frozen=True)
class Subject:
    """What ``check_op`` was given.

    Attributes:
        op: an Op, or a function of tensors.
        samples: calls of it.
        reference: the same of NumPy arrays, computing in float64; None if there is none.
        orders: how often it is differentiated.
        device: where values and gradients are checked.
        dtypes: the dtypes that floating-point arrays are brought to; () to take all as they are.
        rtol: relative and absolute tolerance in float64.
        executors: those that run it compiled; None for all that are installed and run programs on the CPU.
        untried: what could not be tried, and why.
        seed: what the default generators start from before each call of a random op; None to let them go on.
        pristine: what its functions refer to, as it was before all calls.
        paired: the arguments as users see them, where ``op`` takes pairs of real numbers for complex ones.
        complex: the same op with complex arrays, as such pairs, for each of the places that they have in samples.
    """

    op: Any
    samples: Samples
    reference: Callable[..., Any] | None
    orders: int
    device: Any
    dtypes: tuple[str, ...]
    rtol: float
    executors: tuple[str, ...] | None = None
    untried: list[str] = field(default_factory=list)
    seed: int | None = None
    pristine: list[Any] = field(default_factory=list)
    paired: Callable[[Sequence[Any]], Sequence[Any]] = tuple
    complex: tuple[Subject, ...] = ()

    @cached_property
    def name(self) -> str:
        """The name of the op, or of the function."""
        return str(getattr(self.op, "name", None) or getattr(self.op, "__name__", repr(self.op)))

    @cached_property
    def declared(self) -> Any:
        """The op as its author declares it, whether or not it is checked as a function of pairs."""
        return author_of(self.op)

    @property
    def traits(self) -> frozenset[str]:
        """Those of the op; a function has none."""
        return self.op.traits if isinstance(self.op, Op) else frozenset()

    def argument(self, i: int) -> str:
        """The name of the i-th argument."""
        op = self.declared
        return op.signature.arguments[op.signature.slot(i)] + messages.position(op, i) if isinstance(op, Op) else str(i)

    def differentiable(self, sample: Sample) -> list[int]:
        """The floating-point arguments that have a gradient rule."""
        op = self.declared
        if not isinstance(op, Op):
            return sample.floats
        return [i for i in sample.floats if op.signature.arguments[op.signature.slot(i)] in op.calls]

    def call(self, sample: Sample) -> str:
        """``sample 2, mul(x: float32 (3,), y: 2.0)``, for errors."""
        args = tuple(self.paired(sample.args))
        if isinstance(self.declared, Op):
            return f"{sample}, {messages.call(self.declared, args, sample.params)}"
        parts = [messages.describe(a) for a in args]
        parts += [f"{k}={messages.describe(v)}" for k, v in sample.params.items()]
        return f"{sample}, {self.name}({', '.join(parts)})"

    def words(self, error: Exception) -> str:
        """What to say of an exception: at which sample, and in which rule."""
        where = "" if self.samples.current is None else f"{self.call(self.samples.current)}: "
        return f"{where}{type(error).__name__}: {error}{raised_in(self.op, error)}"

    def run(self, sample: Sample, args: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """The results for other arguments, or for those of the sample as tensors, always as a tuple."""
        given = self.tensors(sample) if args is None else args
        if self.seed is not None:
            manual_seed(self.seed)
        return outputs(self.op(*given, **sample.params))

    def forward(self, sample: Sample, args: Sequence[Any]) -> tuple[Any, ...]:
        """The results as the op's forward returns them; dispatch may copy them yet."""
        if not isinstance(self.op, Op):
            return self.run(sample, args)
        raw = [raw_of(a) for a in promotion.prepare(self.op, tuple(args))]
        return tuple([dispatch.alias(r) for r in self.run(sample, raw)])

    def tensors(self, sample: Sample, grads: Sequence[int] = (), device: Any = None) -> list[Any]:
        """The arguments with arrays as tensors in memory of their own, of which those at ``grads`` require grad."""
        place = self.device if device is None else device
        made = [tensor(a, place) if isinstance(a, np.ndarray) else a for a in sample.args]
        for i in grads:
            made[i].requires_grad_()
        return made

    def fault(self, sample: Sample, expected: Any, got: Any, remedy: str, what: str = "", of: str = "") -> Fault:
        """The error of a check. ``of``: the declarations whose places it gives, with the forward's; see ``named``."""
        where = self.call(sample) + (f", {what}" if what else "")
        declared = declarations_in_words(self.op, "forward", *of.split(","))
        return Fault(f"{where}: expected {expected}, got {got}; {remedy}. Declared: {declared}")

    def compare(
        self, sample: Sample, got: Any, want: Any, rtol: float, remedy: str, what: str = "", of: str = ""
    ) -> None:
        """A Fault unless two NumPy arrays are equal in shape and dtype, and close."""
        wrong = difference(got, want, rtol)
        if wrong is not None:
            raise self.fault(sample, *wrong, remedy, what, of)

    def each_dtype(self) -> Iterator[tuple[str, Sample]]:
        """Every sample in each of the dtypes, or as it is."""
        for sample in self.samples:
            for dtype in self.dtypes if sample.floats else ():
                self.samples.current = sample.of(dtype)
                yield dtype, self.samples.current
            if not self.dtypes or not sample.floats:
                kinds = [str(sample.args[i].dtype.name) for i in sample.floats or sample.arrays]
                yield kinds[0] if kinds else "", sample


def outputs(result: Any) -> tuple[Any, ...]:
    """One result or several as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def tensor(array: Any, device: Any) -> Tensor:
    """A NumPy array as a tensor in memory of its own."""
    place = devices.device(device)
    made: Tensor = dispatch.alias(backends.by_device_type(place.type).from_host(array, place.index or 0))
    return made


def raw_of(value: Any) -> Any:
    """The raw array of a tensor; anything else as it is."""
    return dispatch.raw(value) if isinstance(value, Tensor) else value


def host(value: Any) -> Any:
    """A tensor or raw array as a NumPy array; anything else as it is."""
    data = raw_of(value)
    if not hasattr(data, "dtype"):
        return data
    backend = backends.backend_of(data)
    return backend.to_host(backend.wrap(data))


def difference(got: Any, want: Any, rtol: float) -> tuple[str, str] | None:
    """What was expected and what came, in words, where two NumPy arrays differ in shape, dtype or values."""
    if got.shape != want.shape:
        return f"shape {want.shape}", str(got.shape)
    if got.dtype != want.dtype:
        return f"dtype {want.dtype.name}", got.dtype.name
    same = got == want if want.dtype.kind != "f" else close(got.astype("float64"), want.astype("float64"), rtol)
    if np.all(same):
        return None
    at = tuple(int(k) for k in np.argwhere(~np.asarray(same))[0])
    where = f" at {at}" if at else ""
    return f"{want[at]!s}{where}", f"{got[at]!s} ({np.count_nonzero(~same)} of {want.size} differ)"


def close(got: Any, want: Any, rtol: float) -> Any:
    """Where two arrays of float64 are close. nan is close to nan."""
    return np.isclose(got, want, rtol=rtol, atol=rtol, equal_nan=True)
