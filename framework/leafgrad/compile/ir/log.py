"""What compile does, for those who ask: the logger ``leafgrad.compile``, and stderr under ``LEAFGRAD_LOG=compile``."""

from __future__ import annotations

import os
import sys


def log(message: str) -> None:
    """Say what was traced and why."""
    if "logging" in sys.modules:  # who listens has imported it
        import logging  # or is about to have done so, in another thread

        logging.getLogger("leafgrad.compile").info(message)
    if "compile" in os.environ.get("LEAFGRAD_LOG", "").split(","):
        print(f"leafgrad.compile: {message}", file=sys.stderr)
