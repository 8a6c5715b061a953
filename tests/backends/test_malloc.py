"""Memory that comes and goes with each step is mapped once."""

import ctypes
import os
import subprocess
import sys

import pytest

from leafgrad.backends.malloc import SET, keep_freed_memory

GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")

STEPS = """
import resource
import leafgrad
def step():
    for size in (200_000, 300_000, 900_000, 3_000_000):
        kept = [leafgrad.full((size // 4,), 1.0) for _ in range(4)]
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(**environment):
    """How many are mapped in ten steps that make and free 18 MB each."""
    env = {name: value for name, value in os.environ.items() if name not in (*SET, "GLIBC_TUNABLES", "LD_PRELOAD")}
    done = subprocess.run([sys.executable, "-c", STEPS], env=env | environment, capture_output=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not GLIBC, reason="needs glibc")
def test_a_step_maps_no_page_anew_unless_the_environment_says_how_memory_is_kept():
    assert pages() < 200
    assert pages(MALLOC_TRIM_THRESHOLD_="131072") > 2000


@pytest.mark.skipif(not GLIBC, reason="needs glibc")
@pytest.mark.parametrize("name", SET)
def test_what_the_environment_sets_stays(name):
    assert not keep_freed_memory({name: "1000000"})


@pytest.mark.skipif(not GLIBC, reason="needs glibc")
def test_tunables_of_malloc_stay_and_others_do_not_count():
    assert not keep_freed_memory({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=128"})
    assert keep_freed_memory({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=x"})


@pytest.mark.parametrize("missing", ["linux", "glibc"])
def test_other_systems_and_libraries_are_left_alone(monkeypatch, missing):
    monkeypatch.setattr(sys, "platform", "linux" if missing == "glibc" else "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory({})
