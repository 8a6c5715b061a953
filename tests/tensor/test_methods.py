"""Methods and properties whose modules are imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

SETS_FIRST = """
import leafgrad
z = leafgrad.ones(2, dtype=leafgrad.complex64)
z.real = leafgrad.tensor([3.0, 4.0])
z.imag = 5
assert z.tolist() == [3 + 5j, 4 + 5j], z
assert z._version == 2
x = leafgrad.ones(2)
for name in ("imag", "mH", "itemsize"):
    try:
        setattr(x, name, 1)
    except (AttributeError, RuntimeError):
        continue
    raise AssertionError(name)
x.erfinv = 5
assert x.erfinv == 5
del x.erfinv
assert callable(x.erfinv)
"""


def test_a_property_that_is_set_before_anybody_reads_it():
    """Nothing has imported what it does, as in any other test."""
    done = subprocess.run([sys.executable, "-c", SETS_FIRST], capture_output=True, text=True)
    assert not done.returncode, done.stderr
