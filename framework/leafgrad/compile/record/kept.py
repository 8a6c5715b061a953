"""What a recorded call leaves behind that no program can: tensors that somebody keeps, hooks, attributes, leaves."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from leafgrad.autograd import engine
from leafgrad.autograd.context import FunctionNode
from leafgrad.batching.pytree import DICTS, containers, flatten, parts_of
from leafgrad.compile.record.recorder import Recorder
from leafgrad.compile.record.symbol import Symbol
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.variables import referrers
from leafgrad.ops.node import FREED, GraphNode, Leaf, Node
from leafgrad.ops.packing import is_packed
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import View


def check_made(recorder: Recorder, tensors: Sequence[Tensor]) -> None:
    """Unclosed if new tensors, results and their bases, are more than values: a program makes no more of them."""
    for t in tensors:
        if type(t) is not Tensor:
            raise Unclosed(f"it makes a {type(t).__name__}{line_of(recorder, t)}, where a program would make a Tensor")
        if attributes := list(vars(t)):
            raise Unclosed(f"it gives the tensor made{line_of(recorder, t)} the attribute {attributes[0]}")
        if t._leaf is not None:
            raise Unclosed(f"it makes the tensor{line_of(recorder, t)} a leaf, or gives it a .grad")
    nodes = [t._node for t in tensors if isinstance(t._node, GraphNode)]
    for node in engine.reachable(nodes, recorder.born):
        if node.seq >= recorder.born and node.hooked:
            raise Unclosed("a tensor that it returns, or was computed with, has a hook or retains its gradient")
        if node.seq >= recorder.born and is_packed(node):
            raise Unclosed("a checkpoint, or saved_tensors_hooks, has packed what its gradients need")
    for node in nodes:
        function = first_function(node, recorder.born)
        if function is not None:
            raise Unclosed(f"the backward of {function.name()} would have to run when a result is differentiated")


def first_function(node: GraphNode, since: int) -> FunctionNode | None:
    """A user's Function that a backward pass from ``node`` can come to without failing before, at what is freed."""
    waiting, seen = [node], set[GraphNode]()
    while waiting:
        one = waiting.pop()
        if one in seen or one.seq < since or getattr(one, "saved", None) is FREED:
            continue
        if isinstance(one, FunctionNode) and not one.op.pure:
            return one
        seen.add(one)
        waiting += [edge for edge in one.edges if edge is not None]
    return None


def check_kept(recorder: Recorder, result: Any) -> None:
    """Unclosed if something outside keeps a tensor of the call, or a dict among the results has one as a key."""
    for key in (key for part in containers(result) if type(part) in DICTS for key in part):
        for t in flatten([*key] if isinstance(key, frozenset) else key)[0]:
            if isinstance(t, Tensor) and isinstance(t._data, Symbol):
                raise Unclosed(f"a tensor made{line_of(recorder, t)} is a key of a dict that it returns or leaves")
    mine = {id(t) for t in flatten(result)[0] if isinstance(t, Tensor)}
    mine |= {id(o.inner) for o in recorder.outside.values()}
    mine |= {id(after) for _, _, after in recorder.grads.values()}
    mine |= {id(t) for t in recorder.numbers.items} if recorder.numbers is not None else set()
    allowed = held_by_graph(recorder, result) | mine
    if last_kept(recorder, allowed) is None:
        return
    gc.collect()  # no variable may hold a tensor here: it may be part of a cycle
    kept = last_kept(recorder, allowed)
    if kept is not None:
        raise Unclosed(
            f"a tensor made{line_of(recorder, kept)} was kept outside of the function; a program would put nothing "
            "there. State that is made at a first call, such as an optimizer's, has to exist before"
        )


def check_outside(recorder: Recorder, tensors: Mapping[int, str]) -> None:
    """Unclosed if a tensor of the call is among those that are found outside, by id with how they are reached."""
    for t in recorder.alive():
        if id(t) in tensors:
            raise Unclosed(f"it keeps the tensor made{line_of(recorder, t)}, as {tensors[id(t)]}")


