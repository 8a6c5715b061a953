"""What ops need of rooms above them, and of ops that are declared later: the module that has it gives it here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leafgrad.ops.node import TensorBase


class Runtime:
    """What is there once leafgrad is imported.

    Attributes:
        tensor: the class of all results.
        view: ``view(op, base, params, out)`` makes ``out`` a view of ``base`` where they share memory.
        detach: a tensor of the same memory, without history.
        attach: ``attach(name, function)`` makes a function a method of Tensor and a public function. Raises TypeError
            where the name is taken.
        with_out: ``with_out(function, name, way)`` gives a function ``out``.
        unbatched: ``unbatched(args, raw)``, vmap's handler for unbatched arguments.
        draw: vmap's handler for random ops without arguments, ``draw(op, place, params)``.
        independent: the same for those with arguments, ``independent(op, raw)``.
        stream: ``stream(generator, place, name)``, the backend's generator that one of leafgrad's stands for; for None
            the default one of a device.
        to_dtype: the op that converts to another dtype.
        to_device: the op that copies to another device.
        clone: the op that copies.
        conj: the op that conjugates.
        real: the op that takes the real part.
    """

    __slots__ = (
        "attach", "clone", "conj", "detach", "draw", "independent", "real", "stream", "tensor", "to_device", "to_dtype",
        "unbatched", "view", "with_out",
    )  # fmt: skip

    tensor: type[TensorBase]
    view: Callable[..., Any]
    detach: Callable[..., Any]
    attach: Callable[[str, Callable[..., Any]], None]
    with_out: Callable[..., Any]
    unbatched: Callable[..., Any]
    draw: Callable[..., Any]
    independent: Callable[..., Any]
    stream: Callable[..., Any]
    to_dtype: Any
    to_device: Any
    clone: Any
    conj: Any
    real: Any


runtime: Final = Runtime()
