"""A C compiler on this machine: found, tried, and run without a shell."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from leafgrad import forks
from leafgrad.lowering.folder import Folder, RefusedFolder, folders
from leafgrad.signals import interruptible
from leafgrad_native import parts
from leafgrad_native.loading import loads_elsewhere
from leafgrad_native.target import features

if TYPE_CHECKING:
    import subprocess

FORMAT = 1  # raise it when what a trial finds out changes
SECONDS = 60.0  # that a compiler may take
KEPT = 1 << 16  # bytes of the beginning, and of the end, of what it writes
TEMPORARY = ("TMPDIR", "TMP", "TEMP")  # in which the environment names a folder for temporary files
START = forks.guard(threading.RLock())  # a child that took over ends of pipes would keep them open while it lives
TRIAL = "int lg_trial(int x) { return 2 * x + 2; }\n"
NAMES = ("cc", "gcc", "clang")
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")

# Errors of a function are not asked for (errno, traps), and loops marked "omp simd" are vectorised (this needs no
# OpenMP library). What NumPy shows stays: integers that are too large begin anew; nan, infinities, signed zeros,
# denormals, the order of sums, products that are rounded before they are added. So neither -ffast-math nor its parts.
SAFE = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fopenmp-simd", "-fwrapv")
# The first of these that a compiler takes: this processor's instructions and whole vectors of them, if it has AVX-512.
NATIVE = (("-march=native", "-mprefer-vector-width=512"), ("-march=native",), ("-mcpu=native",), ())


class CompilationFailed(RuntimeError):
    """The compiler refused, crashed, took too long or wrote no library."""


class NoCompiler(CompilationFailed):
    """There is no C compiler that works."""


@dataclass(frozen=True)
class Compiler:
    """A compiler that has been tried.

    Attributes:
        command: what runs it, to which arguments are added.
        kind: ``"gcc"``, ``"clang"``, ``"zig"`` or, of another make, ``"cc"``.
        version: the first line that it says of itself.
        identity: changes whenever the compiler does.
        flags: with which it makes shared libraries for this processor.
    """

    command: tuple[str, ...]
    kind: str
    version: str
    identity: str
    flags: tuple[str, ...]

    def compile(self, source: Path, library: Path, sides: int = 1) -> None:
        """Make a shared library of a file of C; of one in parts (``parts.py``), by ``sides`` processes at once.

        Raises:
            CompilationFailed: with the last lines that the compiler wrote.
        """
        if sides == 1:
            self.make(library, str(source), *system_libraries())
            return
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and not needed for what is in the cache

        objects = {library.with_suffix(f".{share}.o"): share for share in parts.shares(sides)}
        try:
            with ThreadPoolExecutor(len(objects)) as pool:
                list(pool.map(lambda o: self.make(o, "-c", f"-DLG_PARTS={objects[o]}", str(source)), objects))
            self.make(library, *map(str, objects), *system_libraries())
        finally:
            for path in objects:
                path.unlink(missing_ok=True)

    def make(self, made: Path, *arguments: str) -> None:
        """Run the compiler with its flags and these arguments."""
        code, text = run([*self.command, *self.flags, "-o", str(made), *arguments], made.parent)
        if code or not made.is_file():
            fault = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
            wrote = "object" if made.suffix == ".o" else "library"
            raise CompilationFailed(f"{self} {fault if code else f'wrote no {wrote}'}: {tail(text)}")

    def __str__(self) -> str:
        return " ".join(self.command)


def compiler() -> Compiler:
    """The compiler to use: ``LEAFGRAD_CC``, else ``cc``, ``gcc`` or ``clang`` of the path, else the package ziglang.

    Raises:
        NoCompiler: none is there, none works, or ``LEAFGRAD_CC`` is ``none``.
    """
    found = find(os.environ.get("LEAFGRAD_CC", ""), os.environ.get("PATH", ""))
    if isinstance(found, NoCompiler):
        raise NoCompiler(*found.args)
    return found


@cache
def find(chosen: str, path: str) -> Compiler | NoCompiler:
    """Asked once for each setting, since a failed search takes long, too."""
    if chosen == "none":
        return NoCompiler("LEAFGRAD_CC is none")
    failures = []
    for command, file in [_chosen(chosen)] if chosen else _candidates(path):
        try:
            return tried(command, file)
        except CompilationFailed as error:
            failures.append(str(error))
    remedy = "install gcc or clang, or `pip install ziglang`, or name a compiler in LEAFGRAD_CC"
    return NoCompiler("; ".join(failures) or f"no C compiler on the path: {remedy}")


def _chosen(name: str) -> tuple[tuple[str, ...], Path]:
    found = shutil.which(name)
    return (found or name,), Path(found or name)


def _candidates(path: str) -> Iterator[tuple[tuple[str, ...], Path]]:
    """(command, file that changes with the compiler), each program once."""
    seen = set()
    for name in NAMES:
        found = shutil.which(name, path=path)
        if found and (real := Path(found).resolve()) not in seen:
            seen.add(real)
            yield (found,), real
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        yield (sys.executable, "-m", "ziglang", "cc"), Path(spec.origin)


def tried(command: tuple[str, ...], file: Path) -> Compiler:
    """The compiler with flags under which it makes a library that loads; remembered on disk until the file changes.

    Raises:
        CompilationFailed: under no flags.
    """
    try:
        status = file.stat()
    except OSError as error:
        raise CompilationFailed(f"{' '.join(command)}: {error.strerror}") from None
    facts = [FORMAT, SAFE, NATIVE, command, str(file), status.st_mtime_ns, status.st_size, processor()]
    identity = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    for folder in folders("native"):
        try:
            return _remembered(folder, identity) or _try(command, identity, folder)
        except RefusedFolder:
            continue
    raise CompilationFailed("no folder can hold compiled code")


def _remembered(folder: Folder, identity: str) -> Compiler | None:
    try:
        known = json.loads(folder.read(f"compiler-{identity[:32]}.json"))
        if known["identity"] != identity:
            return None
        return Compiler(tuple(known["command"]), known["kind"], known["version"], identity, tuple(known["flags"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _try(command: tuple[str, ...], identity: str, folder: Folder) -> Compiler:
    code, text = run([*command, "--version"])
    if code:
        raise CompilationFailed(f"{' '.join(command)} --version failed with exit code {code}: {tail(text)}")
    version = text.strip().splitlines()[0].strip()[:200] if text.strip() else "unknown version"
    kind = "zig" if "ziglang" in command else "clang" if "clang" in text else "gcc" if "Free Software" in text else "cc"
    failure = CompilationFailed("")
    for native in NATIVE:
        if "-mprefer-vector-width=512" in native and "avx512f" not in features():
            continue
        found = Compiler(command, kind, version, identity, (*SAFE, *native, *library_flags(kind)))
        try:
            _trial(found, folder)
        except CompilationFailed as error:
            failure = error
        else:
            folder.write(f"compiler-{identity[:32]}.json", json.dumps(asdict(found)).encode())
            return found
    raise failure


def _trial(compiler: Compiler, folder: Folder) -> None:
    """Compile, load and run a small text where others will lie: other folders may be full, or run no code."""
    with folder.temporary() as path:
        source, library = path / "trial.c", path / f"trial{SUFFIX}"
        source.write_text(TRIAL, encoding="ascii")
        compiler.compile(source, library)
        try:
            answer = ctypes.CDLL(str(library)).lg_trial(20)
        except OSError as error:
            if loads_elsewhere(library):
                raise RefusedFolder(str(error)) from error
            raise CompilationFailed(f"{compiler} {unloaded(error)}") from None
        except AttributeError as error:
            raise CompilationFailed(f"{compiler} wrote a library that is not whole: {tail(str(error))}") from None
        if answer != 42:
            raise CompilationFailed(f"{compiler} computes 2 * 20 + 2 as {answer}")


def library_flags(kind: str, system: str = sys.platform) -> tuple[str, ...]:
    """Flags for shared libraries of a system; zig's checks of undefined behaviour are left out."""
    return (
        "-std=gnu11",
        "-shared",
        *(() if system == "win32" else ("-fPIC", "-pthread")),
        *(("-fno-sanitize=all",) if kind == "zig" else ()),
    )


