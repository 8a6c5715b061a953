"""``autograd.Function``: an operation whose backward the user writes by hand.

A Function is a node of the graph like any recorded op: the engine asks ``node.op`` (here the class itself) to
pull the gradient through. What ``forward`` stores lives in a context of its own, so that a user's attribute
such as ``ctx.shape`` meets no name of the node's.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.autograd import api
from leafgrad.autograd.context import FunctionCtx, FunctionNode, pack, same
from leafgrad.backends.place import place
from leafgrad.ops import dispatch, messages
from leafgrad.ops.convert import new_full, to_dtype
from leafgrad.ops.create import full
from leafgrad.ops.node import EMPTY, SEQ, GraphNode, Output, SymbolBase
from leafgrad.tensor import inplace, view
from leafgrad.tensor.tensor import Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class Function:
    """Base of operations with a backward of their own. Subclass it, and call the subclass's ``apply``.

    Define static methods ``backward(ctx, *grad_outputs)``, and either ``forward(ctx, *args)`` or
    ``forward(*args)`` with ``setup_context(ctx, inputs, output)``. ``forward`` runs without recording;
    ``backward`` returns one gradient per argument of ``forward``, None for those that have none. Under
    ``create_graph`` it is recorded, and so differentiable when it is made of tensor operations.

        >>> class Cube(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * g * x * x
    """

    pure = False  # whether ``backward`` follows from what was saved, so that a compiled program may stand for it
    fresh = False  # whether nobody else holds the gradients that ``backward`` returns
    generate_vmap_rule = False  # what programs set; without a ``vmap`` of its own, any Function is batched either way

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """``vjp`` is another name for ``backward``."""
        super().__init_subclass__(**kwargs)
        if "vjp" in vars(cls):
            if "backward" in vars(cls):
                raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed.")
            type.__setattr__(cls, "backward", vars(cls)["vjp"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        raise RuntimeError(
            f"Legacy autograd function with non-static forward method is deprecated: expected "
            f"{name}.apply(...), got a call of an instance; make forward and backward static methods and use "
            f"{name}.apply"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: a tensor, or a tuple of tensors and other values."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what ``backward`` needs; defining it takes ``ctx`` out of the arguments of ``forward``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradient of each argument of ``forward``, from the gradient of each output."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The tangent of each output, from those of the arguments of ``forward``; without it, that of ``backward``."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it.")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """The outputs for a whole batch, and where the batch is in each; without it, ``forward`` runs on samples.

        Args:
            info: has ``batch_size`` and ``randomness``.
            in_dims: where the batch is in each of ``args``, None for what is the same for all samples.
        """
        raise NotImplementedError("You must implement the vmap function for custom autograd.Function to use it.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and record the call.

        Raises:
            RuntimeError: an input marked dirty is a leaf that requires grad, or is not returned.
        """
        apart = cls.setup_context is not Function.setup_context
        if apart:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        elif kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments, got {next(iter(kwargs))!r}")
        raw = tuple([a._data if isinstance(a, Tensor) else a for a in args])
        forward, linked = cls.forward, args
        if [r for r in raw if isinstance(r, SymbolBase) and r.level]:
            if cls.vmap is not Function.vmap:
                from leafgrad.autograd.function_rules import differentiated_within, vmapped

                forward = functools.partial(vmapped, cls)
                if not differentiated_within(cls, args, apart):
                    return forward(*args)
            from leafgrad.batching.boundary import unbatched_arguments

            linked = unbatched_arguments(args, raw)
        ctx = FunctionCtx()
        flags = modes.get()
        ctx.needs_input_grad, edges = links(linked, flags)
        token = modes.FLAGS.set(flags & ~modes.GRAD)
        try:
            if apart:
                result = forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            modes.FLAGS.reset(token)
        outputs = result if isinstance(result, tuple) else (result,)
        check_dirty(cls.__name__, ctx, outputs)
        node = None
        if any(ctx.needs_input_grad) and modes.get() & modes.GRAD:
            node = make_node(cls, ctx, args, edges, outputs)
        wrapped = [attach(ctx, node, args, outputs, i, linked is not args) for i in range(len(outputs))]
        if node is not None:
            node.saved = pack((*ctx._to_save, *ctx._for_forward), args, edges, outputs, wrapped)
            if modes.get() & modes.PACK:
                modes.PACKER.get()(node)
            ctx._node = weakref.ref(node)
        ctx._to_save = ctx._for_forward = ctx._dirty = ctx._constant = ()
        if node is not None and cls.jvp is not Function.jvp and (duals := api.DUALS.get()) is not None:
            for o in wrapped:
                if isinstance(o, Tensor):
                    duals.tangent(o)  # runs jvp, for all outputs at once
        return tuple(wrapped) if isinstance(result, tuple) else wrapped[0]

    # ---- what the engine asks of node.op ------------------------------------------------------------------------

    @classmethod
    def pull(cls, node: FunctionNode, g: tuple[Any, ...], needed: set[GraphNode] | None) -> list[tuple[GraphNode, Any]]:
        """Run ``backward`` on raw gradients. What a user returns may be held elsewhere, so it is copied."""
        grads = tuple([None if one is None else dispatch.alias(dispatch.array(one)) for one in g])
        pulled = run_backward(cls, node, grads, needed)
        if tracer := modes.tracer():
            return [(edge, tracer.lift(t)) for edge, t in pulled]
        return [(edge, t._data if cls.fresh else dispatch.copied(t._data)) for edge, t in pulled]

    @classmethod
    def pull_recorded(
        cls, node: FunctionNode, g: tuple[Any, ...], needed: set[GraphNode] | None
    ) -> list[tuple[GraphNode, Any]]:
        """Run ``backward`` with recording on."""
        return run_backward(cls, node, g, needed)


# ---- forward ----------------------------------------------------------------------------------------------------


def links(args: tuple[Any, ...], flags: int) -> tuple[tuple[bool, ...], tuple[Any, ...]]:
    """Whether each argument requires grad, and the nodes of those that are tensors."""
    nodes: list[Any] = []
    needs: list[bool] = []
    for a in args:
        if isinstance(a, Tensor):
            x = dispatch.inside(a)
            nodes.append(x._history if x._view is None else x._node)
        needs.append(isinstance(a, Tensor) and nodes[-1] is not None)
    return tuple(needs), tuple(nodes)


def check_dirty(name: str, ctx: FunctionCtx, outputs: tuple[Any, ...]) -> None:
    if ctx._dirty and any(same(t, outputs) is None for t in ctx._dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function: return them too."
        )
    for t in ctx._dirty:
        if modes.get() & modes.GRAD and t.requires_grad and t.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation. Do not mark it dirty: "
                "write into a clone() of it and return that"
            )
        inplace.check(t, name)


