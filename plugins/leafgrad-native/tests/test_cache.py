"""Compiled once, found again; damaged entries, folders of others, several processes at once."""

from __future__ import annotations

import errno
import gc
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from leafgrad.lowering import folder
from leafgrad_native import cache
from leafgrad_native.cache import library
from leafgrad_native.compiler import SUFFIX, CompilationFailed, Compiler, NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

SOURCE = "int f(void) { return 42; }\n"
posix = pytest.mark.skipif(os.name != "posix", reason="rights and scripts of POSIX")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LEAFGRAD_CACHE_LIMIT", raising=False)
    folder.of_process.cache_clear()
    yield tmp_path / "cache" / "native"
    folder.of_process.cache_clear()


@pytest.fixture
def compiled(monkeypatch):
    """The sources that were compiled."""
    done = []
    compile = Compiler.compile

    def record(self, source, library, sides=1):
        done.append(source.name)
        compile(self, source, library, sides)

    monkeypatch.setattr(Compiler, "compile", record)
    return done


def entry(home, name="test"):
    (made,) = home.glob(f"{name}-*{SUFFIX}")
    return made


def test_a_library_is_compiled_once(home, compiled):
    assert library(SOURCE, "test").f() == 42
    assert library(SOURCE, "test").f() == 42
    assert compiled == [entry(home).with_suffix(".c").name]


def test_the_source_lies_beside_it(home):
    library(SOURCE, "test")
    assert entry(home).with_suffix(".c").read_text() == SOURCE


@posix
def test_nobody_else_can_read_it(home):
    library(SOURCE, "test")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert not any(stat.S_IMODE(path.stat().st_mode) & 0o077 for path in home.iterdir())


def test_nothing_is_left_over(home):
    library(SOURCE, "test")
    assert {path.name.partition("-")[0] for path in home.iterdir()} == {"test", "lock"}


def test_the_key_changes_with_all_that_matters(monkeypatch):
    chosen = compiler()
    keys = {cache.key(SOURCE, chosen), cache.key(f"{SOURCE} ", chosen)}
    other = Compiler(chosen.command, chosen.kind, chosen.version, "another", chosen.flags)
    slow = Compiler(chosen.command, chosen.kind, chosen.version, chosen.identity, ("-O0",))
    keys |= {cache.key(SOURCE, other), cache.key(SOURCE, slow)}
    monkeypatch.setattr(cache, "processor", lambda: "another")
    keys.add(cache.key(SOURCE, chosen))
    monkeypatch.setattr(cache, "FORMAT", -1)
    keys.add(cache.key(SOURCE, chosen))
    assert len(keys) == 6


DAMAGE = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[:-100],
    "one bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "longer": lambda data: data + b"\0",
    "foreign": lambda data: b"#!/bin/sh\nexit 1\n",
    "gone": lambda data: None,
}


def replace(path, data):
    """A file of its own, since the old one is mapped."""
    path.unlink()
    if data is not None:
        path.write_bytes(data)


