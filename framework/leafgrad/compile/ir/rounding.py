"""Whether two results of one graph differ by rounding only: by how much it moves when what is computed on the way does.

Where values cancel, as in 1 - tanh(x)**2 of a large x, the last digit of a value on the way decides all digits of the
result. No tolerance fits that; but a graph that is run with its own last digits at random shows what they decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from leafgrad import backends
from leafgrad.backends.place import place
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.ir.replay import run_equation, steps

FLOATS = ("bfloat16", "float16", "float32", "float64")
NEAR = {"float32": 1e-4, "float64": 1e-10}  # of the largest element: so near, nothing more is asked
DIGITS = 4  # by so many units in the last place are values moved
LONGEST = 64  # times as many are sums of many numbers, whose order is free
MANTISSA = {"float16": 10, "float32": 23, "float64": 52}  # bits
RUNS = 8  # with other random digits
MORE = 32  # times as far as those runs are from each other, results may differ


def close(a: Any, b: Any) -> bool:
    """Whether two arrays are equal up to ``NEAR`` of the largest element, with nan and inf in the same places."""
    xp = backends.by_device_type("cpu").xp
    a, b = compared(a), compared(b)
    near = NEAR.get(b.dtype.name, 0.0)
    if b.dtype.kind != "f":
        return bool(xp.array_equal(a, b))
    finite = xp.isfinite(b)
    if not xp.array_equal(a[~finite], b[~finite], equal_nan=True) or not xp.all(xp.isfinite(a[finite])):
        return False
    return distance(a, b) <= near * largest(b)


def explains(ours: Any, right: Any, others: Sequence[Any]) -> bool:
    """Whether ``ours`` is as far from ``right`` as rounding takes results: ``others`` are those of `unsure` runs.

    Of integers, choices, and what is finite, twice as many elements may differ as differ in any of those runs, since
    rounding decides some of them in few.
    """
    xp = backends.by_device_type("cpu").xp
    ours, right, others = compared(ours), compared(right), list(map(compared, others))
    floating = right.dtype.kind == "f"

    def apart(a: Any) -> Any:
        return xp.isfinite(a) != xp.isfinite(right) if floating else a != right

    off, differs = apart(ours), xp.logical_or.reduce([apart(other) for other in others])
    if xp.count_nonzero(off) > 2 * xp.count_nonzero(differs):
        return False
    if not floating:
        return True
    same = ~(xp.isfinite(right) | differs | off)
    if not xp.array_equal(ours[same], right[same], equal_nan=True):
        return False
    return distance(ours, right) <= MORE * max(distance(other, right) for other in others)


class Moved:
    """Runs of a graph with its last digits at random, each made when it is first needed.

    Args:
        graph, inputs: what is run, and on what.
        within: a context in which each run is made, where it draws random numbers.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Any], within: Callable[[], Any] = nullcontext) -> None:
        self.graph, self.inputs, self.within = graph, inputs, within
        self.made: list[dict[Value, Any]] = []

    def explain(self, value: Value, ours: Any, right: Any) -> bool:
        """Whether ``ours`` is ``right`` but for rounding, by the fewest runs: what few explain, more explain too."""
        for seed in range(RUNS):
            if seed == len(self.made):
                with self.within():
                    self.made.append(unsure(self.graph, self.inputs, seed))
            if explains(ours, right, [run[value] for run in self.made[: seed + 1]]):
                return True
        return False


def unsure(graph: Graph, inputs: Sequence[Any], seed: int) -> dict[Value, Any]:
    """The results of a graph, each value that it reads or makes moved by some units in the last place.

    Equal numbers move alike, and what an op takes from its inputs unchanged, as a maximum is, does not move again: what
    is equal without rounding stays equal.
    """
    xp = backends.by_device_type("cpu").xp
    at = {v: nudged(a, seed) for v, a in zip(graph.inputs, inputs, strict=True)}
    with xp.errstate(all="ignore"):
        for equation, dead in steps(graph):
            made = run_equation(equation, at)
            given = [on_host(at[v]) for v in equation.values]
            traits, values = equation.op.traits, (*equation.values, *equation.outputs)
            in_place = "elementwise" in traits and not any(v.dtype.startswith("complex") for v in values)
            for v, array in zip(equation.outputs, made if equation.several else (made,), strict=True):
                digits = DIGITS * min(math.sqrt(terms(equation, v)), LONGEST)
                at[v] = array if "view" in traits else nudged(array, seed, given, in_place, digits)
            for v in dead:
                del at[v]
    return {v: at[v] for v in graph.ends}


