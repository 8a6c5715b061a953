"""What becomes of failures of plugins: a warning for each, or an error under LEAFGRAD_STRICT_PLUGINS=1."""

from __future__ import annotations

import os
import warnings

from leafgrad.errors import PluginError


class PluginWarning(UserWarning):
    """A plugin, or something of it, was left out; the message names it, its distribution and the reason."""


def strict() -> bool:
    """Whether each failure is an error."""
    return os.environ.get("LEAFGRAD_STRICT_PLUGINS", "") not in ("", "0")


def report(*failures: PluginError) -> None:
    """Warn of each failure once; where they are errors, raise one PluginError for all."""
    if failures and strict():
        raise PluginError("\n".join(map(str, failures))) from failures[0]
    for failure in failures:
        warnings.warn(str(failure), PluginWarning, stacklevel=3)
