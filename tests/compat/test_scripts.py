"""Scripts written for PyTorch print under leafgrad what they print under PyTorch.

``scripts/expected.txt`` holds what PyTorch 2.13 printed: ``python tests/compat/test_scripts.py`` writes it anew, where
PyTorch is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXPECTED = HERE / "scripts" / "expected.txt"
NAMES = sorted(p.stem for p in (HERE / "scripts").glob("*.py") if p.stem not in ("fixed", "__main__"))
NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def outputs(names, **environment):
    """What scripts print, run one after the other in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "scripts", *names],
        cwd=HERE,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stored():
    parts = re.split(r"^==== (\w+)\n", EXPECTED.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def agree(actual, expected):
    """Same words, same whole numbers, and decimals that differ by rounding at most."""
    for got, want in zip(actual.splitlines(), expected.splitlines(), strict=True):
        assert NUMBER.sub("#", got).split() == NUMBER.sub("#", want).split(), f"{got!r}, and in PyTorch {want!r}"
        for a, b in zip(NUMBER.findall(got), NUMBER.findall(want), strict=True):
            assert float(a) == pytest.approx(float(b), rel=2e-3, abs=2e-3), f"{got!r}, and in PyTorch {want!r}"


@pytest.fixture(scope="module")
def ours():
    return outputs(NAMES, LEAFGRAD_AS_TORCH="1")


@pytest.mark.parametrize("name", NAMES)
def test_script(ours, name):
    agree(ours[name], stored()[name])


def test_comparison_sees_differences():
    for actual, expected in [("a 1.000", "b 1.000"), ("1.000", "1.010"), ("3", "4"), ("1.0", "1"), ("x\ny", "x")]:
        with pytest.raises((AssertionError, ValueError)):
            agree(actual, expected)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="asks PyTorch")
def test_expected_is_what_pytorch_prints():
    for name, printed in outputs(NAMES).items():
        agree(printed, stored()[name])


if __name__ == "__main__":
    EXPECTED.write_text("".join(f"==== {n}\n{out}" for n, out in outputs(NAMES).items()), encoding="utf-8")
