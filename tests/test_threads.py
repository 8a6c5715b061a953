"""The number of threads: set, from the environment, or from what the system grants."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest

import leafgrad
from leafgrad import threads


@pytest.fixture
def fresh(monkeypatch):
    """As in a process that has not asked for the number yet."""
    monkeypatch.setattr(threads, "_count", 0)
    for name in ("LEAFGRAD_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_what_is_set_is_got(fresh):
    leafgrad.set_num_threads(3)
    assert leafgrad.get_num_threads() == 3
    fresh.setenv("LEAFGRAD_NUM_THREADS", "5")
    assert leafgrad.get_num_threads() == 3


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "2", None, True])
def test_what_is_no_positive_int_is_refused(fresh, wrong):
    with pytest.raises(RuntimeError, match=r"set_num_threads expects (an int, but got|a positive integer)"):
        leafgrad.set_num_threads(wrong)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LEAFGRAD_NUM_THREADS": "7", "OMP_NUM_THREADS": "2"}, 7),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"LEAFGRAD_NUM_THREADS": " ", "OMP_NUM_THREADS": "6"}, 6),
    ],
)
def test_the_environment_is_asked(fresh, environment, expected):
    for name, value in environment.items():
        fresh.setenv(name, value)
    assert leafgrad.get_num_threads() == expected


@pytest.mark.parametrize("wrong", ["0", "-2", "many", "1.5"])
def test_a_wrong_variable_is_named(fresh, wrong):
    fresh.setenv("LEAFGRAD_NUM_THREADS", wrong)
    with pytest.raises(ValueError, match="LEAFGRAD_NUM_THREADS: expected a positive integer"):
        leafgrad.get_num_threads()


@pytest.mark.parametrize("wrong", ["0", "many", ""])
def test_what_omp_cannot_read_is_passed_over(fresh, wrong):
    fresh.setattr(threads, "processors", lambda: 4)
    fresh.setattr(threads, "limit", lambda: math.inf)
    fresh.setenv("OMP_NUM_THREADS", wrong)
    assert leafgrad.get_num_threads() == 4


@pytest.mark.parametrize(("processors", "limit", "expected"), [(8, math.inf, 8), (8, 2.5, 3), (2, 4.0, 2), (4, 0.1, 1)])
def test_no_more_than_is_granted(fresh, processors, limit, expected):
    fresh.setattr(threads, "processors", lambda: processors)
    fresh.setattr(threads, "limit", lambda: limit)
    assert leafgrad.get_num_threads() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes have no affinity here")
def test_affinity_is_respected():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from leafgrad import threads; assert threads.processors() == threads.default({}) == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def groups(root, lines, files):
    """A made-up tree of control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("".join(f"{line}\n" for line in lines))
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        (["0::/"], {}, math.inf),
        (["0::/"], {"cpu.max": "max 100000\n"}, math.inf),
        (["0::/"], {"cpu.max": "150000 100000\n"}, 1.5),
        (["0::/a/b"], {"a/b/cpu.max": "max 100000", "a/cpu.max": "50000 100000", "cpu.max": "200000 100000"}, 0.5),
        (["0::/elsewhere"], {"cpu.max": "300000 100000"}, 3.0),
        (
            ["3:cpu,cpuacct:/a"],
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "-1", "cpu,cpuacct/a/cpu.cfs_period_us": "1"},
            math.inf,
        ),
        (["4:memory:/", "1:cpu:/"], {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2.0),
        (["0::/"], {"cpu.max": "nonsense"}, math.inf),
    ],
)
def test_limits_of_control_groups(tmp_path, lines, files, expected):
    assert threads.limit(groups(tmp_path, lines, files)) == expected


def test_no_control_groups(tmp_path):
    assert threads.limit(tmp_path) == math.inf


def test_the_number_here_is_plausible(fresh):
    assert 1 <= leafgrad.get_num_threads() <= threads.processors()
