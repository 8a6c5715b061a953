"""Convolutions, pooling and other layers as kernels, in random stacks, with derivatives of second order."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.nn import functional as F
from leafgrad.testing import fake
from leafgrad_cuda.device import Emulated
from leafgrad_cuda.executor import CudaProgram
from leafgrad_cuda.launches import OpRun

NAME = "cuda-emulated"
KINDS = ["convolution", "transposed", "largest", "average", "adaptive", "elementwise", "dropout"]


class Stack:
    """A random stack of layers over images of 1 to 3 dimensions.

    Attributes:
        x: what it is given.
        weights: leaves that require grad.
        layers: functions of an array.
    """

    def __init__(self, seed, most=4):
        self.random = random = np.random.default_rng(seed)
        self.dtype = leafgrad.float64 if random.random() < 0.7 else leafgrad.float32
        self.ndim = int(random.choice([1, 2, 2, 2, 3]))
        batch = int(random.choice([1, 3, 70, 130]))
        side = 6 if self.ndim == 3 or batch > 3 else 12
        shape = (batch, int(random.integers(1, 5)), *(int(n) for n in random.integers(3, side, self.ndim)))
        self.names = []
        self.weights = []
        self.x = self.leaf(*shape)
        self.layers = []
        with leafgrad.no_grad():
            y = self.x
            for _ in range(int(random.integers(1, most + 1))):
                kind = random.choice(KINDS)
                layer = getattr(self, str(kind))(y.shape)
                y = layer(y)
                self.layers.append(layer)
                self.names.append(str(kind))

    def leaf(self, *shape):
        values = self.random.normal(size=shape)
        t = leafgrad.tensor(values, dtype=self.dtype, requires_grad=True)
        self.weights.append(t)
        return t

    def sizes(self, low, high):
        return [int(n) for n in self.random.integers(low, high, self.ndim)]

    def groups(self, *channels):
        return int(self.random.choice([g for g in (1, 2, 3, 4) if all(c % g == 0 for c in channels)]))

    def convolution(self, shape):
        out = int(self.random.choice([1, 2, 4, 6, 8]))
        groups = self.groups(shape[1], out)
        kernel = [min(k, n) for k, n in zip(self.sizes(1, 4), shape[2:], strict=True)]
        options = {"stride": self.sizes(1, 4), "padding": self.sizes(0, 3), "groups": groups}
        options["dilation"] = [
            int(self.random.integers(1, 3)) if (k - 1) * 2 < n else 1 for k, n in zip(kernel, shape[2:], strict=True)
        ]
        w = self.leaf(out, shape[1] // groups, *kernel)
        b = self.leaf(out) if self.random.random() < 0.5 else None
        call = [F.conv1d, F.conv2d, F.conv3d][self.ndim - 1]
        return lambda x: call(x, w, b, **options)

    def transposed(self, shape):
        out = int(self.random.choice([1, 2, 4]))
        groups = self.groups(shape[1], out)
        kernel, stride = self.sizes(1, 4), self.sizes(1, 4)
        w = self.leaf(shape[1], out // groups, *kernel)
        b = self.leaf(out) if self.random.random() < 0.5 else None
        call = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][self.ndim - 1]
        return lambda x: call(x, w, b, stride=stride, groups=groups)

    def pooled(self, shape):
        kernel = [min(k, n) for k, n in zip(self.sizes(1, 4), shape[2:], strict=True)]
        return kernel, self.sizes(1, 4), [int(self.random.integers(0, k // 2 + 1)) for k in kernel]

    def largest(self, shape):
        kernel, stride, padding = self.pooled(shape)
        call = [F.max_pool1d, F.max_pool2d, F.max_pool3d][self.ndim - 1]
        return lambda x: call(x, kernel, stride, padding)

    def average(self, shape):
        kernel, stride, padding = self.pooled(shape)
        call = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][self.ndim - 1]
        include = bool(self.random.random() < 0.5)
        return lambda x: call(x, kernel, stride, padding, count_include_pad=include)

    def adaptive(self, shape):
        size = [int(self.random.integers(1, n + 1)) for n in shape[2:]]
        call = [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d][self.ndim - 1]
        return lambda x: call(x, size)

    def dropout(self, shape):
        p = float(self.random.random())
        return lambda x: F.dropout(x, p)

    def elementwise(self, shape):
        return [F.relu, leafgrad.tanh, lambda x: x * leafgrad.sigmoid(x)][int(self.random.integers(3))]

    def __call__(self, x):
        y = x
        for layer in self.layers:
            y = layer(y)
        return y

    def step(self, x):
        """The result, its gradients, and derivatives of these."""
        y = self(x)
        first = leafgrad.autograd.grad((y * y).sum(), self.weights, create_graph=True, materialize_grads=True)
        total = sum((g * g).sum() for g in first)
        if not total.requires_grad:
            return y, *first
        return y, *first, *leafgrad.autograd.grad(total, self.weights, materialize_grads=True)


def compare(seed, **options):
    """A random stack as kernels against eager; returns the names of ops that ran by themselves."""
    stack = Stack(seed, **options)
    run = leafgrad.compile(stack.step, executor=NAME)
    leafgrad.manual_seed(seed)
    want = [t.detach().numpy() for t in stack.step(stack.x)]
    run(stack.x)
    leafgrad.manual_seed(seed)
    got = [t.detach().numpy() for t in run(stack.x)]
    rtol = 1e-9 if stack.dtype == leafgrad.float64 else 3e-3
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype == w.dtype
        scale = np.abs(w).max() if w.size else 1
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * max(scale, 1e-30), err_msg=f"{k} of {stack.names}")
    parts = CudaProgram(run.graph, Emulated(("forward",))).plan.parts
    return {p.equation.name for p in parts if isinstance(p, OpRun)}


@pytest.mark.parametrize("seed", range(12))
def test_random_stacks(seed):
    assert compare(seed) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 400))
def test_many_random_stacks(seed):
    assert compare(seed) == set()


def same(function, *args):
    """As kernels and eagerly, with nan in the same places."""
    run = leafgrad.compile(function, executor=NAME)
    run(*args)
    for got, want in zip(run(*args), function(*args), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("rows", [2, 80])
@pytest.mark.parametrize("wild", [float("inf"), float("nan")])
def test_wild_kernels_and_images(rows, wild):
    x, w = leafgrad.rand(rows, 2, 6), leafgrad.rand(2, 2, 3)
    x[1, 0, 2], w[1, 1, 0] = wild, wild

    def function(x, w):
        y = F.conv1d(x, w, padding=1)
        return y, F.conv_transpose1d(x, w, stride=2), leafgrad.nn.grad.conv1d_weight(x, w.shape, y * 0 + 1, padding=1)

    with np.errstate(invalid="ignore"):
        same(function, x, w)


@pytest.mark.parametrize("rows", [2, 80])
def test_the_first_of_equal_ones_and_the_last_nan(rows):
    x = leafgrad.randint(0, 3, (rows, 2, 9)).to(leafgrad.float32)
    x[1, 0, 3], x[1, 0, 4], x[0, 1] = float("nan"), float("nan"), -float("inf")
    same(lambda x: F.max_pool1d(x, 4, 2, 2, return_indices=True), x)
    same(lambda x: (F.unfold(x[:, None], 2, padding=1), F.fold(x[:, :1, :4].expand(rows, 8, 4), (3, 3), 2)), x)


def train(seed, executor):
    """The losses and leaves of a random stack with a recurrent layer, trained on the device of tests."""
    fake.register()
    random = np.random.default_rng(seed)
    stack = Stack(seed, most=3)
    device = leafgrad.device("fake:0")
    with leafgrad.no_grad():
        for w in stack.weights:
            w.data = w.data.to(device)
    leafgrad.manual_seed(seed)
    width = int(np.prod(stack(stack.x).shape[1:]))
    layers = [nn.LSTM, nn.GRU, nn.RNN]
    net = layers[seed % 3](1, int(random.integers(1, 6))).to(device, stack.dtype)
    head = nn.Linear(net.hidden_size, 3).to(device, stack.dtype)
    leaves = [*stack.weights[1:], *net.parameters(), *head.parameters()]
    kind = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop][int(random.integers(4))]
    chosen = kind(leaves, lr=1e-2)
    x = stack.x.detach()
    target = leafgrad.tensor(random.integers(0, 3, len(x))).to(device)

    def step(x, target):
        chosen.zero_grad()
        rows = stack(x).reshape(len(x), width)[:, : min(width, 5)]
        hidden = net(rows.T[:, :, None])[0][-1]
        loss = F.cross_entropy(head(F.dropout(hidden, 0.2)), target)
        loss.backward()
        chosen.step()
        return loss.detach()

    run = step if executor is None else leafgrad.compile(step, executor=executor)
    losses = []
    for k in range(5):
        leafgrad.manual_seed(seed + k)
        losses.append(run(x, target))
    return [t.detach().cpu().numpy() for t in (*losses, *leaves)], run, stack.dtype == leafgrad.float64


def compare_training(seed):
    want, _, exact = train(seed, None)
    got, run, _ = train(seed, NAME)
    rtol = 1e-7 if exact else 2e-3
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * max(np.abs(w).max(), 1e-3), err_msg=str(k))
    left = [p.equation.name for p in run._calls.runner().program.plan.parts if isinstance(p, OpRun)]
    assert not left


@pytest.mark.parametrize("seed", range(3))
def test_random_trainings(seed):
    compare_training(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 120))
def test_many_random_trainings(seed):
    compare_training(seed)
