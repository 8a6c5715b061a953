"""In-place operations: compute, then write the result into the tensor's memory and its history."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.errors import TraceError
from leafgrad.modes import GRAD, INFERENCE, TRACE, tracer
from leafgrad.ops import dispatch, half, messages
from leafgrad.ops.convert import clone, new_full, to_dtype
from leafgrad.ops.define import op
from leafgrad.ops.elementwise import add
from leafgrad.ops.flat import unpack
from leafgrad.ops.node import Leaf, SymbolBase, T, TensorBase, Version
from leafgrad.ops.shape import expand
from leafgrad.tensor.operators import ask, defers
from leafgrad.tensor.overrides import overriding
from leafgrad.tensor.view import ambiguous, refuses, write_view, written_through

_RAW: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "div": operator.itruediv,
}


@op("linear", "complex")
def overwrite(xp: Any, x: Any, y: Any) -> Any:
    """y, in the place of x: the gradient of x is zero, yet the result belongs to x's graph."""
    return y


overwrite.vjp(x=lambda g, x_shape: new_full(g, shape=tuple(x_shape), value=0), y=lambda g: g)
overwrite.shape(lambda x, y: y)
overwrite.batched(lambda call: expand(call.front(1, call.ndim(0)), shape=(call.size, *call.shape(0))))
overwrite.label = "CopyBackwards"  # PyTorch's name


def update(x: T, function: Any, *others: Any, **params: Any) -> T:
    """``x = function(x, *others, **params)``, in place; returns x. No method in place is among those of autocast."""
    name = getattr(function, "name", None) or function.__name__
    flags = modes.get()
    if flags & modes.AUTOCAST:
        with modes.autocast(0):
            return update(x, function, *others, **params)
    plain = name in _RAW and len(others) == 1 and (not params or params == getattr(function, "__kwdefaults__", None))
    if plain and flags <= GRAD and _plain(x, name, others[0], flags):
        (y,) = others
        x._data = _RAW[name](x._data, y._data if isinstance(y, TensorBase) else y)
        (x._writes or version(x)).bump()
        return x
    if flags & TRACE and (here := tracer()):
        act = functools.partial(_update_traced, x, name, function, others, params)
        return here.run(function, (x, *others, *params.values()), flags, act)
    check(x, name)
    if flags & ~TRACE <= GRAD and not (flags and (_requires(x) or any(map(_requires, (*others, *params.values()))))):
        return write(x, function(x, *others, **params))
    # A rule may read the old value, so it must not be the memory that is about to be written.
    old = dispatch.alias(dispatch.copied(x._data), x._node)
    return write(x, function(old, *others, **params))


def _update_traced(given: T, name: str, function: Any, others: Any, params: Any) -> T:
    """``update`` in a trace."""
    here: Any = tracer()
    check(given, name)
    x = here.inside(given)
    old = dispatch.alias(x._data, x._node)
    old._data = here.lift(x)
    write(x, function(old, *others, **params))
    return given


def in_place(function: Any, name: str) -> Callable[..., Any]:
    """The method ``name``, which writes the result of ``function`` into the tensor and returns that."""
    function = getattr(function, "function", function)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name[0] == "_" and args and not isinstance(args[0], (TensorBase, float, int)):
            if overriding(args):
                return ask(name, self, *args)
            if defers(args[0], ""):
                return NotImplemented  # Python binds the name to the operator's result
        return update(self, function, *args, **kwargs)

    if inspect.isfunction(function):
        functools.update_wrapper(method, function)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``{function.__name__}`` in place; returns the tensor."
    return method


def add_parts(tensors: Sequence[Any], flat: Any) -> None:
    """Add to tensors of one dtype and device, in place, what ``unpack`` would make of a vector. (n)"""
    data, arrays = flat._data, [x._data for x in tensors]
    kind, dtype = type(data), data.dtype
    if (
        modes.get()
        or not dispatch.BACKENDS[kind].one_device
        or any(type(a) is not kind or a.dtype is not dtype or (a.base is not None and overlaps(a)) for a in arrays)
        or any(x._writes is dispatch.INFERENCE_VERSION for x in tensors)
        or modes.DERIVATIVES.get()
    ):
        for x, part in zip(tensors, unpack(flat, shapes=tuple([tuple(a.shape) for a in arrays])), strict=True):
            update(x, add, part)
        return
    start = 0
    for x, array in zip(tensors, arrays, strict=True):
        end = start + array.size
        array += data[start:end].reshape(array.shape)
        (x._writes or version(x)).bump()
        start = end


def _requires(value: Any) -> bool:
    return isinstance(value, TensorBase) and (value._history if value._view is None else value._node) is not None


