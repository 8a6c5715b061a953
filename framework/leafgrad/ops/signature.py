"""The signature of an op, and its vjp rules turned into callables of one form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import islice
from operator import is_
from types import FunctionType, NoneType
from typing import Any

from leafgrad.ops import messages
from leafgrad.ops.node import TensorBase
from leafgrad.ops.scalars import as_number

REQUIRED = inspect.Parameter.empty
REAL = ("float", "float | None", "<class 'float'>")  # annotations of parameters that are numbers
PLAIN = frozenset({bool, int, float, complex, str, NoneType})  # of which parameters stay as they are

# Name -> default of positional and of keyword-only parameters, the names of ``*`` and ``**``.
Declared = tuple[dict[str, Any], dict[str, Any], str | None, str | None]


def declared(function: Callable[..., Any]) -> Declared:
    """What ``function`` takes. That of a plain one stands in its code, which is quicker to read than by inspect."""
    if type(function) is not FunctionType or vars(function):
        return _inspected(function)
    code = function.__code__
    names = iter(code.co_varnames)
    positional = dict.fromkeys(islice(names, code.co_argcount), REQUIRED)
    defaults = function.__defaults__ or ()
    positional.update(zip([*positional][len(positional) - len(defaults) :], defaults, strict=True))
    keyword = dict.fromkeys(islice(names, code.co_kwonlyargcount), REQUIRED) | (function.__kwdefaults__ or {})
    star = next(names) if code.co_flags & inspect.CO_VARARGS else None
    stars = next(names) if code.co_flags & inspect.CO_VARKEYWORDS else None
    return positional, keyword, star, stars


def _inspected(function: Callable[..., Any]) -> Declared:
    parameters = inspect.signature(function).parameters.values()

    def of(*kinds: Any) -> dict[str, Any]:
        return {p.name: p.default for p in parameters if p.kind in kinds}

    positional = of(inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    star, stars = of(inspect.Parameter.VAR_POSITIONAL), of(inspect.Parameter.VAR_KEYWORD)
    return positional, of(inspect.Parameter.KEYWORD_ONLY), next(iter(star), None), next(iter(stars), None)


class Signature:
    """Arguments (arrays, positional) and parameters (keyword-only) of a forward ``f(xp, x, y, *, dim)``.

    Attributes:
        arguments: names of the array arguments, without ``xp``.
        required: how many of them have no default.
        variadic: whether the last argument is ``*xs``; it then stands for any number of arrays.
        parameters: name -> default of each keyword-only parameter (``REQUIRED`` if none).
        reals: which of these are floats, by their annotations or defaults.
    """

    __slots__ = ("arguments", "defaults", "name", "parameters", "reals", "required", "variadic")

    def __init__(self, forward: Callable[..., Any], name: str) -> None:
        self.name = name
        positional, self.parameters, star, stars = declared(forward)
        self.defaults = {name: default for name, default in self.parameters.items() if default is not REQUIRED}
        hints = getattr(forward, "__annotations__", {})
        self.reals = [p for p, d in self.parameters.items() if type(d) is float or str(hints.get(p)) in REAL]
        first, *arguments = positional or ("",)
        if first != "xp":
            raise messages.definition(name, "the forward's first parameter must be xp, the array namespace")
        if stars:
            raise messages.definition(name, "name each parameter instead of taking **keywords")
        if any(positional[a] not in (REQUIRED, None) for a in arguments):
            raise messages.definition(name, "an array argument's default can only be None; put parameters behind *")
        self.arguments = (*arguments, star) if star else tuple(arguments)
        self.required = sum(positional[a] is REQUIRED for a in arguments)
        self.variadic = star is not None
        for reserved in ("g", "out", "index"):
            if reserved in self.arguments or reserved in self.parameters:
                raise messages.definition(name, f"{reserved!r} is a name that vjp rules use; call it otherwise")

    def __str__(self) -> str:
        names = [*self.arguments]
        if self.variadic:
            names[-1] = "*" + names[-1]
        keyword = [p if d is REQUIRED else f"{p}={d!r}" for p, d in self.parameters.items()]
        if keyword and not self.variadic:
            names.append("*")
        return ", ".join(names + keyword)

    def public(self) -> inspect.Signature:
        """How it is called where parameters may be given by position."""
        kind = inspect.Parameter
        last = len(self.arguments) - 1
        found = [
            kind(a, kind.VAR_POSITIONAL)
            if self.variadic and i == last
            else kind(a, kind.POSITIONAL_OR_KEYWORD, default=kind.empty if i < self.required else None)
            for i, a in enumerate(self.arguments)
        ]
        optional = [p.default is not kind.empty for p in found] + [d is not REQUIRED for d in self.parameters.values()]
        keyword = self.variadic or optional != sorted(optional)  # Python has no required argument after one that is not
        place = kind.KEYWORD_ONLY if keyword else kind.POSITIONAL_OR_KEYWORD
        return inspect.Signature([*found, *(kind(p, place, default=d) for p, d in self.parameters.items())])

    def shown(self) -> inspect.Signature:
        """How the op itself is called."""
        keyword, found = inspect.Parameter.KEYWORD_ONLY, self.public()
        names = self.parameters.keys()
        return found.replace(
            parameters=[p.replace(kind=keyword) if p.name in names else p for p in found.parameters.values()]
        )

    def index(self, argument: str) -> int:
        """The position of an argument, by name."""
        if argument not in self.arguments:
            raise messages.definition(
                self.name, f"has no argument {argument!r}; expected one of {', '.join(self.arguments)}"
            )
        return self.arguments.index(argument)

    def slot(self, i: int) -> int:
        """Which named argument the i-th array of a call belongs to."""
        return min(i, len(self.arguments) - 1)

    def bind(self, params: dict[str, Any]) -> dict[str, Any]:
        """``params`` with the defaults of those that are missing. Raises TypeError."""
        found = {**self.defaults, **params}
        if found.keys() == self.parameters.keys():
            return found
        for name in params:
            if name not in self.parameters:
                raise TypeError(f"{self.name}: unexpected parameter {name!r}; expected {self.name}({self})")
        missing = next(name for name in self.parameters if name not in found)
        raise TypeError(f"{self.name}: missing the parameter {missing!r}; expected {self.name}({self})")

    def check_kernel(self, forward: Callable[..., Any], backend: str) -> None:
        """An OpDefinitionError unless ``forward`` takes the same arguments and parameters."""
        theirs = Signature(forward, self.name)
        if (theirs.arguments, theirs.parameters) != (self.arguments, self.parameters):
            raise messages.definition(
                self.name, f"kernel for {backend!r}: expected parameters (xp, {self}), got (xp, {theirs})"
            )

    def ordinary(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters with Python's numbers for NumPy's, of which dtypes would follow, in tuples too.

        Raises:
            TypeError: a tensor is given for a number.
        """
        other = {name: _ordinary(value) for name, value in params.items() if type(value) not in PLAIN}
        for name in other.keys() & self.reals:
            if isinstance(other[name], TensorBase):
                raise TypeError(
                    f"{self.name}: {name}: expected a number, got a Tensor; float({name}) gives its value, through "
                    "which no gradient flows"
                )
            other[name] = other[name] if (number := as_number(other[name])) is None else number
        return {**params, **other} if other else params


