"""The door between a caller and a public function: where a call fails, its annotations say which argument is wrong.

The check runs only after something went wrong, so a good call pays for none of it; and it reads what the function
declares, so no function repeats it. What this package raises on purpose passes; what Python or an array library
raised inside is explained. Within the package functions call one another without passing the door.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from leafgrad.ops.node import TensorBase
from leafgrad.ops.scalars import as_flag
from leafgrad.ops.tracebacks import WRITTEN, deliberate, shorten
from leafgrad.tensor import overrides
from leafgrad.tensor.arguments import no_tensor
from leafgrad.tensor.old_forms import meant_by, old_form

F = TypeVar("F", bound=Callable[..., Any])
Arguments = tuple[Any, ...]
Bound = tuple[Arguments, dict[str, Any]]


def explained(function: F, *, bound: bool = False, name: str = "") -> F:
    """``function``, which blames the first argument that is not what its annotation says when a call fails.

    Args:
        bound: whether the first argument is the object whose method this is.
        name: what errors call it, if not by its own name.
    """
    plain = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
    if plain.__code__.co_flags & inspect.CO_VARARGS:  # which may come by keyword
        return typing.cast(F, door(function, bound, name))
    unchecked = {"return", plain.__code__.co_varnames[0]} if bound else {"return"}
    for argument, kind in plain.__annotations__.items():
        if kind != "Any" and kind is not Any and argument not in unchecked:
            return typing.cast(F, door(function, bound, name))
    return function


class Door:
    """What the function in front of ``function``, which is all that callers see, does beyond calling it.

    That function is written at its first call: it has the very parameters of the other, since taking any and passing
    them on costs as much as a small op. Where ``into`` is given it takes ``out`` as well.
    """

    def __init__(self, function: Callable[..., Any], bound: bool, name: str, into: Callable[..., Any] | None) -> None:
        self.function, self.bound, self.name, self.into = function, bound, name, into
        self.plain = known(function)
        self.front: Callable[..., Any] = function
        self.asks = False

    def checked(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function of arguments of which some may have other names, or be wrong."""
        try:
            return self.run(args, kwargs)
        except Exception as error:
            others = overrides.overriding((*args, *kwargs.values()))
            meant = None if others else self.meant(args, kwargs)
            wrong = None if others or meant else self.blame(error, args, kwargs)
            if not others and wrong is None and meant is None:
                shorten(error)
                raise
        if others:
            return overrides.ask(self.front, others, args, kwargs)
        if meant is not None:
            return self.run(*meant)
        raise typing.cast(Exception, wrong)

    def passed(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function of any arguments, of which ``out`` may be one."""
        out = kwargs.pop("out", None) if self.into else None
        return self.checked(*args, **kwargs) if out is None else self.written(out, args, kwargs)

    def meant(self, args: Arguments, kwargs: dict[str, Any]) -> Bound | None:
        """The call under the function's own names, if that is another."""
        function = inspect.unwrap(self.function)
        return (meant_by(function, args, kwargs) if kwargs else None) or old_form(function, args, kwargs, self.bound)

    def elsewhere(self, others: list[Any], args: Arguments, kwargs: dict[str, Any]) -> Any:
        """What the classes of some arguments answer, as ``overrides.ask``; positions are given by position."""
        placed, named = list(args), dict(kwargs)
        for name in self.plain.__code__.co_varnames[len(args) : self.plain.__code__.co_argcount]:
            if name not in named:
                break
            placed.append(named.pop(name))
        return overrides.ask(self.front, others, tuple(placed), named)

    def blame(self, error: Exception, args: Arguments, kwargs: dict[str, Any]) -> TypeError | None:
        """The error that says which argument is wrong, if that is why there is ``error``."""
        made = (*args, kwargs.get("self"))[0] if self.function.__name__ == "__init__" else None
        name = self.name if made is None else type(made).__name__
        said = deliberate(error) and not isinstance(error, AttributeError)  # which any object raises by itself
        if said and not _of_another(error, name or self.function.__name__):
            return None
        return _wrong_argument(self.function, args, kwargs, self.bound, name) or self.misfit(error, name)

    def run(self, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """The function of arguments under its own names, if flags among them are flags."""
        given = dict(zip(self.plain.__code__.co_varnames, args, strict=False)) | kwargs
        flags = flags_of(self.plain).items()
        if any(name in given and all(given[name] is not v for v in values) for name, values in flags):
            args, kwargs = self.with_flags(args, kwargs)
        return self.function(*args, **kwargs)

    def with_flags(self, args: Arguments, kwargs: dict[str, Any]) -> Bound:
        """Arguments with flags of NumPy as Python's; an error about one that is none, unless a class decides."""
        args, kwargs = tuple([as_flag(a) for a in args]), {name: as_flag(a) for name, a in kwargs.items()}
        if not overrides.overriding((*args, *kwargs.values())):
            wrong = _wrong_argument(self.function, args, kwargs, self.bound, self.name)
            if wrong is not None:
                raise wrong
        return args, kwargs

    def misfit(self, error: Exception, name: str) -> TypeError | None:
        """Python's error about a call that does not fit, by the name of the caller's class, with the names it takes."""
        text, start = str(error), f"{self.function.__qualname__}() "
        if not isinstance(error, TypeError) or not text.startswith(start):
            return None
        takes = ""
        if "unexpected keyword" in text:
            takes = f"; it takes {', '.join(list(inspect.signature(self.function).parameters)[self.bound :])}"
        own = f"{name}.__init__() " if self.function.__name__ == "__init__" else start
        return TypeError(own + text.removeprefix(start) + takes)

    def written(self, out: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
        """``out`` with the result."""
        assert self.into is not None
        return self.into(out, self.checked, self.function, self.name or self.function.__name__, args, kwargs)

    def given(self, args: Arguments, kwargs: dict[str, Any], others: dict[str, Any]) -> Bound:
        """Arguments without those that are their defaults; by name, unless more follow."""
        code = self.plain.__code__
        first, count = code.co_posonlyargcount, code.co_argcount
        defaults, keywords = self.defaults()
        kwargs = {n: v for n, v in kwargs.items() if v is not keywords[n]} | others
        if code.co_flags & inspect.CO_VARARGS or len(args) > count:
            return tuple([a for a in args if a is not MISSING]), kwargs
        named = zip(code.co_varnames[first:count], args[first:], defaults[first:], strict=True)
        given = tuple([a for a in args[:first] if a is not MISSING])
        return given, {n: v for n, v, default in named if v is not default} | kwargs

    def defaults(self) -> tuple[Arguments, dict[str, Any]]:
        """Of all that may be given by position, and of the others: what is needed may be given under another name."""
        code, given = self.plain.__code__, self.plain.__defaults__ or ()
        count, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        keywords = dict.fromkeys(code.co_varnames[count:last], MISSING) | (self.plain.__kwdefaults__ or {})
        return (*(MISSING,) * (count - len(given)), *given), keywords

    def later(self) -> Any:
        """A function that is written when it is first called, unless what it passes on has no names."""
        code = self.plain.__code__
        unnamed = code.co_flags & inspect.CO_VARKEYWORDS or " _" in " " + " ".join(code.co_varnames[: code.co_argcount])
        scope: dict[str, Any] = {"__name__": __name__, "MISSING": MISSING, "_door": self, "_function": self.function}
        scope["_shorten"], scope["_overriding"] = shorten, overrides.overriding
        made: Any = types.FunctionType(STUB_OUT if self.into and not unnamed else STUB, scope)
        made.__kwdefaults__ = out = {"out": None} if self.into and not unnamed else None

        def begin(*args: Any, **kwargs: Any) -> Any:
            made.__defaults__, keywords = self.defaults()
            made.__kwdefaults__ = keywords | (out or {})
            made.__code__ = next(c for c in compile(self.text(), WRITTEN, "exec").co_consts if hasattr(c, "co_code"))
            return made(*args, **kwargs)

        scope["_begin"] = self.passed if unnamed else begin
        return made

    def ask(self) -> None:
        """From now on the function in front, which stays the same object, asks ``__torch_function__`` first."""
        front: Any = self.front
        form = {"form": vars(front)["as_asked"]} if "as_asked" in vars(front) else {}
        front.__globals__["_begin"] = overrides.asking(self.later(), lambda: front, **form)
        front.__code__, front.__defaults__, front.__kwdefaults__ = STUB, None, None

    def text(self) -> str:
        code = self.plain.__code__
        named, count = code.co_varnames, code.co_argcount
        first, last = code.co_posonlyargcount, count + code.co_kwonlyargcount
        stars = [f"*{named[last]}"] if code.co_flags & inspect.CO_VARARGS else []
        defaults, values = self.defaults()
        needed = [n for n, default in zip(named, (*defaults, *values.values()), strict=False) if default is MISSING]
        keywords = [*named[count:last], *(["out"] if self.into else [])]
        head = [*named[:first], *(["/"] if first else []), *named[first:count], *(stars or ["*_args"])]
        head += [*keywords, "**_kwargs"]
        args = "(" + "".join([f"{name}, " for name in (*named[:count], *(stars or ["*_args"]))]) + ")"
        kwargs = "{" + ", ".join([f"{name!r}: {name}" for name in named[count:last]]) + "}"
        call = ", ".join([*named[:count], *stars, *[f"{name}={name}" for name in named[count:last]]])
        amiss = " or ".join(["_kwargs", *([] if stars else ["_args"]), *[f"{name} is MISSING" for name in needed]])
        out = OUT.format(args, kwargs) if self.into else ""
        flags = flags_of(self.plain)
        unlike = " or ".join([f"not ({' or '.join([f'{n} is {v}' for v in values])})" for n, values in flags.items()])
        checked = FLAGS.format(unlike, args, kwargs) if flags else ""
        return DOOR.format(
            head=", ".join(head), args=args, kwargs=kwargs, call=call, out=out, amiss=amiss, flags=checked
        )


MISSING = object()  # no argument's default
OUT = "if out is not None: return _door.written(out, *_door.given({}, {}, _kwargs))"
FLAGS = "if {}: return _door.run(*_door.given({}, {}, _kwargs))"
DOOR = """
def call({head}):
    {out}
    if {amiss}:
        args, kwargs = _door.given({args}, {kwargs}, _kwargs)
        return _door.checked(*args, **kwargs)
    try:
        {flags}
        return _function({call})
    except Exception as _error:
        _args, _kwargs = _door.given({args}, {kwargs}, _kwargs)
        _others = _overriding((*_args, *_kwargs.values()))
        _wrong = None if _others else _door.blame(_error, _args, _kwargs)
        if not _others and _wrong is None:
            _shorten(_error)
            raise
    if _others:
        return _door.elsewhere(_others, _args, _kwargs)
    raise _wrong
"""
STUB, STUB_OUT = [
    eval(compile(f"lambda *args, {out}**kwargs: _begin(*args, {given}**kwargs)", WRITTEN, "eval")).__code__
    for out, given in (("", ""), ("out=None, ", "out=out, "))
]


@functools.cache
def flags_of(function: types.FunctionType) -> dict[str, tuple[bool | None, ...]]:
    """The parameters of a function that are True or False, each with what it may be. Classes take any truth."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    hints = {} if "." in function.__qualname__ else function.__annotations__
    kinds = {"bool": (False, True), "bool | None": (None, False, True)}
    return {name: kinds[kind] for name, kind in hints.items() if kind in kinds and name in known}


def door(
    function: Callable[..., Any], bound: bool = False, name: str = "", into: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The function in front of ``function``: see ``Door``."""
    behind = Door(function, bound, name, into)
    behind.front = functools.update_wrapper(behind.later(), function)
    return behind.front


def asks(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, or one in front of it, which asks ``__torch_function__`` first once there is one."""
    front: Any = function if "_door" in function.__globals__ else door(function)
    front.__globals__["_door"].asks = True
    overrides.when_begun(front.__globals__["_door"].ask)
    return typing.cast(Callable[..., Any], front)


def asks_first(function: Any) -> bool:
    """Whether a function is one that asks."""
    return "_door" in function.__globals__ and function.__globals__["_door"].asks


def known(function: Any) -> Any:
    """The function whose parameters ``function`` has: what it wraps, where it passes anything on.

    One with the attribute ``as_given`` shows its arguments to others, who are not to see defaults.
    """
    while hasattr(function, "__wrapped__") and not function.__code__.co_kwonlyargcount:
        if not function.__code__.co_flags & inspect.CO_VARKEYWORDS or "as_given" in vars(function):
            break
        function = function.__wrapped__
    return function


def _wrong_argument(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool, called: str
) -> TypeError | None:
    """A TypeError about the first argument that its annotation does not allow, or None."""
    try:
        signature = inspect.signature(function, eval_str=True)
        given = signature.bind(*args, **kwargs).arguments
    except (TypeError, NameError):
        return None
    for position, (name, parameter) in enumerate(list(signature.parameters.items())[bound:], 1):
        if name not in given:
            continue
        value = given[name]
        star = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        for item in value if star else [value]:
            if not allows(parameter.annotation, item) and not (item is None and parameter.default is None):
                return TypeError(
                    f"{called or function.__name__}(): argument {name!r} (position {position}) must be "
                    f"{spelled(parameter.annotation)}, not {_got(parameter.annotation, item)}"
                    + (no_tensor(item) if _is_tensor(parameter.annotation) else "")
                )
    return None


def _of_another(error: Exception, called: str) -> bool:
    """Whether an error is about an argument of a function that the one that was called called in turn."""
    function, about, _ = str(error).partition("(): argument ")
    return bool(about) and isinstance(error, TypeError) and function.rpartition(".")[2] != called.rpartition(".")[2]


def _is_tensor(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, TensorBase)


def _got(hint: Any, value: Any) -> str:
    if isinstance(value, (tuple, list)) and _is_sequence(hint):
        wrong = [type(item).__name__ for item in value if not _allows_item(hint, item)]
        return f"{type(value).__name__} with {wrong[0]}" if wrong else type(value).__name__
    name = type(value).__name__
    return f"{type(value).__module__}.{name}" if name == spelled(hint) else name  # as NumPy calls its bool


def _is_sequence(hint: Any) -> bool:
    hints = typing.get_args(hint) if _is_union(hint) else (hint,)
    return any(isinstance(o := typing.get_origin(h), type) and issubclass(o, Iterable) for h in hints)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _allows_item(hint: Any, item: Any) -> bool:
    if _is_union(hint):
        return any(_is_sequence(h) and _allows_item(h, item) for h in typing.get_args(hint))
    inner = [a for a in typing.get_args(hint) if a is not Ellipsis]
    return not inner or any(allows(a, item) for a in inner)


def allows(hint: Any, value: Any) -> bool:
    """Whether ``value`` may be an argument annotated ``hint``. Numbers may be NumPy's."""
    if hint in (Any, inspect.Parameter.empty, object) or isinstance(hint, TypeVar):
        return True
    if _is_union(hint):
        return any(allows(h, value) for h in typing.get_args(hint))
    if hint is None or hint is type(None):
        return value is None
    if typing.get_origin(hint) is typing.Literal:
        return isinstance(value, (str, int)) and value in typing.get_args(hint)
    if hint in (int, float):
        return _is_number(hint, value)
    if hint is bool:
        return isinstance(as_flag(value), bool)
    origin = typing.get_origin(hint) or hint
    if origin is Callable:
        return callable(value)
    if not isinstance(origin, type) or hasattr(origin, "__array_interface__"):  # arrays of NumPy's are made of anything
        return True
    if _is_sequence(hint) and (isinstance(value, (str, Mapping)) or hasattr(value, "ndim")):
        return isinstance(value, Mapping) and issubclass(origin, Mapping)
    if not isinstance(value, origin):
        return origin is tuple and isinstance(value, list) and all(_allows_item(hint, item) for item in value)
    return not isinstance(value, (tuple, list)) or all(_allows_item(hint, item) for item in value)


def _is_number(hint: type, value: Any) -> bool:
    return isinstance(value, numbers.Integral if hint is int else numbers.Real) and not (
        hint is int and isinstance(value, bool)
    )


def spelled(hint: Any) -> str:
    """A type in an error's words: ``int``, ``Tensor or None``, ``tuple of ints``."""
    if _is_union(hint):
        return " or ".join(dict.fromkeys(map(spelled, typing.get_args(hint))))
    if hint is None or hint is type(None):
        return "None"
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    origin = typing.get_origin(hint) or hint
    if origin is Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "dict"
    if _is_sequence(hint):
        inner = list(dict.fromkeys(spelled(a) + "s" for a in typing.get_args(hint) if a not in (Ellipsis, Any)))
        return "tuple" + (f" of {' or '.join(inner)}" if inner else "")
    return str(getattr(hint, "__name__", hint))