def _plain(x: Any, name: str, y: Any, flags: int) -> bool:
    """Whether Python's in-place operator on the arrays does just what is asked, and nothing is recorded."""
    a = x._data
    if isinstance(y, TensorBase):
        b = y._data
        if type(b) is not type(a) or b.dtype is not a.dtype or (flags and y._node is not None):
            return False
        if b.shape and b.shape != a.shape:
            return False
    elif type(y) is not float and type(y) is not int:
        return False
    if isinstance(a, SymbolBase) or (flags and x._node is not None) or modes.forward_alone():
        return False
    if a.dtype.kind != "f" and not (a.dtype.kind == "i" and type(y) is int and abs(y) < 128 and name != "div"):
        return False  # an integer that every integer dtype has
    if a.dtype.char == "e" and not isinstance(y, TensorBase) and not half.holds(y):
        return False
    if not _unshared(x):
        check(x, name, fill=name == "fill")
    return dispatch.BACKENDS[type(a)].one_device


def filled(x: Any, value: Any) -> bool:
    """Fill a tensor with a number that every floating dtype holds, if nothing is recorded. Whether that was done."""
    flags = modes.get()
    small = (type(value) is float or type(value) is int) and abs(value) <= half.LARGEST
    if not small or flags > GRAD or not _plain(x, "fill", value, flags) or overlaps(x._data):
        return False
    x._data[...] = value
    (x._writes or version(x)).bump()
    return True


def version(x: Any) -> Version:
    if x._writes is None:
        x._writes = Version()
    found: Version = x._writes
    return found


def check(x: Any, name: str, *, fill: bool = False) -> None:
    """A RuntimeError if ``x`` must not be written now.

    Args:
        fill: whether all elements become equal, so that they may lie in one place.
    """
    if _unshared(x) and (x._history is None or not (modes.get() and is_fixed(x._history))):
        return
    x = dispatch.inside(x)
    check_captured(x, name)
    own, views = is_fixed(x._node), views_of(x)
    for view in views:
        if refuses(view) and modes.get() & GRAD and (view.base._node is not None or x._node is not None):
            raise refused(ambiguous(view.origin))
    if modes.get() & GRAD and (own or any(is_fixed(v.base._node) and not v.detached for v in views)):
        which = "a leaf Variable" if own else "a view of a leaf Variable"
        error = RuntimeError(
            f"{which} that requires grad is being used in an in-place operation ({name}_). Write within "
            "leafgrad.no_grad(), or use the out-of-place operation"
        )
        raise error if own else refused(error)
    if x._writes is dispatch.INFERENCE_VERSION and not modes.get() & INFERENCE:
        raise RuntimeError(
            f"Inplace update to inference tensor outside InferenceMode is not allowed ({name}_); clone() it first"
        )
    data = x._data
    if not fill and isinstance(data, SymbolBase) and (here := tracer()):
        data = here.layout(x)
    if not fill and isinstance(data, SymbolBase):
        data = data.memory()
    if not fill and data is not None and data.base is not None and overlaps(data):
        raise RuntimeError(
            f"unsupported operation: more than one element of the written-to tensor refers to a single memory location "
            f"({name}_ of a tensor of size {list(x._data.shape)}, expanded or unfolded). Please clone() the tensor "
            "before performing the operation."
        )


def _unshared(x: Any) -> bool:
    """Whether a tensor is one in memory of its own, and nothing is going on but recording perhaps, as mostly."""
    return (
        modes.get() <= GRAD
        and x._view is None
        and x._writes is not dispatch.INFERENCE_VERSION
        and type(x._data) in dispatch.BACKENDS
        and x._data.base is None
        and not modes.DERIVATIVES.get()
    )


def refused(error: RuntimeError) -> RuntimeError:
    """``error``, of a write into a view: in a trace, whoever catches it has read whose view that is."""
    with suppress(TraceError):  # it says less
        dispatch.interrupt("an error of a write into a view")
    return error


def views_of(x: Any) -> list[Any]:
    """The View that ``x``, from inside, is; and in a trace that of its base, if that stands for a view by itself.

    A detached one has no part in that.
    """
    view = x._view
    apart = view is not None and view.detached
    here = tracer() if modes.get() & TRACE and not apart else None
    alone = here.alone(x if view is None else view.base) if here else None
    return [v for v in (view, alone) if v is not None]


def is_fixed(node: Any) -> bool:
    """Whether a node is that of a leaf which no recorded operation may write."""
    return isinstance(node, Leaf) and node.fixed


def check_captured(x: Any, name: str) -> None:
    """A RuntimeError if a derivative is being taken of a function that did not make ``x``, nor was given it."""
    for derivative in modes.DERIVATIVES.get():
        if derivative.captured(x):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                f"operation ({name}_) that would mutate a captured Tensor. This is not supported; please rewrite the "
                "function being transformed to explicitly accept the mutated Tensor(s) as inputs."
            )


def overlaps(data: Any) -> bool:
    """Whether elements may share memory, as those of expanded arrays and of overlapping windows do."""
    if data.flags.c_contiguous:
        return False
    reach = data.itemsize
    for step, n in sorted([(abs(s), n) for s, n in zip(data.strides, data.shape, strict=True) if n != 1]):
        if step < reach:
            return bool(data.size)
        reach += step * (n - 1)
    return False


