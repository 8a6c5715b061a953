"""Training that is killed or interrupted loses at most one interval, and goes on to the same bits."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import pty
import random
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import pytest

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.utils import Checkpoints, Interrupts, Training

TESTS = "utils.interrupts"
pytestmark = pytest.mark.usefixtures("hangups")

EXAMPLES = Path(__file__).parents[2] / "examples"
END, EVERY = 60, 4


def parts(device="cpu"):
    lg.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1)).to(device)
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    return {"net": net, "optimizer": optimizer, "schedule": optim.lr_scheduler.CosineAnnealingLR(optimizer, END)}


def train(folder, end=END, resume=False, after=lambda step: None, compiled=False, device="cpu"):
    """A small training, and its weights at the end."""
    with Training(folder, every=EVERY, resume=resume, setup={"seed": 0}, **(made := parts(device))) as training:

        def eager(x):
            made["optimizer"].zero_grad()
            loss = (made["net"](x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            made["optimizer"].step()
            return loss.detach()

        step = lg.compile(eager) if compiled else eager
        for n in training.steps(end):
            loss = step(lg.randn(8, 5, device=device))
            made["schedule"].step()
            training.note(loss=loss)
            after(n)
    return weights(made["net"])


def weights(net):
    return b"".join(p.detach().cpu().numpy().tobytes() for p in net.parameters())


def child(act):
    """The process id of a child that does something."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The weights of a run that nothing disturbed."""
    return train(tmp_path_factory.mktemp("whole"))


# ---- kill -9 --------------------------------------------------------------------------------------------------------


@pytest.mark.times(8, 50)
def test_killed_at_random_moments(tmp_path, whole, count, tried):
    chance, progress = random.Random(count), tmp_path / "progress"
    checkpoints = Checkpoints(tmp_path / "run")

    def run():
        def after(step):
            with open(progress, "ab") as file:
                file.write(bytes([step]))
            time.sleep(0.002)

        train(checkpoints.folder, resume=bool(checkpoints.paths()), after=after)

    for _ in range(count):
        started = time.monotonic()
        pid = child(run)
        time.sleep(chance.uniform(0, 0.15))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert time.monotonic() - started < 30
        if progress.exists():
            reached = progress.read_bytes()[-1]
            saved = checkpoints.latest()["done"] if checkpoints.paths() else 0
            assert reached - saved < EVERY + 1
    assert train(checkpoints.folder, resume=bool(checkpoints.paths())) == whole
    assert len(checkpoints.paths()) == 2
    tried("`kill -9` at a random moment of a training", count, "at most one interval is lost; resumed to the same bits")


def test_a_run_in_parts_has_the_bits_of_a_whole_one(tmp_path, device):
    expected = train(tmp_path / "whole", device=device)
    train(tmp_path / "parts", end=7, device=device)
    assert train(tmp_path / "parts", resume=True, device=device) == expected


def test_a_compiled_run_in_parts_has_the_bits_of_a_whole_one(tmp_path):
    expected = train(tmp_path / "whole", compiled=True)
    train(tmp_path / "parts", end=7, compiled=True)
    assert train(tmp_path / "parts", resume=True, compiled=True) == expected


BAR = """
    import os, signal, sys
    from tqdm import tqdm
    from leafgrad import nn
    from leafgrad.utils import Training

    with Training(sys.argv[1], every=9, net=nn.Linear(1, 1)) as training:
        steps = training.steps(9)
        next(steps)
        child = os.fork()
        if not child:
            tqdm.get_lock().acquire()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert list(steps) == list(range(1, 9))
"""


def test_a_killed_child_does_not_hold_up_the_progress_bar_of_its_parent(tmp_path):
    subprocess.run([sys.executable, "-c", textwrap.dedent(BAR), tmp_path], timeout=60, check=True)


