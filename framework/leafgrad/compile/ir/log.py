"""What compile does, for those who ask: the logger ``leafgrad.compile``, and stderr under ``LEAFGRAD_LOG=compile``."""

from __future__ import annotations

import os
import sys


def log(message: str) -> None:
    """Say what was traced and why."""
    logging = sys.modules.get("logging")  # who listens has imported it
    if logging is not None:
        logging.getLogger("leafgrad.compile").info(message)
    if "compile" in os.environ.get("LEAFGRAD_LOG", "").split(","):
        print(f"leafgrad.compile: {message}", file=sys.stderr)
