"""Handlers of signals: their errors, such as a TimeoutError, which say nothing of the code that they interrupt, and
stretches of code within which none runs.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

CORE = import_module("_signal")  # where signal has its functions from, which look for the names of what they give
getsignal, set_handler = CORE.getsignal, CORE.signal
NUMBERS = tuple(sorted(CORE.valid_signals()))


# ---- errors of handlers -------------------------------------------------------------------------------------------


def raised_by_handler(error: BaseException) -> bool:
    """Whether the handler of a signal raised ``error``; what is no Exception, as of Ctrl+C, counts as if one had."""
    if not isinstance(error, Exception):
        return True
    codes, step = handlers(), error.__traceback__
    while step is not None and step.tb_frame.f_code not in codes:
        step = step.tb_next
    return step is not None


def handlers_error(error: BaseException | None) -> BaseException | None:
    """``error``, or the one that it tells of or came after, if the handler of a signal raised that."""
    seen: set[int] = set()  # errors may come after each other in a circle
    while error is not None and id(error) not in seen:
        if raised_by_handler(error):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def handlers() -> set[Any]:
    """The code of what handles signals now, written in Python."""
    return {code_of(getsignal(number)) for number in NUMBERS} - {None} | {Waiting.__call__.__code__}


def code_of(handler: Any) -> Any:
    """The code that a handler runs: a function, a method, or an object that can be called; None for no handler."""
    while hasattr(handler, "func") and not hasattr(handler, "__code__"):  # functools.partial
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not callable(function):
        return None
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)


# ---- stretches without handlers -----------------------------------------------------------------------------------


class Waiting:
    """Stands for the handler of a signal while something is held, and calls it, at once or when that is over.

    What waits is taken and added without a call: a profile function is told of each, within which handlers may run.

    Attributes:
        thread: the one in which handlers wait; None for none.
        called: what is to be called, with the signal's number.
        around: what calls a handler that does not wait, in code that is ``interruptible``; None for nothing else.
    """

    thread: ClassVar[int | None] = None
    called: ClassVar[list[tuple[Waiting, int]]] = []
    around: ClassVar[Callable[[Callable[[], Any]], None] | None] = None

    def __init__(self, handler: Any) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: Any) -> None:
        if Waiting.thread == get_ident():
            Waiting.called = [*Waiting.called, (self, number)]
        elif Waiting.around is not None:
            Waiting.around(partial(self.handler, number, frame))
        else:
            self.handler(number, frame)


IDLE = frozenset({int, type(None), Waiting})  # of what needs none to stand for it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(Waiting, "called", []))  # they came to the parent


class FromHandler(BaseException):
    """Brings the error of a handler out of what is held, past each ``except`` that would take it for another."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error


def held(act: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """What ``act`` returns. The handlers of signals that arrive meanwhile are called when it is over, in order.

    Python runs handlers in the main thread alone, so nothing is to be done in others. No mask would do: another thread
    would take the signal, such as those of BLAS.
    """
    own = get_ident()
    if Waiting.thread == own:
        return act(*args, **kwargs)
    from threading import main_thread  # by those alone who hold something

    if own != main_thread().ident:
        return act(*args, **kwargs)
    placed: dict[int, Waiting] = {}
    try:
        Waiting.thread = own
        for number, handler in zip(NUMBERS, map(getsignal, NUMBERS), strict=True):
            if type(handler) not in IDLE:
                placed[number] = Waiting(handler)
                set_handler(number, placed[number])
        return act(*args, **kwargs)
    except FromHandler as passed:
        error = passed.error
    finally:
        try:
            put_back(placed)
        finally:
            Waiting.thread = None
            call_waiting()
    raise error


def interruptible(act: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """What ``act`` returns: code within ``held`` of which nobody knows how long it takes, such as a user's."""
    own = get_ident()
    if Waiting.thread != own:
        return act(*args, **kwargs)
    try:
        Waiting.thread = None
        call_waiting()
        return act(*args, **kwargs)
    except Exception as error:
        Waiting.thread = own
        if raised_by_handler(error):
            raise FromHandler(error) from None
        raise
    finally:
        Waiting.thread = own  # nothing between it and the end of act lets a signal in


def put_back(placed: dict[int, Waiting]) -> None:
    """Let the handlers be what they were, but for those that are others by now."""
    try:
        for number, waiting in placed.items():
            if getsignal(number) is waiting:
                set_handler(number, waiting.handler)
    except BaseException:  # of a handler that is back already
        put_back(placed)
        raise


def call_waiting() -> None:
    """Call the handlers that have waited, all of them, whatever they raise. They find where this stands."""
    if Waiting.called:
        (waiting, number), *Waiting.called = Waiting.called
        try:
            waiting(number, sys._getframe())
        finally:
            call_waiting()
