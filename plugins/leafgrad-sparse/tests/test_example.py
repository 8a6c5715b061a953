"""The example runs as its users run it, in this process, which has done the imports."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import leafgrad

SCRIPT = Path(__file__).parent.parent / "examples" / "conductivity.py"


def test_the_example_learns_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--steps", "12", "--out", str(tmp_path)])
    before = leafgrad.get_default_dtype()
    try:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    finally:
        leafgrad.set_default_dtype(before)  # which it chooses for its process
    printed = capsys.readouterr().out
    without = float(re.search(r"^error of .*: (\S+)$", printed, re.MULTILINE)[1])
    errors = [float(e) for e in re.findall(r"^relative .*: (\S+)$", printed, re.MULTILINE)]
    assert errors
    assert all(e < 0.9 * without for e in errors)
    assert (tmp_path / "conductivity.png").stat().st_size > 10_000
