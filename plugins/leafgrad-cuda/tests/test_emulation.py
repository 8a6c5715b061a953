"""What the emulation finds: races of threads and of blocks, memory that nothing wrote."""

from __future__ import annotations

import numpy as np
import pytest

from leafgrad.lowering.forms import Root
from leafgrad_cuda import emulation
from leafgrad_cuda.emulation import Emulation, Race, Stray
from leafgrad_cuda.launches import Group, Launch, Section
from leafgrad_cuda.text import header
from leafgrad_cuda.writer import Task

HEAD = header().replace("LG_INDEX", "int")
SUM = """
KERNEL(lg_whole0, 64) {
    SHARED
    float *out = (float *)arrays[0];
    float *s = (float *)shared;
    EACH s[t] = (float)t;
    %s
    EACH if (t == 0) { float sum = 0; for (int k = 0; k < 64; k++) sum += s[k]; out[BLOCK] = sum; }
    BARRIER
}
"""
ONE_PHASE = """
KERNEL(lg_whole0, 64) {
    SHARED
    float *out = (float *)arrays[0];
    float *s = (float *)shared;
    EACH { s[t] = (float)t; if (t == 9) out[BLOCK] = s[(t + 1) % 64] + s[8]; }
    BARRIER
}
"""
ACROSS = """
KERNEL(lg_whole0, 64) {
    SHARED
    float *out = (float *)arrays[0];
    EACH if (t == 0) out[BLOCK] = (float)BLOCK + (BLOCK ? out[BLOCK - 1] : 0);
    BARRIER
}
"""


def launched(text, orders=("forward", "backward", "shuffled")):
    out = np.full(4, np.nan, "f4")
    root = Root((4,), "float32")
    task = Task([], 4, "f", (root,), frozenset(), frozenset([root]))
    launch = Launch(0, [Section([[Group([task])]], blocks=4)], threads=64, shared=256)
    addresses = np.array([out.ctypes.data], "u8")
    Emulation(HEAD + text, orders).run(launch, addresses, np.zeros(1, "u1"), [out])
    return out


def test_a_kernel_with_barriers_is_the_same_in_all_orders():
    assert launched(SUM % "BARRIER").tolist() == [2016.0] * 4


def test_a_missing_barrier_is_a_race():
    with pytest.raises(Race, match="lg_whole0: other bits with threads and blocks"):
        launched(ONE_PHASE)


def test_blocks_that_wait_for_each_other_are_a_race():
    with pytest.raises(Race):
        launched(ACROSS)


def test_shared_memory_begins_as_nan():
    text = SUM.replace("EACH s[t] = (float)t;", "EACH if (t) s[t] = (float)t;") % "BARRIER"
    assert np.isnan(launched(text, ("forward",))).all()


def test_a_write_behind_shared_memory_is_found():
    with pytest.raises(Stray, match="behind its 256 bytes of shared memory"):
        launched(SUM.replace("EACH s[t] =", "EACH s[t + 1] =") % "BARRIER", ("forward",))


def test_a_write_into_memory_of_others_is_found():
    text = ONE_PHASE.replace("EACH {", "EACH { if (t == 0) arena[0] = 7;").replace("s[(t + 1) % 64]", "0")
    root = Root((4,), "float32")
    task = Task([], 4, "f", (root,), frozenset(), frozenset([root]))
    launch = Launch(0, [Section([[Group([task])]], blocks=4)], threads=64, shared=256)
    out, arena = np.zeros(4, "f4"), np.zeros(8, "u1")
    with pytest.raises(Stray, match="where others' arrays lie"):
        Emulation(HEAD + text, ("forward",)).run(launch, np.array([out.ctypes.data], "u8"), arena, [out], arena == 0)


def test_a_library_is_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path))
    calls, compiled = [], emulation.compiled
    monkeypatch.setattr(emulation, "compiled", lambda *args: calls.append(args) or compiled(*args))
    for code, times in (("int one(void) { return 1; }", 1), ("int one(void) { return 2; }", 2)):
        for _ in range(2):
            emulation.library.cache_clear()
            assert emulation.library(code).one() == times
        assert len(calls) == times
    assert sorted(path.suffix for path in (tmp_path / "cuda").iterdir()) == [".so", ".so"]
