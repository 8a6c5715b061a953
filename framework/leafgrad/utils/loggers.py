"""What a training writes down: the terms of its loss, as a table or as curves for TensorBoard."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leafgrad.utils.tensorboard import SummaryWriter

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


class TensorBoardLogger:
    """A curve for each term that ``Training.note`` is given, in an event file for TensorBoard.

    TensorBoard no longer shows what earlier runs in this folder wrote of the steps that this one does (again).

    Args:
        folder: where the file goes; TensorBoard takes its name for the name of the run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.writer: Any = None

    def on_start(self, training: Training) -> None:
        """Begin an event file, from the step that is to be done."""
        self.writer = SummaryWriter(self.folder, purge_step=training.done)

    def on_note(self, training: Training, terms: dict[str, float]) -> None:
        """Add a point to the curve of each term."""
        for name, term in terms.items():
            self.writer.add_scalar(name, term, training.done)

    def on_save(self, training: Training) -> None:
        """Let the points be on the disk as the checkpoint is."""
        self.writer.flush()

    def on_end(self, training: Training) -> None:
        """Close the file."""
        self.writer.close()
