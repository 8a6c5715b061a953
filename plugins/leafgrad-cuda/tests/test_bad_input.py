"""What is missing on a machine is said, with the line that gets it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from leafgrad.errors import CompileError
from leafgrad_cuda import emulation, gpu, nvrtc


def cupy(monkeypatch, count):
    def counted():
        if count is None:
            raise RuntimeError("cudaErrorInsufficientDriver")
        return count

    runtime = SimpleNamespace(getDeviceCount=counted)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))


def wheels(monkeypatch, *names):
    monkeypatch.setattr(
        gpu, "metadata", SimpleNamespace(distributions=lambda: [SimpleNamespace(name=n) for n in names])
    )


def test_no_cupy(monkeypatch):
    wheels(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(CompileError, match=r"expected CuPy.*pip install 'leafgrad-cuda\[cuda12\]'"):
        gpu.found()


def test_two_wheels(monkeypatch):
    wheels(monkeypatch, "cupy-cuda12x", "numpy", "cupy-cuda13x")
    with pytest.raises(CompileError, match=r"got cupy-cuda12x and cupy-cuda13x, .*pip uninstall cupy-cuda12x"):
        gpu.found()


def test_no_driver(monkeypatch):
    wheels(monkeypatch, "cupy-cuda12x")
    cupy(monkeypatch, None)
    with pytest.raises(CompileError, match=r"no driver that it can use \(cudaErrorInsufficientDriver\)"):
        gpu.found()


def test_no_gpu(monkeypatch):
    wheels(monkeypatch, "cupy-cuda12x")
    cupy(monkeypatch, 0)
    with pytest.raises(CompileError, match="no GPU; see that CUDA_VISIBLE_DEVICES"):
        gpu.found()


def test_a_gpu(monkeypatch):
    wheels(monkeypatch, "cupy-cuda12x")
    cupy(monkeypatch, 1)
    assert gpu.found() is sys.modules["cupy"]


def test_no_nvrtc(monkeypatch):
    nvrtc.library.cache_clear()
    monkeypatch.setattr(nvrtc.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CompileError, match="pip install nvidia-cuda-nvrtc-cu12"):
        nvrtc.library()
    nvrtc.library.cache_clear()


def test_no_c_compiler(monkeypatch):
    emulation.compiler.cache_clear()
    monkeypatch.setattr(emulation.shutil, "which", lambda name: None)
    with pytest.raises(CompileError, match="expected a C compiler on PATH"):
        emulation.compiler()
    emulation.compiler.cache_clear()
