"""Forwards of others: they write into nothing that they are given, and give memory of their own, of the right shape.

A forward that changes its arguments changes tensors of the program, so numbers go wrong without an error. Its first
call on a class of arrays runs on read-only views of them, or on copies where a library has no such views. Later calls
run the forward itself. A result that shows the memory of an argument, which may depend on sizes and parameters, is
copied at every call, as writes through it would change the argument unseen; ops of this package are tested instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import backends
from leafgrad.ops import dispatch, messages
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.shared import Sole, is_shared

Forward = Callable[..., Any]
OF_COPIES = 10  # calls of a forward that takes no read-only arrays


def apart(op: Any, forward: Forward) -> Forward:
    """``forward``, whose results show no memory that an argument or anybody else has, unless the op is a view."""
    if "view" in op.traits:
        return forward
    forward = elementwise(op, forward) if "elementwise" in op.traits else forward

    def owning(xp: Any, *args: Any, **params: Any) -> Any:
        result, sole = forward(xp, *args, **params), Sole()
        if isinstance(result, (tuple, list)):
            kept = is_shared(result, sole)
            return tuple([own(*pair, kept) for pair in zip(result, [Sole() for _ in result], strict=True)])
        return own(result, sole)

    return owning


def elementwise(op: Any, forward: Forward) -> Forward:
    """``forward`` of an elementwise op: compiled steps and batches rely on the shape of its results."""

    def fitting(xp: Any, *args: Any, **params: Any) -> Any:
        result = forward(xp, *args, **params)
        shapes = {a.shape for a in args if hasattr(a, "shape")}
        expected = shapes.pop() if len(shapes) == 1 else broadcast_shape(shapes)
        if getattr(result, "shape", expected) != expected:
            wrong = messages.definition(
                op.name,
                f"it is elementwise: expected its forward to return shape {expected} in "
                f"{messages.call(op, args, params)}, got {result.shape}; compute each element by itself, or leave out "
                "the trait and say op.shape(rule)",
            )
            raise messages.RefusedError(wrong)
        return result

    return fitting


def own(result: Any, sole: Sole, kept: bool = False) -> Any:
    """A raw result, or a copy of one that others have, too, whose elements share places, or have foreign bytes."""
    if not hasattr(result, "strides"):
        return result
    if not result.dtype.isnative:
        return result.astype(result.dtype.newbyteorder("="))
    apart = not (kept or 0 in result.strides) and not is_shared(result, sole)
    return result if apart else dispatch.copied(result, "C" if 0 in result.strides else "K")


def watched(op: Any, forward: Forward, done: Callable[[], None]) -> Forward:
    """``forward``, whose first call is watched. ``done`` is called when it went well.

    Where it fails on read-only views it may only ask for memory that it could write, as some compiled code does: then
    it runs on copies, now and a few times more, and is refused if these are no longer what they were.
    """
    left, copied = 1, False  # calls that are watched

    def first(xp: Any, *args: Any, **params: Any) -> Any:
        nonlocal left, copied
        if not left:
            return forward(xp, *args, **params)
        views = tuple([sealed(a) for a in args])
        try:
            if any(hasattr(a, "flags") and not hasattr(a.flags, "writeable") for a in args):
                result = on_copies(op, forward, xp, args, params)  # of a library that has no read-only arrays
            else:
                result = forward(xp, *views, **params)
        except (ValueError, BufferError) as error:
            if "read-only" not in str(error) and "read only" not in str(error):
                raise
            result = on_copies(op, forward, xp, args, params)
            left = OF_COPIES if left == 1 and not copied else left
            copied = True
        else:
            result = opened(result, views, args)
        left -= 1
        if not left:
            done()
        return result

    return first


def sealed(a: Any) -> Any:
    """A read-only view of an array, where its library has such; anything else as it is."""
    if not getattr(getattr(a, "flags", None), "writeable", False) or not hasattr(a, "view"):
        return a
    view = a[...]
    view.flags.writeable = False
    return view


def opened(result: Any, views: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    """A result as it would be without views: an argument itself, and what shows the memory of one can be written."""
    if isinstance(result, (tuple, list)):
        parts = [opened(r, views, args) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    for view, a in zip(views, args, strict=True):
        if result is view:
            return a
    flags = getattr(result, "flags", None)
    if (
        getattr(flags, "writeable", True) is False
        and result.base is not None
        and any(v is not a for v, a in zip(views, args, strict=True))
    ):
        try:
            result.flags.writeable = True
        except ValueError:  # it shows memory that nobody may write
            return result
    return result


def elements(a: Any) -> bytes:
    """The bits of an array, on whatever device."""
    found: bytes = backends.backend_of(a).to_host(a).tobytes()
    return found


def on_copies(op: Any, forward: Forward, xp: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Run a forward on copies of its arguments; an error that names the first one that it changes."""
    copies = tuple([a.copy() if hasattr(a, "flags") else a for a in args])
    result = forward(xp, *copies, **params)
    for i, (copy, a) in enumerate(zip(copies, args, strict=True)):
        if copy is not a and elements(copy) != elements(a):
            code = op.forward.__code__
            name = op.signature.arguments[op.signature.slot(i)] + messages.position(op, i)
            wrong = messages.definition(
                op.name,
                f"its forward, from {code.co_filename}:{code.co_firstlineno}, writes into its argument {name!r}, in "
                f"{messages.call(op, args, params)}; compute into new arrays, or into a copy",
            )
            raise messages.RefusedError(wrong)
    return forward(xp, *args, **params) if "view" in op.traits else result  # of the memory itself, not of copies
