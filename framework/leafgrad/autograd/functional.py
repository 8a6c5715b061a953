"""Derivatives of functions, with PyTorch's signatures: vjp, jvp, jacobian, hessian, vhp, hvp.

Inputs are one Tensor or a tuple; results have the same form. ``create_graph`` makes results differentiable;
otherwise they are detached. Derivatives that do not exist are zeros, or an error under ``strict``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.autograd import api, forward
from leafgrad.batching.vmap import vmap
from leafgrad.ops import create, dispatch
from leafgrad.ops.convert import clone, new_full
from leafgrad.tensor.joining import stack
from leafgrad.tensor.public import publish
from leafgrad.tensor.shapes import movedim, reshaped
from leafgrad.tensor.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]


class Evaluated:
    """A function's inputs and outputs at one point, with the graph between them.

    Attributes:
        inputs, outputs: always tuples; ``one_input`` and ``one_output`` tell whether the user's were.
    """

    def __init__(self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool) -> None:
        self.name, self.create_graph, self.strict = name, create_graph, strict
        given, self.one_input = as_tuple(inputs, "inputs", name)
        # The function gets copies of its own, so that nothing it does to them is seen outside.
        self.inputs = tuple(
            clone(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given
        )
        self.outputs, self.one_output = as_tuple(func(*self.inputs), "outputs of the user-provided function", name)
        if strict:
            for i, out in enumerate(self.outputs):
                if not out.requires_grad:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                        "computed in a differentiable manner from the input when running in strict mode."
                    )

    def like_inputs(self, tensors: Tensors) -> Any:
        """As the user gave the inputs: one or a tuple; detached unless the graph is wanted."""
        return self._finish(tensors, self.one_input)

    def like_outputs(self, tensors: Tensors) -> Any:
        return self._finish(tensors, self.one_output)

    def _finish(self, tensors: Tensors, one: bool) -> Any:
        done = tensors if self.create_graph else tuple(t.detach() for t in tensors)
        return done[0] if one else done

    def vjp(self, outputs: Tensors, v: Tensors, create_graph: bool, of: str = "The output") -> Tensors:
        """v times the Jacobian of ``outputs``, which errors call ``of``, with respect to the inputs."""
        pairs = [(o, g) for o, g in zip(outputs, v, strict=True) if o.requires_grad]
        found: tuple[Any, ...] = (None,) * len(self.inputs)
        if pairs:
            found = api.grad(
                [o for o, _ in pairs], self.inputs, [g for _, g in pairs], True, create_graph, allow_unused=True
            )
        return tuple(self._checked(g, i, create_graph, of) for i, g in enumerate(found))

    def _checked(self, g: Tensor | None, i: int, create_graph: bool, of: str) -> Tensor:
        if self.strict and g is None:
            raise RuntimeError(
                f"{of} of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
        if self.strict and create_graph and g is not None and not g.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in "
                "strict mode when create_graph=True."
            )
        return plain_zeros(self.inputs[i]) if g is None else g

    def gradient(self) -> Tensors:
        """The gradient of the only output, a scalar, recorded."""
        if not self.one_output or self.outputs[0]._data.size != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {self.name} should contain a single element"
            )
        (out,) = self.outputs
        return self.vjp((out,), (new_full(out.detach(), shape=tuple(out.shape), value=1),), True)


def as_tuple(values: Any, what: str, name: str) -> tuple[Tensors, bool]:
    if isinstance(values, Tensor):
        return (values,), True
    if not isinstance(values, tuple) or not all(isinstance(t, Tensor) for t in values):
        kind = type(values)
        if isinstance(values, tuple):
            kind = next(type(t) for t in values if not isinstance(t, Tensor))
        raise TypeError(
            f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given {what} has type "
            f"{kind}."
        )
    return values, False


def plain_zeros(like: Tensor) -> Tensor:
    return new_full(like.detach(), shape=tuple(like.shape), value=0)


def direction(v: Any, others: Tensors, one: bool, what: str, name: str) -> Tensors:
    """``v`` checked against the tensors that it multiplies; ones for a single element."""
    if v is None:
        if not one or others[0]._data.size != 1:
            raise RuntimeError(
                f"The vector v can only be None if {what} is a single Tensor with a single element; pass v to {name}."
            )
        return (new_full(others[0].detach(), shape=tuple(others[0].shape), value=1),)
    given, _ = as_tuple(v, "v", name)
    if len(given) != len(others):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(given)}.")
    for i, (t, other) in enumerate(zip(given, others, strict=True)):
        if t.shape != other.shape:
            which = "v" if len(others) == 1 else f"Entry {i} in v"
            raise RuntimeError(f"{which} has invalid size: should be {other.shape} but got {t.shape}.")
    return given


RETURNS = "the user-provided function returns"
TAKES = "the input to the user-provided function"


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(func(*inputs), v @ J)``, where J is the Jacobian of ``func`` at ``inputs``. One backward pass.

    Args:
        v: of the form and shapes of the outputs; may be None for an output of one element.
        func: a function of tensors that gives a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
    """
    with modes.enable_grad():
        at = Evaluated("vjp", func, inputs, create_graph, strict)
        v = direction(v, at.outputs, at.one_output, RETURNS, "vjp")
        found = at.vjp(at.outputs, v, create_graph)
    return at.like_outputs(at.outputs), at.like_inputs(found)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(func(*inputs), J @ v)``, where J is the Jacobian of ``func`` at ``inputs``. One forward sweep.

    Args:
        v: of the form and shapes of the inputs; may be None for an input of one element.
        func: a function of tensors that gives a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.
    """
    with modes.enable_grad():
        at = Evaluated("jvp", func, inputs, create_graph, strict)
        v = direction(v, at.inputs, at.one_input, TAKES, "jvp")
        if strict:  # only a backward pass tells which inputs have a part in it
            ones = tuple([new_full(o.detach(), shape=tuple(o.shape), value=1) for o in at.outputs])
            at.vjp(at.outputs, ones, create_graph)
        pushed = forward.push(at.outputs, at.inputs, v, create_graph, strict)
    return at.like_outputs(at.outputs), at.like_outputs(pushed)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for output i and input j a Tensor of shape ``outputs[i].shape + inputs[j].shape``.

    Args:
        vectorize: take all rows (or columns) at once, by ``vmap``: faster, and more memory.
        strategy: ``"reverse-mode"`` takes one backward pass per element of the outputs, ``"forward-mode"`` one
            forward sweep per element of the inputs.
        func: a function of tensors that gives a tensor or a tuple of them.
        inputs: a tensor or a tuple of them.

    Returns:
        A Tensor, or a tuple over outputs or inputs where ``func`` has a tuple there, or a tuple of tuples.

    Raises:
        RuntimeError: ``strict`` and ``vectorize`` together. ValueError: unknown ``strategy``.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy: expected 'reverse-mode' or 'forward-mode', got {strategy!r}")
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorize=True` are not supported together. Please either set `strict=False` "
            "or `vectorize=False`."
        )
    with modes.enable_grad():
        at = Evaluated("jacobian", func, inputs, create_graph, strict)
        table = by_rows(at, vectorize) if strategy == "reverse-mode" else by_columns(at, vectorize)
    rows = tuple(at.like_inputs(row) for row in table)
    return rows[0] if at.one_output else rows


def by_rows(at: Evaluated, vectorize: bool) -> list[Tensors]:
    """For each output the blocks of its Jacobian, one backward pass per element, or one for all."""

    def blocks(number: int, out: Tensor) -> Tensors:
        rows = passes(lambda e: at.vjp((out,), (e,), at.create_graph, f"Output {number}"), out, vectorize)
        return tuple(assembled(rows[j] if rows else (), 0, out, x) for j, x in enumerate(at.inputs))

    return [blocks(number, out) for number, out in enumerate(at.outputs)]


def by_columns(at: Evaluated, vectorize: bool) -> list[Tensors]:
    """The same, one forward sweep per element of each input, or one for all."""

    def blocks(x: Tensor) -> Tensors:
        columns = passes(lambda e: forward.push(at.outputs, (x,), (e,), at.create_graph, at.strict), x, vectorize)
        return tuple(assembled(columns[i] if columns else (), -1, out, x) for i, out in enumerate(at.outputs))

    return [*zip(*map(blocks, at.inputs), strict=True)]


def passes(one: Callable[[Tensor], Tensors], t: Tensor, vectorize: bool) -> list[Any]:
    """The results of ``one`` for each unit vector in the space of ``t``: for each result its parts, or one of all."""
    units = basis(t)
    if not vectorize:
        return [*zip(*map(one, units), strict=True)]
    return [*vmap(one)(units)] if len(units) else []


def basis(t: Tensor) -> Tensor:
    """The unit vectors of the space of ``t``, in its shape. -> (how many, *t.shape)"""
    n = t._data.size
    units: Tensor = dispatch.create(create.eye, t.device.resolve(), rows=n, columns=n, dtype=t.dtype.name)
    return reshaped(units, (n, *t.shape))


def assembled(parts: Any, dim: int, out: Tensor, x: Tensor) -> Tensor:
    """A block of a Jacobian from its rows (``dim`` 0) or columns (``dim`` -1), several tensors or one of all."""
    shape = (*out.shape, *x.shape)
    if isinstance(parts, Tensor):
        return reshaped(parts if dim == 0 else movedim(parts, 0, -1), shape)
    if not parts:
        return new_full(x.detach(), shape=shape, value=0)
    return reshaped(stack(parts, dim), shape)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function: for inputs i and j a Tensor of ``inputs[i].shape + inputs[j].shape``.

    Args:
        vectorize: as for ``jacobian``.
        outer_jacobian_strategy: ``"forward-mode"`` differentiates the gradient by forward sweeps.
        func: a function of tensors that gives one number.
        inputs: a tensor or a tuple of them.
    """

    def gradient(*point: Tensor) -> Any:
        at = Evaluated(
            "hessian", func, point if len(point) > 1 or isinstance(inputs, tuple) else point[0], True, strict
        )
        return at.like_inputs(twice_differentiable(at, at.gradient()))

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def twice_differentiable(at: Evaluated, gradient: Tensors) -> Tensors:
    for i, g in enumerate(gradient):
        if at.strict and not g.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {i} is independent of the input. This is not allowed in strict mode."
            )
    return gradient


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(func(*inputs), v @ H)``, where H is the Hessian of a scalar ``func``. Two backward passes.

    Args:
        func: a function of tensors that gives one number.
        inputs: a tensor or a tuple of them.
        v: like ``inputs``.
    """
    with modes.enable_grad():
        at = Evaluated("vhp", func, inputs, create_graph, strict)
        v = direction(v, at.inputs, at.one_input, TAKES, "vhp")
        found = at.vjp(twice_differentiable(at, at.gradient()), v, create_graph)
    return at.like_outputs(at.outputs), at.like_inputs(found)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(func(*inputs), H @ v)``, where H is the Hessian of a scalar ``func``. Forward over reverse.

    Args:
        func: a function of tensors that gives one number.
        inputs: a tensor or a tuple of them.
        v: like ``inputs``.
    """
    with modes.enable_grad():
        at = Evaluated("hvp", func, inputs, create_graph, strict)
        v = direction(v, at.inputs, at.one_input, TAKES, "hvp")
        pushed = forward.push(twice_differentiable(at, at.gradient()), at.inputs, v, create_graph)
    return at.like_outputs(at.outputs), at.like_inputs(pushed)


publish(globals())
