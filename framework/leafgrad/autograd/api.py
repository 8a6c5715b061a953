"""``backward`` and ``grad``: arguments checked, gradients seeded, results delivered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Final

from leafgrad import backends, dtypes, modes
from leafgrad.autograd import engine, node_hooks
from leafgrad.autograd.edge import GradientEdge
from leafgrad.ops import dispatch, messages
from leafgrad.ops.convert import clone, new_full
from leafgrad.ops.elementwise import add
from leafgrad.ops.node import Epoch, GraphNode, Leaf, SymbolBase
from leafgrad.tensor.inplace import update
from leafgrad.tensor.methods import attach
from leafgrad.tensor.tensor import Tensor

new = object.__new__

Tensors = Tensor | GradientEdge | Iterable[Tensor | GradientEdge]

CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. Use autograd.grad, which returns the gradients instead; or set the .grad fields "
    "of the parameters to None after use."
)

ONLY_INPUTS = "grad: only_inputs is deprecated and ignored: gradients go to the inputs only; backward() fills others"


# The level of forward mode that runs, a ``forward_ad.DualLevel``.
DUALS: Final[ContextVar[Any]] = ContextVar("leafgrad_duals", default=None)


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradient of ``tensors`` in the ``.grad`` of the leaves they were computed from.

    Args:
        tensors: one tensor or several, of any shape; each requires grad.
        grad_tensors: the gradient with respect to each, of its shape; None where it has one element.
        retain_graph: keep what the graph saved; ``create_graph`` by default.
        create_graph: record the pass, so that the gradients can be differentiated.
        inputs: accumulate into these tensors only.

    Raises:
        RuntimeError: a tensor does not require grad, a gradient is missing or of another shape, the graph was freed;
            or the call is inside of a function that ``func`` or ``vmap`` transforms.
    """
    modes.refuse_transformed("backward()")
    seeds = seed(as_tuple(tensors, "tensors"), grad_tensors, "grad_tensors", create_graph)
    fill(seeds, retain_graph, create_graph, inputs)


def fill(
    seeds: list[tuple[GraphNode, Any]], retain_graph: bool | None, create_graph: bool, inputs: Tensors | None
) -> None:
    """Accumulate what ``seeds`` lead to. The arguments are those of ``backward``."""
    targets = None
    if inputs is not None:
        chosen = as_tuple(inputs, "inputs")
        if not chosen:
            raise RuntimeError("'inputs' argument to backward() cannot be empty; leave it out to reach all leaves")
        targets = {node_of(t, "inputs", i) for i, t in enumerate(chosen)}
        for t in chosen:
            if isinstance(t, GradientEdge):
                raise RuntimeError("'inputs' argument to backward(): a GradientEdge has no .grad; use autograd.grad")
            t.retain_grad()  # a leaf does so anyway
    if create_graph:
        messages.warn(CYCLE)
    found: dict[GraphNode, Any] = {}
    run(seeds, targets, retain_graph, create_graph, found.__setitem__)
    deliver(found, {id(g) for _, g in seeds}, create_graph)


def deliver(found: dict[GraphNode, Any], taken: set[int], recorded: bool) -> None:
    """Put complete gradients of leaves into ``.grad``, each in memory of its own."""
    settled: dict[Any, Any] = {}
    traced = bool(modes.get() & modes.TRACE and modes.tracer())
    try:
        for leaf, g in found.items():
            if not isinstance(leaf, Leaf):
                continue
            owner, hooks = leaf.owner(), leaf.hooks
            plain = owner is not None and hooks is None and leaf.grad is None and not (traced or recorded)
            if plain and owner is not None and type(g) is type(owner._data):  # as mostly
                if type(leaf) is not Leaf or (owner._history if owner._view is None else owner._node) is leaf:
                    own = g if id(g) not in taken and g.base is None else dispatch.copied(g)
                    out = new(Tensor)
                    out._data = own = dispatch.as_leaf(own, owner._data)
                    taken.add(id(own))
                    out._history = out._leaf = out._writes = out._view = None
                    out._epoch = Epoch.now
                    leaf.grad, leaf.passes = out, 1  # at last: a signal may come before
                continue
            here = dispatch.inside(owner) if traced and owner is not None else owner
            if type(leaf) is Leaf and here is not None and here._node is not leaf:
                continue  # it was frozen meanwhile
            if hooks is not None and hooks.before:
                g = node_hooks.run_before(hooks, g, recorded)
                if g is None:
                    continue
            accumulate(leaf, g, taken, recorded)
            if hooks is not None:
                with modes.set_grad_enabled(recorded):
                    for function in list(hooks.accumulated.values()):
                        check_nothing(function(owner))
                    for function in list(hooks.after.values()):
                        function((), node_hooks.shown((g,), recorded))
                settled |= dict.fromkeys(hooks.settled.values())
    except MemoryError as error:
        raise messages.no_memory(leaf, g, error) from error
    if settled:
        with modes.set_grad_enabled(recorded):
            for function in settled:
                function()


