"""The last states of a training, in files with numbers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from leafgrad import modes
from leafgrad.ops.messages import warn
from leafgrad.utils.serialization import load, save

NAME = re.compile(r"checkpoint-(\d+)\.safetensors")


class Checkpoints:
    """The last checkpoints in a folder, ``checkpoint-000001.safetensors`` and so on.

    Whenever the process is killed, the last checkpoint whose ``save`` returned is whole. Compiled steps forget at each
    checkpoint what they have learned of their calls, so that a process that resumes from it goes on to the same bits.

    Args:
        folder: where they are; made when there is something to save.
        keep: how many stay. Older ones are deleted after a newer one is on the disk.

    Raises:
        ValueError: ``keep`` is less than 1.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"Checkpoints: keep: expected at least 1, got {keep}")
        self.folder = Path(folder)
        self.keep = keep

    def paths(self) -> list[Path]:
        """Those that are there, the newest last."""
        try:
            found = {int(match[1]): path for path in self.folder.iterdir() if (match := NAME.fullmatch(path.name))}
        except FileNotFoundError:
            return []
        return [found[number] for number in sorted(found)]

    def save(self, obj: Any) -> Path:
        """Save what ``leafgrad.save`` takes as the newest one; returns its path.

        Raises:
            TypeError, ValueError, OSError: as ``leafgrad.save`` does; the checkpoints before it stay.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self.paths()
        last = NAME.fullmatch(before[-1].name) if before else None
        path = self.folder / f"checkpoint-{int(last[1]) + 1 if last else 1:06d}.safetensors"
        save(obj, path)
        modes.Checkpoint.number += 1
        for old in [*before, path][: -self.keep]:
            old.unlink(missing_ok=True)
        return path

    def latest(self, map_location: Any = None) -> Any:
        """What the newest whole checkpoint holds. One that is damaged is passed over, with a warning.

        Args:
            map_location: where to put tensors, as for ``leafgrad.load``.

        Raises:
            FileNotFoundError: there is none. RuntimeError: none is whole.
        """
        paths = self.paths()
        if not paths:
            raise FileNotFoundError(f"expected a checkpoint in the folder {self.folder}, found none")
        for path in reversed(paths):
            try:
                found = load(path, map_location)
                modes.Checkpoint.number += 1
                return found
            except RuntimeError as error:
                if path == paths[0]:
                    raise
                warn(f"{error}; going back to an earlier checkpoint")
