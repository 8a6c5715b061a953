"""Generated C under the address and undefined-behaviour sanitizers; `make sanitizers` runs all tests under them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PLANTED = """
import ctypes, sys
import numpy as np
from leafgrad_native.cache import library
source = "#include <stdint.h>\\nint32_t f(int32_t *x, int32_t k) { return x[k] % (k - 2); }"
f = library(source, "planted").f
x = np.array([-3, -1, 2], np.int32)
print(f(ctypes.c_void_p(x.ctypes.data), int(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Runs Python with sanitizers, and with a compiler that asks for them."""
    around = dict(os.environ, LEAFGRAD_CC=str(HERE / "sanitized.sh"), ASAN_OPTIONS="detect_leaks=0")
    around |= {"LEAFGRAD_CACHE": str(tmp_path_factory.mktemp("cache")), "LEAFGRAD_CC_TIMEOUT": "600"}
    try:
        found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        found = ""
    if not os.path.isabs(found):
        pytest.skip("no sanitizers here")

    def run(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=around | {"LD_PRELOAD": found}, capture_output=True, text=True, cwd=HERE)

    return run


@pytest.mark.parametrize(("place", "said"), [(0, None), (2, "division by zero"), (3, "heap-buffer-overflow")])
def test_what_is_planted_is_found(place, said, sanitized):
    done = sanitized("-c", PLANTED, str(place))
    assert (done.returncode == 0) == (said is None), done.stderr
    assert said is None or said in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("file", ["executor", "joins", "lookups", "products", "scans", "windows"])
def test_nothing_is_found(file, sanitized):
    done = sanitized("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"test_{file}.py")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
