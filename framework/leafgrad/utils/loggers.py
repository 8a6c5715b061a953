"""What a training writes down: the terms of its loss, as a table."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leafgrad.utils.training import Training


class CsvLogger:
    """A row for each ``Training.note`` in ``log.csv``: the number of the step, and the terms.

    Columns are the terms of the first row. A training that is resumed goes on after the rows of the steps that are
    done; rows of later ones, which it does again, are dropped.

    Args:
        folder: where the file goes.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / "log.csv"
        self.columns: list[str] = []
        self.file: Any = None

    def on_start(self, training: Training) -> None:
        """Open the file, with the rows of the steps that are done."""
        rows: list[list[str]] = []
        if training.done and self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as file:
                rows = [row for row in csv.reader(file) if row]
        head, *rows = rows or [[]]
        self.columns = head[1:]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("w", newline="", encoding="utf-8")
        writer = csv.writer(self.file)
        if head:
            writer.writerows([head, *(row for row in rows if int(row[0]) < training.done)])

    def on_note(self, training: Training, terms: dict[str, float]) -> None:
        """Write a row."""
        writer = csv.writer(self.file)
        if not self.columns:
            self.columns = list(terms)
            writer.writerow(["step", *self.columns])
        unknown = terms.keys() - set(self.columns)
        if unknown:
            raise ValueError(
                f"log.csv: expected the terms {', '.join(self.columns)}, as in the first row, got {min(unknown)!r}, too"
            )
        writer.writerow([training.done, *(terms.get(name, "") for name in self.columns)])

    def on_save(self, training: Training) -> None:
        """Let the rows be on the disk as the checkpoint is."""
        self.file.flush()

    def on_end(self, training: Training) -> None:
        """Close the file."""
        self.file.close()