@pytest.mark.parametrize("suffix", [SUFFIX, ".c", ".json"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_is_made_anew_before_it_is_loaded(home, compiled, monkeypatch, suffix, damage):
    library(SOURCE, "test")
    whole = entry(home).read_bytes()
    path = entry(home).with_suffix(suffix)
    replace(path, damage(path.read_bytes()))
    load = cache.ctypes.CDLL.__init__

    def loads_only_what_is_whole(self, path):
        assert Path(path).read_bytes() == whole
        load(self, path)

    monkeypatch.setattr(cache.ctypes.CDLL, "__init__", loads_only_what_is_whole)
    assert library(SOURCE, "test").f() == 42
    assert len(compiled) == 2
    library(SOURCE, "test")
    assert len(compiled) == 2


@posix
def test_a_link_is_not_followed(home, compiled, tmp_path):
    library(SOURCE, "test")
    made = entry(home)
    made.rename(tmp_path / "elsewhere")
    made.symlink_to(tmp_path / "elsewhere")
    library(SOURCE, "test")
    assert len(compiled) == 2
    assert not made.is_symlink()


def test_files_of_another_user_are_not_loaded(home, compiled, monkeypatch):
    library(SOURCE, "test")
    files = {(path.stat().st_ino, path.stat().st_mtime_ns) for path in home.iterdir()}
    monkeypatch.setattr(folder, "own", lambda status: (status.st_ino, status.st_mtime_ns) not in files)
    library(SOURCE, "test")
    assert len(compiled) == 2


def refuse(home, monkeypatch, how):
    """Makes the cache a folder that cannot be used."""
    if how == "read-only":
        home.parent.write_text("a file, in which no folder can be made, not even by root")
    elif how == "another user's":
        monkeypatch.setattr(folder, "own", lambda status: not (home.exists() and status.st_ino == home.stat().st_ino))
    elif how == "full":
        make = folder.tempfile.mkstemp

        def full(prefix, dir):
            if Path(dir) == home:
                raise OSError(errno.ENOSPC, "No space left on device")
            return make(prefix=prefix, dir=dir)

        monkeypatch.setattr(folder.tempfile, "mkstemp", full)
    elif how == "not executable":
        load = cache.ctypes.CDLL.__init__

        def refused(self, path):
            if Path(path).parent == home:
                raise OSError("failed to map segment from shared object")
            load(self, path)

        monkeypatch.setattr(cache.ctypes.CDLL, "__init__", refused)


def test_what_is_in_a_read_only_cache_is_found(home, compiled, monkeypatch):
    library(SOURCE, "test")

    def refused(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("utime", "chmod", "replace"):
        monkeypatch.setattr(folder.os, name, refused)
    monkeypatch.setattr(folder.tempfile, "mkstemp", refused)
    assert library(SOURCE, "test").f() == 42
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("read-only", "Not a directory|File exists|cannot find"),
        ("another user's", "belongs to another user"),
        ("full", "is full, read-only or not executable"),
        ("not executable", "is full, read-only or not executable"),
    ],
)
def test_without_a_cache_there_is_a_temporary_folder_and_one_notice(home, compiled, monkeypatch, how, reason):
    refuse(home, monkeypatch, how)
    with pytest.warns(RuntimeWarning, match=f"not kept for later processes: .*({reason}).*; LEAFGRAD_CACHE") as caught:
        assert library(SOURCE, "test").f() == 42
    assert len(caught) == 1
    assert library(SOURCE, "test").f() == 42  # no second notice
    assert library("int f(void) { return 43; }", "test").f() == 43
    assert len([name for name in compiled if name.startswith("test-")]) >= 2


def test_the_temporary_folder_goes_with_the_process(tmp_path, monkeypatch, start):
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path / "cache"))
    process = start(
        "import warnings; warnings.simplefilter('ignore')\n"
        "from leafgrad.lowering import folder\nfrom leafgrad_native import cache\n"
        f"assert cache.library({SOURCE!r}, 'test').f() == 42; print(folder.of_process().path)",
        stdout=subprocess.PIPE,
    )
    path = process.communicate()[0].strip()
    assert process.returncode == 0
    assert path
    assert not Path(path).exists()


def test_what_was_not_used_for_longest_is_removed(home, monkeypatch):
    for number in range(4):
        library(f"int f(void) {{ return {number}; }}", f"old{number}")
        os.utime(entry(home, f"old{number}").with_suffix(".json"), (number, number))
        for suffix in (SUFFIX, ".c"):
            os.utime(entry(home, f"old{number}").with_suffix(suffix), (0, 0))
    library("int f(void) { return 0; }", "old0")  # used again
    size = sum(path.stat().st_size for path in home.glob("old*"))
    monkeypatch.setenv("LEAFGRAD_CACHE_LIMIT", str(0.8 * size / 2**20))
    assert library(SOURCE, "new").f() == 42
    assert sorted(path.name.partition("-")[0] for path in home.glob(f"*{SUFFIX}")) == ["new", "old0", "old3"]
    assert len(list(home.glob("old*"))) == 6


