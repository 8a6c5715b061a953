"""``graph``: the drawing of what autograd recorded, or of a compiled program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from leafgrad.autograd import engine
from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.schedule.schedule import Loop, schedule
from leafgrad.ops.node import FREED, Leaf, Output, TensorBase
from leafgrad.pictures.drawing import Box, Drawing
from leafgrad.tensor.tensor import Tensor

LIMIT = 400


def graph(of: Any, names: Any = None, *, limit: int = LIMIT) -> Drawing:
    """The graph that gradients of tensors flow through, or the program of a compiled function, as a drawing.

    In notebooks it shows as a picture, with the shape of each result, and in colours: leaves, results that keep their
    gradient, views, and what a backward pass has freed. ``print`` gives a tree of text, ``save("a.svg")`` a file.

    Args:
        of: a tensor that requires grad, or several, in a tuple, list or dict; or what ``leafgrad.trace`` gives; or a
            compiled function that was called.
        names: a module, whose parameters are named as in its ``state_dict``, or a dict of names and tensors.
        limit: so many operations are drawn, those nearest to the results; a box says how many are not.

    Raises:
        TypeError: ``of`` is something else. RuntimeError: a tensor does not require grad, or there is no program yet.
    """
    program = of if isinstance(of, Graph) else getattr(of, "graph", None)
    if isinstance(program, Graph):
        return of_program(program, limit)
    roots = of if isinstance(of, Mapping) else dict(enumerate([of] if isinstance(of, Tensor) else _several(of)))
    called = names_by_node(names)
    for key, t in roots.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"graph: of: expected tensors or a compiled function, got {type(t).__name__}")
        if t._node is None:
            raise RuntimeError(
                f"graph: of: tensor {key!r} does not require grad and has no graph; leafgrad.explain(t) says why"
            )
        if isinstance(key, str):
            called.setdefault(id(t._node), key)
    return of_tensors(list(roots.values()), called, limit)


def _several(of: Any) -> list[Any]:
    if isinstance(of, Iterable):
        return list(of)
    raise TypeError(f"graph: of: expected tensors or a compiled function, got {type(of).__name__}")


def names_by_node(names: Any) -> dict[int, str]:
    """The id of the node of each tensor that has a name -> the name."""
    if names is None:
        return {}
    pairs = names.items() if isinstance(names, Mapping) else None
    if pairs is None and callable(getattr(names, "named_parameters", None)):
        pairs = names.named_parameters()
    if pairs is None:
        raise TypeError(f"graph: names: expected a module or a dict of tensors, got {type(names).__name__}")
    found = {}
    for name, t in pairs:
        if not isinstance(t, Tensor):
            raise TypeError(f"graph: names: {name!r}: expected a Tensor, got {type(t).__name__}")
        if t._node is not None:
            found[id(t._node)] = str(name)
    return found


# ---- what autograd recorded -----------------------------------------------------------------------------------------


def of_tensors(tensors: list[Tensor], called: dict[int, str], limit: int) -> Drawing:
    """Nodes and their edges, from leaves down to ``tensors``."""
    roots = list(dict.fromkeys(t._node for t in tensors))
    order = [node for node in engine.reachable(roots) if not isinstance(node, Output)]
    kept = order[:limit]
    number = {node: i for i, node in enumerate(kept)}
    ends = {getattr(root, "source", root) for root in roots}
    retained = {getattr(node, "source", node): node for node in engine.reachable(roots) if retains(node)}
    outputs = {getattr(root, "source", root): called[id(root)] for root in roots if id(root) in called}
    boxes = [box_of(node, {**called, id(node): name} if (name := outputs.get(node)) else called,
                    node in ends, node in retained) for node in kept]  # fmt: skip
    edges: dict[tuple[int, int], None] = {}
    left = 0
    for node in kept:
        for edge in node.edges:
            source = getattr(edge, "source", edge)
            if source in number:
                edges[number[source], number[node]] = None
            elif edge is not None:
                left += 1
    if left:
        boxes.append(Box([f"{len(order) - len(kept):,} more"], "more"))
        cut = {number[n] for n in kept for e in n.edges if e is not None and getattr(e, "source", e) not in number}
        edges |= dict.fromkeys((len(boxes) - 1, n) for n in sorted(cut))
    return Drawing(boxes, list(edges), [number[getattr(r, "source", r)] for r in roots])


def retains(node: Any) -> bool:
    """Whether a tensor keeps the gradient that comes to a node."""
    return node.hooks is not None and any(ref() is not None for ref in node.hooks.retained)


def box_of(node: Any, called: dict[int, str], last: bool, kept: bool) -> Box:
    """How a node looks: its name, the shape of its result, and why it is special."""
    name = called.get(id(node))
    if isinstance(node, Leaf):
        gradient = "with .grad" if node.grad is not None else "without .grad"
        return Box([*([name] if name else []), f"leaf {shape(node.shape)}"], "leaf", f"{node.dtype}, {gradient}")
    saved = getattr(node, "saved", ())
    freed = saved is FREED
    view = "view" in getattr(getattr(node, "op", None), "traits", ())
    kind = "output" if last else "retained" if kept else "view" if view else "op"
    several = isinstance(node.shape, tuple) and node.shape and not isinstance(node.shape[0], int)
    shapes = ", ".join(map(shape, node.shape)) if several else shape(node.shape)
    count = sum(isinstance(s, TensorBase) for s in saved) if isinstance(saved, tuple) else 0
    tip = ["freed by a backward pass"] * freed + [f"keeps {count} tensors for the backward pass"] * bool(count)
    tip += ["a view"] * view + ["its result keeps its gradient"] * kept
    tip += [where] if (where := getattr(node, "where", "")) else []
    return Box([*([name] if name else []), f"{node.name()} {shapes}"], kind, "; ".join(tip), freed)


def shape(of: Any) -> str:
    """``(3, 4)``; nothing where it is not known."""
    return "" if of is None else str(tuple(of))


# ---- compiled programs ----------------------------------------------------------------------------------------------


def of_program(program: Graph, limit: int) -> Drawing:
    """Equations with what they read, coloured by the phase in which they run: whole, or for each chunk of a batch."""
    names = program.named()
    loops = {e: stage for stage in schedule(program).stages if isinstance(stage, Loop) for e in stage.equations}
    kept = program.equations[-limit:]
    read = list(dict.fromkeys(v for e in kept for v in e.values if v in program.inputs))
    boxes: list[Box] = []
    number: dict[Value, int] = {}
    for v in read:
        kind = "parameter" if type(program.inputs[v]).__name__ != "Argument" else "input"
        number[v] = len(boxes)
        boxes.append(Box([names[v], described(v)], kind, type(program.inputs[v]).__name__.lower()))
    results = ends_of(program)
    edges: dict[tuple[int, int], None] = {}
    missing: set[int] = set()
    for e in kept:
        i = len(boxes)
        ends = [end for v in e.outputs for end in results(v)]
        kind = "output" if ends else "loop" if e in loops else "op"
        boxes.append(Box([*ends, f"{e.name} {described(e.out)}"], kind, tip_of(e, loops.get(e))))
        for v in e.values:
            if v in number:
                edges[number[v], i] = None
            else:
                missing.add(i)
        number |= dict.fromkeys(e.outputs, i)
    if missing:
        boxes.append(Box([f"{len(program) - len(kept):,} more"], "more"))
        edges |= dict.fromkeys((len(boxes) - 1, i) for i in sorted(missing))
    used = {a for a, _ in edges}
    ends_at = [i for i in range(len(boxes)) if i not in used]
    chunked = sum(e in loops for e in program.equations)
    title = f"{len(program)} equations" + (f", {chunked} of them for each chunk of a batch" if chunked else "")
    return Drawing(boxes, list(edges), ends_at, title)


def ends_of(program: Graph) -> Callable[[Value], list[str]]:
    """What becomes of a value when the program is done, in words."""
    names = program.named()
    sources = {source: names[v] for v, source in program.inputs.items()}
    found: dict[Value, list[str]] = {}
    for i, v in enumerate(program.results):
        found.setdefault(v, []).append(f"result {i}" if len(program.results) > 1 else "result")
    for effect in program.effects:
        if effect.value is not None:
            name = sources.get(effect.source, "a tensor")
            what = {"SetGrad": ".grad", "SetData": ".data"}.get(type(effect).__name__, " written")
            found.setdefault(effect.value, []).append(name + what)
    return lambda v: found.get(v, [])


def tip_of(e: Equation, loop: Loop | None) -> str:
    """Its line, and how it runs."""
    return f"{e.line}" + (f"; for each chunk of {loop.length} rows" if loop is not None else "")


def described(v: Value) -> str:
    """``float32 (3, 4)``."""
    return f"{v.dtype} {v.shape}"
