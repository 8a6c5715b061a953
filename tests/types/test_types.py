"""What mypy and pyright see of a user's script: types of results, and errors where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = "tensor.signatures"

SCRIPT = Path(__file__).with_name("user.py")
ROOT = SCRIPT.parents[2]
REVEALED = re.compile(r"^reveal_type\(.*\)  # (.+)$")
pytestmark = pytest.mark.slow  # they read all of leafgrad


def expected():
    """Line -> what is revealed there, or "error"."""
    found = {}
    for number, line in enumerate(SCRIPT.read_text(encoding="utf-8").splitlines(), 1):
        if match := REVEALED.match(line):
            found[number] = match[1]
        elif line.endswith("  # error"):
            found[number] = "error"
    return found


def plain(text):
    """A type in short: names without their modules, and a named tuple by its name."""
    text = re.sub(r"^tuple\[.*, fallback=([\w.]+)\]$", r"\1", text)
    return re.sub(r"(\w+\.)+(?=\w)", "", text)


def compare(found):
    wanted = expected()
    assert len(wanted) > 50
    assert {n: found.get(n) for n in wanted} == wanted
    assert {n: text for n, text in found.items() if n not in wanted} == {}


def test_mypy():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = {}
    for line in done.stdout.splitlines():
        match = re.match(r'.*user\.py:(\d+): (?:note: Revealed type is "(.*)"|(error): .*)$', line)
        if match:
            found[int(match[1])] = plain(match[2]) if match[2] else "error"
    compare(found)


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright():
    command = ["pyright", "--pythonpath", sys.executable, "--outputjson", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SCRIPT.parent)
    found = {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        match = re.search(r'^Type of ".*" is "(.*)"$', item["message"], re.DOTALL)
        found[item["range"]["start"]["line"] + 1] = plain(match[1]) if match else item["severity"]
    compare({number: text for number, text in found.items() if text != "warning"})
