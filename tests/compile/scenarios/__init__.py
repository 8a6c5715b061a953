"""Scenarios by kind: each file of rows has one kind."""

from __future__ import annotations

import importlib
from pathlib import Path

from compile.scenarios.harness import ROWS, check

__all__ = ["ROWS", "check"]

for path in sorted(Path(__file__).parent.glob("*_rows.py")):
    importlib.import_module(f"compile.scenarios.{path.stem}")
