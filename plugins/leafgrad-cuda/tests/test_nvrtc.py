"""Kernels through NVIDIA's own compiler, which needs no GPU, for several architectures."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from compiled_steps import burgers, classifier, trained

import leafgrad
from leafgrad import backends
from leafgrad.errors import CompileError
from leafgrad_cuda import nvrtc
from leafgrad_cuda.cubins import registers
from leafgrad_cuda.plan import CudaPlan

try:
    nvrtc.library()
except CompileError:
    pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12", allow_module_level=True)

ARCHITECTURES = [75, 80, 90, 100]
CUPY = Path(backends.__file__).parent / "cupy.py"


def code(function, *args):
    return CudaPlan(leafgrad.trace(function, *args), 99 << 10).code()


def kinds():
    """A function for each kind of kernel."""
    x, t, big = leafgrad.rand(70, 6), leafgrad.arange(70) % 6, leafgrad.rand(300, 300)
    yield "elements", lambda x: (x.tanh() * x.sin() + x.erf()).floor_divide(0.5), (x,)
    yield "along", lambda x: (x.sum(0), x.mean(1), x.amax(1), x.prod(0), x.softmax(1), x.logsumexp(1)), (x,)
    yield "layout", lambda x: (leafgrad.cat([x, x * 2]), x.T * 1, leafgrad.nn.functional.pad(x, (1, 1))), (x,)
    yield "tables", lambda x, t: (x[t], x.gather(1, t[:, None]), leafgrad.nn.functional.nll_loss(x, t)), (x, t)
    yield "products", lambda x: (x @ x.T, x.reshape(10, 7, 6) @ x[:6], x[0] @ x[:6, :6]), (x,)
    yield "squares", lambda x: (x @ x.T, x.double() @ x.double(), x.half()[:, :200] @ x.half()[:200]), (big,)
    yield "long sums", lambda x: x.sum() * 2, (big,)
    yield "integers", lambda t: (t * 3 - t // 2, t > 3, (t.to(leafgrad.int8) + 1).to(leafgrad.float64)), (t,)
    yield "lines", lambda x: x.cumsum(1), (x,)
    yield "order", lambda x, t: (x.argsort(1), x.median(), t.sort(0, descending=True)[0], x.half().topk(2)[1]), (x, t)
    yield "walks", lambda x, t: (x.argmax(1), t.argmin(), x.cummax(0)[1], x.cumprod(1), x.logcumsumexp(0)), (x, t)
    yield "folds", lambda x, t: (x.norm(dim=1), x.norm(3), (x > 0).all(1), t.sum(), t.amax(), x % 0.7, t % -3), (x, t)
    yield "draws", lambda x: (leafgrad.nn.functional.dropout(x, 0.3) * 2, leafgrad.bernoulli(x[0], 0.5)), (x,)
    yield "windows in a loop", windows, (leafgrad.rand(70, 4, 7), leafgrad.rand(4, 2, 3))
    yield "windows", windows, (leafgrad.rand(3, 4, 9, 9), leafgrad.rand(4, 2, 3, 3))


def windows(x, w):
    """Convolutions and pooling, with their gradients."""
    F = leafgrad.nn.functional
    n = x.ndim - 2
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = [F.conv1d, F.conv2d][n - 1](x, w, padding=1, stride=2, groups=2)
    y = [F.conv_transpose1d, F.conv_transpose2d][n - 1](y, w, groups=2)
    y = [F.max_pool1d, F.max_pool2d][n - 1](y, 3, 2, 1)
    y = [F.avg_pool1d, F.avg_pool2d][n - 1](y, 2, 1, 1)
    y = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d][n - 1](y, 3)
    return leafgrad.autograd.grad((y * y).sum(), [x, w])


@pytest.mark.every(4)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("function", "args"), [pytest.param(f, a, id=k) for k, f, a in kinds()])
def test_each_kind_of_kernel(function, args, architecture):
    text = code(function, *args)
    assert "KERNEL(lg_" in text
    assert b".visible .entry lg_" in nvrtc.compiled(text, architecture)


@pytest.mark.every(4)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("make", [burgers, classifier])
def test_a_training_step(make, architecture):
    _, run = trained(make(), "cuda-emulated", calls=2)
    text = CudaPlan(run.graph, 99 << 10).code()
    assert b"lg_loop" in nvrtc.compiled(text, architecture)


@pytest.mark.slow
@pytest.mark.parametrize("size", [{"width": 20, "depth": 8}, {"width": 50, "depth": 4}, {"width": 128, "depth": 4}])
def test_networks_of_benchmarks_as_machine_code(size):
    _, run = trained(burgers(rows=256, **size), "cuda-emulated", calls=2)
    assert nvrtc.compiled(CudaPlan(run.graph, 99 << 10).code(), 90, cubin=True).startswith(b"\x7fELF")


def ptxas():
    """NVIDIA's assembler, which says how many registers a kernel takes."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        spec = None
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next((path for f in folders if (path := Path(f, "bin", "ptxas")).exists()), None)


