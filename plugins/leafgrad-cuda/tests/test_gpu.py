"""What programs ask of a GPU, through a CuPy that emulates kernels: capture, copies, streams. No GPU is needed."""

from __future__ import annotations

from sys import getrefcount
from types import SimpleNamespace

import numpy as np
import pytest
from compiled_steps import burgers, classifier, trained
from fake_cupy import Array, Cuda

import leafgrad
from leafgrad_cuda import gpu
from leafgrad_cuda.executor import CudaProgram


class Place(gpu.Gpu):
    """A GPU whose programs have arrays of the processor, which its kernels reach as they are."""

    def zeros(self, backend, size):
        return Array(np.zeros(size, "u1"), self.fake)

    def empty(self, backend, kinds, made):
        made += [np.empty(shape, dtype) for shape, dtype in kinds]

    def holders(self, arrays):
        return [*map(getrefcount, arrays)]

    def address(self, array):
        return array.data.ptr if isinstance(array, Array) else array.ctypes.data


@pytest.fixture
def cuda(monkeypatch, tmp_path):
    monkeypatch.setenv("LEAFGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(gpu, "metadata", SimpleNamespace(distributions=list))
    monkeypatch.setattr(gpu, "registers", lambda code: {})
    return Cuda().install(monkeypatch)


def program(cuda, graph):
    Place.fake = cuda
    return CudaProgram(graph, Place(0))


def graph_of(made):
    return trained(made, "replay", calls=2)[1].graph


def arrays(graph):
    rng = np.random.default_rng(0)
    return [rng.normal(size=v.shape).astype(v.dtype) if "f" in v.dtype else np.arange(np.prod(v.shape)).reshape(v.shape)
            % 5 for v in graph.inputs]  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize("make", [burgers, classifier])
def test_a_call_is_one_copy_and_one_graph(cuda, make):
    graph = graph_of(make())
    found = program(cuda, graph)
    given = arrays(graph)
    want = [a.copy() for a in found(given)]
    once = [f"graph of {len(found.plan.launches)}", *(["sync"] if found.stops else [])]
    found(given)
    cuda.calls.clear()
    for _ in range(5):
        found(given)
    assert cuda.calls == once * 5  # all is where it was
    for _ in range(40):  # more than copies may be under way
        got = found([a.copy() for a in given])
    assert cuda.calls[-len(once) - 1 :] == ["copy", *once]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_values_are_eagers(cuda):
    def function(x):
        y = (x.tanh() * 2).sum(0)
        return y, y.mode()[0] * 2, x.exp().mean()

    x = leafgrad.rand(300, 4)
    found = program(cuda, leafgrad.trace(function, x))
    cuda.calls.clear()
    for _ in range(3):
        for g, w in zip(found([x.numpy()]), function(x), strict=True):
            np.testing.assert_allclose(g, w.numpy(), rtol=1e-5)
    assert cuda.calls[:4] == ["copy", f"graph of {len(found.sides[0].course[0].kernels)}", "copy", "graph of 1"]


def test_another_stream_waits_for_the_last_call(cuda):
    x = leafgrad.rand(80, 3)
    found = program(cuda, leafgrad.trace(lambda x: (x * 2).tanh().sum(0), x))
    found([x.numpy()])
    found([x.numpy()])
    assert not [c for c in cuda.calls if "waits" in c]
    with cuda.streams() as other:
        found([x.numpy()])
    found([x.numpy()])
    waits = [c for c in cuda.calls if "waits" in c]
    assert waits == [f"{other.ptr} waits for {cuda.null.ptr}", f"{cuda.null.ptr} waits for {other.ptr}"]


def test_without_graphs_kernels_are_launched_one_by_one(cuda):
    cuda.broken = True
    graph = graph_of(classifier())
    with pytest.warns(RuntimeWarning, match="no CUDA graph could be captured .*cudaErrorStreamCaptureUnsupported"):
        found = program(cuda, graph)
    cuda.calls.clear()
    want = found(arrays(graph))
    assert cuda.calls.count("kernel") == len(found.plan.launches)
    cuda.broken = False
    for g, w in zip(program(cuda, graph)(arrays(graph)), want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_much_shared_memory_is_asked_for(cuda):
    graph = graph_of(burgers(width=50, depth=3, rows=100))
    found = program(cuda, graph)
    assert any(launch.shared > 48 << 10 for launch in found.plan.launches)
    found(arrays(graph))


def test_machine_code_is_kept_for_its_architecture(cuda):
    graph = graph_of(classifier())
    for _ in range(3):
        program(cuda, graph)
    assert cuda.calls.count("compile") == 1
    cuda.compute_capability = "80"
    cuda.compiler.architecture = None
    program(cuda, graph)
    assert cuda.calls.count("compile") == 2


def test_a_kernel_that_does_not_compile(cuda, monkeypatch):
    monkeypatch.setattr(gpu.CudaPlan, "code", lambda self: "nonsense")
    with pytest.raises(leafgrad.errors.CompileError, match=r"sm_90: leafgrad.cu\(1\): error: nonsense"):
        program(cuda, graph_of(classifier()))
