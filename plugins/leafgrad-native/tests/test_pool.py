"""Every part once, each share on one thread; callers at once, calls within calls, forks, one processor."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from leafgrad_native import pool
from leafgrad_native.cache import library
from leafgrad_native.compiler import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

# A context is {lg_run, its context, int64 count[], int64 thread[]}; pthread_self is a number or an address.
TASKS = """
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>
typedef int run(void (*task)(void *, int), void *, int, int, int *);
typedef struct { run *run; void *inner; int64_t *count, *thread; } context;
void mark(void *c, int part) {
    ((context *)c)->count[part]++;
    ((context *)c)->thread[part] = (int64_t)pthread_self();
}
void slowly(void *c, int part) {
    for (volatile int k = 0; k < 20000; k++) {}
    mark(c, part);
}
void together(void *c, int part) { /* done when all parts have begun */
    __atomic_fetch_add(((context *)c)->count, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(((context *)c)->count, __ATOMIC_SEQ_CST) < 3) sched_yield();
    ((context *)c)->thread[part] = (int64_t)pthread_self();
}
void late(void *c, int part) { /* the caller is done with its own when all others have begun */
    __atomic_fetch_add(((context *)c)->count, 1, __ATOMIC_SEQ_CST);
    if (part == 0) while (__atomic_load_n(((context *)c)->count, __ATOMIC_SEQ_CST) < 3) sched_yield();
    if (part) usleep(100000);
    ((context *)c)->thread[part] = (int64_t)pthread_self();
}
void within(void *c, int part) {
    if (part == 0) ((context *)c)->run(mark, ((context *)c)->inner, 5, 2, 0);
    mark(c, part);
}
"""
posix = pytest.mark.skipif(os.name != "posix", reason="forks and affinity are not everywhere")


class Context(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("run", "inner", "count", "thread")]


class Call:
    """Runs a task of TASKS, and knows what it did."""

    def __init__(self, task, parts, threads, inner=None):
        self.count, self.thread = np.zeros((2, max(1, parts)), np.int64)
        pointers = [inner and ctypes.addressof(inner.context), self.count.ctypes.data, self.thread.ctypes.data]
        self.context = Context(pool.address("lg_run"), *pointers)
        self.task, self.parts, self.threads = getattr(library(TASKS, "tasks"), task), parts, threads

    def __call__(self):
        return pool.run(self.task, ctypes.addressof(self.context), self.parts, self.threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("parts", [0, 1, 2, 3, 7, 100])
def test_every_part_is_done_once_and_each_share_by_one_thread(parts, threads):
    call = Call("mark", parts, threads)
    for times in range(1, 6):
        took = call()
        assert took == max(1, min(parts, threads))
        assert (call.count[:parts] == times).all()
        own = call.thread[:took]
        assert (call.thread[:parts] == np.resize(own, parts)).all()


def test_shares_run_at_once():
    call = Call("together", 3, 3)
    assert call() == 3
    assert len(set(call.thread)) == 3


def test_the_caller_waits_for_what_others_have_begun():
    call = Call("late", 3, 3)
    assert call() == 3
    assert len(set(call.thread)) == 3
    assert call.thread.all()


def test_the_caller_does_the_first_part():
    seen = []
    task = pool.Task(lambda context, part: seen.append((part, threading.get_ident())))
    pool.run(task, None, 3, 3)
    assert sorted(part for part, _ in seen) == [0, 1, 2]
    assert (0, threading.get_ident()) in seen


def test_fewer_and_more_threads_in_turn():
    for threads in (4, 1, 2, 9, 3, 4):
        call = Call("slowly", 12, threads)
        assert call() == threads
        assert (call.count == 1).all()


def test_several_callers_at_once():
    calls = [Call("slowly", 6, 3) for _ in range(6)]

    def many(call):
        for _ in range(50):
            call()

    callers = [threading.Thread(target=many, args=[call]) for call in calls]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((call.count == 50).all() for call in calls)


def test_a_call_within_a_call():
    inner = Call("mark", 5, 2)
    outer = Call("within", 4, 2, inner)
    outer()
    assert (outer.count == 1).all()
    assert (inner.count == 1).all()
    assert len(set(inner.thread)) == 1


@pytest.fixture
def run(start):
    """Runs Python in a process of its own, which must end well and soon."""

    def runner(code):
        process = start(
            "import os, threading, time, warnings\n"
            "from leafgrad_native import pool\n"
            "warnings.simplefilter('ignore')\n"
            "seen = []\n"
            "task = pool.Task(lambda context, part: seen.append((part, threading.get_ident())))\n" + code
        )
        assert process.wait(timeout=60) == 0

    return runner


def test_a_process_ends_while_workers_wait(run):
    run("pool.run(task, None, 4, 4)")
    run("pool.run(task, None, 4, 4); time.sleep(0.1)")


@posix
def test_a_forked_child_has_workers_of_its_own(run):
    run("""