def check_nothing(returned: Any) -> None:
    if returned is not None:
        raise RuntimeError(
            "register_post_accumulate_grad_hook: hook: expected it to return None, since the gradient is in place "
            f"already, got {type(returned).__name__}"
        )


def accumulate(leaf: Leaf, g: Any, taken: set[int], recorded: bool) -> None:
    """Put a gradient into ``.grad``, or add it to what is there."""
    before = dispatch.grad_of(leaf)
    passes = 1 if before is None else leaf.passes + (leaf.passes > 0)  # 0: added to what came otherwise
    put(leaf, before, g, taken, recorded)
    leaf.passes = passes


def put(leaf: Leaf, before: Any, g: Any, taken: set[int], recorded: bool) -> None:
    """Make a gradient and what was there before the ``.grad`` of a leaf."""
    if recorded:
        dispatch.set_grad(leaf, clone(g) if before is None else before + g)
        return
    if before is not None:
        token = modes.FLAGS.set(modes.get() & ~modes.GRAD)
        try:
            update(before, add, dispatch.alias(dispatch.array(g)))
        finally:
            modes.FLAGS.reset(token)
        return
    dispatch.set_grad(leaf, owned(g, leaf.owner(), taken, leaf.hooks is not None))


def owned(g: Any, owner: Any, taken: set[int], shared: bool = False) -> Tensor:
    """A gradient in memory of its own, which lies as that of the tensor, or edge, which it is of."""
    shared = shared or id(g) in taken
    if isinstance(g, SymbolBase):
        if shared:
            with modes.no_grad():
                g = clone(dispatch.alias(g))._data
    else:
        g = dispatch.array(g)
        if shared or g.base is not None:
            g = dispatch.copied(g)
    if isinstance(owner, Tensor):
        g = laid_out(g, owner)
    taken.add(id(g))
    return dispatch.alias(g)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``, summed over outputs. Touches no ``.grad``.

    Args:
        outputs: one tensor or several.
        inputs: one tensor or several; each requires grad.
        grad_outputs: gradient with respect to each output; None where it has one element.
        retain_graph: keep what the graph saved; ``create_graph`` by default.
        create_graph: record the pass, so that the gradients can be differentiated again.
        only_inputs: always so; False warns.
        allow_unused: give None for inputs that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dimension of each of ``grad_outputs`` counts gradients, for each of which the result
            has one, along its own first dimension; computed at once, by ``vmap``.
        materialize_grads: give zeros for them.

    Returns:
        A tuple with one gradient per input, of its shape.

    Raises:
        RuntimeError: as for ``backward``, or an input was not used.
    """
    if not only_inputs:
        messages.warn(ONLY_INPUTS, FutureWarning)
    if is_grads_batched:
        options = retain_graph, create_graph, only_inputs, allow_unused, False, materialize_grads
        return batched(outputs, inputs, grad_outputs, options)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    results, sources = as_tuple(outputs, "outputs"), as_tuple(inputs, "inputs")
    duals = None if create_graph else DUALS.get()
    if duals is not None and duals.move((*results, *(as_tuple(grad_outputs, "") if grad_outputs is not None else ()))):
        options = bool(retain_graph), True, True, allow_unused, False, materialize_grads
        return duals.plain(grad(outputs, inputs, grad_outputs, *options))
    seeds = seed(results, grad_outputs, "grad_outputs", create_graph)
    if not sources:
        raise RuntimeError("'inputs' argument to grad() cannot be empty; pass the tensors to differentiate by")
    targets = {node_of(t, "inputs", i) for i, t in enumerate(sources)}
    found: dict[GraphNode, Any] = {}
    run(seeds, targets, retain_graph, create_graph, found.__setitem__)
    gradients: list[Any] = []
    taken = {id(g) for _, g in seeds}
    for i, t in enumerate(sources):
        g = found.get(node_of(t, "inputs", i))
        if g is None and not materialize_grads:
            if not allow_unused:
                shape = list(node_of(t, "inputs", i).shape)
                raise RuntimeError(
                    f"One of the differentiated Tensors (inputs[{i}], {shape}) appears to not have been used "
                    "in the graph. Set allow_unused=True if this is the desired behavior."
                )
            gradients.append(None)
        elif g is None:
            if isinstance(t, GradientEdge):
                raise RuntimeError(f"inputs[{i}]: zeros for a GradientEdge are of no known dtype; pass the tensor")
            data = dispatch.raw(t)
            zeros: Tensor = dispatch.alias(new_full(data, shape=tuple(data.shape), value=0))
            gradients.append(zeros._set_grad(create_graph))
        else:
            gradients.append(g if create_graph else owned(g, t, taken))
    return tuple(gradients)


def batched(outputs: Tensors, inputs: Tensors, grad_outputs: Any, options: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gradients for each row of ``grad_outputs``; None where there is none."""
    from leafgrad.batching.vmap import vmap

    rows = as_tuple(grad_outputs, "grad_outputs")
    for i, (out, g) in enumerate(zip(as_tuple(outputs, "outputs"), rows, strict=False)):
        if g.shape[1:] != out.shape or not g.ndim:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {tuple(g.shape)} and "
                f"output[{i}] has a shape of {tuple(out.shape)}."
            )
    missing: list[bool] = []

    def one(*row: Tensor) -> Any:
        found = grad(outputs, inputs, row, *options)
        missing.extend([g is None for g in found])
        return tuple([g for g in found if g is not None])

    each = iter(vmap(one)(*rows))
    return tuple([None if gone else next(each) for gone in missing])


