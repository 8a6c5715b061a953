"""Choosing and writing elements by integer arrays, of which some or all are batches.

Where an array of indices is a batch, each sample's own number becomes one more index, of a first dimension.
"""

from __future__ import annotations

from typing import Any

from leafgrad.backends.place import place
from leafgrad.batching.call import BatchedCall
from leafgrad.ops import carriers, create, index
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.shape import expand, permute, reshape

Shape = tuple[int, ...]


class Layout:
    """Where the dimensions of ``index``'s result come from, for one sample and for the batch.

    ``index`` puts the dimensions of its index arrays where the chosen dimensions were if these are next to each other,
    and first if not; the batch, whether a dimension kept or chosen, changes what is next to what.

    Attributes:
        at: the index arrays for the batch. dims: which dimensions of x (with the batch, if it has it) they choose.
        shape: the result's shape in one sample.
    """

    def __init__(self, call: BatchedCall, first: int, shape: Shape, repeat: bool) -> None:
        n, dims = call.size, call.params["dims"]
        places = range(first, len(call.args))
        every = broadcast([call.shape(i) for i in places])
        self.batched = any(call.inside[i] for i in places)
        self.width = len(every)
        kept = [size for d, size in enumerate(shape) if d not in dims]
        self.start = dims[0] if together(dims) else 0
        self.shape = (*kept[: self.start], *every, *kept[self.start :])
        at = [call.aligned(i, self.width) for i in places]
        ahead = repeat or call.inside[0]  # whether x has the batch as its dimension 0
        self.dims = tuple([d + 1 for d in dims]) if ahead else dims
        if ahead and self.batched:
            self.dims = (0, *self.dims)
            at = [ladder(call, self.width), *at]
        self.at = at
        self.order = self._order(n, len(self.shape), ahead)

    def _order(self, n: int, ndim: int, ahead: bool) -> Shape:
        """How to permute the result of the whole batch so that the batch is first and a sample's dimensions follow."""
        w, start = self.width, self.start
        if self.batched and ahead:  # batch, indices, kept
            return (0, *range(1 + w, 1 + w + start), *range(1, 1 + w), *range(1 + w + start, 1 + ndim))
        if self.batched:  # kept, batch, indices, kept
            return (start, *range(start), *range(start + 1, 1 + ndim))
        if together(self.dims):  # batch, kept, indices, kept
            return tuple(range(1 + ndim))
        return (w, *range(w), *range(w + 1, 1 + ndim))  # indices, batch, kept

    def sorted(self, x: Any) -> Any:
        """A result with the batch first."""
        return permute(x, dims=self.order)

    def unsorted(self, x: Any) -> Any:
        """The inverse of ``sorted``."""
        return permute(x, dims=tuple(sorted(range(len(self.order)), key=self.order.__getitem__)))


def together(dims: Shape) -> bool:
    return dims[-1] - dims[0] == len(dims) - 1


def broadcast(shapes: list[Shape]) -> Shape:
    """The shape in which ``shapes`` meet; those that do not are left to the array library to refuse."""
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(s)) + s for s in shapes]
    return tuple([next((n for n in column if n != 1), 1) for column in zip(*padded, strict=True)])


def ladder(call: BatchedCall, ndim: int) -> Any:
    """0, ..., size - 1 along the batch, for samples of ``ndim`` dimensions."""
    some = next(a for a in call.args if hasattr(a, "shape"))
    where = some.place if isinstance(some, SymbolBase) else place(some)
    steps = carriers.created(create.arange, where, {"start": 0, "step": 1, "count": call.size, "dtype": "int64"})
    return reshape(steps, shape=(call.size, *(1,) * ndim))


# ---- one array per dimension --------------------------------------------------------------------------------------


@index.index.batched
def _index(call: BatchedCall) -> Any:
    layout = Layout(call, 1, call.shape(0), False)
    return layout.sorted(index.index(call.args[0], *layout.at, dims=layout.dims))


@index.index_sum.batched
def _index_sum(call: BatchedCall) -> Any:
    shape = call.params["shape"]
    layout = Layout(call, 1, shape, True)
    x = expand(call.front(0, len(layout.shape)), shape=(call.size, *layout.shape))
    return index.index_sum(layout.unsorted(x), *layout.at, shape=(call.size, *shape), dims=layout.dims)


@index.index_put.batched
def _index_put(call: BatchedCall) -> Any:
    layout = Layout(call, 2, call.shape(0), True)
    v = call.args[1]
    if hasattr(v, "shape"):
        v = layout.unsorted(expand(call.front(1, len(layout.shape)), shape=(call.size, *layout.shape)))
    return index.index_put(call.front(0), v, *layout.at, dims=layout.dims)


# ---- along one dimension ------------------------------------------------------------------------------------------


def along(call: BatchedCall) -> Any:
    """``gather`` and its kin: each element's own place elsewhere is its own sample, too."""
    ndim = max([call.ndim(i) for i in range(len(call.args))])
    wide = max(ndim, 1)  # numbers have one dimension for this purpose
    args = [call.front(i, wide) for i in range(len(call.args))]
    changes: dict[str, Any] = {"dim": call.params["dim"] + 1}
    if "shape" in call.params:
        changes["shape"] = (call.size, *(call.params["shape"] or (1,) * wide))
    out = call.again(*args, **changes)
    ndim = len(call.params["shape"]) if "shape" in call.params else call.ndim(1 if call.op is index.gather else 0)
    return out if ndim else reshape(out, shape=(call.size,))


for op in (index.gather, index.gather_sum, index.scatter, index.scatter_best, index.scatter_product):
    op.batched(along)