for wait in (0, 0.1):  # workers spin; workers sleep
    assert pool.run(task, None, 3, 3) == 3
    time.sleep(wait)
    child = os.fork()
    if child == 0:
        del seen[:]
        took = [pool.run(task, None, 3, 3) for _ in range(20)]
        os._exit(not (took == [3] * 20 and sorted(p for p, _ in seen) == sorted([0, 1, 2] * 20)))
    assert os.waitpid(child, 0)[1] == 0
    assert pool.run(task, None, 3, 3) == 3
""")


@posix
@pytest.mark.times(80, 400)
def test_a_fork_while_another_thread_is_in_the_pool(count, run):
    run(
        f"COUNT = {count}"
        """
import ctypes
task = ctypes.cast(ctypes.CDLL(None).labs, pool.Task)  # C alone: what a fork breaks in Python is not tried here
pool.run(task, None, 1, 1)  # loads it: a child of a process that imports modules may wait for ever
def work(times):
    for _ in range(times):
        pool.run(task, None, 4, 4)
def forks(times):  # the first call of all, or a later one, is under way
    other = threading.Thread(target=work, args=[times])
    other.start()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            os._exit(not all(pool.run(task, None, 2, 2) == 2 for _ in range(5)))
        children.append(child)
    failed = any([os.waitpid(child, 0)[1] for child in children])
    other.join()
    return failed
for trial in range(COUNT):
    process = os.fork()
    if process == 0:
        os._exit(forks(100 if trial % 10 == 0 else 1))
    assert os.waitpid(process, 0)[1] == 0
"""
    )


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes have no affinity here")
def test_workers_stay_on_the_processors_of_the_process(run):
    run("""
one = {min(os.sched_getaffinity(0))}
os.sched_setaffinity(0, one)
for _ in range(50):
    assert pool.run(task, None, 4, 4) == 4
assert all(os.sched_getaffinity(int(name)) == one for name in os.listdir("/proc/self/task"))
""")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_leave_signals_to_the_main_thread(run):
    run("""
import signal
together = threading.Barrier(4)  # until all workers have begun
meet = pool.Task(lambda context, part: seen.append(together.wait()))
pool.run(meet, None, 4, 4)
main = threading.get_ident()
signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.get_ident() == main))
for _ in range(20):
    os.kill(os.getpid(), signal.SIGUSR1)
assert seen[-1] is True
masks = []
for name in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{name}/status") as file:
        masks.append(next(line for line in file if line.startswith("SigBlk")))
assert len(set(masks)) == 2
""")


CALLERS = """
#include <stdio.h>
enum { PARTS = 13, CALLS = 2000, CALLERS = 3 };
typedef struct { int64_t count[PARTS]; int64_t sum; int inner; } work;
static int64_t everywhere;
static void mark(void *c, int part) {
    ((work *)c)->count[part]++;
    if (RACE) everywhere++;
}
static void within(void *c, int part) {
    mark(c, part);
    if (part == 0) {
        work own = {{0}, 0, 0};
        int stopped = 0;
        lg_run(mark, &own, 3, 2, &stopped);
        ((work *)c)->inner += (int)(own.count[0] + own.count[1] + own.count[2]);
    }
}
static void *call(void *argument) {
    work *w = argument;
    for (int k = 0; k < CALLS; k++) {
        int stopped = 0;
        lg_run(within, w, PARTS, 1 + k % 5, &stopped);
        for (int p = 0; p < PARTS; p++) w->sum += w->count[p]; /* after the call all is seen */
    }
    return 0;
}
int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) return 0; /* does it start? */
    pthread_t callers[CALLERS];
    static work works[CALLERS];
    for (int k = 0; k < CALLERS; k++) pthread_create(&callers[k], 0, call, &works[k]);
    for (int k = 0; k < CALLERS; k++) pthread_join(callers[k], 0);
    for (int k = 0; k < CALLERS; k++)
        for (int p = 0; p < PARTS; p++)
            if (works[k].count[p] != CALLS || works[k].inner != 3 * CALLS) return 3;
    puts("clean");
    return 0;
}
"""


@posix
@pytest.mark.parametrize(
    ("sanitizers", "race"),
    [("thread", 0), ("thread", 1), ("address,undefined", 0)],
    ids=["thread", "a race", "address"],
)
def test_sanitizers_find_nothing_in_the_pool(sanitizers, race, tmp_path):
    """Three callers with one to five threads, and calls within calls; where parts do write one number, it is found."""
    source, program = tmp_path / "callers.c", tmp_path / "callers"
    source.write_text((pool.Path(pool.__file__).parent / "runtime" / "pool.c").read_text() + CALLERS)
    flags = ["-std=gnu11", "-O1", "-g", "-pthread", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    made = [*compiler().command, *flags, f"-DRACE={race}", str(source), "-o", str(program)]
    if subprocess.run(made, capture_output=True).returncode or subprocess.run([program, "1"]).returncode:
        pytest.skip("no such sanitizer here")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == bool(race), done.stderr[-3000:]
    assert (done.stdout == "clean\n") or race
    assert ("data race" in done.stderr) == bool(race)
