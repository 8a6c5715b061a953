"""What tracebacks show of this package: where it was entered, and where it raised.

Between the two lie frames that tell a reader nothing: functions that are written at their first call, the dispatch of
ops, the recording of a compiled step. Whoever lets an error out to a caller cuts them; ``LEAFGRAD_TRACEBACKS=full``
keeps them. What looks like a fault of this package, since nobody raised it on purpose, is shown as it is.
"""

from __future__ import annotations

import dis
import os
from types import TracebackType

from leafgrad.ops.messages import PACKAGE

WRITTEN = f"{PACKAGE}/(written)"  # the file of functions written at run time, so that no line of another is shown
FIRST, LAST = 1, 2  # frames kept of each run of frames of this package


def shorten(error: BaseException) -> None:
    """Cut what lies within this package out of the traceback of ``error``, which was raised on purpose."""
    if error.__traceback__ is None or os.environ.get("LEAFGRAD_TRACEBACKS") == "full":
        return
    run: list[TracebackType] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        inside = trace.tb_frame.f_code.co_filename.startswith(PACKAGE)
        if inside:
            run.append(trace)
        following = trace.tb_next
        if not inside or following is None:
            if inside and not raised(error):
                return
            if len(run) > FIRST + LAST:
                run[FIRST - 1].tb_next = run[-LAST]
            run = []
        trace = following


def deliberate(error: BaseException | None) -> bool:
    """Whether ``raise`` statements made an error and all that led to it, rather than an operation that failed."""
    while error is not None:
        if not raised(error):
            return False
        error = error.__cause__ or error.__context__
    return True


def raised(error: BaseException) -> bool:
    """Whether an error comes from a ``raise`` statement."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
