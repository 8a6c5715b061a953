"""Signals that ask a process to end, remembered until it can."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Self

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
Handler = Callable[[int, FrameType | None], Any] | int | None


class Interrupts:
    """Within it Ctrl-C, SIGTERM and SIGHUP end nothing: they are remembered, however often they come.

        with Interrupts() as interrupts:
            while not interrupts.received:
                ...

    Processes that are forked within it end by SIGTERM and SIGHUP, and leave it to their parent what Ctrl-C means.
    A signal that the process ignores, as SIGHUP under nohup, stays ignored.

    Attributes:
        received: the first signal that came, or None.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None

    def __enter__(self) -> Self:
        """Take the signals over; ValueError outside of the main thread, where Python hands none out."""
        self._owner = os.getpid()
        before = {number: signal.getsignal(number) for number in SIGNALS}
        self._before: dict[signal.Signals, Handler] = {}
        for number, handler in before.items():
            if handler not in (signal.SIG_IGN, None):  # None: not set from Python, so it cannot be put back
                signal.signal(number, self._remember)
                self._before[number] = handler
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:
            if number != signal.SIGINT:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            return
        if self.received is None:
            self.received = signal.Signals(number)
        text = f"\n{signal.Signals(number).name}: stopping at the next safe point; kill -9 {self._owner} ends at once\n"
        with suppress(OSError):  # the terminal may be gone
            os.write(2, text.encode())