def run(
    seeds: list[tuple[GraphNode, Any]],
    targets: set[GraphNode] | None,
    retain_graph: bool | None,
    create_graph: bool,
    arrived: Any,
) -> None:
    retain = create_graph if retain_graph is None else retain_graph
    before = modes.get()
    try:  # a signal may come at any call
        modes.FLAGS.set(before | modes.GRAD if create_graph else before & ~modes.GRAD)
        scope = device_scope(seeds[0][1] if seeds else None)
        if scope is None:
            engine.run(seeds, targets, retain, create_graph, arrived)
        else:
            with scope:
                engine.run(seeds, targets, retain, create_graph, arrived)
    finally:
        modes.FLAGS.set(before)


def device_scope(gradient: Any) -> AbstractContextManager[Any] | None:
    """Rules on raw arrays compute on the current device, so it must be the gradient's; None if it is."""
    backend = backends.BACKENDS.get(type(gradient))
    if backend is None or backend.one_device:
        return None
    index = backend.device_index(gradient)
    return backend.device_scope(index) if index else None


def as_tuple(tensors: Any, name: str) -> tuple[Any, ...]:
    if isinstance(tensors, (Tensor, GradientEdge)):
        return (tensors,)
    several = isinstance(tensors, Iterable) and not isinstance(tensors, (str, Mapping))
    found = tuple(tensors) if several else ()  # parameters() is an iterator
    if not several or not all(isinstance(t, (Tensor, GradientEdge)) for t in found):
        kind = type(tensors).__name__
        if found:
            kind += " of " + ", ".join(sorted({type(t).__name__ for t in found}))
        raise TypeError(f"{name}: expected a Tensor or a sequence of Tensors, got {kind}")
    return found


def node_of(t: Tensor | GradientEdge, name: str, i: int) -> GraphNode:
    if isinstance(t, GradientEdge):
        return t.recorded()
    node: GraphNode | None = dispatch.inside(t)._node
    if node is None:
        raise RuntimeError(
            f"{name}: element {i} of tensors does not require grad: One of the differentiated Tensors does not require "
            "grad; call requires_grad_() on it before computing with it"
        )
    return node


def laid_out(g: Any, t: Any) -> Any:
    """A raw gradient that lies in memory as the tensor that it is of."""
    tracer = modes.tracer()
    if tracer is None:
        return dispatch.as_leaf(g, t._data)
    like, own = tracer.layout(t), tracer.layout(dispatch.alias(g))
    if not isinstance(like, SymbolBase) and not isinstance(own, SymbolBase) and like.strides != own.strides:
        tracer.lay_out(g := clone(g), None if like.flags.c_contiguous else dispatch.order_of(like))
    return g


