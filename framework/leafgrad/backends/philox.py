"""Streams of random numbers that start anew from a key."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class Streams(threading.local):
    """A stream of each thread's own, made when first asked for: NumPy takes its time to import what draws."""

    stream: np.random.Generator | None = None
    start: Any

    def restarted(self, key: int) -> np.random.Generator:
        """The stream, from the beginning of the numbers that follow from ``key``."""
        if self.stream is None:
            self.stream = np.random.Generator(np.random.Philox(0))
            self.start = self.stream.bit_generator.state
            self.start["state"]["counter"][:] = self.start["state"]["key"][:] = 0
        self.start["state"]["key"][0] = key
        self.stream.bit_generator.state = self.start
        return self.stream


STREAMS = Streams()
