"""A child process works, whatever other threads of its parent were doing when it was forked."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from threadpoolctl import threadpool_limits

import leafgrad as lg
from leafgrad import forks, nn
from leafgrad.distributions import Bernoulli
from leafgrad.distributions.distribution import lazy_property
from leafgrad.utils.data import DataLoader, TensorDataset

TESTS = "forks"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PATIENCE = 60.0  # seconds, on a machine that others use too


def child_of(act):
    """How a child ended that does something: its exit status, or "hangs"."""
    child = os.fork()
    if not child:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.001)
    os.kill(child, signal.SIGABRT)  # for which pytest has faulthandler say where it is
    os.waitpid(child, 0)
    return "hangs"


def use_everything():
    lg.manual_seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = lg.optim.Adam(net.parameters())
    net(lg.randn(16, 4)).square().mean().backward()
    optimizer.step()
    lg.randperm(10, generator=lg.Generator().manual_seed(1))
    lg.multinomial(lg.rand(5), 2)


def hammers():
    own = lg.Generator().manual_seed(0)

    def draw():
        lg.rand(20_000)
        lg.randn(2000, generator=own)

    def train():
        net = nn.Linear(8, 8)
        nn.functional.dropout(net(lg.rand(64, 8))).sum().backward()

    def reseed():
        own.set_state(own.get_state())

    return [draw, draw, train, reseed]


@pytest.mark.times(8, 1000)
def test_while_other_threads_work(count, tried):
    use_everything()
    shared, done = lg.Generator(), threading.Event()
    acts = [*hammers(), lambda: lg.rand(200_000, generator=shared)]

    def for_ever(act):
        while not done.is_set():
            act()

    def in_child():
        lg.rand(3)
        lg.rand(3, generator=shared)
        use_everything()

    threads = [threading.Thread(target=for_ever, args=[act], daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            assert child_of(in_child) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()
    tried("a fork while five threads draw and train", count, "the child draws and trains")


@pytest.mark.times(2, 500)
def test_while_other_threads_multiply(count, tried):
    """Large matrices, whose products OpenBLAS shares among threads; beside a thread that only waits."""
    a, done = lg.ones(300, 300), threading.Event()

    def multiply():
        while not done.is_set():
            a @ a

    threads = [threading.Thread(target=multiply, daemon=True) for _ in range(2)]
    threads.append(threading.Thread(target=done.wait, daemon=True))
    with threadpool_limits(2, user_api="blas"):
        for thread in threads:
            thread.start()
        try:
            for _ in range(count):
                assert child_of(lambda: a @ a) == 0
        finally:
            done.set()
            for thread in threads:
                thread.join()
    tried("a fork while two threads multiply matrices", count, "the child multiplies, too")


COLD = """
import os, sys, threading, time
import leafgrad as lg

def draw():
    start.wait()
    lg.rand(10)
    lg.bernoulli(lg.full((5,), 0.5))

start = threading.Event()
for _ in range(3):
    threading.Thread(target=draw, daemon=True).start()
start.set()
time.sleep(float(sys.argv[1]))
child = os.fork()
if not child:
    lg.rand(3)
    lg.bernoulli(lg.full((5,), 0.5))
    os._exit(0)
print(child, flush=True)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.times(4, 500)
def test_while_other_threads_draw_for_the_first_time(count, tried):
    """They are importing what draws need; locks of imports are as good as lost in the child."""
    for i in range(count):
        delay = 0.03 * i / count
        ran = subprocess.Popen([sys.executable, "-c", COLD, str(delay)], stdout=subprocess.PIPE, text=True)
        try:
            status = ran.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.kill(int(ran.stdout.readline()), signal.SIGKILL)
            status = "hangs"
        ran.stdout.close()
        assert status == 0, f"after {delay:.3f} s"
    tried("a fork while three threads draw for the first time", count, "the child draws")


BUSY = """
import faulthandler, os, sys, threading, time
import leafgrad as lg
from leafgrad import nn

seconds, forks, executor = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
NAMES = iter(["sqlite3", "unittest", "xml.dom.minidom", "asyncio", "leafgrad.func", "numpy.testing", "leafgrad.fft"])
FACTORS = iter(range(1, 1_000_000))

def draw():
    lg.randn(1000)
    lg.multinomial(lg.bernoulli(lg.full((5,), 0.5)) + 1, 2)

def train():
    net = nn.Linear(8, 8)
    optimizer = lg.optim.Adam(net.parameters())
    nn.functional.dropout(net(lg.rand(64, 8))).sum().backward()
    optimizer.step()

def load():
    __import__(next(NAMES, "os"))

def compile():
    factor = next(FACTORS)
    step = lg.compile(lambda x: (x * factor).tanh().sum(), executor=executor)
    for _ in range(3):
        step(lg.rand(7, requires_grad=True)).backward()

def for_ever(act):
    while True:
        act()

for act in (draw, train, load, compile, compile):
    threading.Thread(target=for_ever, args=[act], daemon=True).start()
for _ in range(forks):
    time.sleep(seconds)
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(60, exit=True)
        for act in (draw, train, load, compile):
            act()
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        os._exit(os.waitstatus_to_exitcode(status) & 255)
os._exit(0)
"""


@pytest.mark.times(1, 80)
def test_while_other_threads_draw_train_import_and_compile(count, tried):
    """Parents that are cold at the first fork, and warm at the last."""
    chance, forks = random.Random(0), 25 if count > 1 else 5
    for i in range(count):
        seconds, executor = chance.uniform(0, 0.1), ("numpy", "native", "replay")[i % 3]
        command = [sys.executable, "-c", BUSY, str(seconds), str(forks), executor]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE, check=False)
        assert done.returncode == 0, f"{executor}, {seconds:.3f} s: {done.stderr}"
    tried("a fork while five threads draw, train, import and compile", forks * count, "the child does all of it, too")


