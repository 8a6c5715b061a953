"""The harsher world of all tests: those in tests/ and plugins/, and the Python blocks of README and docs."""

from __future__ import annotations

import datetime
import gc
import linecache
import operator
import os
import platform
import re
import signal
import stat
import subprocess
import sys
from collections import Counter
from doctest import ELLIPSIS
from importlib.metadata import version
from pathlib import Path

import hypothesis
import pytest
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser

import leafgrad
from leafgrad import devices, dtypes, modes

pytest_plugins = ["leafgrad.testing.pytest_plugin"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

SYNC = os.fsync


def sync(descriptor):
    """Files of tests need not outlast the machine. What is neither file nor folder refuses as ever."""
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        SYNC(descriptor)


os.fsync = sync

os.environ.setdefault("LEAFGRAD_EXECUTOR", "numpy")  # what the core has; a plugin's tests name its own

UNTIMED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}  # machines are busy
hypothesis.settings.register_profile("leafgrad", derandomize=True, **UNTIMED)
hypothesis.settings.load_profile("leafgrad")

PRINTED = re.compile(r"^\s*print\(.*\)\s+# (.*)$")


def print_as_said(*values):
    """The ``print`` of documents: outside of sessions, a comment behind it says what is printed."""
    frame = sys._getframe(1)
    if not frame.f_code.co_filename.endswith(".md"):
        return print(*values)
    line, text = linecache.getline(frame.f_code.co_filename, frame.f_lineno), " ".join(map(str, values))
    expected = PRINTED.match(line)
    assert expected, f"say in a comment what is printed: {line}"
    assert re.match(re.escape(text) + r"(, |$)", expected[1]), f"expected {expected[1]}, got {text}"


# testpaths in pyproject.toml decides which documents are read. The blocks of one share a namespace.
pytest_collect_file = Sybil(
    [PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)],
    patterns=["*.md"],
    setup=lambda namespace: namespace.update(print=print_as_said),
    fixtures=["no_leaks"],
).pytest()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests with the garbage collector off, and leave what they are out of its sight.

    They are some 600,000 objects, and whoever asks the collector (each trace of a step does) would go through them all.
    No trace is to know of it: it would look at them, since a step may use what is hidden, which no test does.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.get_freeze_count = int  # 0, by no code of a user
        gc.enable()


@pytest.fixture(autouse=True, scope="module")
def unseen():
    """Leaves what a file's tests have made out of the collector's sight, as what was collected.

    Reports, modules and caches grow to a million objects, and each trace of a step asks the collector.
    """
    yield
    gc.collect()
    gc.freeze()


def defaults():
    """What a program sets for all that follows."""
    return {
        "mode": modes.FLAGS.get(),
        "default dtype": dtypes.get_default_dtype(),
        "default devices": devices.DEFAULTS.get(),
        "a device was chosen": devices.given(None, devices.device("meta")).type != "meta",
    }


@pytest.fixture(autouse=True)
def no_leaks():
    """Fails a test that leaves another mode (no_grad, tracing, ...), default dtype or device behind than it found."""
    before = defaults()
    yield
    after = defaults()
    modes.FLAGS.set(before["mode"])  # one leak must not fail the tests that follow
    dtypes.set_default_dtype(before["default dtype"])
    devices.DEFAULTS.set(before["default devices"])
    assert after == before, f"the test leaks: expected {before}, got {after}; undo it before the test ends"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Reports of what passed go without a test's keywords, which nobody reads of it: workers write each out, thrice."""
    report = yield
    if report.passed:
        report.keywords = {}
    return report


def pytest_itemcollected(item):
    """Tests that repeat in breadth what others try are in the slow set."""
    if repeats_replay(item) or is_left_out(item):
        item.add_marker(pytest.mark.slow)


def repeats_replay(item):
    """Whether a test is of a program that is replayed, where the NumPy executor runs the same.

    On other devices nothing else runs them, and the rows of scenarios choose for themselves.
    """
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    given = [getattr(value, "__name__", str(value)) for value in params]
    return bool({"replay", "ReplayProgram"} & {*given}) and not any(value.startswith("fake") for value in given)


