"""Compilers that are missing, refuse, crash, hang or write nonsense; and what the flags must leave as it is."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import leafgrad
from leafgrad_native import compiler as module
from leafgrad_native.cache import library
from leafgrad_native.compiler import CompilationFailed, Compiler, NoCompiler, compiler

RUNTIME = Path(module.__file__).parent / "runtime"
posix = pytest.mark.skipif(os.name != "posix", reason="the compilers here are scripts of sh")


def available():
    try:
        return compiler()
    except NoCompiler:
        return None


needs_compiler = pytest.mark.skipif(available() is None, reason="no C compiler")


NUMBERS = itertools.count()


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Makes a script of sh the compiler."""
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path / "cache"))

    def script(text, name="compiler"):
        path = tmp_path / str(next(NUMBERS)) / name  # of which nothing is known yet
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)
        monkeypatch.setenv("LEAFGRAD_CC", str(path))
        return path

    return script


def test_none_is_none(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CC", "none")
    with pytest.raises(NoCompiler, match="LEAFGRAD_CC is none"):
        compiler()
    with pytest.raises(NoCompiler, match="LEAFGRAD_CC is none"):
        library("int f(void) { return 1; }", "test")


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CC", "/no/such/compiler")
    with pytest.raises(NoCompiler, match=r"/no/such/compiler: No such file"):
        compiler()


def test_an_empty_path_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("LEAFGRAD_CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoCompiler, match=r"no C compiler on the path: install gcc or clang, or `pip install ziglang`"):
        compiler()


@posix
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("exit 3", "--version failed with exit code 3: it wrote nothing"),
        ("kill -9 $$", "--version failed with exit code -9"),
        ("[ $1 = --version ] && exit; echo nonsense >&2; exit 1", "failed with exit code 1: nonsense"),
        ("[ $1 = --version ] && exit; kill -SEGV $$", f"was ended by signal {signal.SIGSEGV.value}"),
        ("exit 0", "wrote no library: it wrote nothing"),
        (r"head -c 9999 /dev/zero | tr '\0' '\377'; [ $1 = --version ]", "failed with exit code 1"),
        (
            '[ $1 = --version ] && exit; while [ "$1" != -o ]; do shift; done; echo garbage > "$2"',
            "wrote a library that does not load",
        ),
    ],
)
def test_a_broken_compiler_is_reported(use, text, expected):
    path = use(text)
    with pytest.raises(NoCompiler) as caught:
        compiler()
    message = str(caught.value)
    assert str(path) in message
    assert expected in message
    assert len(message) < 1000
    assert message.isprintable()


@posix
@pytest.mark.parametrize("when", ["true", "[ $1 != --version ] || exit 0"])
def test_a_hanging_compiler_is_ended_with_its_children(use, monkeypatch, tmp_path, when):
    monkeypatch.setenv("LEAFGRAD_CC_TIMEOUT", "0.3")
    use(f"{when}; (while :; do echo >> {tmp_path / 'beats'}; sleep 0.02; done) & wait")
    start = time.monotonic()
    with pytest.raises(NoCompiler, match=r"took longer than 0\.3 s and was ended"):
        compiler()
    assert time.monotonic() - start < 10
    beats = (tmp_path / "beats").read_bytes()
    time.sleep(0.1)
    assert (tmp_path / "beats").read_bytes() == beats


