"""How an op runs on a batch: by the rule given to it, by what its traits say, or else sample by sample.

A rule is a function of a BatchedCall and gives the raw result with the batch as dimension 0. It is written with ops, so
that arrays, Symbols and batches of outer vmaps all follow it.
"""

from __future__ import annotations

import math
from typing import Any, Final, NoReturn

from leafgrad import backends
from leafgrad.backends.place import place
from leafgrad.ops import create, dispatch, messages
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.geometry import moved
from leafgrad.ops.node import SymbolBase
from leafgrad.ops.shape import expand, part, permute, reshape, stack
from leafgrad.ops.shifted import behind
from leafgrad.ops.tracebacks import shorten

Shape = tuple[int, ...]


class BatchedCall:
    """One call of an op, some of whose arguments are batches.

    Attributes:
        op: the op.
        size: how many samples there are.
        args: raw arguments; those that are batches have the batch as dimension 0.
        inside: for each argument, whether it is a batch.
        params: the op's parameters.
    """

    def __init__(self, op: Any, size: int, args: tuple[Any, ...], inside: tuple[bool, ...], params: Any) -> None:
        self.op = op
        self.size = size
        self.args = args
        self.inside = inside
        self.params = params

    def order(self) -> tuple[int, ...] | None:
        """The dimensions of an elementwise result as they lie in memory, the batch outermost; None: in their own order.

        Each sample lies as it would outside of the batch.
        """
        if all(map(lies_in_order, self.args)):
            return None
        samples = []
        for a, inside in zip(self.args, self.inside, strict=True):
            a = dispatch.sample(a)
            if a is None or (inside and not self.size):
                return None
            samples.append(a[0] if inside else a)
        shape = broadcast_shape([self.shape(i) for i in range(len(self.args))])
        found = dispatch.order_of_operands(shape, samples)
        return found if found is None else dispatch.behind_batches(found, len(found) + 1)

    def shape(self, i: int) -> Shape:
        """The shape of argument i in one sample; that of a number is ()."""
        shape = tuple(getattr(self.args[i], "shape", ()))
        return shape[1:] if self.inside[i] else shape

    def ndim(self, i: int) -> int:
        """The number of dimensions of argument i in one sample."""
        return len(self.shape(i))

    def parameter(self, name: str) -> Any:
        """A parameter's value in this call, or its default."""
        return self.params.get(name, self.op.signature.parameters[name])

    def front(self, i: int, ndim: int | None = None) -> Any:
        """Argument i with the batch in front, repeated if it is the same for all samples; numbers and None as they are.

        Args:
            ndim: the dimensions that a sample shall have, by ones before its own.
        """
        x = self.args[i]
        if not hasattr(x, "shape"):
            return x
        if not self.inside[i]:
            x = expand(x, shape=(self.size, *x.shape))
        return widened(x, self.ndim(i), ndim)

    def aligned(self, i: int, ndim: int) -> Any:
        """Argument i ready to broadcast: a batch as by ``front``, anything else as it is."""
        return widened(self.args[i], self.ndim(i), ndim) if self.inside[i] else self.args[i]

    def rows(self, i: int) -> Any:
        """Argument i with the elements of each sample in one dimension. -> (size, elements)"""
        return reshape(self.front(i), shape=(self.size, math.prod(self.shape(i))))

    def again(self, *args: Any, **changes: Any) -> Any:
        """The op with other arguments and some parameters changed."""
        return self.op(*args, **{**self.params, **changes})

    def arange(self, ndim: int) -> Any:
        """The number of each sample, for samples of ``ndim`` dimensions. -> (size, 1, ..., 1), int64"""
        some = next(a for a in self.args if hasattr(a, "shape"))
        where = some.place if isinstance(some, SymbolBase) else place(some)
        steps = dispatch.created(create.arange, where, {"start": 0, "step": 1, "count": self.size, "dtype": "int64"})
        return reshape(steps, shape=(self.size, *(1,) * ndim))

    def merged(self, x: Any, dim: int) -> Any:
        """The batch, dimension 0 of x, made one with dimension ``dim`` of the samples, before it."""
        shape = tuple(x.shape)
        if dim:
            x = permute(x, dims=moved(len(shape), 0, dim))
        return reshape(x, shape=(*shape[1 : 1 + dim], shape[0] * shape[1 + dim], *shape[2 + dim :]))

    def split(self, x: Any, dim: int, each: int) -> Any:
        """The inverse of ``merged``, given the size of the dimension in one sample."""
        shape = tuple(x.shape)
        x = reshape(x, shape=(*shape[:dim], self.size, each, *shape[dim + 1 :]))
        return permute(x, dims=moved(len(shape) + 1, dim, 0)) if dim else x

    # ---- common rules ---------------------------------------------------------------------------------------------

    def elementwise(self) -> Any:
        """Arguments broadcast, so the batch has only to stand before all of their dimensions."""
        ndim = self.widest()
        return self.op(*[self.aligned(i, ndim) for i in range(len(self.args))], **self.params)

    def along(self) -> Any:
        """An op along dimensions, or that takes them away. Numbers have one dimension for this purpose."""
        dim, ndim = self.params["dim"], self.widest()
        if isinstance(dim, tuple):
            return self.again(*[self.front(i, ndim) for i in range(len(self.args))], dim=behind(dim))
        if dim is None:
            return self.over_all()
        out = self.again(*[self.front(i, max(ndim, 1)) for i in range(len(self.args))], dim=behind(dim))
        return out if ndim else self.reshaped(out, ())

    def over_all(self) -> Any:
        """An op over all dimensions, as one of all elements."""
        shape = broadcast_shape([self.shape(i) for i in range(len(self.args))])
        args = [self.filled(i, shape) for i in range(len(self.args))]
        out = self.again(*args, dim=1)
        if "along" in self.op.traits:
            return self.reshaped(out, shape)
        return self.reshaped(out, (1,) * len(shape)) if self.params.get("keepdim", False) else out

    def filled(self, i: int, shape: Shape) -> Any:
        """Argument i broadcast to ``shape``, each sample flat."""
        x = self.front(i, len(shape))
        if not hasattr(x, "shape"):
            return x
        return reshape(expand(x, shape=(self.size, *shape)), shape=(self.size, math.prod(shape)))

    def reshaped(self, out: Any, shape: Shape) -> Any:
        """A result, or several, with samples of that shape."""
        if type(out) is tuple:
            return tuple([self.reshaped(o, shape) for o in out])
        return reshape(out, shape=(self.size, *shape))

    def sample_by_sample(self) -> Any:
        """A loop over the samples: right for any op whose result has one shape, and slow.

        Raises:
            RuntimeError: there are no samples.
        """
        op = self.op
        if not self.size:
            raise RuntimeError(
                f"vmap: the op {op.name!r} has no batching rule and there are no samples to tell its result's shape; "
                f"give it a rule with @{op.name}.batched"
            )
        results = [
            op(*[part(a, at=(k,)) if i else a for a, i in zip(self.args, self.inside, strict=True)], **self.params)
            for k in range(self.size)
        ]
        if "view" in op.traits and self.inside[0] and (view := self.view_of_batch(results)) is not None:
            return view
        if type(results[0]) is tuple:
            return tuple([stack(*[r[k] for r in results], dim=0) for k in range(len(results[0]))])
        return stack(*results, dim=0)

    def view_of_batch(self, results: list[Any]) -> Any:
        """Views of each sample as one view of the batch; None where they show no memory of it, or lie otherwise."""
        whole, (first, close) = dispatch.opened(self.args[0])[0], dispatch.opened(results[0])
        if isinstance(whole, SymbolBase) or not first.size:
            return None
        if dispatch.memory_of(first) is not dispatch.memory_of(whole):
            return None
        backend, at = backends.backend_of(first), len(first.shape) - len(results[0].shape)
        step = whole.strides[len(whole.shape) - self.ndim(0) - 1]
        for k, result in enumerate(results):
            data, _ = dispatch.opened(result)
            if data.strides != first.strides or backend.address(data) - backend.address(first) != k * step:
                return None
        shape = (*first.shape[:at], self.size, *first.shape[at:])
        return close(backend.strided(first, shape, (*first.strides[:at], step, *first.strides[at:])))

    def without_rule(self) -> Any:
        """The same where nobody asked for it, which is said once for each op."""
        tell(self.op)
        return self.sample_by_sample()

    def dynamic(self) -> NoReturn:
        """Refuse: the shape of the result depends on values."""
        raise RuntimeError(
            f"vmap: We do not support batching operators that can output dynamic shape: the result of {self.op.name} "
            "has a shape that depends on values, and samples may differ. Choose with leafgrad.where instead of a mask, "
            "or run it outside of vmap"
        )

    def widest(self) -> int:
        """The number of dimensions that the arguments broadcast to, in one sample."""
        return max([self.ndim(i) for i in range(len(self.args))])