@pytest.mark.slow
def test_burgers_killed_at_random_moments(tmp_path, tried):
    def command(folder):
        steps = [sys.executable, EXAMPLES / "burgers.py", "--quick", "--steps", "500", "--out", folder]
        return steps + ["--resume"] * bool(Checkpoints(folder).paths())

    def end_of(folder):
        done = subprocess.run(command(folder), capture_output=True, text=True, check=True, timeout=300)
        assert "relative L2 error" in done.stdout
        return Checkpoints(folder).latest()

    chance, kills = random.Random(1), 10
    for _ in range(kills):
        with subprocess.Popen(
            command(tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            time.sleep(chance.uniform(0, 8))
            process.kill()
    found, expected = end_of(tmp_path / "killed"), end_of(tmp_path / "whole")
    assert found["losses"] == expected["losses"]
    for name, t in expected["model"].items():
        assert found["model"][name].numpy().tobytes() == t.numpy().tobytes()
    tried("`kill -9` at a random moment of examples/burgers.py", kills, "resumed to the same bits")


# ---- signals --------------------------------------------------------------------------------------------------------


@pytest.mark.times(1, 10)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_with_a_checkpoint(tmp_path, number, count, whole, tried):
    chance = random.Random(number)
    for n in range(count):
        folder, stop = tmp_path / str(n), chance.randrange(1, END - 1)

        def after(step, stop=stop):
            if step == stop:
                os.kill(os.getpid(), number)
                os.kill(os.getpid(), signal.SIGINT)  # once more, in impatience

        pid = child(lambda folder=folder, after=after: train(folder, after=after))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + number
        assert Checkpoints(folder).latest()["done"] == stop + 1
        assert train(folder, resume=True) == whole
    tried(f"{number.name}, then Ctrl-C, in a training", count, "no step is lost; resumed to the same bits")


def test_a_terminal_that_goes_away(tmp_path, whole):
    pid, terminal = pty.fork()
    if not pid:
        code = 1
        try:
            train(tmp_path, after=lambda step: time.sleep(0.02))
        except SystemExit as end:
            code = end.code
        finally:
            os._exit(code)
    deadline = time.monotonic() + 20
    while not Checkpoints(tmp_path).paths() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.close(terminal)  # SIGHUP, and from now on nobody takes what is printed
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
    assert EVERY <= Checkpoints(tmp_path).latest()["done"] < END
    assert train(tmp_path, resume=True) == whole


def test_a_second_interrupt_while_saving(tmp_path, monkeypatch):
    save = Checkpoints.save

    def interrupted(self, obj):
        os.kill(os.getpid(), signal.SIGINT)
        return save(self, obj)

    monkeypatch.setattr(Checkpoints, "save", interrupted)
    with pytest.raises(SystemExit) as end:
        train(tmp_path, after=lambda step: os.kill(os.getpid(), signal.SIGINT) if step == 5 else None)
    assert end.value.code == 130
    assert Checkpoints(tmp_path).latest()["done"] == EVERY  # the first one while saving ended it


def test_interrupts_are_remembered_and_handlers_put_back(capfd):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interrupts() as interrupts:
        assert interrupts.received is None
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.received is signal.SIGTERM
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    assert "SIGTERM: stopping at the next safe point" in capfd.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_children_are_not_kept_alive():
    with Interrupts():
        pid = child(lambda: [os.kill(os.getpid(), signal.SIGINT), os.kill(os.getpid(), signal.SIGTERM)])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM


def started(*arguments):
    """An example, after its first checkpoint."""
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = Path(arguments[arguments.index("--out") + 1])
    deadline = time.monotonic() + 60
    while not Checkpoints(folder).paths() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_burgers_is_interrupted(tmp_path, number):
    with started(EXAMPLES / "burgers.py", "--out", tmp_path) as process:
        process.send_signal(number)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    done = re.search(r"stopped after (\d+) of 7500 iterations; go on with --resume", said)
    assert int(done[1]) == Checkpoints(tmp_path).latest()["steps"]
    assert "Traceback" not in said
    assert printed == ""


# ---- what is resumed ------------------------------------------------------------------------------------------------


def test_checkpoints_keep_the_last_ones_and_find_the_newest_whole(tmp_path):
    checkpoints = Checkpoints(tmp_path / "new" / "folder", keep=3)
    with pytest.raises(FileNotFoundError, match=r"expected a checkpoint in the folder .*folder, found none"):
        checkpoints.latest()
    for n in range(12):
        checkpoints.save({"n": n})
    assert [path.name for path in checkpoints.paths()] == [f"checkpoint-0000{n}.safetensors" for n in (10, 11, 12)]
    assert checkpoints.latest() == {"n": 11}
    newest = checkpoints.paths()[-1]
    newest.write_bytes(newest.read_bytes()[:-9])
    with pytest.warns(UserWarning, match="checkpoint-000012.*; going back to an earlier checkpoint"):
        assert checkpoints.latest() == {"n": 10}
    checkpoints.save({"n": 12})
    assert checkpoints.latest() == {"n": 12}
    for path in checkpoints.paths():
        path.write_bytes(b"")
    with pytest.raises(RuntimeError, match=r"000011.*ends too early"), pytest.warns(UserWarning, match="going back"):
        checkpoints.latest()
    with pytest.raises(ValueError, match="keep: expected at least 1, got 0"):
        Checkpoints(tmp_path, keep=0)


def test_another_setup_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a checkpoint in the folder"):
        train(tmp_path, resume=True)
    train(tmp_path, end=2)
    with pytest.raises(ValueError, match=r"resume: expected seed=0, as in the checkpoint in .*, got seed=1"):
        Training(tmp_path, every=1, resume=True, setup={"seed": 1}, **parts())
    with pytest.raises(ValueError, match=r"resume: expected the parts net, optimizer, schedule, .*, got net"):
        Training(tmp_path, every=1, resume=True, net=nn.Linear(1, 1))
    with pytest.raises(FileExistsError, match=r"folder: expected one without checkpoints, got .*; resume=True goes on"):
        Training(tmp_path, every=1, **parts())


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A folder with a short training of burgers.py, made in this process and without the picture at its end."""
    folder, before = tmp_path_factory.mktemp("short"), lg.get_default_dtype()
    example = types.SimpleNamespace(**runpy.run_path(str(EXAMPLES / "burgers.py")))
    recipe = dataclasses.replace(example.QUICK, steps=50)
    lg.set_default_dtype(lg.float64)
    try:
        lg.manual_seed(0)
        training = example.Training(recipe, "cpu", {"seed": 0, "dtype": "float64"})
        with Interrupts() as interrupts:
            training.run(Checkpoints(folder), interrupts)
    finally:
        lg.set_default_dtype(before)
    return folder


def burgers(*arguments):
    """What the example printed and said."""
    command = [sys.executable, EXAMPLES / "burgers.py", "--quick", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume", "--seed", 1], "--resume: the checkpoint has seed 0, not 1"),
        (["--resume", "--dtype", "float32"], "--resume: the checkpoint has dtype float64, not float32"),
        (["--resume", "--steps", 25], "--resume: the checkpoint is already at step 50 of 25"),
        (["--device", "tpu"], "device.*tpu"),
    ],
)
def test_errors_of_burgers_are_one_line(short, arguments, message, example):
    with pytest.raises(SystemExit, match=rf"^burgers\.py: .*{message}.*$"):
        example("burgers.py", "--quick", "--out", short, *arguments)


def test_a_folder_without_a_checkpoint_is_not_made(tmp_path, example, capsys):
    with pytest.raises(SystemExit, match=r"^burgers.py: expected a checkpoint in the folder .*nowhere, found none$"):
        example("burgers.py", "--quick", "--resume", "--out", tmp_path / "nowhere")
    assert capsys.readouterr() == ("", "")
    assert os.listdir(tmp_path) == []


def test_results_and_progress_do_not_mix(short):
    done = burgers("--steps", 75, "--resume", "--out", short)
    assert done.stdout.startswith("relative L2 error")
    assert all(
        float(value) < bound
        for value, bound in zip(
            re.findall(r"^(?:relative L2|reference) error:? (\S+)", done.stdout, re.MULTILINE), (1, 1e-12), strict=True
        )
    )
    assert (short / "burgers.png").stat().st_size > 10_000
    assert (short / "checkpoint-000003.safetensors").exists()
    assert "training: 100%" in done.stderr


# ---- nan ------------------------------------------------------------------------------------------------------------


def test_nan_names_term_and_step_and_keeps_the_state_before(tmp_path):
    training = Training(tmp_path, every=2, **parts())
    for _ in itertools.takewhile(lambda step: step < 5, training.steps(10)):
        training.note(log_p=1.0, kl=lg.tensor(1.0))
    with pytest.raises(FloatingPointError, match=r"step 5: kl is nan; an earlier state is in .*checkpoint-000002"):
        training.note(log_p=1.0, kl=lg.tensor(math.nan))
    assert Checkpoints(tmp_path).latest()["done"] == 4
