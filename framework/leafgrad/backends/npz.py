"""NumPy's archives of arrays as files of ``leafgrad.save`` and ``load``: ``save(model.state_dict(), "model.npz")``.

``numpy.load`` reads them: the arrays under their dotted paths. Nothing is pickled or unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import Any, Final

import numpy as np

STRUCTURE: Final = "leafgrad"
"""The name of the array that holds what ``save`` keeps beside the arrays."""


class Npz:
    """The format; see ``leafgrad.plugins.FormatSpec``."""

    def write(self, file: Any, arrays: dict[str, Any], text: str) -> None:
        """Write arrays, and a string beside them."""
        if STRUCTURE in arrays:
            raise ValueError(f"the name {STRUCTURE!r} is taken by what is kept beside the arrays; rename the tensor")
        odd = next((name for name, a in arrays.items() if a.dtype.kind not in "biufc"), None)
        if odd is not None:
            raise ValueError(f"{odd!r} is of {arrays[odd].dtype.name}, which npz files have not; convert it")
        whole: dict[str, Any] = {**arrays, STRUCTURE: np.frombuffer(text.encode(), np.uint8)}
        np.savez(file, allow_pickle=False, **whole)

    def read(self, file: Any) -> tuple[dict[str, Any], str | None]:
        """The arrays, and the string; None if the file is of another program."""
        try:
            with np.load(file, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, AttributeError) as error:
            raise ValueError(f"it is no whole npz file: {error}") from error
        kept = arrays.pop(STRUCTURE, None)
        if kept is not None and (kept.dtype != np.uint8 or kept.ndim != 1):
            return arrays | {STRUCTURE: kept}, None
        return arrays, None if kept is None else kept.tobytes().decode()