def seed(outputs: tuple[Any, ...], gradients: Any, name: str, recorded: bool) -> list[tuple[GraphNode, Any]]:
    """The nodes of ``outputs`` with the gradients to start from."""
    if gradients is None or isinstance(gradients, Tensor):
        gradients = (gradients,) * (1 if isinstance(gradients, Tensor) else len(outputs))
    if not isinstance(gradients, (tuple, Sequence)):
        raise TypeError(f"{name}: expected a Tensor, a sequence of Tensors or None, got {type(gradients).__name__}")
    if len(gradients) != len(outputs):
        raise RuntimeError(f"{name}: got {len(outputs)} tensors and {len(gradients)} gradients; expected one for each")
    seeds: list[tuple[GraphNode, Any]] = []
    traced = bool(modes.get() & modes.TRACE and modes.tracer())
    for i, (out, g) in enumerate(zip(outputs, gradients, strict=True)):
        if isinstance(out, GradientEdge):
            if g is None:
                raise RuntimeError(f"{name}[{i}]: a GradientEdge has no value to start from; pass its gradient")
            seeds.append((out.recorded(), g if recorded else dispatch.raw(g)))
            continue
        x = dispatch.inside(out) if traced else out
        node = x._history if x._view is None else history_of_view(x)
        if node is None:
            remedy = (
                "leafgrad.explain(tensor) tells why: nothing required grad, no_grad(), detach() or an integer dtype"
            )
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn; {remedy}")
        if g is None:
            if out._data.size != 1:
                raise RuntimeError(
                    f"grad can be implicitly created only for scalar outputs, got size {list(out.shape)}; pass "
                    f"{name.replace('grad_tensors', 'gradient')}, a tensor of that size, or reduce with sum() or mean()"
                )
            if dtypes.of(out._data).is_complex:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {out.dtype}; pass "
                    f"{name.replace('grad_tensors', 'gradient')}, or make a real one, e.g. by abs() or .real"
                )
            data = dispatch.raw(out) if traced else out._data
            ones = new_full(data, shape=data.shape, value=1)
            seeds.append((node, dispatch.alias(ones) if recorded else ones))
        else:
            if traced or not isinstance(g, Tensor) or not fits(g._data, out._data):
                g = _checked_seed(out, g, name, i)
            seeds.append((node, g if recorded else dispatch.raw(g) if traced else g._data))
    return seeds


def history_of_view(x: Any) -> GraphNode | None:
    """The node of a view, or the error of one that has lost it, though nothing is recorded."""
    with modes.enable_grad():
        found: GraphNode | None = x._node
    return found


def fits(g: Any, data: Any) -> bool:
    """Whether a raw gradient is like the array that it is the gradient of."""
    kind = type(data)
    if type(g) is not kind or kind not in backends.BACKENDS or g.dtype is not data.dtype or g.shape != data.shape:
        return False
    backend = backends.BACKENDS[kind]
    return backend.one_device or backend.device_index(g) == backend.device_index(data)


def _checked_seed(out: Tensor, g: Any, name: str, i: int) -> Tensor:
    """``g``, of the shape and device of ``out``, in its dtype."""
    if not isinstance(g, Tensor):
        raise TypeError(f"{name}[{i}]: expected a Tensor or None, got {type(g).__name__}")
    for what, ours, theirs in (("shape", out.shape, g.shape), ("device", out.device, g.device)):
        if ours != theirs:
            raise RuntimeError(
                f"Mismatch in {what}: grad_output[{i}] has a {what} of {theirs} and output[{i}] has a {what} of {ours}."
            )
    if g.dtype.is_complex != out.dtype.is_complex:
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {out.dtype}."
        )
    return g.to(out.dtype)


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Compute the gradient of this tensor and accumulate it in the ``.grad`` of the leaves it came from.

    Args:
        gradient: gradient with respect to this tensor, of its shape; needed unless it has one element.
        retain_graph: keep what the graph saved for another backward; ``create_graph`` by default.
        create_graph: record the backward pass, so that gradients can be differentiated.
        inputs: accumulate into these tensors only; all leaves by default.
    """
    modes.refuse_transformed("backward()")
    fill(seed((self,), gradient, "grad_tensors", create_graph), retain_graph, create_graph, inputs)


attach("backward", _backward, checked=True)
