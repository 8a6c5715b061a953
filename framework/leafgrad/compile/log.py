"""What compile does, for those who ask: the logger ``leafgrad.compile``, and stderr under ``LEAFGRAD_LOG=compile``."""

from __future__ import annotations

import logging
import os
import sys

LOGGER = logging.getLogger("leafgrad.compile")


def log(message: str) -> None:
    """Say what was traced and why."""
    LOGGER.info(message)
    if "compile" in os.environ.get("LEAFGRAD_LOG", "").split(","):
        print(f"leafgrad.compile: {message}", file=sys.stderr)
