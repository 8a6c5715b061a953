"""``torch._foreach_add_``, ``torch._foreach_sqrt``, …: an operation on each tensor of a list.

PyTorch's own optimizers and those written after them use these. Arguments are lists, taken element by element, or one
number or tensor for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.linalg import vector_norm
from leafgrad.tensor.tensor import Tensor

# Methods of Tensor with an in-place form.
METHODS = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp "
    "log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh "
    "trunc"
).split()


def each(name: str) -> Callable[..., Any]:
    """``_foreach_{name}``: the method ``name`` of each tensor.

    Raises, when it is called:
        RuntimeError: the lists are not of the same length, or empty.
    """
    called = f"_foreach_{name}"
    inplace = name.endswith("_")

    def function(input: Any, *others: Any, **options: Any) -> Any:
        if name.removesuffix("_") in ("addcdiv", "addcmul") and len(others) + ("scalars" in options) == 3:
            options["value"] = options.pop("scalars") if "scalars" in options else others[2]
            others = others[:2]
        count = len(input)
        lists = [a for a in (input, *others, *options.values()) if isinstance(a, (list, tuple))]
        if not count or any(len(a) != count for a in lists):
            sizes = ", ".join(str(len(a)) for a in lists)
            raise RuntimeError(f"{called}: expected lists of the same length, 1 or more, got {sizes}")
        found = [
            apply(name, tensor, *(at(a, i) for a in others), **{key: at(a, i) for key, a in options.items()})
            for i, tensor in enumerate(input)
        ]
        return input if inplace else tuple(found)

    function.__name__ = function.__qualname__ = called
    function.__doc__ = f"``{name}`` of each tensor of a list."
    return function


def at(argument: Any, i: int) -> Any:
    """What an argument is for the tensor at ``i``."""
    return argument[i] if isinstance(argument, (list, tuple)) else argument


def apply(name: str, tensor: Tensor, *others: Any, **options: Any) -> Any:
    """The method ``name`` of one tensor."""
    if name == "norm":
        return vector_norm(tensor, *others, **options)
    if others and name.removesuffix("_") in ("maximum", "minimum") and not isinstance(others[0], Tensor):
        name = name.replace("maximum", "clamp_min").replace("minimum", "clamp_max")
    if name in ("maximum_", "minimum_"):
        return tensor.copy_(getattr(tensor, name[:-1])(*others))
    return getattr(tensor, name)(*others, **options)


FUNCTIONS = {
    f"_foreach_{name}": each(name)
    for name in (*METHODS, *(f"{name}_" for name in METHODS), "clone", "copy_", "max", "mm", "norm", "zero_")
}