def make_node(
    cls: type[Function], ctx: FunctionCtx, args: tuple[Any, ...], edges: tuple[Any, ...], outputs: tuple[Any, ...]
) -> FunctionNode:
    node = object.__new__(FunctionNode)
    FunctionNode.made = True
    node.op = cls
    node.ctx = ctx
    node.params = EMPTY
    node.edges = edges
    node.seq = next(SEQ)
    gaps: Any = (None,) * len(outputs)  # the engine leaves them; run_backward fills them
    node.shape = gaps
    node.hooks = node.out = node.version = None
    node.shapes = tuple([tuple(a._data.shape) for a in args if isinstance(a, Tensor)])
    node.saved = ()
    node.ends = {}
    data = next(a._data for a in args if isinstance(a, Tensor))
    node.place = data.place if isinstance(data, SymbolBase) else place(data)
    node.positions = tuple([i for i, a in enumerate(args) if isinstance(a, Tensor)])
    node.inputs = tuple([dtypes.of(args[i]._data) for i in node.positions])
    node.outputs = tuple([
        (tuple(o._data.shape), dtypes.of(o._data).name) if isinstance(o, Tensor) else None for o in outputs
    ])  # fmt: skip
    if modes.get() & modes.ANOMALY:
        node.where = messages.user_line()
    return node


def attach(
    ctx: FunctionCtx, node: FunctionNode | None, args: tuple[Any, ...], outputs: tuple[Any, ...], i: int, batched: bool
) -> Any:
    """Output number ``i`` as ``apply`` returns it; ``batched``: whether an argument is a batch."""
    out = outputs[i]
    if not isinstance(out, Tensor):
        return out
    dirty = bool(ctx._dirty) and same(out, ctx._dirty) is not None
    taken = same(out, args) is not None or same(out, outputs[:i]) is not None
    constant = bool(ctx._constant) and same(out, ctx._constant) is not None
    if (taken and not dirty) or (out.requires_grad and (constant or not (dirty and node))):
        out = out.detach()
    if node is None or constant or not dtypes.of(out._data).is_differentiable:
        return out
    if batched and not dirty:
        from leafgrad.autograd.function_rules import for_each_sample

        out = for_each_sample(out, args)
    end = Output.of(node, i, out._data.shape)
    if dirty:
        inplace.rebase(out, dispatch.alias(dispatch.inside(out)._data, end))
    else:
        inner = dispatch.inside(out)
        inner._node = end
        if inner._view is not None or same(outputs[i], args) is not None:
            view.of_function(dispatch.inside(outputs[i]), inner, i, node.name())
    return out


