"""Random tensors and the generators they are drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from leafgrad import backends, devices, dtypes
from leafgrad.ops import dispatch, random as ops
from leafgrad.ops.complex import view_as_complex
from leafgrad.ops.refuse import refuse
from leafgrad.ops.runtime import runtime
from leafgrad.tensor import arguments
from leafgrad.tensor.creation import DType, expect_within, kind, last_whole, sizes
from leafgrad.tensor.formats import preserved
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(only="leafgrad")
class Generator:
    """A stream of random numbers on one device, from which the random functions draw if it is passed to them.

    Args:
        device: where its numbers are made; tensors drawn from it must be on the same one.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._place = devices.device(device).resolve()
        self._made: backends.Generator | None = None

    @property
    def _stream(self) -> backends.Generator:
        """The backend's generator, made at its first use: NumPy's random module takes its time to import.

        Without a lock, which a forked child might find taken for ever: of two threads the first one's is kept.
        """
        if self._made is None:
            made = backends.by_device_type(self._place[0]).generator(self._place[1])
            self._made = self._made or made
        return self._made

    @property
    def device(self) -> devices.device:
        """Where its numbers are made."""
        name, index = self._place
        return devices.device("cpu") if name == "cpu" else devices.device(name, index)

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from ``seed``, an int in [-2**63, 2**64); returns the generator."""
        dispatch.interrupt("manual_seed")
        self._stream.manual_seed(arguments.integer(seed, "seed", "manual_seed"))
        return self

    def seed(self) -> int:
        """Restart the stream from the operating system's entropy; returns the seed taken."""
        dispatch.interrupt("seed")
        return self._stream.seed()

    def initial_seed(self) -> int:
        """The seed that the stream was last started from."""
        dispatch.interrupt("initial_seed")
        return self._stream.initial_seed()

    def get_state(self) -> Tensor:
        """The whole state, as a uint8 tensor on the CPU."""
        dispatch.interrupt("get_state")
        state: Tensor = dispatch.alias(self._stream.get_state())
        return state

    def set_state(self, new_state: Tensor) -> Generator:
        """Take over a state from ``get_state``; returns the generator.

        Raises:
            RuntimeError: it is not the state of such a generator.
        """
        dispatch.interrupt("set_state")
        self._stream.set_state(arguments.expect_tensor(new_state, "new_state", "set_state").cpu().numpy())
        return self

    def __repr__(self) -> str:
        return f"<leafgrad.Generator on {self.device}, initial seed {self.initial_seed()}>"


def device_of(which: Any, device_type: str) -> tuple[str, int]:
    """The place of a device, or of the one with a number among those of a type."""
    return devices.device(device_type, which).resolve() if isinstance(which, int) else devices.device(which).resolve()


# ---- the generators that are used when none is passed ---------------------------------------------------------------

default_generator = Generator()
_defaults: dict[tuple[str, int], Generator] = {("cpu", 0): default_generator}
_seed: int | None = None  # what generators of devices not used yet start from


def generator_of(place: tuple[str, int]) -> Generator:
    """The default generator of a device."""
    found = _defaults.get(place)
    if found is None:
        found = _defaults[place] = Generator(devices.device(*place))
        if _seed is not None:
            found.manual_seed(_seed)
    return found


@public(only="leafgrad")
def manual_seed(seed: int) -> Generator:
    """Restart the default generators of all devices from ``seed``; returns that of the CPU.

    Args:
        seed: an int of 64 bits.
    """
    global _seed
    taken = arguments.integer(seed, "seed", "manual_seed")
    for generator in _defaults.values():
        generator.manual_seed(taken)
    _seed = taken
    return default_generator


@public(only="leafgrad")
def seed() -> int:
    """Restart the default generators of all devices from the operating system's entropy; returns the seed taken."""
    taken = default_generator.seed()
    manual_seed(taken)
    return taken


@public(only="leafgrad")
def initial_seed() -> int:
    """The seed that the CPU's default generator was last started from."""
    return default_generator.initial_seed()


@public(only="leafgrad")
def get_rng_state() -> Tensor:
    """The state of the CPU's default generator, as a uint8 tensor."""
    return default_generator.get_state()


