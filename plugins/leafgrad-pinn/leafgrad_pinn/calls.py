"""Calls whose arguments do not fit: errors name the caller's class or function, and say what it takes."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import leafgrad
from leafgrad.ops import messages
from leafgrad.tensor.door import explained

F = TypeVar("F", bound=Callable[..., Any])
PACKAGES = tuple(
    [os.path.join(os.path.dirname(str(m.__file__)), "") for m in (leafgrad, sys.modules[str(__package__)])]
)

FORMS = {
    "Ball": "Ball(1.0, x=0, y=0, z=0)",
    "Box": "Box(x=(0, 1), y=(0, 1))",
    "Disk": "Disk(1.0, x=0, y=0)",
    "Interval": "Interval('x', 0, 1)",
    "Parameter": "Parameter('mu', 0, 1)",
    "Time": "Time('t', 0, 1)",
}
_explained: set[type] = set()


def explain(value: Any) -> Any:
    """``value``: a class of this package, with those that it is made of, or one of FORMS, which say what they take."""
    for each in value.__mro__ if isinstance(value, type) else ():
        if each.__module__.startswith(f"{__package__}.") and each not in _explained and "__init__" in vars(each):
            _explained.add(each)
            made: Any = explained(vars(each)["__init__"], bound=True, name=each.__name__)
            type.__setattr__(each, "__init__", fitting(made, each.__name__))
    return fitting(value, value.__name__) if inspect.isfunction(value) and value.__name__ in FORMS else value


def fitting(function: F, name: str) -> F:
    """``function``, which shows the form of a call where one has too few or too many arguments, and all by name."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            text = str(error)
            if not text.startswith((f"{name}() ", f"{name}.__init__() ")):
                raise
            if "positional argument" in text and name in FORMS and "; write " not in text:
                raise TypeError(f"{text}; write {FORMS[name]}") from None
            if "unexpected keyword" in text and "; it takes " not in text:
                said = text.rstrip("?")  # from Python 3.14 on: "Did you mean ...?"
                raise TypeError(f"{said}; it takes {', '.join(inspect.signature(function).parameters)}") from None
            raise

    return cast(F, called)


def warn(text: str) -> None:
    """A UserWarning that points at the innermost line outside of leafgrad and of this package."""
    messages.warn(text, packages=PACKAGES)
