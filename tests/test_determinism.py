"""Same seed, machine, NumPy build and BLAS threads: the same bits per executor; between executors, rounding."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import leafgrad as lg
from leafgrad import nn, optim
from leafgrad.autograd import grad
from leafgrad.utils.data import DataLoader, TensorDataset

EXECUTORS = [
    pytest.param("none", marks=pytest.mark.slow),
    "numpy",
    pytest.param(
        "native",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(
                importlib.util.find_spec("leafgrad_native") is None, reason="leafgrad-native is missing"
            ),
        ],
    ),
]
SEEDS, THREADS = ("0", "random"), ("1", "3")


def trained():
    """The weights after a few steps on points that are shuffled by workers, with derivatives of derivatives."""
    lg.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Dropout(0.1), nn.Linear(24, 24), nn.SiLU(), nn.Linear(24, 1))
    optimizer = optim.AdamW(net.parameters(), lr=0.01)

    @lg.compile
    def step(x):
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        u = net(x)
        (slope,) = grad(u.sum(), x, create_graph=True)
        (curvature,) = grad(slope[:, 0].sum(), x, create_graph=True)
        loss = (slope[:, 1:] - curvature[:, :1] + u * u).square().mean()
        loss.backward(inputs=list(net.parameters()))
        optimizer.step()

    loader = DataLoader(TensorDataset(lg.randn(12_000, 2)), batch_size=3000, shuffle=True, num_workers=2)
    for (x,) in loader:
        step(x)
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])


def run(executor, hash_seed="0", threads="1"):
    """The digest of the weights from a process of its own."""
    compiled = {"LEAFGRAD_COMPILE": "0"} if executor == "none" else {"LEAFGRAD_EXECUTOR": executor}
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LEAFGRAD_")},
        **compiled,
        "PYTHONHASHSEED": hash_seed,
        "LEAFGRAD_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("executor", EXECUTORS)
def test_processes_hash_seeds_and_threads_change_no_bit(executor):
    runs = {run(executor, seed, threads) for seed, threads in zip(SEEDS, THREADS, strict=True)}
    assert len(runs) == 1


def test_executors_differ_by_rounding(monkeypatch):
    compiled = trained()
    monkeypatch.setenv("LEAFGRAD_COMPILE", "0")
    np.testing.assert_allclose(trained(), compiled, rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    print(hashlib.sha256(trained().tobytes()).hexdigest())