@pytest.mark.slow
@pytest.mark.skipif(ptxas() is None, reason="no ptxas: pip install nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("size", [{"width": 20, "depth": 8}, {"width": 50, "depth": 4}, {"width": 128, "depth": 4}])
@pytest.mark.parametrize("architecture", [80, 90])
def test_registers_do_not_spill(size, architecture, tmp_path):
    _, run = trained(burgers(rows=10_000, **size), "replay", calls=2)
    made = nvrtc.compiled(CudaPlan(run.graph, 99 << 10).code(), architecture)
    (tmp_path / "kernels.ptx").write_bytes(made.rstrip(b"\0"))
    command = [ptxas(), "-v", f"-arch=sm_{architecture}", "-o", tmp_path / "kernels.cubin", tmp_path / "kernels.ptx"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert told.count("Compiling entry function 'lg_loop") == 1
    assert set(re.findall(r"(\d+) bytes spill", told)) == {"0"}
    used = re.findall(r"function '(lg_\w+)'.*?Used (\d+) registers", told, re.DOTALL)
    assert registers((tmp_path / "kernels.cubin").read_bytes()) == {name: int(count) for name, count in used}
    assert max(int(count) for _, count in used) <= 255


@pytest.mark.slow
@pytest.mark.skipif(ptxas() is None, reason="no ptxas: pip install nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_squares_are_kept_in_registers(architecture, tmp_path):
    """Local memory would be a hundred times slower."""
    text = code(*next((f, *args) for kind, f, args in kinds() if kind == "squares"))
    assert "LG_KEEP(float" in text
    assert "LG_KEEP(double" in text
    (tmp_path / "kernels.ptx").write_bytes(nvrtc.compiled(text, architecture).rstrip(b"\0"))
    command = [ptxas(), "-v", f"-arch=sm_{architecture}", "-o", tmp_path / "kernels.cubin", tmp_path / "kernels.ptx"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    elsewhere = max(map(int, re.findall(r"(\d+) bytes (?:stack frame|spill)", told)))
    assert elsewhere <= 32  # an address or two, and no products, of which a thread has 64 bytes
    assert max(map(int, re.findall(r"Used (\d+) registers", told))) <= 168


def constants(names):
    """Texts that the CuPy backend has, read without CuPy."""
    tree = ast.parse(CUPY.read_text(encoding="utf-8"))
    return [ast.literal_eval(n.value) for name in names for n in tree.body
            if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == name]  # fmt: skip


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_random_numbers_of_the_cupy_backend(architecture):
    """But for float16, whose type CuPy's headers define."""
    philox, bodies = constants(["PHILOX", "BODIES"])
    types = {"float32": "float", "float64": "double", "uint64": "unsigned long long"}
    made = {name: types[kind] for name in bodies if (kind := name.split("_")[1]) in types}
    assert len(made) >= 4
    kernels = [
        f'extern "C" __global__ void leafgrad_{name}(unsigned long long seed, unsigned long long at, {t} *out) {{'
        f"unsigned long long i = threadIdx.x; unsigned int r[4]; philox(seed, at + i, r); {t} y; {bodies[name]}"
        " out[i] = y; }"
        for name, t in made.items()
    ]
    assert b".entry leafgrad_uniform_float32" in nvrtc.compiled("\n".join([philox, *kernels]), architecture)


def test_a_kernel_that_does_not_compile_is_an_error_with_its_log():
    with pytest.raises(CompileError, match=r"sm_90: leafgrad.cu\(1\): error: identifier \"tanhq\" is undefined"):
        nvrtc.compiled('extern "C" __global__ void f(float *x) { *x = tanhq(*x); }', 90)
