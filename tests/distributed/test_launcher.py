"""How `leafgrad run --ranks` ends when it is asked to: no rank stays, and no traceback is its own."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from leafgrad.distributed import launcher, watch

TESTS = "distributed.watch"

SCRIPT = "import os, time\nos.write(1, b'%d\\n' % os.getpid())  # in one piece\ntime.sleep(60)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (lambda process: os.killpg(process.pid, signal.SIGINT), 130),
        (lambda process: process.send_signal(signal.SIGINT), 130),
        (lambda process: process.terminate(), 143),
    ],
    ids=["Ctrl-C", "to the launcher alone", "SIGTERM"],
)
def test_what_ends_the_launcher_ends_all_ranks(ask, status, mpi, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "leafgrad", "run", "--ranks", "2", str(script)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        ranks = [int(process.stdout.readline()) for _ in range(2)]
        ask(process)
        _, said = process.communicate(timeout=30)
    assert process.returncode == status
    assert "launcher.py" not in said
    for rank in ranks:
        with pytest.raises(ProcessLookupError):
            os.kill(rank, 0)


def script_of(tmp_path, code):
    """A script of some lines, which know their rank before any group does."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys, time\nimport leafgrad.distributed as dist\n"
        "rank = int(os.environ.get('PMI_RANK', os.environ.get('OMPI_COMM_WORLD_RANK', 0)))\n" + code
    )
    return script


@pytest.mark.times(1, 20)
@pytest.mark.every(2)
@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("joined", [False, True])
def test_the_rank_that_was_killed_is_the_one_that_is_named(victim, joined, count, launch, tmp_path, tried):
    start = "dist.init_process_group()\n" * joined
    for _ in range(count):
        code = f"{start}if rank == {victim}: os.kill(os.getpid(), 9)\ntime.sleep(60)\n"
        done = launch(script_of(tmp_path, code), 3)
        assert done.returncode != 0
        named = rf"leafgrad run: rank {victim} of 3, process "
        if not hasattr(os, "pidfd_open"):
            named += rf"|\(or rank .*{victim}.*, at once\)"
        assert re.search(named, done.stderr), done.stderr
        assert "all ranks are stopped" in done.stderr
    tried("`kill -9` of one of three ranks", count, "it is named, and all are stopped")


RANK = "import time\nfrom leafgrad.distributed import launcher\nlauncher.enter()\nprint(flush=True)\ntime.sleep(60)\n"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system does not tell of the ends of processes")
@pytest.mark.parametrize("order", [[2, 0, 1], pytest.param([1, 2, 0], marks=pytest.mark.slow)])
def test_ends_between_two_looks_are_known_in_their_order(order, tmp_path):
    """As where a busy machine leaves the launcher no time."""
    around = {**os.environ, launcher.FOLDER: str(tmp_path)}
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK], stdout=subprocess.PIPE, env=around | {"PMI_RANK": str(rank)})
        for rank in range(3)
    ]
    looking = watch.RankWatch(tmp_path, 3, ranks[0])
    try:
        while len(looking.still) < 3:
            looking.find()
        for rank in ranks:
            rank.stdout.readline()
        for rank in order:
            ranks[rank].kill()
            ranks[rank].wait()
        assert looking.wait() == order
    finally:
        looking.ends.close()
        for handle in itertools.chain(*looking.handles.values()):
            os.close(handle)
        for rank in ranks:
            rank.kill()
            rank.communicate()


def test_more_ranks_than_this_machine_can_have(mpi, tmp_path):
    command = [sys.executable, "-m", "leafgrad", "run", "--ranks", "100000", str(script_of(tmp_path, ""))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--ranks: expected at most 64 for each of " in done.stderr


def test_a_launcher_of_mpi_takes_no_early_end_for_a_success(mpi, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nimport leafgrad.distributed as dist\ndist.init_process_group()\n"
        "if dist.get_rank(): os._exit(0)\ndist.barrier()\n"
    )
    done = subprocess.run(
        [launcher.mpiexec(), "-n", "2", sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "rank 1 of 2: os._exit(0) without destroy_process_group()" in done.stderr


@pytest.mark.every(2)
@pytest.mark.times(1, 20)
@pytest.mark.parametrize("joined", [False, True])
def test_no_rank_outlives_a_launcher_that_is_killed(joined, count, mpi, tmp_path, tried, monkeypatch):
    """Whatever the system is: nothing but a pipe tells of its end. Its folder goes, too."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    script = tmp_path / "script.py"
    script.write_text("import leafgrad.distributed as dist\ndist.init_process_group()\n" * joined + SCRIPT)
    command = [sys.executable, "-m", "leafgrad", "run", "--ranks", "2", str(script)]

    def left():
        return list(temporary.glob("leafgrad*"))

    for _ in range(count):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            ranks = [int(process.stdout.readline()) for _ in range(2)]
            assert left()
            process.kill()
        deadline = time.monotonic() + 20
        while (any(map(watch.is_there, ranks)) or left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(watch.is_there, ranks))
        assert not left()
    tried("`kill -9` of a launcher of two ranks", count, "no rank stays, and no file")


@pytest.mark.slow
def test_a_rank_that_will_not_end_is_ended_without_its_launcher(mpi, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SCRIPT)
    command = [sys.executable, "-m", "leafgrad", "run", "--ranks", "1", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        rank = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + watch.ORPHANED + 20
    while watch.is_there(rank) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not watch.is_there(rank)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks /proc about processes")
def test_a_rank_that_stands_still_is_named(mpi, tmp_path, monkeypatch, capfd):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time\nimport leafgrad.distributed as dist\ndist.init_process_group()\n"
        "if dist.get_rank() == 1 and os.fork():\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "elif dist.get_rank() == 1:\n    time.sleep(1)\n    os.kill(os.getppid(), signal.SIGCONT)\n    os._exit(0)\n"
        "else:\n    time.sleep(1)  # in a barrier it would be busy\n"
        "dist.barrier()\n"
    )
    monkeypatch.setattr(watch, "STILL", 0.2)
    assert launcher.run_ranks([sys.executable, str(script)], 2) == 0
    said = capfd.readouterr().err
    assert said.count("leafgrad run: rank 1 of 2, process ") == 1
    assert "has been stopped by a signal for 0.2 s, and the others wait for it: kill -CONT" in said
