"""The signature of an op, and its vjp rules turned into callables of one form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from leafgrad.ops import messages

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """Arguments (arrays, positional) and parameters (keyword-only) of a forward ``f(xp, x, y, *, dim)``.

    Attributes:
        arguments: names of the array arguments, without ``xp``.
        required: how many of them have no default.
        variadic: whether the last argument is ``*xs``; it then stands for any number of arrays.
        parameters: name -> default of each keyword-only parameter (``inspect.Parameter.empty`` if none).
    """

    __slots__ = ("arguments", "name", "parameters", "required", "variadic")

    def __init__(self, forward: Callable[..., Any], name: str) -> None:
        self.name = name
        parameters = list(inspect.signature(forward).parameters.values())
        if not parameters or parameters[0].name != "xp" or parameters[0].kind not in POSITIONAL:
            raise messages.definition(name, "the forward's first parameter must be xp, the array namespace")
        positional = [p for p in parameters[1:] if p.kind in POSITIONAL]
        star = [p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            raise messages.definition(name, "name each parameter instead of taking **keywords")
        if any(p.default not in (inspect.Parameter.empty, None) for p in positional):
            raise messages.definition(name, "an array argument's default can only be None; put parameters behind *")
        self.arguments = tuple(p.name for p in positional + star)
        self.required = sum(p.default is inspect.Parameter.empty for p in positional)
        self.variadic = bool(star)
        self.parameters = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
        for reserved in ("g", "out", "index"):
            if reserved in self.arguments or reserved in self.parameters:
                raise messages.definition(name, f"{reserved!r} is a name that vjp rules use; call it otherwise")

    def __str__(self) -> str:
        names = [*self.arguments]
        if self.variadic:
            names[-1] = "*" + names[-1]
        keyword = [p if d is inspect.Parameter.empty else f"{p}={d!r}" for p, d in self.parameters.items()]
        if keyword and not self.variadic:
            names.append("*")
        return ", ".join(names + keyword)

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

    def check_kernel(self, forward: Callable[..., Any], backend: str) -> None:
        """An OpDefinitionError unless ``forward`` takes the same arguments and parameters."""
        theirs = Signature(forward, self.name)
        if (theirs.arguments, theirs.parameters) != (self.arguments, self.parameters):
            raise messages.definition(
                self.name, f"kernel for {backend!r}: expected parameters (xp, {self}), got (xp, {theirs})"
            )


def read_rule(rule: Callable[..., Any], argument: str, signature: Signature) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names that a rule reads, and what to call it with, in terms of g, args, out, shapes, params and index.

    As source, this costs one call at each node instead of an argument list: see ``ops/pull.py``.
    """
    if not callable(rule):
        raise messages.definition(signature.name, f"vjp rule for {argument!r}: expected a function, got {rule!r}")
    actual, uses = [], set()
    for p in inspect.signature(rule).parameters.values():
        if p.kind is inspect.Parameter.KEYWORD_ONLY:
            if p.name not in signature.parameters:
                known = ", ".join(signature.parameters) or "none"
                raise messages.definition(
                    signature.name, f"vjp rule for {argument!r}: unknown parameter {p.name!r}; the op has: {known}"
                )
            default = signature.parameters[p.name]
            got = (
                f"params[{p.name!r}]" if default is inspect.Parameter.empty else f"params.get({p.name!r}, {default!r})"
            )
            actual.append(f"{p.name}={got}")
        elif p.kind in POSITIONAL:
            actual.append(_source(p.name, argument, signature))
            uses.add(p.name)
        else:
            raise messages.definition(signature.name, f"vjp rule for {argument!r}: name each value instead of *, **")
    return frozenset(uses), tuple(actual)


def _source(name: str, argument: str, signature: Signature) -> str:
    last = len(signature.arguments) - 1
    if name in ("g", "out", "index"):
        return name
    for suffix, where in (("_shape", "shapes"), ("", "args")):
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
