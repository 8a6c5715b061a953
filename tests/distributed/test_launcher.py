"""How `leafgrad run --ranks` ends when it is asked to: no rank stays, and no traceback is its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"


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
