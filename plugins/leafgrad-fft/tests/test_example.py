"""The example runs as its users run it, in this process, which has done the imports."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "examples" / "burgers_operator.py"


def test_the_example_learns_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--steps", "60", "--samples", "64", "--out", str(tmp_path)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    printed = capsys.readouterr().out
    without = float(re.search(r"^error of .*: (\S+)$", printed, re.MULTILINE)[1])
    errors = [float(e) for e in re.findall(r"^relative .*: (\S+)$", printed, re.MULTILINE)]
    assert errors
    assert all(e < 0.8 * without for e in errors)
    assert (tmp_path / "burgers_operator.png").stat().st_size > 10_000
