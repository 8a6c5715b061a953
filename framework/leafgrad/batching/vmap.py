"""``vmap``: a function of one sample as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from leafgrad import modes
from leafgrad.batching import pytree, random
from leafgrad.batching.batched import Batch, batches_of, has
from leafgrad.batching.boundary import enter, fill, leave, unbatched_arguments
from leafgrad.ops import dispatch
from leafgrad.ops.runtime import runtime
from leafgrad.ops.scalars import as_int
from leafgrad.ops.tracebacks import shorten
from leafgrad.tensor.joining import cat
from leafgrad.tensor.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")
RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """``func``, which is written for one sample, as a function of a whole batch of them, computed at once.

    Args:
        func: takes tensors in nested tuples, lists and dicts, and returns such.
        in_dims: which dimension of each positional argument is the batch: one for all, or nested as the arguments are;
            None for what is the same for all samples. Keyword arguments are the same for all.
        out_dims: where the batch is to be in each result, likewise; negative ones count from the end.
        randomness: ``"different"`` draws random numbers for each sample, ``"same"`` the same for all, ``"error"``
            refuses to draw.
        chunk_size: compute for so many samples at a time, which takes less memory; None for all at once.

    Returns:
        A function of the same arguments, with the batch dimension in them and in its results.

    Raises:
        ValueError: (at the call) dimensions and arguments do not fit, or sizes of the batch differ.
        RuntimeError: (at the call) ``func`` wants the value of a batch, e.g. for an ``if``.
    """
    check_randomness(randomness)
    if chunk_size is not None and (as_int(chunk_size) or 0) <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            inputs = Inputs(func, in_dims, args)
            if chunk_size is None or chunk_size >= inputs.size:
                return Run(func, out_dims, randomness).results(inputs, 0, inputs.size, kwargs)
            run = Run(func, out_dims, randomness)
            starts = range(0, inputs.size, chunk_size)
            parts = [run.flat(inputs, a, min(a + chunk_size, inputs.size), kwargs) for a in starts]
            joined = [
                chunks[0] if dim is None else cat(chunks, dim)
                for dim, chunks in zip(run.dims, zip(*parts, strict=True), strict=True)
            ]
            return pytree.unflatten(run.structure, iter(joined))
        except Exception as error:
            shorten(error)
            raise

    return cast(Callable[P, R], mapped)


def check_randomness(randomness: Any) -> None:
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def name_of(func: Any) -> str:
    return str(getattr(func, "__name__", None) or repr(func))


@contextmanager
def running(batch: Batch) -> Iterator[None]:
    """Within it ops belong to ``batch``."""
    before = modes.get() & modes.BATCH
    token = modes.BATCHES.set((*modes.BATCHES.get(), batch))
    modes.FLAGS.set(modes.get() | modes.BATCH)
    try:
        yield
    finally:
        modes.BATCHES.reset(token)
        modes.FLAGS.set(modes.get() & ~modes.BATCH | before)


class Inputs:
    """The arguments of a call, flat, with the batch dimension of each; checked."""

    def __init__(self, func: Any, in_dims: Any, args: tuple[Any, ...]) -> None:
        self.what = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"
        if not isinstance(in_dims, (int, tuple, list, dict)) or isinstance(in_dims, bool):
            raise ValueError(
                f"{self.what}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
                f"inputs, got: {type(in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                "vmap over a function with no inputs. The latter is unsupported."
            )
        self.leaves, self.structure = pytree.flatten(args)
        try:
            given = pytree.for_each_leaf(tuple(in_dims) if isinstance(in_dims, list) else in_dims, self.structure)
        except pytree.StructureMismatch:
            raise ValueError(
                f"{self.what}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                f"{pytree.outline(pytree.flatten(in_dims)[1])} but inputs has structure "
                f"{pytree.outline(self.structure)}."
            ) from None
        self.dims = [self._checked(leaf, dim) for leaf, dim in zip(self.leaves, given, strict=True)]
        sizes = [t.shape[d] for t, d in zip(self.leaves, self.dims, strict=True) if d is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over; every in_dim is None")
        if any(n != sizes[0] for n in sizes):
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{sizes} for the mapped dimension"
            )
        self.size = sizes[0]

    def _checked(self, leaf: Any, dim: Any) -> int | None:
        if dim is None:
            return None
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ValueError(
                f"{self.what}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{self.what}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap "
                "over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{self.what}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{leaf.ndim} so expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        return dim % leaf.ndim

    def entered(self, batch: Batch, start: int) -> tuple[Any, ...]:
        """The arguments from sample ``start`` on, as many as the batch has, inside it."""
        stop = start + batch.size
        found = []
        for leaf, dim in zip(self.leaves, self.dims, strict=True):
            if dim is None:
                found.append(leaf)
                continue
            part = leaf if batch.size == self.size else leaf[(slice(None),) * dim + (slice(start, stop),)]
            found.append(enter(part, batch=batch, dim=dim))
        args: tuple[Any, ...] = pytree.unflatten(self.structure, iter(found))
        return args


class Run:
    """Calls of the function for all or some of the samples.

    Attributes:
        structure: how its results are nested; known after a call, as is ``dims``.
        dims: where the batch is to be in each result, None for what is no batch.
    """

    def __init__(self, func: Any, out_dims: Any, randomness: str) -> None:
        self.func, self.out_dims, self.randomness = func, out_dims, randomness
        self.structure: Any = None
        self.dims: list[int | None] = []

    def results(self, inputs: Inputs, start: int, stop: int, kwargs: dict[str, Any]) -> Any:
        leaves = self.flat(inputs, start, stop, kwargs)
        return pytree.unflatten(self.structure, iter(leaves))

    def flat(self, inputs: Inputs, start: int, stop: int, kwargs: dict[str, Any]) -> list[Any]:
        batch = Batch(stop - start, self.randomness)
        with running(batch):
            outputs, self.structure = pytree.flatten(self.func(*inputs.entered(batch, start), **kwargs))
            self._read_dims()
            return [self._left(o, batch, i) for i, o in enumerate(outputs)]

    def _read_dims(self) -> None:
        name = name_of(self.func)
        try:
            out_dims = self.out_dims
            if isinstance(out_dims, tuple) and self.structure is None and len(out_dims) == 1:
                (out_dims,) = out_dims
            if isinstance(out_dims, list) and self.structure is not None and self.structure[0] is tuple:
                out_dims = tuple(out_dims)
            self.dims = pytree.for_each_leaf(out_dims, self.structure)
        except pytree.StructureMismatch:
            raise ValueError(
                f"vmap({name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not compatible with the structure "
                f"of `outputs`. out_dims has structure {pytree.outline(pytree.flatten(self.out_dims)[1])} but outputs "
                f"has structure {pytree.outline(self.structure)}."
            ) from None
        if not all(d is None or (isinstance(d, int) and not isinstance(d, bool)) for d in self.dims):
            raise ValueError(
                f"vmap({name}, ..., out_dims={self.out_dims}): `out_dims` must be an int, None or a python collection "
                "of ints representing where in the outputs the vmapped dimension should appear."
            )

    def _left(self, output: Any, batch: Batch, i: int) -> Any:
        name, dim = name_of(self.func), self.dims[i]
        if dim is None:
            if isinstance(output, Tensor) and batch in batches_of(output._data):
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            return output
        if not isinstance(output, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set "
                "out_dims= to None for output?"
            )
        ndim = output.ndim + 1
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"vmap({name}, ..., out_dims={self.out_dims}): Dimension out of range (expected to be in range of "
                f"[{-ndim}, {ndim - 1}], but got {dim})"
            )
        if not has(dispatch.raw(output), batch):
            output = fill(output, batch=batch)  # so that gradients of the samples are summed
        return leave(output, batch=batch, dim=dim % ndim)


runtime.unbatched, runtime.draw, runtime.independent = unbatched_arguments, random.draw, random.independent