@posix
@needs_compiler
@pytest.mark.parametrize("when", ["true", 'case "$*" in *trial*) exec cc "$@";; esac'])
def test_a_handler_ends_a_compiler_that_takes_its_time(use, monkeypatch, when):
    """In the middle of a recorded call, which is whole: its error is no failure of the compiler's or the folder's."""
    state = {"h": None}

    def handler(number, frame):
        raise TimeoutError("deadline")

    def step(x):
        y = x.exp()
        state["h"] = (y * 2).detach()
        for _ in range(20):
            y = (y * 3).tanh()
        return y.sum()

    def some_calls(compiled):
        for _ in range(3):  # the first ones make what stays
            compiled(leafgrad.zeros(3))

    use(f"[ $1 = --version ] && exit; {when}; kill -ALRM $PPID; sleep 60")
    monkeypatch.delenv("LEAFGRAD_EXECUTOR")  # this one is preferred, and stays so
    before = signal.signal(signal.SIGALRM, handler)
    start, others = time.monotonic(), {*threading.enumerate()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(TimeoutError, match="deadline"):
                some_calls(leafgrad.compile(step))
    finally:
        signal.signal(signal.SIGALRM, before)
    for reader in {*threading.enumerate()} - others:
        reader.join(30)
    assert time.monotonic() - start < 10
    assert state["h"].tolist() == [2, 2, 2]


@posix
def test_the_pipe_of_a_compiler_that_prints_for_ever_is_closed_by_its_reader(use, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CC_TIMEOUT", "0.2")
    use("exec yes")
    before, others = len(os.listdir("/dev/fd")), {*threading.enumerate()}
    with pytest.raises(NoCompiler, match="was ended"):
        compiler()
    for reader in {*threading.enumerate()} - others:
        reader.join(30)
    assert len(os.listdir("/dev/fd")) == before


@posix
@pytest.mark.parametrize("wrong", ["0", "-1", "soon", "nan"])
def test_a_wrong_limit_is_named(use, monkeypatch, wrong):
    monkeypatch.setenv("LEAFGRAD_CC_TIMEOUT", wrong)
    use("exit 0")
    with pytest.raises(NoCompiler, match="LEAFGRAD_CC_TIMEOUT: expected seconds above 0"):
        compiler()


@posix
def test_a_failure_is_remembered_by_the_process(use, tmp_path):
    use(f"echo >> {tmp_path / 'calls'}; exit 1")
    for _ in range(3):
        with pytest.raises(NoCompiler):
            compiler()
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


@needs_compiler
def test_a_compiler_is_tried_once_and_then_known(tmp_path, monkeypatch):
    found = compiler()
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path))
    file = Path(found.command[0]).resolve()
    first = module.tried(found.command, file)
    monkeypatch.setattr(module, "run", lambda arguments, *_: pytest.fail(f"ran {arguments}"))
    assert module.tried(found.command, file) == first
    remembered = next((tmp_path / "native").glob("compiler-*.json"))
    remembered.write_text("{}")  # damaged: tried anew
    with pytest.raises(pytest.fail.Exception, match="--version"):
        module.tried(found.command, file)


@needs_compiler
@posix
def test_temporary_files_lie_in_the_cache(use, monkeypatch, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("a file, in which no folder can be made")
    monkeypatch.setattr(tempfile, "tempdir", str(nowhere))
    monkeypatch.setenv("TMPDIR", str(nowhere))
    use(f'echo $TMPDIR >> {tmp_path / "folders"}; exec {available()} "$@"')
    assert library("int f(void) { return 7; }", "test").f() == 7
    version, *others = (tmp_path / "folders").read_text().split()
    assert version == str(nowhere)
    assert others
    assert all(folder.startswith(f"{tmp_path}/cache/native") for folder in others)
    assert not list((tmp_path / "cache" / "native").glob("temp-*"))


@needs_compiler
@posix
def test_of_a_compiler_that_prints_for_ever_both_ends_are_kept(use):
    use(f'yes "a long line of warnings" | head -c 10000000; echo the end >&2; exec {available()} "$@"')
    code, text = module.run([module.os.environ["LEAFGRAD_CC"], "--version"])
    assert code == 0
    assert len(text) <= 2 * module.KEPT
    assert text.startswith("a long line of warnings")
    assert text.strip().endswith(module.run([str(available()), "--version"])[1].strip()[-20:])
    assert library("int f(void) { return 7; }", "test").f() == 7


@needs_compiler
@posix
def test_a_wrapper_is_a_compiler(use):
    use(f'exec {available()} "$@"')
    assert compiler().kind == available().kind
    assert library("int f(void) { return 7; }", "test").f() == 7


@needs_compiler
@posix
def test_flags_that_a_compiler_does_not_know_are_left_out(use):
    use(f'for a; do case $a in -m*) echo unknown: $a; exit 1;; esac; done; exec {available()} "$@"')
    assert not [flag for flag in compiler().flags if flag.startswith("-m")]


@needs_compiler
def test_an_error_in_the_source_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path))
    with pytest.raises(CompilationFailed, match=r"nonsense.*\(the source is .*\.c\)"):
        library("int f(void) { return nonsense; }", "test")


@needs_compiler
def test_no_shell_sees_what_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path / "a $(touch x); `touch y` 'z"))
    assert library("int f(void) { return 3; }", "test").f() == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a $(touch x); `touch y` 'z"]


EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 1e308, -1e308, 0.1, 3.0, 1e-40])
EXPRESSIONS = {
    "x + y": lambda x, y: x + y,
    "x + 0": lambda x, y: x + 0,
    "x - y": lambda x, y: x - y,
    "x - x": lambda x, y: x - x,
    "0 - x": lambda x, y: 0 - x,
    "-x": lambda x, y: -x,
    "x * 0": lambda x, y: x * 0,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "x / x": lambda x, y: x / x,
    "(x + y) - x": lambda x, y: (x + y) - x,
    "x == x": lambda x, y: x == x,
    "x != x": lambda x, y: x != x,
    "x < y ? x : y": lambda x, y: np.where(x < y, x, y),
    "x > 0 ? x : 0": lambda x, y: np.where(x > 0, x, 0),
    "x * (1 / y)": lambda x, y: x * (1 / y),
}


@needs_compiler
@pytest.mark.parametrize(("c", "dtype"), [("double", np.float64), ("float", np.float32)])
def test_the_flags_change_no_value(c, dtype):
    """nan, infinities, signed zeros and denormals come out as NumPy's, bit by bit, from vector code."""
    with np.errstate(all="ignore"):
        x, y = (np.ascontiguousarray(a, dtype).ravel() for a in np.meshgrid(EDGES, EDGES))
        text = "".join(
            f"void f{k}(const {c} *a, const {c} *b, {c} *out, long n) {{ for (long i = 0; i < n; i++) "
            f"{{ {c} x = a[i], y = b[i]; out[i] = {expression}; }} }}\n"
            for k, expression in enumerate(EXPRESSIONS)
        )
        made = library(text, "test")
        out = np.empty_like(x)
        for k, (expression, function) in enumerate(EXPRESSIONS.items()):
            getattr(made, f"f{k}")(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, out)), ctypes.c_long(x.size))
            expected = function(x, y).astype(dtype)
            same = (out == expected) & (np.signbit(out) == np.signbit(expected)) | (np.isnan(out) & np.isnan(expected))
            assert same.all(), (expression, x[~same], y[~same], out[~same], expected[~same])


SAMPLE = (
    '#include "maths.h"\n'
    "void f(const double *x, double *y) { for (int i = 0; i < 99; i++) y[i] = lg_tanh_f64(lg_pow_f64(x[i], 3)); }\n"
    "void g(const float *x, float *y) { for (int i = 0; i < 99; i++) y[i] = lg_erf_f32(lg_log_f32(x[i])); }\n"
)
needs_zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="the package ziglang is absent")


@pytest.fixture
def zig():
    return Compiler(
        (sys.executable, "-m", "ziglang", "cc"), "zig", "", "", (*module.SAFE, *module.library_flags("zig"))
    )


@pytest.mark.slow
@needs_zig
def test_zig_is_a_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("LEAFGRAD_CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path))
    monkeypatch.setenv("LEAFGRAD_CC_TIMEOUT", "300")
    assert compiler().kind == "zig"
    assert "-march=native" in compiler().flags
    assert library("int f(void) { return 5; }", "test").f() == 5


@pytest.mark.slow
@needs_zig
@pytest.mark.parametrize(
    ("target", "system", "magic"),
    [
        ("x86_64-windows-gnu", "win32", b"MZ"),
        ("aarch64-macos", "darwin", b"\xcf\xfa\xed\xfe"),
        ("x86_64-macos", "darwin", b"\xcf\xfa\xed\xfe"),
        ("aarch64-linux-gnu", "linux", b"\x7fELF"),
        ("x86_64-linux-musl", "linux", b"\x7fELF"),
    ],
)
def test_the_runtime_compiles_for_other_systems(zig, tmp_path, monkeypatch, target, system, magic):
    monkeypatch.setenv("LEAFGRAD_CC_TIMEOUT", "300")
    cross = replace(
        zig, flags=(*module.SAFE, *module.library_flags("zig", system), "-target", target, "-Wall", "-I", str(RUNTIME))
    )
    monkeypatch.setattr(module, "system_libraries", lambda: ())
    (tmp_path / "sample.c").write_text(SAMPLE)
    for source in (tmp_path / "sample.c", RUNTIME / "pool.c"):
        made = tmp_path / f"{source.stem}.library"
        cross.compile(source, made)
        assert made.read_bytes().startswith(magic)
