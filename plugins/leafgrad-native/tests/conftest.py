"""Processes of their own for these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import leafgrad
import leafgrad_native
from leafgrad_native import packed, target

# Compiler, cache and pool need little of leafgrad: without the imports of the packages, a process starts at once.
BARE = f"""
import sys, types
for name, folder in {[(p.__name__, str(Path(p.__file__).parent)) for p in (leafgrad, leafgrad_native)]}:
    sys.modules[name] = package = types.ModuleType(name)
    package.__path__ = [folder]
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


@pytest.fixture
def processor(monkeypatch):
    """``processor(width, count)``: code is written for so many vector registers of ``width`` bytes."""
    products = packed.address  # of a function that all programs of a process share

    def become(width, count):
        products.cache_clear()
        wanted = {"vector_bytes": width, "registers": count}
        for module in [m for name, m in sys.modules.items() if name.startswith("leafgrad_native.")]:
            for name in wanted.keys() & vars(module).keys() if module is not target else ():
                monkeypatch.setattr(module, name, lambda value=wanted[name]: value)

    yield become
    products.cache_clear()