def _ordinary(value: Any) -> Any:
    if type(value) is tuple:
        parts = [part if type(part) in PLAIN else _ordinary(part) for part in value]
        return value if all(map(is_, parts, value)) else tuple(parts)
    of_numpy = hasattr(type(value), "item") and not isinstance(value, TensorBase)  # an enumeration stays what it is
    return value if not of_numpy or (number := as_number(value)) is None else number


def as_now(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a rule that is run later: of lists, sets and dicts, in which somebody may write, copies."""
    return {name: _as_now(value) for name, value in params.items()}


def _as_now(value: Any) -> Any:
    kind = type(value)
    if issubclass(kind, tuple) and not getattr(value, "__dict__", None):  # a namedtuple, too
        return tuple.__new__(kind, map(_as_now, value))
    if value.__class__ is list:  # or what stands for one
        return [*map(_as_now, value)]
    if kind is slice:
        return slice(_as_now(value.start), _as_now(value.stop), _as_now(value.step))
    if kind is dict:
        return as_now(value)
    return set(value) if kind is set else value


def read_rule(rule: Callable[..., Any], argument: str, signature: Signature) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names that a rule reads, and what to call it with, in terms of g, args, out, shapes, params and index.

    As source, this costs one call at each node instead of an argument list: see ``ops/pull.py``.
    """
    if not callable(rule):
        raise messages.definition(signature.name, f"vjp rule for {argument!r}: expected a function, got {rule!r}")
    values, parameters, star, stars = declared(rule)
    if star or stars:
        raise messages.definition(signature.name, f"vjp rule for {argument!r}: name each value instead of *, **")
    actual = [_source(name, argument, signature) for name in values]
    for name in parameters:
        if name not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            raise messages.definition(
                signature.name, f"vjp rule for {argument!r}: unknown parameter {name!r}; the op has: {known}"
            )
        actual.append(f"{name}=params[{name!r}]")
    return frozenset(values), tuple(actual)


def _source(name: str, argument: str, signature: Signature) -> str:
    last = len(signature.arguments) - 1
    if name in ("g", "out", "index"):
        return name
    for suffix, where in (("", "args"), ("_shape", "shapes")):
        base = name.removesuffix(suffix) if suffix else name
        if (not suffix or name.endswith(suffix)) and base in signature.arguments:
            i = signature.arguments.index(base)
            return f"{where}[{i}:]" if signature.variadic and i == last else f"{where}[{i}]"
    options = ["g", "out", *signature.arguments, *(f"{a}_shape" for a in signature.arguments)]
    raise messages.definition(
        signature.name,
        f"vjp rule for {argument!r}: unknown name {name!r}; a rule may read {', '.join(options)}, "
        "and parameters of the op after *",
    )