def write(x: T, new: Any, *, held: bool = False) -> T:
    """Give ``x`` the value and the history of ``new``, which broadcasts to it; returns x.

    Args:
        held: whether others have ``new``, too, so that it is not the same as the value of ``x`` from now on.
    """
    given, flags = x, modes.get()
    here = tracer() if flags & TRACE else None
    if here:
        x, new = here.inside(x), here.inside(new)
    if new._data.dtype is not x._data.dtype and (theirs := dtypes.of(new._data)) is not (kind := dtypes.of(x._data)):
        if theirs.category > kind.category:
            raise RuntimeError(
                f"result type {theirs} can't be cast to the desired output type {kind}; use the out-of-place operation"
            )
        new = to_dtype(new, dtype=kind.name, source=theirs.name)
    if new._data.shape != x._data.shape:
        if len(new._data.shape) > len(x._data.shape):
            raise _does_not_fit(x, new)
        try:
            new = expand(new, shape=tuple(x._data.shape))
        except RuntimeError:
            raise _does_not_fit(x, new) from None
    if isinstance(new._data, SymbolBase):
        new._data.check_target(x._data)
    if flags & GRAD and new._node is not None:
        _check_connected(x)
    base = x if x._view is None and here is None else _owner(x, new, flags)
    before, source = base._node, new._node  # before the write counts, by which a view of x would be made anew
    if modes.DERIVATIVES.get() and modes.forward_alone():
        modes.DERIVATIVES.get()[0].writes.note(x, base, version(x))
    if here:
        symbol, old = here.lift(new), here.lift(base)
        _write_symbol(x, clone(symbol) if held else symbol)
    else:
        dispatch.overwrite(x._data, new._data)
    if x._writes is not dispatch.INFERENCE_VERSION:
        (x._writes or version(x)).bump()
    if flags & GRAD and (before is not None or source is not None):
        _write_history(x, base, before, new, source, flags, held)
    if here:
        here.written(x, old)
    return given


def rebase(x: Any, new: Any) -> None:
    """Give ``x``, whose memory has been written already, the history of ``new``."""
    x = dispatch.inside(x)
    if new._node is not None:
        _check_connected(x)
    base = _owner(x, new, modes.get())
    _write_history(x, base, base._node, new, new._node, modes.get())
    if x is not base:
        x._view.seen = -1  # made anew at the next look
        dispatch.hand_over(x, new._node, x._node)


def _owner(x: Any, new: Any, flags: int) -> Any:
    """The tensor whose history changes when ``new`` is written into ``x``."""
    base = x if x._view is None else x._view.base
    if here := tracer():
        here.join(base, bool(flags & GRAD) and new._node is not None)
        base = x if x._view is None else x._view.base
    return base


def _does_not_fit(x: Any, new: Any) -> RuntimeError:
    return RuntimeError(
        f"output with shape {list(x._data.shape)} doesn't match the broadcast shape {list(new._data.shape)}; "
        "use the out-of-place operation"
    )


def _check_connected(x: Any) -> None:
    """An error if the history of what is written into ``x`` would not reach the base of a view."""
    for view in views_of(x):
        if refuses(view):
            raise ambiguous(view.origin)
        if view.detached:
            raise (TraceError if tracer() else RuntimeError)(
                f"{messages.describe(x)}: this view has no history of its base's (by detach or requires_grad_) and is "
                f"being modified in place by something that requires grad, at {messages.user_line()}; write within "
                "leafgrad.no_grad(), make the view again, or clone() it"
            )


def _write_symbol(x: Any, symbol: Any) -> None:
    lift = dispatch.raw
    symbol = lift(x).overwritten(symbol)
    if x._view is not None:
        base = x._view.base
        _write_symbol(base, written_through(lift(base), symbol, x._view.steps))
        x._view.root = base._data
    x._data = symbol


def _write_history(x: Any, base: Any, before: Any, new: Any, node: Any, flags: int, held: bool = False) -> None:
    if getattr(x._data, "level", 0) != getattr(new._data, "level", 0):  # of one sample, written into each
        new = overwrite(dispatch.alias(x._data), new)
        node = new._node
    if x is base:
        if held or node is None or isinstance(node, Leaf):
            node = overwrite.node((x, new), {}, (x._data, new._data), x._data, (before, node), flags)
        x._node = node
        dispatch.hand_over(x, before, node)
    elif not x._view.detached:
        args = dispatch.alias(base._data), new
        raw = base._data, new._data
        base._node = write_view.node(args, {"steps": x._view.steps}, raw, base._data, (before, node), flags)
        x._view.own = base._node, x._writes.seq
        dispatch.hand_over(base, before, base._node)
        if x._leaf is not None:
            x._view.node(x)  # made anew now, where it may retain its gradient