def is_left_out(item):
    """``@pytest.mark.every(n)``: whether the places of its parameters' values do not add up to a multiple of n."""
    mark = item.get_closest_marker("every")
    if mark is None:
        return False
    return sum(place_of(item, each) for each in item.iter_markers("parametrize")) % mark.args[0] != 0


def place_of(item, mark):
    """Which of a mark's values a test was given."""
    names, values = mark.args[:2]
    names = names.replace(" ", "").split(",") if isinstance(names, str) else names
    rows = [
        getattr(value, "values", value) if len(names) > 1 or hasattr(value, "marks") else (value,) for value in values
    ]
    given = [item.callspec.params[name] for name in names]
    return next(i for i, row in enumerate(rows) if all(map(operator.is_, row, given)))


def pytest_generate_tests(metafunc):
    """``count``: how often a fault is tried. ``@pytest.mark.times(few, many)``: many among the slow tests."""
    mark = metafunc.definition.get_closest_marker("times")
    if mark is not None:
        few, many = mark.args
        metafunc.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])


@pytest.fixture
def tried(record_property):
    """Notes for the table in docs/reliability.md that a fault was tried so often, and what came of it each time."""

    def note(fault, count, outcome):
        record_property("tried", (fault, count, outcome))

    return note


def pytest_addoption(parser):
    parser.addoption("--gpu-report", type=Path, metavar="FILE", help="write GPU, versions and results to FILE")
    parser.addoption("--faults-report", type=Path, metavar="FILE", help="write the faults that were tried into FILE")


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    if path := config.getoption("gpu_report"):
        write_gpu_report(path, terminalreporter)
    if (path := config.getoption("faults_report")) and exitstatus == pytest.ExitCode.OK:
        write_faults_report(path, terminalreporter)


def write_faults_report(path, terminalreporter):
    """Put the table of faults that were tried between the marks in a document."""
    times, outcomes = Counter(), {}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "tried":
                fault, count, outcomes[fault] = value
                times[fault] += count
    rows = "".join(f"| {fault} | {times[fault]:,} | {outcomes[fault]} |\n" for fault in times)
    begin, end = "<!-- tried -->\n", "<!-- end -->\n"
    head, _, rest = path.read_text(encoding="utf-8").partition(begin)
    machine = f"{os.cpu_count()} cores of {platform.machine()}, {platform.system()}"
    versions = f"`make faults` on {machine}; Python {platform.python_version()}, NumPy {version('numpy')}"
    table = f"\n| fault | times tried | each time |\n| --- | --- | --- |\n{rows}\n{versions}; commit {commit()}.\n\n"
    path.write_text(head + begin + table + end + rest.partition(end)[2], encoding="utf-8")


def commit():
    """What is tested, in short; of a tree with changes, with -dirty."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()


def write_gpu_report(path, terminalreporter):
    """What `make gpu-check` ran on, and how it went."""
    results = {kind: len(terminalreporter.getreports(kind)) for kind in ("passed", "failed", "error", "skipped")}
    rows = {
        "date": datetime.date.today().isoformat(),
        **gpu(),
        "Python": platform.python_version(),
        "NumPy": version("numpy"),
        "leafgrad": f"{version('leafgrad')}, commit {commit()}",
        "tests": ", ".join(f"{count} {kind}" for kind, count in results.items()),
    }
    table = "".join(f"| {name} | {value} |\n" for name, value in rows.items())
    path.write_text(f"# On the GPU\n\nWritten by `make gpu-check`.\n\n| | |\n| --- | --- |\n{table}\n")


def gpu():
    """The first CUDA device and the software that drives it."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "GPU": f"{properties['name'].decode()}, {properties['totalGlobalMem'] / 2**30:.0f} GiB",
        "CUDA driver": cupy.cuda.runtime.driverGetVersion(),
        "CUDA runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "CuPy": cupy.__version__,
    }


@pytest.fixture
def threads():
    """Sets the number of threads, and takes it back."""
    before = leafgrad.get_num_threads()
    yield leafgrad.set_num_threads
    leafgrad.set_num_threads(before)
