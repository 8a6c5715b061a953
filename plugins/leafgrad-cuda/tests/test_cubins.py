"""Machine code in the cache: found again, refused where it is not what it says."""

from __future__ import annotations

import json
import struct

import pytest

from leafgrad.errors import CompileError
from leafgrad.lowering import folder
from leafgrad_cuda import nvrtc
from leafgrad_cuda.cubins import architecture_of, cubin, registers


def elf(architecture, old=False):
    """The header of machine code."""
    header = bytearray(64)
    header[:6], header[8] = b"\x7fELF\x02\x01", 7 if old else 8
    header[18:20], header[48:52] = struct.pack("<H", 190), struct.pack("<I", architecture << (0 if old else 8))
    return bytes(header)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path))
    return tmp_path / "cuda"


class Counting:
    def __init__(self, made=None):
        self.calls, self.made = 0, made

    def __call__(self, code, architecture):
        self.calls += 1
        return (self.made or elf(architecture)) + code.encode()


def test_an_entry_is_compiled_once(home):
    compiler = Counting()
    for _ in range(3):
        assert cubin("text", 90, compiler, "NVRTC 12.9") == elf(90) + b"text"
    assert compiler.calls == 1
    for given in (("other", 90, "NVRTC 12.9"), ("text", 80, "NVRTC 12.9"), ("text", 90, "NVRTC 13.0")):
        cubin(given[0], given[1], compiler, given[2])
    assert compiler.calls == 4


def test_a_changed_byte_is_compiled_anew(home):
    compiler = Counting()
    cubin("text", 90, compiler, "")
    (path,) = home.glob("*.cubin")
    path.write_bytes(path.read_bytes() + b"!")
    assert cubin("text", 90, compiler, "") == elf(90) + b"text"
    assert compiler.calls == 2


def test_code_of_another_architecture_is_refused(home):
    """Whatever the entry says of itself."""
    compiler = Counting()
    cubin("text", 90, compiler, "")
    cubin("text", 80, compiler, "")
    other, ours = (next(p for p in home.glob("*.cubin") if architecture_of(p.read_bytes()) == a) for a in (80, 90))
    ours.write_bytes(other.read_bytes())
    facts = json.loads(other.with_suffix(".json").read_text())
    ours.with_suffix(".json").write_text(json.dumps({**facts, "architecture": 90}))
    assert cubin("text", 90, compiler, "") == elf(90) + b"text"
    assert compiler.calls == 3


@pytest.mark.parametrize(
    ("made", "got"),
    [(elf(80), "machine code for sm_80"), (elf(75, old=True), "for sm_75"), (b"PTX", "no machine code of NVIDIA's")],
)
def test_a_compiler_for_another_architecture_is_an_error(home, made, got):
    with pytest.raises(CompileError, match=f"expected machine code for sm_90, got .*{got}"):
        cubin("text", 90, Counting(made), "")
    assert not home.exists() or not list(home.glob("*.cubin"))


def test_without_a_folder_it_is_compiled_for_this_process(home, monkeypatch):
    def refused(self, name, data):
        raise folder.RefusedFolder("no room")

    monkeypatch.setattr(folder.Folder, "write", refused)
    folder.of_process.cache_clear()
    with pytest.warns(RuntimeWarning, match="not kept for later processes"):
        assert cubin("text", 90, compiler := Counting(), "") == elf(90) + b"text"
    assert compiler.calls == 1
    folder.of_process.cache_clear()


@pytest.mark.parametrize("architecture", [75, 80, 90, 100])
def test_real_machine_code(architecture):
    try:
        nvrtc.library()
    except CompileError:
        pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    text = 'extern "C" __global__ void f(float *x) { *x += 1; }'
    text += 'extern "C" __global__ void g(double *x) { *x = tanh(*x) / x[1]; }'
    code = nvrtc.compiled(text, architecture, cubin=True)
    assert architecture_of(code) == architecture
    found = registers(code)
    assert set(found) == {"f", "g"}
    assert 4 <= found["f"] < found["g"] <= 64