def test_the_child_draws_what_the_parent_would_have_drawn():
    lg.manual_seed(5)
    lg.rand(3)
    end, start = os.pipe()
    child_of(lambda: os.write(start, lg.rand(1000).numpy().tobytes()))
    os.close(start)
    with open(end, "rb") as file:
        assert file.read() == lg.rand(1000).numpy().tobytes()


LOADED_IN_A_THREAD = """
    import os, sys, threading, time, types
    import leafgrad
    from leafgrad.plugins import lookup

    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait()

    manager = lookup._MANAGER
    manager._load_entry_points = lambda load=manager._load_entry_points: (slow(), load())[1]
    thread = threading.Thread(target=manager.load)
    thread.start()
    begun.wait()
    threading.Timer(0.2, go_on.set).start()
    child = os.fork()
    if not child:
        manager.load()
        os._exit(0 if manager._loaded else 1)
    thread.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_while_another_thread_loads_plugins():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(LOADED_IN_A_THREAD)], timeout=30, check=False)
    assert done.returncode == 0


LOADED_AND_IMPORTED = """
    import importlib, sys, threading, time
    import leafgrad
    from leafgrad.plugins import lookup

    begun = threading.Event()

    def slowly():
        begun.set()
        time.sleep(0.3)
        importlib.import_module("csv")

    manager = lookup._MANAGER
    manager._load_entry_points = lambda load=manager._load_entry_points: (slowly(), load())[1]
    thread = threading.Thread(target=manager.load, daemon=True)
    thread.start()
    begun.wait()
    try:
        import leafgrad.there_is_none
    except ModuleNotFoundError:
        thread.join(10)
        sys.exit(not manager._loaded)
"""


def test_a_module_of_plugins_is_looked_for_while_another_thread_loads_them():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(LOADED_AND_IMPORTED)], timeout=30, check=False)
    assert done.returncode == 0


LOGS_AS_IT_IS_IMPORTED = """
import os, sys, threading, time
import leafgrad
import logging
from leafgrad.compile.ir.log import log

log("logging is there")
sys.path.insert(0, sys.argv[1])
threading.Thread(target=__import__, args=["it_logs"], daemon=True).start()
while "it_logs" not in sys.modules:
    time.sleep(0.001)
before = time.monotonic()
child = os.fork()
if not child:
    import it_logs
    os._exit(it_logs.done)
assert time.monotonic() - before < 20
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_while_another_thread_imports_what_logs(tmp_path):
    (tmp_path / "it_logs.py").write_text(
        "import logging, time\ntime.sleep(0.3)\nlogging.getLogger('it').debug('x')\ndone = 42\n"
    )
    ran = subprocess.run([sys.executable, "-c", LOGS_AS_IT_IS_IMPORTED, str(tmp_path)], timeout=PATIENCE)
    assert ran.returncode == 42


IMPORTS_LOGGING = """
import atexit, os, sys, threading, time
import leafgrad

def slowly(*_):  # where the import of logging ends
    begun.set()
    time.sleep(0.3)

assert "logging" not in sys.modules
begun, atexit.register = threading.Event(), slowly
threading.Thread(target=__import__, args=["logging"]).start()
begun.wait()
before = time.monotonic()
child = os.fork()
if not child:
    sys.modules["logging"].getLogger("child")
    os._exit(0)
assert time.monotonic() - before < 20
other = threading.Thread(target=lambda: sys.modules["logging"].getLogger("parent"), daemon=True)
other.start()
other.join(10)
os._exit(other.is_alive() or os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_while_another_thread_imports_logging():
    """The parent keeps nothing that was taken for the fork: its other threads may go on to log."""
    assert subprocess.run([sys.executable, "-c", IMPORTS_LOGGING], timeout=PATIENCE).returncode == 0


@pytest.mark.parametrize("kind", [forks.cached_property, lazy_property])
def test_while_another_thread_computes_a_property(kind):
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Bernoulli):
        @kind
        def slow(self):
            begun.set()
            return go_on.wait()

    thread = threading.Thread(target=lambda: Slow(0.5).slow)
    thread.start()
    begun.wait()
    try:
        assert child_of(lambda: (go_on.set(), Slow(0.5).slow)) == 0
    finally:
        go_on.set()
        thread.join()


@pytest.mark.times(3, 40)
def test_workers_while_other_threads_work(count, tried):
    import numpy

    done = threading.Event()

    def for_ever():
        while not done.is_set():
            numpy.random.mtrand.random_sample(100_000)  # of NumPy's global generator, which a worker seeds too
            lg.rand(20_000)

    thread = threading.Thread(target=for_ever, daemon=True)
    thread.start()
    try:
        for _ in range(count):
            loader = DataLoader(TensorDataset(lg.arange(8)), batch_size=2, num_workers=2, timeout=PATIENCE)
            assert [batch.tolist() for (batch,) in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    finally:
        done.set()
        thread.join()
    tried("workers of a DataLoader forked while a thread draws", 2 * count, "all batches come")


IMPORTING = """
import os, sys, threading, time
import leafgrad

sys.path.insert(0, sys.argv[1])
threading.Thread(target=__import__, args=["slow_to_import"], daemon=True).start()
while "slow_to_import" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if not child:
    import slow_to_import
    os._exit(slow_to_import.done)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_while_another_thread_imports(tmp_path):
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.3)\ndone = 42\n")
    assert subprocess.run([sys.executable, "-c", IMPORTING, str(tmp_path)], timeout=PATIENCE).returncode == 42
