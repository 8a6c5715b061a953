"""Memory is bounded by what lives: however many steps are taken, and programs made and dropped, it does not grow."""

from __future__ import annotations

import gc
import linecache
import os
import subprocess
import sys
import time
import tracemalloc

import pytest

import leafgrad as lg
from leafgrad import nn, optim

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="asks /proc about memory")

MEGABYTES = 2.0  # what the allocator may take and keep


def eager():
    net = nn.Linear(2, 1)
    adam, x = optim.Adam(net.parameters()), lg.ones(3, 2)

    def step():
        adam.zero_grad()
        net(x).sum().backward()
        adam.step()

    return step


def compiled():
    return lg.compile(eager())


def opened():
    losses, net, x = [0.0], nn.Linear(2, 1), lg.ones(3, 2)

    @lg.compile
    def step():
        net.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        losses[0] = loss.item()

    return step


def programs():
    x = lg.ones(3)

    def make():
        f = lg.compile(lambda x: (x * 2).sin().sum())
        for _ in range(3):
            f(x)

    return make


def views():
    base = lg.ones(10, requires_grad=True) * 1

    def step():
        base[2:5].mul_(1.0)
        base.detach_()

    return step


def failing():
    f, x = compiled(), lg.ones(3)
    g = lg.compile(lambda x: x @ lg.ones(4))

    def step():
        f()
        try:
            g(x)
        except RuntimeError:
            return

    return step


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def grown(make, count):
    """By how many megabytes, objects and cached lines of source so many steps grow the process, after as many."""
    act = make()
    found = []
    for _ in range(2):
        for _ in range(count):
            act()
        gc.collect()
        found.append((memory(), len(gc.get_objects()), len(linecache.cache)))
    return [b - a for a, b in zip(*found, strict=True)]


def measured(*wanted):
    """By how much each of some kinds grows in so many steps, each in a child of one process that has the imports."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *(f"{name}={count}" for name, count in wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines()]
    return {(name, int(count)): [float(value) for value in values] for name, count, *values in found}


@pytest.fixture(scope="module")
def few():
    """Those that are measured by default."""
    return measured(*FEW)


def check(name, count, request):
    kind = name, count
    megabytes, objects, lines = (request.getfixturevalue("few") if kind in FEW else measured(kind))[kind]
    assert (megabytes < MEGABYTES, objects < 50, lines < 5) == (True, True, True), (megabytes, objects, lines)


FEW = (("eager", 250), ("opened", 250), ("failing", 250), ("programs", 20))


@pytest.mark.every(2)
@pytest.mark.times(250, 10_000)
@pytest.mark.parametrize("kind", ["eager", "compiled", "opened", "views", "failing"])
def test_steps(kind, count, request, tried):
    check(kind, count, request)
    tried(f"steps of training, {kind}", 2 * count, "memory does not grow")


@pytest.mark.times(20, 500)
def test_programs(count, request, tried):
    check("programs", count, request)
    tried("programs made, run and dropped", 2 * count, "memory does not grow")


def pieces(join):
    """Joins n parts, and differentiates that."""

    def build(n):
        x = lg.ones(4, requires_grad=True)
        join([x[i % 4 : i % 4 + 1] for i in range(n)]).sum().backward()
        assert x.grad.sum().item() == n

    return build


def chain(n):
    """A view of a view of a view, and so on; written, and differentiated."""
    x = lg.ones(4, requires_grad=True)
    views = [x * 1]
    for _ in range(n):
        views.append(views[-1].view(4))
    views[-1].mul_(3)
    views[-1].sum().backward()
    assert x.grad.tolist() == [3, 3, 3, 3]


@pytest.mark.every(2)
@pytest.mark.parametrize("n", [2000, pytest.param(16_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("build", [pieces(lg.cat), pieces(lg.stack), chain], ids=["cat", "stack", "chain"])
def test_time_and_memory_in_proportion(build, n):
    def cost(n):
        tracemalloc.start()
        build(n)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        start = time.process_time()
        build(n)
        return time.process_time() - start, most

    build(10)
    (seconds, most), (later, more) = min(cost(n // 4) for _ in range(3)), min(cost(n) for _ in range(3))
    assert more < 6 * most  # 4 would be proportional, 16 quadratic
    assert later < 9 * seconds


if __name__ == "__main__":
    for kind in sys.argv[1:]:
        child = os.fork()
        if not child:
            name, count = kind.split("=")
            print(name, count, *grown(globals()[name], int(count)), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, kind