@public(only="leafgrad")
def set_rng_state(new_state: Tensor) -> None:
    """Put the CPU's default generator into a state from ``get_rng_state``.

    Args:
        new_state: of ``get_rng_state``.
    """
    default_generator.set_state(new_state)


def rng_states() -> dict[tuple[str, int], Tensor]:
    """The states of the default generators of all devices used so far."""
    return {place: generator.get_state() for place, generator in _defaults.items()}


def set_rng_states(states: dict[tuple[str, int], Tensor]) -> None:
    """Put default generators into states from ``rng_states``."""
    for place, state in states.items():
        generator_of(place).set_state(state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str | None = None
) -> Iterator[None]:
    """Within it random numbers are drawn as always; afterwards the default generators are as they were before.

    Args:
        devices: beside the CPU, whose generators to put back; all by default. Numbers are devices of ``device_type``.
        enabled: False makes it do nothing, so that it can be switched by a flag.
        device_type: by default "cuda".
    """
    global _seed
    if not enabled:
        yield
        return
    dispatch.interrupt("fork_rng")
    places = None
    if devices is not None:
        places = {("cpu", 0), *(device_of(which, device_type or "cuda") for which in devices)}
    before, seed = rng_states(), _seed
    try:
        yield
    finally:
        for place in list(_defaults):
            if places is not None and place not in places:
                continue
            if place in before:
                _defaults[place].set_state(before[place])
            else:
                del _defaults[place]  # made within
        _seed = seed


def stream(generator: Generator | None, place: tuple[str, int], function: str) -> Any:
    """The backend's generator to draw from on a device."""
    if generator is None:
        return generator_of(place)._stream
    if not isinstance(generator, Generator):
        raise TypeError(f"{function}: generator: expected a Generator, got {type(generator).__name__}")
    if generator._place != place:
        expected = devices.device(*place) if place[0] != "cpu" else "cpu"
        raise RuntimeError(
            f"{function}: Expected a '{expected}' device type for generator but found '{generator.device}'; "
            f"make it with leafgrad.Generator('{expected}')"
        )
    return generator._stream


runtime.stream = stream


def draw(op: Any, function: str, generator: Any, device: Any, dtype: dtypes.dtype, **params: Any) -> Tensor:
    """Run a random op that takes no arrays."""
    place = devices.given(device).resolve()
    out: Tensor = dispatch.create(op, place, generator=stream(generator, place, function), dtype=dtype.name, **params)
    return out


# ---- random tensors -----------------------------------------------------------------------------------------------


def floating(dtype: DType, function: str) -> dtypes.dtype:
    """The floating dtype asked for, or the default."""
    found = kind(dtype)
    if not found.is_floating_point:
        raise NotImplementedError(f'"{function}" not implemented for {found}; expected a floating point dtype')
    return found


def as_parts(
    function: Callable[..., Tensor], size: tuple[int, ...], dtype: dtypes.dtype, device: Any, generator: Any
) -> Tensor:
    """Complex numbers whose parts ``function`` draws."""
    return view_as_complex(function(*size, 2, generator=generator, dtype=dtype.to_real(), device=device))


