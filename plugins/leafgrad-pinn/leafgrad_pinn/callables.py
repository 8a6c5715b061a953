"""Functions whose parameters are named after fields and coordinates."""

from __future__ import annotations

import inspect
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor

Function = Callable[..., Any]


class Named:
    """A function that is called with what its parameters name, or a number in its place.

    Args:
        function: a function of fields or coordinates by name, or a number.
        what: how errors call it.
        known: the names that its parameters may have. Others have defaults, as the k of ``lambda u, k=k: ...``.

    Raises:
        TypeError: it is neither. ValueError: a parameter has another name, or one of these and a default.
    """

    def __init__(self, function: Function | float, what: str, known: Iterable[str]) -> None:
        self.function, self.what = function, what
        self.parameters: tuple[str, ...] = ()
        if not callable(function):
            if not isinstance(function, numbers.Complex):
                raise TypeError(f"{what}: expected a number or a function, got {type(function).__name__}")
            if not math.isfinite(abs(function)):
                raise ValueError(f"{what}: expected a finite number, got {function}")
            self.function = float(function) if isinstance(function, numbers.Real) else function
            return
        parameters = inspect.signature(function).parameters.values()
        self.parameters = tuple(p.name for p in parameters if p.default is p.empty)
        kinds = {p.kind for p in parameters if p.default is p.empty}
        if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            raise ValueError(f"{what}: expected parameters with names, as in `lambda x, t: ...`, got * or **")
        names = list(known)
        for p in parameters:  # an unknown, which has a current value, may be its own default
            if p.name in names and p.default is not p.empty and not hasattr(p.default, "current"):
                raise ValueError(
                    f"{what}: {p.name}: expected no default, which would hide {p.name} itself, got {p.default!r:.40}; "
                    f"call it otherwise, as {p.name}0"
                )
        if unknown := [name for name in self.parameters if name not in names]:
            raise ValueError(
                f"{what}: there is no field or coordinate {', '.join(map(repr, unknown))}; there are {', '.join(names)}"
            )

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Its result, with the values of its parameters."""
        if not callable(self.function):
            return self.function
        try:
            return self.function(*[values[name] for name in self.parameters])
        except AttributeError as error:
            if "'Tensor' object has no attribute" in str(error):
                raise AttributeError(
                    f"{self.what}: fields have derivatives as attributes, and input functions but in Hard(...); that "
                    f"of an expression is pinn.d(u * u, x): {error}"
                ) from error
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            if "Boolean value of Tensor" in str(error):
                raise TypeError(
                    f"{self.what}: expected one expression for all points, got an if (or and, or, not, min, max) on "
                    "their values; take lg.where(x > 0.5, a, b)"
                ) from error
            if "'Value' object is not callable" in str(error):
                raise TypeError(
                    f"{self.what}: a field is its values at the condition's points: write u, u.x, not u(x); at another "
                    "place it is u.at(x=0), and on an edge there is a condition, as Dirichlet(0, on='x_min')"
                ) from error
            told = ("Can't call numpy()", "calling .numpy()", "converted to Scalar", "converted to Python scalars")
            if any(part in str(error) for part in told):
                raise TypeError(
                    f"{self.what}: expected functions of tensors, as lg.sin(x) with `import leafgrad as lg`, "
                    f"got one of NumPy or math: {error}"
                ) from error
            if "got complex" in str(error) or "ComplexValue" in str(error):
                raise TypeError(
                    f"{self.what}: expected functions of real numbers, as lg.exp(psi.real), abs(psi) or psi.conj, "
                    f"got one of a complex field: {error}"
                ) from error
            if re.search("(got|not|of type) '?Unknown", str(error)):  # of leafgrad, math and float, NumPy
                raise TypeError(
                    f"{self.what}: expected functions of tensors, got an Unknown; give functions of leafgrad "
                    f"+name, as lg.exp(+lam): {error}"
                ) from error
            raise

    def numbers(self, values: Mapping[str, Any], like: Tensor) -> Tensor:
        """Its result as a real tensor of the shape (n,) and dtype of ``like``.

        Raises:
            ValueError: it is neither one number nor n, or complex.
        """
        result = self(values)
        if isinstance(result, (int, float)):
            return leafgrad.full_like(like, result)
        if not isinstance(result, Tensor) or result.shape not in ((), like.shape) or result.is_complex():
            got = f"{result.dtype} {tuple(result.shape)}" if isinstance(result, Tensor) else type(result).__name__
            raise ValueError(
                f"{self.what}: expected one real number for each point, shape {tuple(like.shape)}, got {got}; a "
                "ComplexField takes a pair of Hard(...)"
            )
        return result.to(like.dtype).expand(like.shape)


def check_number(what: str, value: Any, least: float | None = None, whole: bool = False) -> None:
    """TypeError unless it is a real, or whole, number; ValueError unless it is finite and at least ``least``."""
    if not isinstance(value, numbers.Integral if whole else numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{what}: expected {'a whole' if whole else 'a'} number, got {value!r}")
    if not math.isfinite(value) or (least is not None and value < least):
        raise ValueError(f"{what}: expected {'a finite number' if least is None else f'at least {least}'}, got {value}")


def scalar(value: Any) -> Any:
    """The number in an array or tensor without dimensions; anything else as it is."""
    return value.item() if isinstance(value, (np.ndarray, Tensor)) and value.ndim == 0 else value


def check_name(what: str, name: Any) -> None:
    """TypeError unless it is a string, ValueError unless functions can have a parameter of this name."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: name: expected a string, got {name!r}")
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"{what}: name: expected one that a parameter of a function can have, as 'x', got {name!r}")


def names_of(what: str, names: str | Iterable[str]) -> list[str]:
    """Names in one string, or a list of them; TypeError for others, ValueError if there are none."""
    found = names.split() if isinstance(names, str) else list(names) if isinstance(names, (list, tuple)) else [None]
    if not all(isinstance(name, str) for name in found):
        raise TypeError(f"{what}: expected names in one string, as 'x_min x_max', or a list of them, got {names!r}")
    if not found:
        raise ValueError(f"{what}: expected at least one name, got {names!r}")
    return [str(name) for name in found]


def listed(what: str, given: Any, kind: Any, example: str) -> list[Any]:
    """One of a kind, or several, as a list; TypeError for others."""
    if isinstance(given, kind):
        return [given]
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"Problem: {what}: expected {example}, or a list of such, got {type(given).__name__}")
    several = list(given)
    for one in several:
        if not isinstance(one, kind):
            raise TypeError(
                f"Problem: {what}: expected {example}, or a list of such, got one with {type(one).__name__}"
            )
    return several


def distinct(names: Sequence[str]) -> list[str]:
    """The names, those that occur again with a number."""
    return [name if names.index(name) == i else f"{name} {names[:i].count(name) + 1}" for i, name in enumerate(names)]
