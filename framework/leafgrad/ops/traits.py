"""Traits: what may be said of an op in a word, and the declarations that each stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leafgrad.ops.abstract import Abstract, Shape, broadcast_shape
from leafgrad.ops.declarations import Declarations
from leafgrad.ops.node import TensorBase
from leafgrad.ops.signature import Signature

TRAITS: Final = {
    "elementwise": "each element of the result depends on the same element of the broadcast arguments",
    "linear": "linear in all arguments together, with no other dependence on them",
    "bilinear": "linear in each of two arguments, the other held fixed",
    "reduction": "of the broadcast arguments the dimensions dim go, or keep size 1 if keepdim; the others are a batch",
    "along": "works along dim and keeps the shape of the broadcast arguments; the other dimensions are a batch",
    "view": "the result shares memory with the first argument wherever the array library lets it",
    "random": "draws from the device's generator; runs once per call, in order",
    "collective": "every process of a group calls it; runs once per call, in order",
    "raises": "an error for some elements of its arguments, so runs whether or not anything reads its result",
    "nondifferentiable": "the result never requires grad",
    "comparison": "elementwise, with a boolean result",
    "float": "integer arguments become the default floating dtype first",
    "promote": "arguments of different dtype are brought to one, as elementwise ops do",
    "complex": "takes complex numbers, and its rules hold for them as they stand: they give J^H g",
    "holomorphic": "takes complex numbers, and is holomorphic; the engine conjugates its rules",
    "any_dtype": "arguments of different dtypes are taken as they are",
}


def dims_of(traits: frozenset[str], signature: Signature) -> str | None:
    """The parameter that names the dimensions that a reduction takes away, or that an op works along."""
    return "dim" if traits & {"reduction", "along"} and "dim" in signature.parameters else None


def expand(op: Declarations) -> None:
    """Make the declarations that the op's traits stand for; what is declared of the op itself replaces them."""
    traits = op.traits
    if "elementwise" in traits:
        fill(op, "elementwise", _meet, lambda call: call.aligned(), lambda call: call.elementwise())
    elif dims_of(traits, op.signature) and "reduction" in traits:
        fill(op, "reduction", _reduced, lambda call: call.reduced(), lambda call: call.along())
    elif dims_of(traits, op.signature):
        fill(op, "along", _meet, lambda call: call.along(), lambda call: call.along())


def fill(
    op: Declarations, trait: str, shape: Callable[..., Any], chunk: Callable[[Any], Any], batched: Callable[[Any], Any]
) -> None:
    op.shaping, op.chunking, op.batching = shape, chunk, batched
    op.origins.update(dict.fromkeys(("shape", "chunk", "batched"), f"trait {trait}"))


def _meet(*arguments: Abstract | None) -> Shape:
    return broadcast_shape([a.shape for a in arguments if a is not None])


def _reduced(*arguments: Abstract | None, dim: Any, keepdim: bool = False) -> Shape:
    shape = _meet(*arguments)
    gone = dims(dim, len(shape))
    return tuple([1 if i in gone else n for i, n in enumerate(shape) if keepdim or i not in gone])


def dims(dim: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions that a normalised ``dim`` names: one, some, or all for None; none of an array that has none."""
    return tuple(range(ndim)) if dim is None or not ndim else dim if isinstance(dim, tuple) else (dim,)


ALL: Final = tuple([tuple(range(n)) for n in range(65)])  # all dimensions of an array, by how many it has


def normalized(op: Declarations, args: tuple[Any, ...], params: dict[str, Any]) -> dict[str, Any]:
    """``params`` with each of ``dim`` counted from the front, several in ascending order, none of an array without any.

    Raises:
        IndexError: out of range. RuntimeError: named twice. TypeError: no int, tuple of ints, or None.
    """
    dim = params["dim"]
    found = dim if dim is None else normal(op, dim, max(map(rank, args), default=0))
    return params if found is dim else {**params, "dim": found}


def normal(op: Declarations, dim: Any, ndim: int) -> int | tuple[int, ...]:
    """The dimensions that ``dim``, which is not None, names of an array of so many; itself if it is so already."""
    if type(dim) is tuple:
        last = -1
        for d in dim:
            if type(d) is not int or not last < d < ndim:
                break
            last = d
        else:
            return dim
    elif type(dim) is int and 0 <= dim < ndim:
        return dim
    if not isinstance(dim, (tuple, list)):
        return counted(op, dim, ndim)
    found = tuple(sorted([counted(op, d, ndim) for d in dim]))
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"{op.name}: dim {d} appears multiple times in the list of dims")
    return found if ndim else ()


def rank(a: Any) -> int:
    """The number of dimensions of an argument."""
    return len(a._data.shape) if isinstance(a, TensorBase) else len(getattr(a, "shape", ()))


def counted(op: Declarations, dim: Any, ndim: int) -> int:
    """One dimension, counted from the front."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{op.name}: dim: expected an int, a tuple of ints or None, got {type(dim).__name__}")
    d, n = dim.__index__(), max(ndim, 1)
    if not -n <= d < n:
        raise IndexError(
            f"{op.name}: dim: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})"
        )
    return d % n
