"""Seeds in processes of their own: the same results, errors that name the seed, and no process that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn
from leafgrad_pinn import seeds, training

pytestmark = [
    pytest.mark.at_once,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone"),
]

LINE = pinn.Interval("x", 0, 1)
EXACT = pinn.references.exact(LINE, u=lambda x: np.sin(np.pi * x))


def problem():
    u = pinn.Field("u", LINE, net=pinn.MLP(4, 1), boundary=pinn.Hard(0))
    return pinn.Problem(u, [pinn.Interior(lambda u, x: u.x - np.pi * lg.cos(np.pi * x), n=8)])


@pytest.fixture
def two(threads):
    threads(2)


def history(run):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in run.history]


def test_seeds_at_once_leave_their_runs_in_a_folder(two, tmp_path):
    sol = problem().solve(pinn.Adam(2), seeds=2, out=tmp_path)
    assert [run.seed for run in sol.runs] == [0, 1]
    assert np.array_equal(pinn.Solution.load(tmp_path / "solution.safetensors")(0.5), sol(0.5))


@pytest.mark.slow
def test_seeds_at_once_are_those_one_after_the_other(threads, capfd, tmp_path):
    found = []
    for count in (1, 2):
        threads(count)
        stages = pinn.Adam(4, lr=1e-2, points=pinn.RAD(every=2)), pinn.GaussNewton(2, weights=pinn.RBA())
        found.append(problem().solve(*stages, reference=EXACT, seeds=[0, 3, 1], out=tmp_path / str(count)))
        assert ("3 seeds: 2 at once" in capfd.readouterr().err) == (count == 2)
    one, two = found
    assert [run.seed for run in two.runs] == [0, 3, 1]
    for a, b in zip(one.runs, two.runs, strict=True):
        assert history(a) == history(b)
        assert (a.errors, a.reasons) == (b.errors, b.reasons)
        assert np.array_equal(a.residuals["interior"]["sizes"], b.residuals["interior"]["sizes"])
    x = np.linspace(0, 1, 9)
    assert np.array_equal(one(x), two(x))
    assert np.array_equal(pinn.Solution.load(tmp_path / "2" / "solution.safetensors")(x), two(x))


@pytest.mark.slow
def test_a_nan_ends_its_own_seed_alone(two, monkeypatch):
    draw = training.Trainee.__init__

    def poisoned(self, problem, seed, *rest):
        draw(self, problem, seed, *rest)
        if seed == 1:
            self.batches[0]["points"][0] = float("nan")

    monkeypatch.setattr(training.Trainee, "__init__", poisoned)
    runs = problem().solve(pinn.Adam(3), seeds=3).runs
    assert [run.reasons[0] for run in runs][::2] == ["all 3 steps are done"] * 2
    assert "interior is nan at step 1" in runs[1].reasons[0]


def fails(monkeypatch, what):
    """Let seed 1 fail, and the others wait for a signal."""

    def run(self, place):
        if self.seed == 1:
            what()
        with seeds.Interrupts() as interrupts:
            while not interrupts.received:
                time.sleep(0.01)

    monkeypatch.setattr(training.Training, "run", run)


class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first)


def boom():
    raise ArithmeticError("boom")


def odd():
    raise Odd("boom", 2)


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        (boom, ArithmeticError, "boom"),
        (odd, RuntimeError, "(?s)seed 1: .*Odd: boom"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), RuntimeError, r"seed 1: its process \d+ was killed by SIGKILL"),
        (lambda: os._exit(3), RuntimeError, r"seed 1: its process \d+ ended with status 3"),
        (lambda: sys.exit(143), SystemExit, "143"),
    ],
)
def test_what_ends_a_seed_ends_all(what, kind, words, two, monkeypatch):
    fails(monkeypatch, what)
    before = children(os.getpid())  # of other tests
    with pytest.raises(kind, match=words) as caught:
        problem().solve(pinn.Adam(2), seeds=3)
    assert kind is not ArithmeticError or "in seed 1" in "".join(caught.value.__notes__)
    assert set(children(os.getpid())) <= set(before)


def test_one_thread_trains_one_seed_after_the_other(threads, monkeypatch):
    threads(1)
    fails(monkeypatch, boom)
    with pytest.raises(ArithmeticError, match="boom") as caught:
        problem().solve(pinn.Adam(2), seeds=[1, 2])
    assert caught.value.__notes__ == ["in seed 1"]


SCRIPT = """
import sys
import leafgrad as lg, leafgrad_pinn as pinn
u = pinn.Field("u", pinn.Interval("x", 0, 1), net=pinn.MLP(4, 1), boundary=pinn.Hard(0))
problem = pinn.Problem(u, [pinn.Interior(lambda u: u.xx + 1, n=8)])
problem.solve(pinn.Adam(900, points=pinn.RAD(every=50)), seeds=3, out=sys.argv[1], resume=True)
"""


def started(folder):
    environment = {**os.environ, "LEAFGRAD_NUM_THREADS": "2", "LEAFGRAD_COMPILE": ""}  # of a fixture's, too
    return subprocess.Popen([sys.executable, "-c", SCRIPT, folder], stderr=subprocess.DEVNULL, env=environment)


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert started(folder).wait() == 0
    return pinn.Solution.load(folder / "solution.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_seeds_that_are_stopped_go_on(sign, status, whole, tmp_path):
    process = started(tmp_path / "cut")
    while not all((tmp_path / "cut" / f"seed{seed}" / "history.csv").exists() for seed in (0, 1)):
        time.sleep(0.01)
    pids = children(process.pid)
    process.send_signal(sign)  # to the parent alone
    assert process.wait() == status
    assert len(pids) == 2
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert not (tmp_path / "cut" / "solution.safetensors").exists()
    assert started(tmp_path / "cut").wait() == 0
    cut = pinn.Solution.load(tmp_path / "cut" / "solution.safetensors")
    assert [history(run) for run in whole.runs] == [history(run) for run in cut.runs]
