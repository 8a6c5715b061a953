"""``torch.fx``, tried in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
    compat.torch.fx.code compat.torch.fx.graph compat.torch.fx.graph_module compat.torch.fx.node compat.torch.fx.proxy
"""


def test_fx():
    script = Path(__file__).with_name("fx_programs.py")
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", script], capture_output=True)
    assert ran.returncode == 0, ran.stdout.decode()