def check_holders(recorder: Recorder, results: list[Any]) -> None:
    """Unclosed if something outside keeps a tensor that the call made and returns, or a base of one.

    Where nobody knows what was before, what holds one must be the result itself, a function that runs, or a part of the
    graph.

    Args:
        results: its only item is the result, which no variable holds.
    """
    tensors: list[Tensor] = []
    holders: list[Any] = []
    known, waiting = {id(tensors), *map(id, recorder.grads.values())}, [results]
    while waiting:
        part: Any = waiting.pop()
        if id(part) in known:
            continue
        known.add(id(part))
        if isinstance(part, (list, tuple)) or type(part) in DICTS:
            holders.append(part)
            waiting += parts_of(part)
        elif isinstance(part, Tensor) and isinstance(part._data, Symbol):
            tensors.append(part)
            waiting += [] if part._view is None else [part._view.base]
    nodes = [t._node for t in tensors if isinstance(t._node, GraphNode)]
    for node in engine.reachable(nodes, recorder.born):
        saved = getattr(node, "saved", None)
        holders += [saved] if isinstance(saved, tuple) else []
        known |= {id(saved), *map(id, saved if isinstance(saved, tuple) else ())}
    part = None
    if not held_elsewhere(tensors, holders):
        return
    frame: Any = sys._getframe()
    while frame is not None:
        known.add(id(frame))
        frame = frame.f_back
    for holder in referrers(tensors):
        if id(holder) not in known and not isinstance(holder, (Tensor, GraphNode, Leaf, View)):
            raise Unclosed(f"a {type(holder).__name__} keeps a tensor that it makes and returns")


def held_elsewhere(held: list[Any], holders: list[Any]) -> bool:
    """Whether anything but ``held``, which has each once, and ``holders`` holds one of these objects.

    References are counted, since to ask who holds an object is to look through all objects.
    """
    once = {id(holder): i for i, holder in enumerate(holders)}.values()
    known = Counter(map(id, holders))
    for i in once:
        known.update(map(id, parts_of(holders[i])))
    probe = [object()]
    alone = sys.getrefcount(probe[0])
    return any(sys.getrefcount(held[i]) > alone + known[id(held[i])] for i in range(len(held)))


def last_kept(recorder: Recorder, allowed: set[int]) -> Any:
    """The tensor made last among those of the call that are still there and not in ``allowed``, or None."""
    return next((t for t in reversed(recorder.alive()) if id(t) not in allowed), None)


def line_of(recorder: Recorder, t: Any) -> str:
    """Where a tensor was made."""
    value = t._data.value if isinstance(t._data, Symbol) else None
    return next((f" at {e.line}" for e in recorder.equations if value in e.outputs), "")


def held_by_graph(recorder: Recorder, result: Any) -> set[int]:
    """The tensors that the graphs of results and gradients keep, and the bases of views."""
    start = [t for t in flatten(result)[0] if isinstance(t, Tensor)]
    start += [after for _, _, after in recorder.grads.values() if after is not None]
    start += [o.inner for o in recorder.outside.values()]
    held: dict[int, Any] = {}
    waiting: list[Any] = list(start)
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in held:
            continue
        if isinstance(part, Tensor):
            held[id(part)] = part
            waiting += [part._history, None if part._view is None else part._view.base]
        elif part.seq >= recorder.born:
            held[id(part)] = part
            waiting += part.edges
            if isinstance(part, Node) and isinstance(part.saved, tuple):
                kept = [getattr(s, "tensor", s) for s in part.saved]
                ctx = getattr(part, "ctx", None) if type(part) is not Node else None
                kept += [] if ctx is None else flatten(vars(ctx))[0]
                waiting += [k for k in kept if isinstance(k, Tensor)]
    return {*held}
