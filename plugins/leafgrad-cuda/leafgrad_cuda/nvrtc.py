"""NVIDIA's compiler of kernels, which needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from leafgrad.errors import CompileError

MISSING = (
    "expected NVRTC, NVIDIA's compiler of kernels, as a package, found none: pip install nvidia-cuda-nvrtc-cu12, or "
    "'leafgrad-cuda[test]'"
)


@cache
def library() -> ctypes.CDLL:
    """NVRTC, from its package.

    Raises:
        CompileError: there is none.
    """
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for path in sorted(Path(folder, "lib").glob("libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    raise CompileError(MISSING)


def version() -> str:
    """Which NVRTC it is."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"NVRTC {major.value}.{minor.value}"


def compiled(code: str, architecture: int, cubin: bool = False) -> bytes:
    """PTX, or with ``cubin`` machine code, of kernels for GPUs of an architecture, as 90.

    Raises:
        CompileError: there is no NVRTC, or it refuses; the message has its log.
    """
    rtc = library()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    rtc.nvrtcCreateProgram(ctypes.byref(program), code.encode(), b"leafgrad.cu", 0, None, None)
    try:
        kind = "sm" if cubin else "compute"
        options = [f"--gpu-architecture={kind}_{architecture}".encode(), b"-std=c++17", b"-w"]
        failed = rtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if failed:
            rtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            rtc.nvrtcGetProgramLog(program, log)
            raise CompileError(f"NVRTC refuses kernels for sm_{architecture}: {log.value.decode()[:4000]}")
        what = "CUBIN" if cubin else "PTX"
        getattr(rtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        made = ctypes.create_string_buffer(size.value)
        getattr(rtc, f"nvrtcGet{what}")(program, made)
        return made.raw
    finally:
        rtc.nvrtcDestroyProgram(ctypes.byref(program))
