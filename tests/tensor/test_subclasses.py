"""Subclasses of Tensor and modes with ``__torch_function__``, tried in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = "tensor.asking"


def test_subclasses():
    script = Path(__file__).with_name("subclasses.py")
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", script], capture_output=True)
    assert ran.returncode == 0, ran.stdout.decode()
