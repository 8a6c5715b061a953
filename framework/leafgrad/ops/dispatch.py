"""How dispatch makes Tensors and views without knowing their classes, which live above it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from leafgrad import backends, dtypes, modes
from leafgrad.ops import messages
from leafgrad.ops.geometry import descends, inverse, memory_order
from leafgrad.ops.node import EMPTY, Epoch, Node, Output, SymbolBase, TensorBase, Version, transparent
from leafgrad.ops.runtime import runtime

R = TypeVar("R")
BACKENDS = backends.BACKENDS
NO_SCOPE: AbstractContextManager[Any] = nullcontext()

# The version of every tensor made under inference_mode: it is never written, only recognised.
INFERENCE_VERSION = Version()


def takes_out(function: Callable[..., R]) -> Callable[..., R]:
    """``function``, which writes its result, cast to its dtype, into a tensor that is given as ``out``."""
    made: Callable[..., R] = runtime.with_out(function, function.__name__, "cast")
    return made


def in_batches(op: Any, args: tuple[Any, ...], raw: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments of an op on batches, ready to be recorded, and their raw values."""
    if "random" in op.traits and modes.get() & modes.BATCH:
        raw = runtime.independent(op, raw)
    return runtime.unbatched(args, raw), raw


def topmost(args: tuple[Any, ...]) -> Any:
    """The argument that decides what an op does: of all that are no arrays, one of the highest level."""
    best, level = None, -1
    for a in args:
        if isinstance(a, SymbolBase) and a.level > level:
            best, level = a, a.level
    return best


def detach(x: Any) -> Any:
    """The same memory without history."""
    if modes.get() & modes.WATCH and not modes.tracer():
        return modes.watched(runtime.detach, (x,), lambda: runtime.detach(x))
    return runtime.detach(x)


def create(op: Any, place: tuple[str, int], **params: Any) -> Any:
    """Run an op that takes no arrays on a device, or record it under a trace; returns a Tensor."""
    flags = modes.get()
    if flags <= modes.GRAD:
        backend = backends.by_device_type(place[0])
        return aliases((op.create(backend, params) if backend.one_device else created(op, place, params),))[0]
    if flags & modes.WATCH and not modes.tracer():
        return modes.watched(op, (), lambda: create(op, place, **params))
    if flags & modes.BATCH and "random" in op.traits:
        return alias(runtime.draw(op, place, params))
    out = alias(created(op, place, params))
    if flags & modes.INFERENCE:
        out._writes = INFERENCE_VERSION
    return out


def created(op: Any, place: tuple[str, int], params: dict[str, Any]) -> Any:
    """The raw result of an op that takes no arrays."""
    if tracer := modes.tracer():
        return tracer.create(op, place, params)
    backend = backends.by_device_type(place[0])
    if backend.one_device:
        return op.create(backend, params)
    with backend.device_scope(place[1]):
        return op.create(backend, params)


def alias(data: Any, node: Any = None, kind: type | None = None) -> Any:
    """A new Tensor, or a tensor of another class, around a raw array or Symbol."""
    out: Any = object.__new__(kind or runtime.tensor)
    out._data = data
    out._leaf = out._writes = out._view = None
    out._epoch = Epoch.now
    out._history = node
    if modes.get() & modes.TRACE and (tracer := modes.tracer()):
        tracer.made(out)
    return out