def terms(equation: Equation, out: Value) -> float:
    """How many numbers each of a result is the sum of."""
    sizes, made = [math.prod(v.shape) for v in equation.values], max(math.prod(out.shape), 1)
    if "reduction" in equation.op.traits:
        return max(sizes[0] / made, 1)
    product = "bilinear" in equation.op.traits and "elementwise" not in equation.op.traits
    return max(math.sqrt(math.prod(sizes[:2]) / made), 1) if product else 1


def nudged(array: Any, seed: int, given: Sequence[Any] = (), in_place: bool = False, digits: float = DIGITS) -> Any:
    """The array with numbers moved by some units in the last place, but for those that are ``given``, each anywhere or
    ``in_place``; integers stay.

    Each moves, and those of about one size together: a sum rounds its partial sums, which may be larger than all that
    it is made of, and than itself.
    """
    host, kind = on_host(array), array.dtype
    if host.dtype.name not in FLOATS:
        return array
    xp, (device, index) = backends.by_device_type("cpu").xp, place(array)
    eps = 2.0**-7 if kind.name == "bfloat16" else float(xp.finfo(host.dtype).eps)
    bits = bits_of(host)
    sizes = xp.arange(1 << bits.itemsize * 8 - MANTISSA[host.dtype.name], dtype="uint32")
    noise = scattered(bits, 2 * seed)
    noise += scattered(sizes, 2 * seed + 1)[bits >> MANTISSA[host.dtype.name]]
    noise *= digits * eps
    noise = noise.reshape(host.shape)
    for other in given:
        noise[host == other if in_place else within(bits, bits_of(other)).reshape(host.shape)] = 0
    noise += 1
    with xp.errstate(all="ignore"):
        moved = host * noise
    moved = xp.asarray(moved, host.dtype).view(kind)[..., 0] if kind.kind == "c" else xp.asarray(moved, kind)
    return backends.by_device_type(device).from_host(moved, index)


def bits_of(host: Any) -> Any:
    """The elements of an array as unsigned integers of their size, in one dimension."""
    xp = backends.by_device_type("cpu").xp
    return xp.ascontiguousarray(host).ravel().view(f"u{host.dtype.itemsize}")


def hashed(bits: Any, seed: int) -> Any:
    """For each unsigned integer one of 32 bits that nothing but it and the seed decides (the end of MurmurHash3)."""
    z = (bits ^ bits >> 29 if bits.itemsize == 8 else bits).astype("uint32")
    z += (seed + 1) * 0x9E3779B9 % 2**32
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        z ^= z >> shift
        z *= factor
    z ^= z >> 16
    return z


def scattered(bits: Any, seed: int) -> Any:
    """The same as numbers between -1 and 1."""
    found = hashed(bits, seed) * 2.0**-31
    found -= 1
    return found


def within(bits: Any, others: Any) -> Any:
    """Which integers are among ``others``, or seldom seem to be: of one, it is of no importance whether it moves."""
    xp = backends.by_device_type("cpu").xp
    last = (1 << min((8 * max(others.size, 1)).bit_length(), 32)) - 1
    there = xp.zeros(last + 1, bool)
    there[hashed(others, 0) & last] = True
    return there[hashed(bits, 0) & last]


def compared(array: Any) -> Any:
    """The same, complex numbers that are not finite as nan: of which part they are not, formulas differ."""
    host = on_host(array)
    if array.dtype.kind == "c":
        xp = backends.by_device_type("cpu").xp
        host[~xp.isfinite(host).all(-1)] = xp.nan
    return host


def on_host(array: Any) -> Any:
    """The array as one of the host's, bfloat16 as float32, complex numbers as pairs along a last dimension."""
    host = backends.backend_of(array).to_host(array)
    if host.dtype.kind == "c":
        host = backends.by_device_type("cpu").xp.array(host, order="C")[..., None]
        return host.view(host.real.dtype)
    return host.astype("float32") if array.dtype.name == "bfloat16" else host


def distance(a: Any, b: Any) -> float:
    """The largest difference between finite elements of two arrays of the host."""
    xp = backends.by_device_type("cpu").xp
    both = xp.isfinite(a) & xp.isfinite(b)
    return float(xp.max(xp.abs(a[both].astype("float64") - b[both]), initial=0.0))


def largest(a: Any) -> float:
    """The largest finite element, without its sign."""
    xp = backends.by_device_type("cpu").xp
    return float(xp.max(xp.abs(a[xp.isfinite(a)]), initial=0.0))
