"""How an op runs on a batch: by the rule given to it, by what its traits say, or else sample by sample.

A rule is a function of a BatchedCall and gives the raw result with the batch as dimension 0. It is written with ops, so
that arrays, Symbols and batches of outer vmaps all follow it.
"""

from __future__ import annotations

from typing import Any, Final

from leafgrad.ops import messages
from leafgrad.ops.shape import cat, expand, part, reshape

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

    def again(self, *args: Any, **changes: Any) -> Any:
        """The op with other arguments and some parameters changed."""
        return self.op(*args, **{**self.params, **changes})

    # ---- common rules ---------------------------------------------------------------------------------------------

    def elementwise(self) -> Any:
        """Arguments broadcast, so the batch has only to stand before all of their dimensions."""
        ndim = self.widest()
        return self.op(*[self.aligned(i, ndim) for i in range(len(self.args))], **self.params)

    def along(self) -> Any:
        """An op along dimensions, or that takes them away. Numbers have one dimension for this purpose."""
        dim, ndim = self.params["dim"], self.widest()
        if isinstance(dim, tuple):
            return self.again(*[self.front(i, ndim) for i in range(len(self.args))], dim=tuple([d + 1 for d in dim]))
        if dim is None:
            return self.over_all(ndim)
        out = self.again(*[self.front(i, max(ndim, 1)) for i in range(len(self.args))], dim=dim + 1)
        if ndim:
            return out
        return tuple([flat(o, self.size) for o in out]) if type(out) is tuple else flat(out, self.size)

    def over_all(self, ndim: int) -> Any:
        """An op over all dimensions as one."""
        args = [self.front(i, ndim) for i in range(len(self.args))]
        shape = tuple(args[0].shape[1:])
        out = self.again(*[reshape(a, shape=(self.size, size(tuple(a.shape[1:])))) for a in args], dim=1)
        if "along" in self.op.traits:
            return reshape(out, shape=(self.size, *shape))
        return reshape(out, shape=(self.size, *(1,) * ndim)) if self.params.get("keepdim", False) else out

    def each_drawn(self) -> Any:
        """Independent draws for each element, or for each row of the last dimension: so for each sample, too."""
        return self.op(self.args[0], **self.params)

    def widest(self) -> int:
        """The number of dimensions that the arguments broadcast to, in one sample."""
        return max([self.ndim(i) for i in range(len(self.args))])


def widened(x: Any, has: int, wants: int | None) -> Any:
    """A batch of samples with ``has`` dimensions as one of samples with ``wants`` dimensions."""
    if wants is None or wants <= has:
        return x
    shape = tuple(x.shape)
    return reshape(x, shape=(shape[0], *(1,) * (wants - has), *shape[1:]))


def flat(x: Any, n: int) -> Any:
    """The dimension that a number was given taken off again."""
    return reshape(x, shape=(n,))


def run(call: BatchedCall) -> Any:
    """The raw result, with the batch in front."""
    return (call.op.batching or sample_by_sample)(call)


def size(shape: Shape) -> int:
    """How many elements there are."""
    found = 1
    for n in shape:
        found *= n
    return found


# ---- without a rule -----------------------------------------------------------------------------------------------

_told: Final[set[str]] = set()


def sample_by_sample(call: BatchedCall) -> Any:
    """A loop over the samples: right for any op whose result has one shape, and slow, which is said once for each."""
    op = call.op
    if op.name not in _told:
        _told.add(op.name)
        messages.warn(
            f"There is a performance drop because vmap has no batching rule for the op {op.name!r} and runs it sample "
            f"by sample. Give it one with @{op.name}.batched, or a trait from which one follows"
        )
    if not call.size:
        raise RuntimeError(
            f"vmap: the op {op.name!r} has no batching rule and there are no samples to tell its result's shape; give "
            f"it a rule with @{op.name}.batched"
        )
    results = [
        op(*[part(a, at=(k,)) if i else a for a, i in zip(call.args, call.inside, strict=True)], **call.params)
        for k in range(call.size)
    ]
    if type(results[0]) is tuple:
        return tuple([stacked([r[k] for r in results]) for k in range(len(results[0]))])
    return stacked(results)


def stacked(parts: list[Any]) -> Any:
    return cat(*[reshape(p, shape=(1, *p.shape)) for p in parts], dim=0)
