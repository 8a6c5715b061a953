"""The example runs as its users run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "examples" / "burgers_operator.py"


def test_the_example_learns_and_draws(tmp_path):
    command = [sys.executable, str(SCRIPT), "--steps", "60", "--samples", "64", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    without = float(re.search(r"^error of .*: (\S+)$", done.stdout, re.MULTILINE)[1])
    errors = [float(e) for e in re.findall(r"^relative .*: (\S+)$", done.stdout, re.MULTILINE)]
    assert errors
    assert all(e < 0.8 * without for e in errors)
    assert (tmp_path / "burgers_operator.png").stat().st_size > 10_000
