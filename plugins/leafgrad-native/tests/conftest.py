"""Processes of their own for these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leafgrad_native

# Compiler, cache and pool need nothing of leafgrad: without the imports of the package, a process starts at once.
BARE = f"""
import sys, types
sys.modules["leafgrad_native"] = package = types.ModuleType("leafgrad_native")
package.__path__ = [{str(Path(leafgrad_native.__file__).parent)!r}]
"""


@pytest.fixture
def start():
    """Starts a Python process that can import leafgrad_native's modules; ended with the test."""
    processes = []

    def starter(code, **options):
        process = subprocess.Popen([sys.executable, "-c", BARE + code], env=dict(os.environ), text=True, **options)
        processes.append(process)
        return process

    yield starter
    for process in processes:
        process.kill()
        process.wait()