@public(only="leafgrad", out="cast")
def rand(
    *size: Any, generator: Generator | None = None, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Numbers uniform in [0, 1), of shape ``size``; of a complex dtype both parts are."""
    if dtype is not None and dtypes.check(dtype).is_complex:
        return as_parts(rand, sizes(size, "rand"), dtype, device, generator)._set_grad(requires_grad)
    target = floating(dtype, "rand")
    out = draw(ops.uniform, "rand", generator, device, target, shape=sizes(size, "rand"))
    return out._set_grad(requires_grad)


@public(only="leafgrad", out="cast")
def randn(
    *size: Any, generator: Generator | None = None, dtype: DType = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Standard normal numbers, of shape ``size``; complex ones have parts of variance 1/2."""
    if dtype is not None and dtypes.check(dtype).is_complex:
        drawn = as_parts(randn, sizes(size, "randn"), dtype, device, generator)
        return (drawn * math.sqrt(0.5))._set_grad(requires_grad)
    target = floating(dtype, "randn")
    out = draw(ops.normal, "randn", generator, device, target, shape=sizes(size, "randn"))
    return out._set_grad(requires_grad)


@public(only="leafgrad", out="cast")
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers uniform in [low, high), of shape ``size``; ``randint(high, size)`` starts at 0. int64 by default."""
    if size is None:
        low, high, size = None, low, high
    low = 0 if low is None else low
    if size is None or isinstance(size, int):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, got {size}")
    first, end = arguments.integer(low, "low", "randint"), arguments.integer(high, "high", "randint")
    target = kind(dtype, dtypes.int64)
    expect_within(first, end, target, "randint")
    shape = sizes((size,), "randint")
    out = draw(ops.integers, "randint", generator, device, target, shape=shape, low=first, high=end)
    return out._set_grad(requires_grad)


@public(only="leafgrad", out="cast")
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DType = dtypes.int64,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0, …, n - 1 in random order. (n,)

    Raises:
        RuntimeError: n is negative, or ``dtype`` does not have all these numbers.
    """
    if arguments.integer(n, "n", "randperm") < 0:
        raise RuntimeError(f"randperm: n must be non-negative, got {n}")
    target = kind(dtype, dtypes.int64)
    if n - 1 > last_whole(target):
        raise RuntimeError(
            f"randperm: n: expected at most {last_whole(target) + 1} in {target}, got {n}; pass a wider dtype"
        )
    out = draw(ops.permutation, "randperm", generator, device, target, count=n)
    return out._set_grad(requires_grad)


@public(only="leafgrad")
def rand_like(input: Tensor, *, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers uniform in [0, 1), in the shape, dtype and device of ``input``."""
    return _like(rand, input, dtype, device, requires_grad)


@public(only="leafgrad")
def randn_like(input: Tensor, *, dtype: DType = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers, in the shape, dtype and device of ``input``."""
    return _like(randn, input, dtype, device, requires_grad)


def _like(function: Callable[..., Tensor], input: Tensor, dtype: DType, device: Any, requires_grad: bool) -> Tensor:
    arguments.expect_tensor(input, "input", f"{function.__name__}_like")
    place = input.device if device is None else device
    return preserved(
        function(input.shape, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad), input
    )


@public(only="leafgrad")
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers uniform in [low, high), in the shape, dtype and device of ``input``."""
    if dtype is None:
        arguments.expect_real(arguments.expect_tensor(input, "input", "randint_like"), "randint_like")
    first, end = (0, low) if high is None else (low, high)
    place = input.device if device is None else device
    out = randint(first, end, input.shape, dtype=dtype or input.dtype, device=place, requires_grad=requires_grad)
    return preserved(out, input)


@public(only="leafgrad", out="like")
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers: of shape ``size`` if mean and std are numbers, else of the shape in which the two meet.

    Raises:
        RuntimeError: ``std`` is negative or nan. NotImplementedError: a tensor of integers.
        TypeError: numbers without ``size``, or tensors with it, or with what they have themselves.
    """
    mean, std = (v.detach() if isinstance(v, Tensor) else v for v in (mean, std))
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    for name, value in (("mean", mean), ("std", std)):
        if not isinstance(value, Tensor):
            arguments.number(value, name, "normal")
        elif not value.is_floating_point():
            raise NotImplementedError(f"normal(): {name}: expected floats, got {value.dtype}; convert with .float()")
    if not isinstance(std, Tensor) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if not tensors:
        if size is None:
            raise TypeError("normal(): with numbers for mean and std, argument 'size' must be given")
        target, shape = floating(dtype, "normal"), sizes((size,), "normal")
        made = draw(ops.normal, "normal", generator, device, target, shape=shape, mean=float(mean), std=float(std))
        return made._set_grad(True) if requires_grad else made
    for option, given in (("size", size), ("dtype", dtype), ("device", device)):
        if given is not None:
            raise TypeError(f"normal(): expected no '{option}' where mean or std is a tensor, which has its own")
    if isinstance(std, Tensor):
        refuse((std >= 0).logical_not(), error=RuntimeError, message="normal expects all elements of std >= 0.0")
    shape = (tensors[0] + tensors[-1]).shape
    drawn = draw(ops.normal, "normal", generator, tensors[0].device, tensors[0].dtype, shape=tuple(shape))
    out: Tensor = drawn * std + mean
    return out._set_grad(True) if requires_grad else out
