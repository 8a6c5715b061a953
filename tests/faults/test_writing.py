"""`save` returns when all is on the disk, and whatever interrupts it leaves the former file."""

from __future__ import annotations

import errno
import io
import os
import random
import re
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import leafgrad as lg
from leafgrad.utils import disk

TESTS = "utils.disk"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def in_child(act):
    """The process id of a child that does something."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.times(20, 500)
def test_killed_while_saving(path, count, tried):
    states = [{"n": n, "w": lg.full((50_000,), float(n))} for n in range(2)]

    def save_for_ever():
        while True:
            for state in states:
                lg.save(state, path)

    lg.save(states[0], path)
    chance, most = random.Random(0), 0
    for _ in range(count):
        child = in_child(save_for_ever)
        time.sleep(0.02 * chance.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = lg.load(path)
        assert found["w"].tolist() == states[found["n"]]["w"].tolist()
        most = max(most, len(os.listdir(path.parent)))
    assert most <= 2
    lg.save(states[1], path)
    assert os.listdir(path.parent) == [path.name]
    tried("`kill -9` while saving", count, "the file is whole, and the next save removes what was left")


def test_a_file_that_another_process_writes_is_no_left_over(path):
    def save_often():
        for _ in range(50):
            lg.save({"w": lg.ones(20_000)}, path)

    children = [in_child(save_often) for _ in range(3)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert os.listdir(path.parent) == [path.name]


def test_left_overs_of_other_names_stay(path):
    for name in (
        ".other.safetensors.0123456789abcdef",
        ".model.safetensors.txt",
        ".model.safetensors.0123456789abcdef",
    ):
        (path.parent / name).touch()
    lg.save(1, path)
    assert sorted(os.listdir(path.parent)) == [
        ".model.safetensors.txt",
        ".other.safetensors.0123456789abcdef",
        path.name,
    ]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 238])
def test_a_name_that_leaves_no_room_for_more(tmp_path, name, monkeypatch):
    lg.save({"n": 0}, tmp_path / name)
    with monkeypatch.context() as patch:  # as if the process were killed: what it wrote stays
        patch.setattr(os, "replace", lambda *_: 1 / 0)
        patch.setattr(os, "unlink", lambda *_: None)
        with pytest.raises(ZeroDivisionError):
            lg.save({"n": 1}, tmp_path / name)
    assert len(os.listdir(tmp_path)) == 2
    lg.save({"n": 2}, tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    assert lg.load(tmp_path / name) == {"n": 2}


def test_file_systems_without_locks(path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(disk, "flock", no_locks)
    other = path.parent / f".{path.name}.0123456789abcdef"
    other.touch()
    lg.save(1, path)
    assert lg.load(path) == 1
    assert other.exists()  # somebody may be writing it


def test_no_room_for_the_file(path, tried):
    """At each size at which the system may refuse to write more."""
    lg.save({"epoch": 1}, path)
    new = {"epoch": 2, "w": lg.ones(1000)}
    lg.save(new, path.parent / "new")
    limits = range(0, (path.parent / "new").stat().st_size, 97)

    def save():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for limit in limits:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            with pytest.raises(OSError, match="File too large"):
                lg.save(new, path)

    assert os.waitpid(in_child(save), 0)[1] == 0
    assert lg.load(path) == {"epoch": 1}
    assert sorted(os.listdir(path.parent)) == ["model.safetensors", "new"]
    tried("the disk is full, at each 97th byte", len(limits), "OSError, and the former file stays")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_device():
    with pytest.raises(OSError, match="No space left"):
        lg.save({"w": lg.ones(10)}, "/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_file_and_folder_are_on_the_disk(path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def noted(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("replace"), replace(*paths)))
    lg.save(1, path)
    assert done == ["file", "replace", "folder"]
    done.clear()
    with open(path, "wb") as file:
        lg.save(1, file)
        assert os.path.getsize(path) > 0
    assert done == ["file"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_the_mode_is_kept(path, mode):
    lg.save(1, path)
    path.chmod(mode)
    lg.save(2, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert lg.load(path) == 2


def test_new_files_have_the_usual_mode(path):
    (path.parent / "usual").touch()
    lg.save(1, path)
    assert path.stat().st_mode == (path.parent / "usual").stat().st_mode


@pytest.mark.parametrize("there", [True, False])
def test_the_target_of_a_link_is_written(path, there):
    (path.parent / "folder").mkdir()
    target = path.parent / "folder" / "target"
    if there:
        target.touch()
    path.symlink_to("folder/target")
    lg.save(3, path)
    assert path.is_symlink()
    assert (lg.load(target), os.listdir(target.parent)) == (3, ["target"])


def test_a_pipe_is_written_to_and_stays(path):
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(lg.load(path)), daemon=True)
    reader.start()
    lg.save({"n": 4}, path)
    reader.join(10)
    assert found == [{"n": 4}]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_more_text_than_can_be_read_is_not_written(path, monkeypatch):
    from leafgrad.utils import safetensors

    monkeypatch.setattr(safetensors, "LARGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="save: obj: expected at most 1000 bytes of names, numbers and strings, got"):
        lg.save([0.5] * 1000, path)
    assert os.listdir(path.parent) == []


def test_the_same_state_gives_the_same_bytes(path):
    state = {"w": lg.arange(5.0), "scale": lg.tensor(2.0, dtype=lg.float64), "none": lg.zeros(0, 3), "n": [1, "ü"]}
    lg.save(state, path)
    first = path.read_bytes()
    lg.save(dict(state), path)
    assert path.read_bytes() == first


def test_a_tensor_that_is_written_while_it_is_saved(path):
    class Writes(io.BytesIO):
        def write(self, data):
            w.add_(1)
            return super().write(data)

    w = lg.ones(3)
    with pytest.raises(RuntimeError, match="save: obj: expected tensors that nobody writes while they are saved"):
        lg.save({"w": w}, Writes())


NO_MEMORY = r"""
    import os, re, resource, sys
    import leafgrad as lg

    w = lg.ones(5_000_000)
    lg.save({"w": w[:2]}, sys.argv[1])
    lg.load(sys.argv[1])
    used = 1024 * int(re.search(r"VmSize:\s+(\d+)", open("/proc/self/status").read())[1])
    resource.setrlimit(resource.RLIMIT_AS, (used + 12_000_000,) * 2)
    lg.save({"w": w}, sys.argv[1])
    try:
        lg.load(sys.argv[1])
    except MemoryError as error:
        print(error)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks /proc about memory")
def test_saving_takes_no_memory_and_loading_says_what_it_lacks(path):
    command = [sys.executable, "-c", textwrap.dedent(NO_MEMORY), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"load: .*model\.safetensors: no memory for the file's 20,0\d\d,\d\d\d bytes\n", done.stdout)