# ---- backward ---------------------------------------------------------------------------------------------------


def run_backward(
    cls: type[Function], node: FunctionNode, grads: tuple[Any, ...], needed: set[GraphNode] | None
) -> list[tuple[GraphNode, Tensor]]:
    """The edges that need a gradient, with what ``backward`` returned for them, checked."""
    ctx = node.ctx
    wanted = [e is not None and (needed is None or e in needed) for e in node.edges]
    needs = [False] * len(ctx.needs_input_grad)
    for i, want in zip(node.positions, wanted, strict=True):
        needs[i] = want
    ctx.needs_input_grad = tuple(needs)
    if ctx._materialize:
        some = next((one for one in grads if one is not None), None)
        grads = tuple(
            zeros_of(node, some, like) if one is None and like is not None else one
            for one, like in zip(grads, node.outputs, strict=True)
        )
    result = cls.backward(ctx, *grads)
    returned = check_count(node, result if isinstance(result, tuple) else (result,))
    pulled: list[tuple[GraphNode, Tensor]] = []
    for i, edge, dtype, want in zip(node.positions, node.edges, node.inputs, wanted, strict=True):
        g = returned[i]
        if g is None or not want:
            continue
        check_gradient(node, i, g, edge)
        kind = dtypes.of(g._data)
        if kind.is_complex and not dtype.is_complex:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i}: expected a real one, since the "
                f"argument is of {dtype}, got {kind}; return its real part"
            )
        pulled.append((edge, g if kind is dtype else to_dtype(g, dtype=dtype.name, source=kind.name)))
    return pulled


def zeros_of(node: FunctionNode, some: Tensor | None, like: tuple[tuple[int, ...], str]) -> Tensor:
    """The gradient of an output that has none, on the device of another's if there is one."""
    shape, dtype = like
    if some is not None:
        return new_full(some, shape=shape, value=0, dtype=dtype)
    out: Tensor = dispatch.create(full, node.place, shape=shape, value=0, dtype=dtype)
    return out


def check_count(node: FunctionNode, returned: tuple[Any, ...]) -> tuple[Any, ...]:
    """One gradient per argument: surplus Nones are cut off, and only tensors may have one."""
    count = len(node.ctx.needs_input_grad)
    if len(returned) > count and all(g is None for g in returned[count:]):
        returned = returned[:count]
    if len(returned) != count:
        raise RuntimeError(
            f"function {node.name()} returned an incorrect number of gradients (expected {count}, got {len(returned)})"
            ": backward returns a tuple with one for each argument of forward, None where there is none"
        )
    for i, g in enumerate(returned):
        if g is not None and i not in node.positions:
            raise RuntimeError(
                f"function {node.name()} returned a gradient different from None at position {i + 1}, but the "
                "corresponding forward input was not a Variable; return None there"
            )
    return returned


def check_gradient(node: FunctionNode, i: int, g: Any, edge: GraphNode) -> None:
    if not isinstance(g, Tensor):
        raise RuntimeError(
            f"function {node.name()}, gradient {i}: expected Variable or None (got {type(g).__name__}); "
            "return a Tensor of the argument's shape"
        )
    got, want = tuple(g._data.shape), tuple(edge.shape)
    fits = got == want or (
        len(got) >= len(want) and all(w in (1, n) for w, n in zip(want[::-1], got[::-1], strict=False))
    )
    if not fits:
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {i} - got {list(got)} but expected shape "
            f"compatible with {list(want)}"
        )


# ---- once -------------------------------------------------------------------------------------------------------


class Once(Function):
    """The identity, whose gradient is an error."""

    @staticmethod
    def forward(ctx: FunctionCtx, value: Tensor, *sources: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)  # else it were an error where no gradient comes
        return value

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs: Tensor) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable; write its backward "
            "with tensor operations and take the mark away"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that cannot be differentiated itself: it runs unrecorded, and a second derivative
    through it is a RuntimeError instead of a wrong number.

    Unlike PyTorch's, it also sees derivatives that would flow through the saved tensors alone that ``backward`` reads.
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grad_outputs: Any) -> Any:
        read: list[Any] = []
        ctx._read = read
        try:
            with modes.no_grad():
                result = backward(ctx, *grad_outputs)
        finally:
            ctx._read = None
        if not modes.get() & modes.GRAD:
            return result
        sources = [t for t in (*grad_outputs, *read) if isinstance(t, Tensor) and t.requires_grad]
        if not sources:
            return result
        returned = result if isinstance(result, tuple) else (result,)
        return tuple(Once.apply(g, *sources) if isinstance(g, Tensor) else g for g in returned)

    return wrapper