def opened(data: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Raw data without its batches, and the function that puts a value like it into them."""
    return data.opened() if isinstance(data, SymbolBase) else (data, lambda data: data)


def aliases(arrays: Any) -> list[Any]:
    """A new Tensor around each of some raw arrays, outside of traces."""
    made, epoch, new, kind = [], Epoch.now, object.__new__, runtime.tensor
    for data in arrays:
        out: Any = new(kind)
        out._data = data
        out._leaf = out._writes = out._view = out._history = None
        out._epoch = epoch
        made.append(out)
    return made


# Memory of tensors that others hold as arrays, too: the arrays that own it, by id.
EXPOSED: dict[int, weakref.ref[Any]] = {}


def expose(data: Any) -> None:
    """Note that somebody may read and write the memory of a raw array apart from any tensor."""
    owner = memory_of(data)
    if id(owner) not in EXPOSED:
        key = id(owner)
        EXPOSED[key] = weakref.ref(owner, lambda _: EXPOSED.pop(key, None))


def on_device_of(data: Any) -> AbstractContextManager[Any]:
    """Within it, the device of a raw array, or of the first of several, is the current one."""
    data = next((d for d in data if d is not None), None) if type(data) is tuple else data
    backend = BACKENDS.get(type(data))
    return NO_SCOPE if backend is None or backend.one_device else backend.device_scope(backend.device_index(data))


def overwrite(data: Any, values: Any) -> None:
    """Write into a raw array."""
    backend = BACKENDS.get(type(data))
    if backend is None or backend.one_device:
        data[...] = values
        return
    with on_device_of(data):
        data[...] = values


def copied(data: Any, *order: str) -> Any:
    """A raw array in memory of its own, in C order or, by ``"K"``, in the order that it lies in."""
    with on_device_of(data):
        return data.copy(*order)


def memory_of(data: Any) -> Any:
    """The array whose memory a raw array shows: itself, or what it is a view of."""
    while hasattr(data.base, "base"):  # what has none is memory of another library
        data = data.base
    return data


def twin(data: Any, memo: dict[Any, Any]) -> Any:
    """A copy of a raw array in a copy of all the memory that it shows, one for all arrays of that memory in a ``memo``.

    Memory that is not in one piece, or of another dtype, is not copied as a whole.
    """
    owner = memory_of(data)
    order = "C" if owner.flags.c_contiguous else "F"
    plain = isinstance(data, type(owner)) and owner.dtype == data.dtype and (order == "C" or owner.flags.f_contiguous)
    address = backends.backend_of(data).address
    start, rest = divmod(address(data) - address(owner), data.itemsize) if plain and data.size else (0, 1)
    if rest or min(data.strides, default=0) < 0:
        return data.copy("K")
    key = id(owner), "memory"
    if key not in memo:
        memo[key] = owner.copy(order), owner  # which keeps its id
    whole = memo[key][0]
    if data is owner:
        return whole
    return backends.backend_of(data).strided(whole.reshape(-1, order=order)[start:], data.shape, data.strides)


def raw(tensor: Any) -> Any:
    """The raw array of a tensor, in a trace the Symbol that stands for it."""
    if modes.get() & modes.TRACE and (tracer := modes.tracer()):
        return tracer.lift(tensor)
    return tensor._data


def array(g: Any) -> Any:
    """A raw gradient as an array: NumPy's reductions give scalars."""
    if isinstance(g, SymbolBase):
        return g
    return (BACKENDS.get(type(g)) or backends.backend_of_type(type(g))).wrap(g)


def inside(tensor: Any) -> Any:
    """What stands for a tensor in the trace that runs in this thread; without one, the tensor itself."""
    if modes.get() & modes.TRACE and (tracer := modes.tracer()):
        return tracer.inside(tensor)
    return tensor


def view_given(tensor: Any) -> Any:
    """The View that an argument of a trace is for which ``tensor`` stands without its base, or None."""
    return tracer.alone(tensor) if (tracer := modes.tracer()) else None


def interrupt(what: str) -> None:
    """In a trace: the caller reads or changes what no program can, so all that was recorded is done first."""
    if tracer := modes.tracer():
        tracer.interrupt(what)


def attached(node: Any) -> Any:
    """The hooks of a node, which are about to run, or to become more; of one from outside of a trace, at each call."""
    if (tracer := modes.tracer()) and node.seq < tracer.born:
        interrupt("a hook, or retain_grad(), of a tensor from outside")
    return node.attached()


def hand_over(owner: Any, before: Any, after: Any) -> None:
    """A tensor that keeps its gradient does so at the node of its new value too; other hooks stay with the old."""
    leaf = owner._leaf
    if leaf is None or before is None or before.hooks is None or after is None or after is before:
        return
    hooks, retained = before.hooks, before.hooks.retained
    others = [ref for ref in retained if ref() is not leaf]
    if len(others) == len(retained):
        return
    hooks.retained = others
    after.attached().retained.append(weakref.ref(leaf))
    if (tracer := modes.tracer()) and before.seq < tracer.born:
        tracer.unless_run(lambda: setattr(hooks, "retained", retained))


def grad_of(leaf: Any) -> Any:
    """The ``.grad`` of a leaf."""
    if modes.get() & modes.TRACE and (tracer := modes.tracer()):
        return tracer.grad_of(leaf)
    return leaf.grad


def set_grad(leaf: Any, gradient: Any) -> None:
    """Make a Tensor, or None, the ``.grad`` of a leaf."""
    if tracer := modes.tracer():
        tracer.set_grad(leaf, gradient)
    else:
        leaf.grad = gradient
        leaf.passes = -abs(leaf.passes) if gradient is None else 0


def computed(op: Any, x: Any, **params: Any) -> Any:
    """An op whose result has a shape that depends on values, on a Tensor: in a trace it is computed now."""
    hidden, tracer = isinstance(x._data, SymbolBase), modes.tracer()
    if tracer is None or (hidden and x._data.level):
        if hidden and not x._data.level:
            raise x._data.withheld(f"{op.name}()")
        return op(x, **params)
    array = x._array(f"{op.name}()")
    return op.record((tracer.inside(x),), params, (array,), op.compute((array,), params), modes.get())


def connect(saved: Any, edge: Any) -> Any:
    """A saved argument as a Tensor whose history is ``edge``, whatever became of the original since."""
    if transparent(edge):
        (edge,) = edge.edges
    if saved._node is edge:
        return saved
    if saved._writes is None:
        saved._writes = Version()
    out = alias(saved._data, edge)
    out._writes = saved._writes  # what keeps it is told of writes to come
    return out


def reconnect_output(node: Node) -> Any:
    """The output of a node as a Tensor of its graph, or several."""
    if node.out is None:
        return None
    ends: dict[Any, Any] = getattr(node, "results", EMPTY)
    if type(node.out) is tuple:
        ends = {i: ends.get(i) or Output.of(node, i, o.shape) for i, o in enumerate(node.out)}
        return tuple([kept_output(o, ends[i]) for i, o in enumerate(node.out)])
    return kept_output(node.out, ends.get(None, node))


def kept_output(kept: Any, end: Any) -> Any:
    """An output that a node keeps, if need be unpacked, as a Tensor whose history is ``end``."""
    if not hasattr(kept, "unpack"):
        return alias(kept, end)
    found = kept.tensor()
    found._writes = found._writes or Version()
    out = alias(found._data, end)
    out._writes = found._writes  # what keeps it is told of writes to come
    return out


def on_device_of_arrays(forward: Callable[..., Any], backend: backends.Backend) -> Callable[..., Any]:
    """``forward`` on the device that holds its arrays: with several devices, a library computes on the current one."""

    def scoped(xp: Any, *args: Any, **params: Any) -> Any:
        index = next(backend.device_index(a) for a in args if isinstance(a, backend.array_type))
        with backend.device_scope(index):
            return forward(xp, *args, **params)

    return scoped


def wrap(op: Any, kind: type, result: Any) -> Any:
    """The result of a forward on arrays of a class: library scalars made 0-d arrays, and sequences made tuples."""
    own = BACKENDS.get(kind)
    if own is not None and isinstance(result, own.scalars):
        return own.xp.asarray(result)
    if own is not None and BACKENDS.get(type(result)) is own:
        return own.wrap(result)
    if type(result) in (tuple, list) or isinstance(result, tuple):
        if op.c is not None:
            raise messages.definition(op.name, f"c={op.c!r} is for one result, but its forward gives {len(result)}")
        if any(isinstance(r, (tuple, list)) for r in result):
            raise messages.definition(op.name, "its forward gives a tuple in a tuple; return its arrays one by one")
        return tuple([r if type(r) is kind and own is not None else wrap(op, kind, r) for r in result])
    if isinstance(result, SymbolBase):
        return result
    backend = backends.backend_of_type(kind)
    try:
        theirs = backends.backend_of(result)
    except TypeError:
        raise messages.foreign(op, backend, result) from None
    if theirs is backend or op.crosses:
        return theirs.wrap(result)
    raise messages.foreign(op, backend, result)


def in_order(result: Any) -> Any:
    """Arrays that lie in memory in the order of their dimensions, the batch in front; symbols as they are."""
    if type(result) is tuple:
        return tuple([in_order(r) if isinstance(r, SymbolBase) or not r.flags.c_contiguous else r for r in result])
    if isinstance(result, SymbolBase):
        return result.of(in_order) if result.level else result
    return result if result.flags.c_contiguous else copied(result)


def sample(data: Any) -> Any:
    """A raw array that lies in memory as ``data`` does, or as one sample of that; None where that is not known."""
    return data.sample() if isinstance(data, SymbolBase) else data


def ordered(data: Any, order: tuple[int, ...]) -> Any:
    """``data`` with its dimensions in memory in this order, outermost first, and without gaps; symbols as they are."""
    array, close = opened(data)
    if isinstance(array, SymbolBase):
        return data
    order = behind_batches(order, array.ndim)
    with on_device_of(array):
        moved = array.transpose(order)
        return data if moved.flags.c_contiguous else close(moved.copy().transpose(inverse(order)))


def behind_batches(order: Sequence[int], ndim: int) -> tuple[int, ...]:
    """The order in memory of an array of ``ndim`` dimensions, the first of which are batches, by that of one sample."""
    count = ndim - len(order)
    return (*range(count), *[d + count for d in order])


def as_operands(result: Any, operands: Sequence[Any]) -> Any:
    """The result of an elementwise op, in the order of its operands: the first decides, in NumPy all must agree."""
    for a in (result, *operands):
        if isinstance(a, SymbolBase):
            return result
    first = operands[0]
    if getattr(first, "shape", None) == result.shape and descends(first.strides):
        return result if result.flags.c_contiguous else copied(result)
    order = order_of_operands(result.shape, operands)
    return result if order is None else ordered(result, order)


def order_of_operands(shape: tuple[int, ...], operands: Sequence[Any]) -> tuple[int, ...] | None:
    """The dimensions of an elementwise result as they lie in memory; None where all operands lie in order."""
    arrays = [a for a in operands if getattr(a, "ndim", 0)]
    if all(a.flags.c_contiguous for a in arrays):
        return None
    strides = []
    for a in arrays:
        missing = len(shape) - a.ndim
        sizes = zip(a.shape, shape[missing:], a.strides, strict=True)
        strides.append((0,) * missing + tuple([step if n == wide else 0 for n, wide, step in sizes]))
    return memory_order(shape, tuple(strides))


def as_leaf(g: Any, leaf: Any) -> Any:
    """A gradient that lies in memory as its leaf does if that has no gaps, else in order."""
    if isinstance(g, SymbolBase):
        return in_order(g)
    if isinstance(leaf, SymbolBase) or g.strides == leaf.strides:
        return g
    return ordered(g, order_of(leaf))


def order_of(data: Any) -> tuple[int, ...]:
    """The dimensions of a raw array as they lie in memory, outermost first; their own order if it has gaps."""
    order = memory_order(data.shape, (data.strides,))
    return order if data.transpose(order).flags.c_contiguous else tuple(range(data.ndim))


def is_differentiable(data: Any) -> bool:
    return dtypes.of(data).is_differentiable


def refuse_inference(op: Any, node: Any) -> None:
    """A RuntimeError if a node keeps an inference tensor."""
    for s, edge in zip(node.saved, node.edges, strict=False):
        if edge is None and isinstance(s, TensorBase) and s._writes is INFERENCE_VERSION:
            raise RuntimeError(
                f"{op.name}: Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                "inference mode in computation tracked by autograd. To work around this, you can make a clone to get a "
                "normal tensor and use it in autograd, or use `no_grad()` instead of `inference_mode()`."
            )
