"""Errors of the handlers of signals, such as a TimeoutError, which say nothing of the code that they interrupt."""

from __future__ import annotations

from typing import Any


def raised_by_handler(error: BaseException) -> bool:
    """Whether the handler of a signal raised ``error``; what is no Exception, as of Ctrl+C, counts as if one had."""
    import signal  # by those alone who have an error to ask about

    if not isinstance(error, Exception):
        return True
    codes = set(map(code_of, map(signal.getsignal, signal.valid_signals()))) - {None}
    step = error.__traceback__ if codes else None
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


def code_of(handler: Any) -> Any:
    """The code that a handler runs: a function, a method, or an object that can be called; None for no handler."""
    function = getattr(handler, "__func__", handler)
    if not callable(function):
        return None
    return getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
