"""``torch.hub``: leafgrad downloads nothing, and runs no code from elsewhere."""

from __future__ import annotations

import os
import re

from leafgrad.compat.absent import refused

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # in names of files, a part of their hash

__all__ = [
    "HASH_REGEX", "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
]  # fmt: skip

REMEDY = "download the weights yourself, read them with torch.load(path), and put them into your module"

load, list, help = (refused(f"torch.hub.{name}", REMEDY) for name in ("load", "list", "help"))
load_state_dict_from_url = refused("torch.hub.load_state_dict_from_url", REMEDY)
download_url_to_file = refused("torch.hub.download_url_to_file", REMEDY)

_dir: str | None = None


def get_dir() -> str:
    """Where PyTorch would keep downloads: ``$TORCH_HOME/hub``, by default in ``~/.cache/torch``."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return _dir or os.path.expanduser(os.path.join(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")), "hub"))


def set_dir(d: str | os.PathLike[str]) -> None:
    """What ``get_dir`` gives from now on."""
    global _dir
    _dir = os.path.expanduser(os.fspath(d))
