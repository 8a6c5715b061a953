"""Whole Jacobians and Hessians: one pass for each unit vector, all of them at once by ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.autograd.functional import basis, plain_zeros
from leafgrad.batching import pytree
from leafgrad.batching.vmap import check_randomness, vmap
from leafgrad.func.arguments import Argnums, chosen_arguments, named, tensors, with_aux
from leafgrad.func.level import Level, jvps, vjps
from leafgrad.ops.scalars import as_int
from leafgrad.tensor.tensor import Tensor

__all__ = ["hessian", "jacfwd", "jacrev"]


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func`` by reverse mode: for few outputs of many inputs.

    Args:
        func: gives tensors, nested or not (and something else, with ``has_aux``).
        argnums: by which positional arguments to differentiate; each is a tensor or nested tensors.
        has_aux: ``func`` gives ``(output, aux)``, and the result ``(jacobian, aux)``.
        chunk_size: take so many rows at a time, which takes less memory; None for all at once.

    Returns:
        A function of the same arguments. For each output it gives what has the form of the argument (a tuple for a
        tuple of ``argnums``), with tensors of shape ``output.shape + input.shape``.
    """
    if chunk_size is not None and (as_int(chunk_size) or 0) <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    def rows(level: Level, output: Tensor, leaves: list[Tensor]) -> list[Tensor]:
        if not output.numel():
            return [shaped(plain_zeros(x), (*output.shape, *x.shape)) for x in leaves]
        by = vmap(lambda e: tuple(vjps([output], leaves, [e], True)), chunk_size=chunk_size)
        return [block.reshape(*output.shape, *x.shape) for block, x in zip(by(basis(output)), leaves, strict=True)]

    return _jacobian(func, argnums, has_aux, rows, "jacrev", writable=False)


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func`` by forward mode: for many outputs of few inputs.

    ``func`` runs once, and so draws random numbers once, whatever ``randomness`` says. Everything else as ``jacrev``.
    """
    check_randomness(randomness)

    def columns(level: Level, output: Tensor, leaves: list[Tensor]) -> list[Tensor]:
        blocks = []
        for x in leaves:
            if x.numel():
                by = vmap(lambda e, x=x: jvps(level, [output], [x], [e])[0], out_dims=-1)
                blocks.append(by(basis(x)).reshape(*output.shape, *x.shape))
            else:
                blocks.append(shaped(plain_zeros(output), (*output.shape, *x.shape)))
        return blocks

    return _jacobian(func, argnums, has_aux, columns, "jacfwd", writable=True)


def shaped(empty: Tensor, shape: tuple[int, ...]) -> Tensor:
    return empty.new_zeros(shape)


def _jacobian(func: Any, argnums: Argnums, has_aux: bool, blocks: Any, what: str, writable: bool) -> Callable[..., Any]:
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        level = Level(forward=writable)
        with level:
            every, by = chosen_arguments(level, args, argnums, kwargs, writable)
            output, aux = with_aux(level.kept(func(*every, **kwargs)), has_aux, what)
            outputs, form = tensors(output, what)
        leaves, structure = pytree.flatten(by)
        found = [pytree.unflatten(structure, iter(blocks(level, out, leaves))) for out in outputs]
        result = pytree.unflatten(form, iter(found))
        return (result, level.settled(aux)) if has_aux else result

    return named(jacobian, func)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that computes the Hessian of ``func``, forward over reverse: ``jacfwd(jacrev(func))``.

    Args:
        func: a function of tensors that returns one number.
        argnums: the place of the argument, or a tuple of places; their pairs give a tuple of tuples.
    """
    return jacfwd(jacrev(func, argnums), argnums)
