"""``leafgrad info``: versions, plugins, devices and executors."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

import leafgrad
from leafgrad import backends, plugins
from leafgrad.cli.main import load_all

PACKAGES = ("numpy", "cupy-cuda12x", "cupy-cuda13x", "safetensors", "scipy")


def main(argv: list[str]) -> int:
    """Print them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="leafgrad info", description="Print versions, plugins, devices, executors.")
    parser.parse_args(argv)
    load_all()
    sections = {
        "versions": versions(),
        "plugins": [f"{p}: {p.status}{f', {p.error}' if p.error else ''}" for p in plugins.status()],
        "devices": [device(spec) for spec in plugins.backends()],
        "executors": [f"{spec.name}: {spec.target}" for spec in plugins.executors()],
    }
    for title, lines in sections.items():
        print("\n  ".join([title, *lines]))
    return 0


def versions() -> list[str]:
    """leafgrad, Python, and the packages that matter, as far as they are installed."""
    found = [f"leafgrad {leafgrad.__version__}", f"Python {platform.python_version()} on {platform.platform()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def device(spec: plugins.BackendSpec) -> str:
    """One line: the device type, its backend, and how many devices there are or why none."""
    try:
        count = backends.by_device_type(spec.device_type).device_count()
    except Exception as error:
        return f"{spec.device_type} ({spec.name}): not available: {error}".splitlines()[0]
    return f"{spec.device_type} ({spec.name}): {count}"
