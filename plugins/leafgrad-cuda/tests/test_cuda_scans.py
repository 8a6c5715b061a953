"""Recurrences as kernels: random layers and their gradients, against eager."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.errors import CompileError
from leafgrad_cuda import nvrtc
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram
from leafgrad_cuda.launches import OpRun
from leafgrad_cuda.plan import CudaPlan

NAME = "cuda-emulated"


def layer(seed):
    """A random recurrent layer, what it is given, and a step that returns its results and all gradients."""
    random = np.random.default_rng(seed)
    leafgrad.manual_seed(seed)
    dtype = leafgrad.float64 if random.random() < 0.7 else leafgrad.float32
    size, hidden = int(random.integers(1, 7)), int(random.choice([1, 3, 8, 40, 300], p=[0.2, 0.3, 0.3, 0.15, 0.05]))
    steps, rows = int(random.integers(1, 7)), int(random.choice([1, 2, 5, 70]))
    options = {"bias": random.random() < 0.7, "bidirectional": random.random() < 0.3, "dtype": dtype}
    options |= {"num_layers": int(random.integers(1, 3)), "dropout": 0.3 if random.random() < 0.3 else 0.0}
    if options["num_layers"] == 1:
        options["dropout"] = 0.0
    kind = random.choice([nn.RNN, nn.LSTM, nn.GRU])
    if kind is nn.RNN:
        options["nonlinearity"] = str(random.choice(["tanh", "relu"]))
    elif kind is nn.LSTM and hidden > 1 and random.random() < 0.3:
        options["proj_size"] = hidden // 2 + (hidden == 3)
    net = kind(size, hidden, **options)
    x = leafgrad.randn(steps, rows, size, dtype=dtype, requires_grad=True)

    def step(x):
        out, state = net(x)
        states = state if isinstance(state, tuple) else (state,)
        total = (out * out).sum() + sum(s.sin().sum() for s in states)
        leaves = [x, *net.parameters()]
        return out, *states, *leafgrad.autograd.grad(total, leaves, materialize_grads=True)

    return net, x, step


def compare(seed):
    """A random layer as kernels against eager."""
    net, x, step = layer(seed)
    run = leafgrad.compile(step, executor=NAME)
    run(x)
    leafgrad.manual_seed(seed)
    want = [t.detach().numpy() for t in step(x)]
    leafgrad.manual_seed(seed)
    got = [t.detach().numpy() for t in run(x)]
    rtol = 1e-9 if x.dtype == leafgrad.float64 else 1e-3
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * max(np.abs(w).max(), 1e-30), err_msg=f"{k} of {net}")
    plan = CudaProgram(run.graph, Emulated(("forward",))).plan
    assert not [p.equation.name for p in plan.parts if isinstance(p, OpRun)]
    scans = [t for launch in plan.launches for t in launch.tasks if t.steps]
    assert len(scans) >= 2 or net.proj_size  # whose steps are recorded one by one


@pytest.mark.parametrize("seed", [5, 8, 15, 20, 32])  # small ones: an RNN, LSTMs of each kind, a GRU
def test_random_recurrent_layers(seed):
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_many_random_recurrent_layers(seed):
    compare(seed)


def test_blocks_take_whole_rows():
    net = nn.LSTM(3, 100)
    x = leafgrad.rand(5, 9, 3)
    plan = CudaPlan(leafgrad.trace(lambda x: net(x)[0], x), 99 << 10)
    (section,) = [s for launch in plan.launches for s in launch.sections if s.scan]
    assert (section.scan.steps, section.scan.row, section.blocks) == (5, 100, 5)


@pytest.mark.every(4)
@pytest.mark.parametrize("architecture", [75, 80, 90, 100])
def test_the_compiler_takes_recurrences(architecture):
    try:
        nvrtc.library()
    except CompileError:
        pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    x = leafgrad.rand(4, 2, 3)
    nets = [nn.RNN(3, 5), nn.LSTM(3, 5), nn.GRU(3, 5)]

    def step(x):
        total = sum(net(x)[0].square().sum() for net in nets)
        return leafgrad.autograd.grad(total, [p for net in nets for p in net.parameters()])

    text = CudaPlan(leafgrad.trace(step, x), 99 << 10).code()
    assert text.count("for (INDEX s = 0; s < 4; s++)") == 6
    assert b".visible .entry lg_" in nvrtc.compiled(text, architecture)
