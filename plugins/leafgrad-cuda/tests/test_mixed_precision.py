"""Random trainings with autocast and GradScaler as kernels, on the processor and on stand-in devices, against eager."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.compat.torch.amp import GradScaler, autocast
from leafgrad.testing import fake

OPTIMIZERS = [
    lambda params: optim.SGD(params, 0.05, momentum=0.9),
    lambda params: optim.SGD(params, 0.05),
    lambda params: optim.AdamW(params, 1e-2),
]


@dataclass
class Chosen:
    """What a seed chooses."""

    seed: int

    def __post_init__(self):
        draw = random.Random(self.seed)
        leafgrad.manual_seed(self.seed)
        self.device = draw.choice(["cpu", "cpu", "fake:0", "fake:1"])
        self.kind = self.device.partition(":")[0]
        self.dtype: Any = draw.choice([None, leafgrad.float16, *[leafgrad.bfloat16] * 2 * (self.kind == "cpu")])
        self.scales, self.crosses = draw.random() < 0.6, draw.random() < 0.3
        self.complex, self.clips = draw.random() < 0.25, draw.random() < 0.3
        self.optimizer, self.rows = draw.choice(OPTIMIZERS), draw.choice([16, 70, 130])
        self.scale, self.interval = 2.0 ** draw.choice([4, 10, 16, 20]), draw.choice([2, 3])
        width, act = draw.choice([3, 8, 20]), draw.choice([nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU])
        norm, drops, convolves = draw.choice([None, nn.LayerNorm, nn.BatchNorm1d]), draw.random() < 0.3, draw.random()
        first = [nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 4, 2), nn.Flatten(), nn.Linear(8, width)]
        layers = [*(first if convolves < 0.25 else [nn.Linear(6, width)]), act()]
        layers += [make() for make, on in ((lambda: norm(width), norm), (lambda: nn.Dropout(0.4), drops)) if on]
        self.layers = [*layers, nn.Linear(width, 2)]

    @property
    def executor(self):
        """Kernels are of programs on one device; a scale is on the first of a type."""
        return None if self.crosses or (self.scales and self.device == "fake:1") else "cuda-emulated"


def train(chosen, compiled):
    """Losses and scales of five steps, and the parameters."""
    net = nn.Sequential(*chosen.layers).to(chosen.device)
    optimizer = chosen.optimizer(net.parameters())
    x, y = (leafgrad.randn(chosen.rows, n).to(chosen.device) for n in (6, 2))
    scaler = GradScaler(chosen.kind, chosen.scale, growth_interval=chosen.interval, enabled=chosen.scales)
    other = "cpu" if chosen.device == "fake:1" else "fake:1"
    z = leafgrad.complex(leafgrad.ones(2), leafgrad.ones(2) / 2).to(chosen.device)

    def step():
        optimizer.zero_grad()
        with autocast(chosen.kind, dtype=chosen.dtype, enabled=chosen.dtype is not None):
            out = net(x).float()
        loss = (out - y).square().mean()
        if chosen.complex:
            loss = loss + (out * z).abs().square().mean() / 10
        if chosen.crosses:
            loss = loss + (out.to(other) / 2).square().sum().to(chosen.device) / 100
        scaler.scale(loss).backward()
        if chosen.clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    run = leafgrad.compile(step, executor=chosen.executor) if compiled else step
    found = [(run().item(), scaler.get_scale()) for _ in range(5)]
    return found, [p.detach().cpu().numpy() for p in net.parameters()]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.slow) for k in range(3, 120))])
def test_trainings_in_mixed_precision(seed, monkeypatch):
    monkeypatch.setenv("LEAFGRAD_COMPILE", "always")
    fake.register()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        (found, ours), (wanted, theirs) = (train(Chosen(seed), compiled) for compiled in (True, False))
    low = Chosen(seed).dtype is not None
    assert [scale for _, scale in found] == [scale for _, scale in wanted]
    losses = np.array([[loss for loss, _ in each] for each in (found, wanted)])
    np.testing.assert_allclose(*losses, rtol=0.03 if low else 2e-3, atol=0.03 if low else 2e-3)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=0.06 if low else 5e-3)