def test_more_than_the_limit_still_runs(home, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CACHE_LIMIT", "0")
    assert library(SOURCE, "test").f() == 42
    assert not list(home.glob("test-*"))


def test_unfinished_files_are_removed_after_an_hour(home):
    home.mkdir(parents=True)
    (home / "temp-old").write_text("")
    (home / "temp-new").write_text("")
    os.utime(home / "temp-old", (0, 0))
    library(SOURCE, "test")
    assert [path.name for path in home.glob("temp-*")] == ["temp-new"]


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A compiler that notes what it makes, and takes its time, or sleeps for good while ``asleep`` is there."""
    script = tmp_path / "slow"
    real = " ".join(compiler().command)
    script.write_text(
        f"#!/bin/sh\ncase $* in */test-*) echo $PPID >> {tmp_path}/calls; sleep 0.3;"
        f" while [ -e {tmp_path}/asleep ]; do sleep 0.05; done;; esac\nexec {real} $*\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("LEAFGRAD_CC", str(script))
    compiler()
    return tmp_path


ASK = f"from leafgrad_native.cache import library\nassert library({SOURCE!r}, 'test').f() == 42"


def calls(tmp_path):
    path = tmp_path / "calls"
    return path.read_text().split() if path.exists() else []


def wait_for(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@posix
def test_of_several_processes_one_compiles(home, slow, start):
    processes = [start(ASK) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert len(calls(slow)) == 1


@posix
def test_a_process_that_dies_while_it_compiles_is_not_waited_for(home, slow, start):
    (slow / "asleep").write_text("")
    first = start(ASK)
    wait_for(lambda: calls(slow))
    second = start(ASK)
    time.sleep(0.1)
    first.kill()
    first.wait()
    wait_for(lambda: len(calls(slow)) == 2)
    (slow / "asleep").unlink()
    assert second.wait() == 0


@posix
def test_a_lock_that_stays_taken_is_passed_over(home, monkeypatch):
    home.mkdir(parents=True)
    monkeypatch.setattr(cache, "limit", lambda: -4.9)
    chosen = cache.key(SOURCE, compiler())
    with folder.Folder(home).locked(f"lock-{chosen[-2:]}", 1) as held:
        assert held
        assert library(SOURCE, "test").f() == 42


def test_a_source_that_does_not_compile_leaves_no_entry(home):
    with pytest.raises(CompilationFailed):
        library("int f(void) { return x; }", "test")
    assert [path.suffix for path in home.glob("test-*")] == [".c"]


@posix
@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ('echo garbage > "$out"', "wrote a library that does not load"),
        ('echo "int g(void) { return 1; }" | {real} -shared -x c -o "$out" -', "is not whole: .*undefined symbol: f"),
    ],
)
def test_what_does_not_load_is_not_kept(home, tmp_path, monkeypatch, wrong, match):
    real = " ".join(compiler().command)
    script = tmp_path / "sick"
    script.write_text(
        '#!/bin/sh\nall="$*"; out=; before=\nfor a; do [ "$before" = -o ] && out=$a; before=$a; done\n'
        f"case $all in */test-*) [ -e {tmp_path}/well ] || {{ {wrong.replace('{real}', real)}; exit 0; }};; esac\n"
        f"exec {real} $all\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("LEAFGRAD_CC", str(script))
    for _ in range(2):
        with pytest.raises(CompilationFailed, match=match):
            library(SOURCE, "test", ["f"])
        assert [path.suffix for path in home.glob("test-*")] == [".c"]
    (tmp_path / "well").write_text("")
    assert library(SOURCE, "test", ["f"]).f() == 42


def test_libraries_that_nobody_uses_are_unloaded(home, monkeypatch):
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no list of what is loaded")
    first = library(SOURCE, "first")
    made = entry(home, "first").read_bytes()
    monkeypatch.setattr(Compiler, "compile", lambda self, source, library, sides=1: library.write_bytes(made))

    def loaded():
        return maps.read_text().count(str(home))

    before = loaded()
    functions = []
    for number in range(200):
        found = library(f"{SOURCE}// {number}", "test")
        functions.append(found.f)
        del found
    assert loaded() > before + 200
    assert {f() for f in functions} == {42}
    del functions
    gc.collect()
    assert loaded() == before
    assert first.f() == 42


def test_no_folder_at_all(home, monkeypatch):
    refuse(home, monkeypatch, "read-only")
    monkeypatch.setattr(folder.tempfile, "mkdtemp", lambda **_: Path("/no/such/folder").read_text())
    with (
        pytest.warns(RuntimeWarning, match="not kept for later processes"),
        pytest.raises(CompilationFailed, match="no folder can hold compiled code"),
    ):
        library(SOURCE, "test")