def lies_in_order(a: Any) -> bool:
    """Whether it is a number, or an array whose elements lie in memory in the order of its dimensions."""
    return not isinstance(a, SymbolBase) and (not hasattr(a, "flags") or bool(a.flags.c_contiguous))


def widened(x: Any, has: int, wants: int | None) -> Any:
    """A batch of samples with ``has`` dimensions as one of samples with ``wants`` dimensions."""
    if wants is None or wants <= has:
        return x
    shape = tuple(x.shape)
    return reshape(x, shape=(shape[0], *(1,) * (wants - has), *shape[1:]))


def run(call: BatchedCall) -> Any:
    """The raw result, with the batch in front, in memory, too, if it is new."""
    rule = call.op.batching
    if rule is None:
        return call.without_rule()
    try:
        result = rule(call)
    except Exception as error:
        error.add_note(f"in the batched rule of op {call.op.name!r}, from {call.op.origins.get('batched')}")
        shorten(error)
        raise
    for r in result if isinstance(result, tuple) else (result,):
        if getattr(r, "shape", ())[:1] != (call.size,):
            raise RuntimeError(
                f"op {call.op.name!r}, batched rule from {call.op.origins.get('batched')}: expected the raw result "
                f"with the batch of {call.size} samples as dimension 0, got {messages.describe(r)}"
            )
    if "view" in call.op.traits:
        return result
    order = call.order() if call.op.keeps_layout and type(result) is not tuple else None
    return dispatch.in_order(result) if order is None else dispatch.ordered(result, order)


_told: Final[set[str]] = set()


def tell(op: Any) -> None:
    """Say once of an op that it runs sample by sample."""
    if op.name not in _told:
        _told.add(op.name)
        messages.warn(
            f"There is a performance drop because vmap has no batching rule for the op {op.name!r} and runs it sample "
            f"by sample. Give it one with @{op.name}.batched, or a trait from which one follows"
        )