def system_libraries(system: str = sys.platform) -> tuple[str, ...]:
    return () if system == "win32" else ("-lm",)


@cache
def processor() -> str:
    """What code for this processor depends on."""
    known = [platform.machine(), *sorted(features())]
    if sys.platform == "darwin":
        code, text = run(["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"])
        known += [] if code else [text.strip()]
    return " ".join(known)


def run(arguments: Sequence[str], temporary: Path | None = None) -> tuple[int, str]:
    """(exit code, what was written) of a program, ended with its children when its time is up.

    Of what is longer than two KEPT, the middle is left out.

    Args:
        temporary: where it puts its temporary files.

    Raises:
        CompilationFailed: it does not start, or takes too long.
    """
    import subprocess

    seconds = limit()
    own = {} if temporary is None else dict.fromkeys(TEMPORARY, str(temporary))
    try:
        with START:
            process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=os.environ | {"LC_ALL": "C"} | own,
                start_new_session=os.name == "posix",
            )
    except OSError as error:
        raise CompilationFailed(f"{arguments[0]} does not start: {error.strerror}") from None
    with process:
        try:
            output = ends(process, seconds)
        except BaseException as error:
            _kill(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            what = f"{' '.join(arguments)[:80]} took longer than {seconds:g} s"
            raise CompilationFailed(f"{what} and was ended: LEAFGRAD_CC_TIMEOUT is its limit") from None
    return process.returncode, output.decode(errors="replace")


def ends(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """The beginning and the end of what a program writes until it ends.

    Raises:
        subprocess.TimeoutExpired: its time is up.
    """
    import subprocess

    first, last = bytearray(), bytearray()
    pipe, process.stdout = (process.stdout, None)  # who reads it closes it: its number may be another file's then
    assert pipe is not None

    def read() -> None:
        with pipe:
            while piece := os.read(pipe.fileno(), KEPT):
                room = KEPT - len(first)
                first.extend(piece[:room])
                last.extend(piece[room:])
                del last[:-KEPT]

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    interruptible(reader.join, seconds)
    if reader.is_alive():
        raise subprocess.TimeoutExpired(process.args, seconds)
    process.wait(seconds)
    return bytes(first + last)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def limit() -> float:
    """Seconds that a compiler may take: ``LEAFGRAD_CC_TIMEOUT``, else 60."""
    text = os.environ.get("LEAFGRAD_CC_TIMEOUT", "")
    try:
        seconds = float(text or SECONDS)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise CompilationFailed(f"LEAFGRAD_CC_TIMEOUT: expected seconds above 0, got {text!r}: mend it, or unset it")
    return seconds


def unloaded(error: OSError) -> str:
    """What is wrong with a library that a compiler wrote, and that loads from nowhere."""
    return (
        f"wrote a library that does not load: {tail(str(error))}; if no code may be run there, nor in "
        f"{tempfile.gettempdir()}, let LEAFGRAD_CACHE name a folder where it may"
    )


def tail(text: str, most: int = 400) -> str:
    """The end of what a program wrote, on one line, fit to be printed."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words[-most:] or "it wrote nothing"
