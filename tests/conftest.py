"""What tests of semantics run on: leafgrad, and PyTorch; programs in several processes; examples."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest

import leafgrad
from leafgrad import distributed
from leafgrad.distributed import launcher

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def forks():
    """Workers are forked, so that they may be given any function, as by default before Python 3.14."""
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture
def import_cut_once(tmp_path, monkeypatch):
    """Imports a module of lines that find values in ``cut``: the first import is cut short, and it is made anew."""

    def imported(lines, **values):
        (tmp_path / "cut_once.py").write_text(f"import cut\n{lines}\ncut.go_on()\n")
        cut = types.SimpleNamespace(**values, go_on=lambda: 1 / 0)
        monkeypatch.setitem(sys.modules, "cut", cut)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ZeroDivisionError):
            importlib.import_module("cut_once")
        cut.go_on = lambda: None
        importlib.import_module("cut_once")

    yield imported
    sys.modules.pop("cut_once", None)


@pytest.fixture
def hangups():
    """Come, in what tests start, also where they run under ``nohup``: a signal that is ignored stays so in children."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(params=["leafgrad", *(["torch"] if importlib.util.find_spec("torch") else [])])
def t(request):
    """leafgrad, and PyTorch where it is installed: a test of semantics that both share runs on both."""
    return importlib.import_module(request.param)


@pytest.fixture
def example(monkeypatch, capsys):
    """Runs an example of this name, with arguments, in this process: what it printed.

    Most of a short run's time is that of imports, which this process has done already.
    """

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), *map(str, arguments)])
        monkeypatch.syspath_prepend(EXAMPLES)
        runpy.run_path(sys.argv[0], run_name="__main__")
        return capsys.readouterr().out

    before = leafgrad.get_default_dtype()
    yield run
    leafgrad.set_default_dtype(before)  # which an example chooses for its process


NETWORKS = """
from leafgrad import nn
from leafgrad.nn.parallel import DistributedDataParallel
"""
START = """
import sys
import leafgrad as lg
import leafgrad.distributed as dist

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
"""


@pytest.fixture(scope="session")
def mpi():
    """An MPI that can start processes here."""
    pytest.importorskip("mpi4py")
    try:
        command = [launcher.mpiexec(), "-n", "2", sys.executable, "-c", "from mpi4py import MPI"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no processes can be started by MPI: {error}")


def program(code):
    """A rank's program: what it imports before its code, networks, which take their time, only where it needs them."""
    return START + NETWORKS * ("nn." in code or "DistributedDataParallel" in code) + code


# `leafgrad run --ranks` without the imports of leafgrad, which take the launcher longer than what it does. Tests of how
# it ends when it is asked to, in tests/distributed/, run the command itself.
LAUNCH = f"""
import sys, types
for name, folder in {[(p.__name__, str(Path(p.__file__).parent)) for p in (leafgrad, distributed)]}:
    sys.modules[name] = package = types.ModuleType(name)
    package.__path__ = [folder]
from leafgrad.distributed import launcher
sys.exit(launcher.run_ranks([sys.executable, "-m", "leafgrad", "run", *sys.argv[2:]], int(sys.argv[1])))
"""


def launched(script, count=2, **environment):
    """A script on some ranks: exit status, stdout, stderr."""
    command = [sys.executable, "-c", LAUNCH, str(count), str(script)]
    around = {**os.environ, **environment}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=script.parent, env=around, check=False
    )


@pytest.fixture(scope="session")
def launch(mpi):
    """`launched`, where MPI can start processes."""
    return launched


@pytest.fixture
def ranks(tmp_path, launch):
    """Runs code on some ranks: (exit status, stdout, stderr). Every status but ``status`` fails the test."""

    def run(code, count=2, status=0, **environment):
        script = tmp_path / "script.py"
        script.write_text(program(textwrap.dedent(code)))
        done = launch(script, count, **environment)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


EACH = """
for name, code in CASES.items():
    exec(compile(code, name, "exec"), {**globals()})
    print(f"{name}: right\\n", end="", flush=True)  # in one write, or lines of two ranks mix
"""


@pytest.fixture(scope="session")
def ranks_for_all(tmp_path_factory, launch):
    """Runs several cases, one after the other, on two ranks that are started once; each knows what ``setting`` makes.

    Gives a check that a case went well on both. A case that fails ends all: those that follow have not passed either.
    """

    def run(cases, setting=""):
        script = tmp_path_factory.mktemp("ranks") / "script.py"
        given = {name: textwrap.dedent(code) for name, code in cases.items()}
        script.write_text(program(textwrap.dedent(setting) + f"CASES = {given!r}\n" + EACH))
        done = launch(script)

        def check(name):
            assert done.stdout.count(f"{name}: right\n") == 2, done.stdout + done.stderr
            if name == list(cases)[-1]:
                assert done.returncode == 0, done.stderr

        return check

    return run


@pytest.fixture
def alone():
    """This process is a group."""
    distributed.init_process_group()
    yield
    distributed.destroy_process_group()
