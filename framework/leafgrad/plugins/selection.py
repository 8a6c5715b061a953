"""Which installed plugins may load, by the environment variable LEAFGRAD_PLUGINS.

(unset)         all
none            none
special,native  these alone, by entry-point name
-special        all but this
"""

from __future__ import annotations

import os
from typing import NamedTuple

from leafgrad.errors import PluginError

VARIABLE = "LEAFGRAD_PLUGINS"


class Selection(NamedTuple):
    """What the variable says.

    names: the plugins it names.
    only: whether these alone load; otherwise all the others do.
    """

    names: frozenset[str]
    only: bool

    def blocks(self, name: str) -> str:
        """Why a plugin may not load; "" if it may."""
        if self.only and name not in self.names:
            return f"not in {VARIABLE}"
        return f"excluded by {VARIABLE}" if not self.only and name in self.names else ""


def selection() -> Selection:
    """The selection as the environment has it now.

    Raises:
        PluginError: some names have a minus and some have none, or the core has one.
    """
    value = os.environ.get(VARIABLE, "").strip()
    if value == "none":
        return Selection(frozenset(), only=True)
    listed = [name for part in value.split(",") if (name := part.strip())]
    excluded = [name.removeprefix("-").strip() for name in listed if name.startswith("-")]
    if excluded and len(excluded) < len(listed):
        raise PluginError(
            f"{VARIABLE}={value}: expected either the plugins that alone may load (a,b) or, each with a minus, those "
            "that may not (-a,-b), got both; drop one kind"
        )
    if "core" in excluded:
        raise PluginError(f"{VARIABLE}={value}: expected names of installed plugins, got the core, which all need")
    return Selection(frozenset(excluded or listed), only=bool(listed) and not excluded)
