"""``grad``, ``vjp``, ``jvp`` and their kin: derivatives as functions of functions, which nest in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.batching import pytree
from leafgrad.func.arguments import Argnums, chosen_arguments, named, tensors, with_aux
from leafgrad.func.level import Level, jvps, vjps
from leafgrad.tensor.tensor import Tensor

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of ``func``.

    Args:
        func: gives a tensor without dimensions (and something else, with ``has_aux``).
        argnums: by which positional arguments to differentiate; each is a tensor or nested tensors.
        has_aux: ``func`` gives ``(output, aux)``, and the result ``(gradient, aux)``.

    Returns:
        A function of the same arguments; its result has the form of the argument, or is a tuple for a tuple of them.

    Raises:
        RuntimeError: (at the call) ``func`` gives no scalar, or there is no such argument.
    """
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return named(gradient, func)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of ``func`` and its value: ``(gradient, value)``.

    Arguments and errors are those of ``grad``; with ``has_aux`` the result is ``(gradient, (value, aux))``.

    Args:
        func: a function of tensors that gives one number.
        argnums: the place of the argument, or a tuple of places.
    """
    what = "grad_and_value(f)(*args)"

    def both(*args: Any, **kwargs: Any) -> Any:
        level = Level()
        with level:
            every, by = chosen_arguments(level, args, argnums, kwargs)
            output, aux = with_aux(level.kept(func(*every, **kwargs)), has_aux, what)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{what}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output.ndim:
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. Maybe "
                    "you wanted to use the vjp or jacrev APIs instead?"
                )
            leaves, structure = pytree.flatten(by)
        found = pytree.unflatten(structure, iter(vjps([output], leaves, None, False)))
        value, aux = level.settled((output, aux))
        return found, (value, aux) if has_aux else value

    return named(both, func)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``func`` at ``primals``, and the function that multiplies vectors with its Jacobian from the left.

    Args:
        func: takes the primals, gives tensors, nested or not (and something else, with ``has_aux``).
        primals: tensors, nested or not.

    Returns:
        ``(output, vjp_fn)`` or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)`` takes what has the form of the output
        and gives a tuple with one gradient for each primal. It may be called as often as you like.

    Raises:
        RuntimeError: an output is no floating tensor, or cotangents do not have the form of the output.
    """
    what = "vjp(f, *primals)"
    level = Level()
    with level:
        leaves = level.differentiable(primals)
        output, aux = with_aux(func(*leaves), has_aux, what)
        outputs, form = tensors(output, what)
        for out in outputs:
            if not out.dtype.is_differentiable:
                raise RuntimeError(
                    f"vjp(f, ...): All outputs of f must be floating-point Tensors, got Tensor with dtype {out.dtype}"
                )
    flat, structure = pytree.flatten(leaves)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, theirs = pytree.flatten(cotangents)
        if theirs != form:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {pytree.outline(theirs)}, primal output: {pytree.outline(form)}"
            )
        found = vjps(outputs, flat, given, retain_graph)
        return pytree.unflatten(structure, iter(found))

    value, aux = level.settled((output, aux))
    return (value, vjp_fn, aux) if has_aux else (value, vjp_fn)


JVP = "jvp(f, primals, tangents)"


def check_tangents(primals: Any, tangents: Any, what: str = JVP) -> tuple[list[Tensor], list[Tensor]]:
    """Both flat, if they go together."""
    flat, structure = pytree.flatten(primals)
    moves, theirs = pytree.flatten(tangents)
    if structure != theirs:
        raise RuntimeError(
            f"{what}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {pytree.outline(structure)} and "
            f"tangents with structure {pytree.outline(theirs)}"
        )
    for name, values in (("primals", flat), ("tangents", moves)):
        if not values:
            raise RuntimeError(f"{what}: Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"{what}: Expected {name} to only contain Tensors, got {type(value)}")
    return flat, moves


def jvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """The value of ``func`` and its derivative in the direction of ``tangents``, by forward mode.

    Args:
        func: takes the primals, gives tensors, nested or not (and something else, with ``has_aux``).
        primals: the point: a tuple of tensors, nested or not.
        tangents: the direction, of the same form, shapes and device.
        strict: raise where an output does not depend on the primals, instead of giving zeros.

    Returns:
        ``(output, derivative)``, or ``(output, derivative, aux)``.

    Raises:
        RuntimeError: primals and tangents do not match, or an output is independent of them under ``strict``.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    _, moves = check_tangents(primals, tangents)
    level = Level(forward=True)
    with level:
        leaves = level.differentiable(primals)
        output, aux = with_aux(func(*level.writable(primals, leaves)), has_aux, JVP)
        outputs, form = tensors(output, JVP)
    flat, _ = pytree.flatten(leaves)
    derivative = pytree.unflatten(form, iter(jvps(level, outputs, flat, moves, strict)))
    value, aux = level.settled((output, aux))
    return (value, derivative, aux) if has_aux else (value, derivative)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``func`` at ``primals``, and its derivative there as a function of tangents.

    Cheaper than ``jvp`` where there are many tangents: ``func`` runs once.

    Args:
        func: a function of tensors.
        primals: its arguments.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` gives what has the form of the output.
    """
    what = "linearize(f, *primals)"
    level = Level(forward=True)
    with level:
        leaves = level.differentiable(primals)
        output = func(*leaves)
        outputs, form = tensors(output, what)
    flat, structure = pytree.flatten(leaves)

    def jvp_fn(*tangents: Any) -> Any:
        moves, theirs = pytree.flatten(tangents)
        if theirs != structure:
            raise RuntimeError(
                f"Expected the tangents {pytree.outline(theirs)} to have the same argspec as the primals "
                f"{pytree.outline(structure)}"
            )
        return pytree.unflatten(form, iter(jvps(level, outputs, flat, moves)))

    return level.settled(output), jvp_fn
