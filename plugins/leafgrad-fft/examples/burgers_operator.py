"""Learn the solution operator of Burgers' equation, u_t + u u_x = nu u_xx on a circle, with a Fourier neural operator.

From the initial velocity to that at time 1, for random smooth initial velocities. The network is trained on a grid of
64 points and then asked on one of 256, which it has never seen. Writes `burgers_operator.png` into --out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import leafgrad
from leafgrad import nn, optim
from leafgrad.nn import functional as F
from leafgrad_fft import FNO

NU = 0.02
MODES, WIDTH, BLOCKS, BATCH = 16, 20, 3, 16


def initial(rng: np.random.Generator, count: int, points: int) -> np.ndarray:
    """Random velocities with a few frequencies, of which the higher are weaker. -> (count, points)"""
    k = np.arange(1, 5)
    amplitude, phase = rng.normal(size=(count, 4, 1)) / k[:, None], rng.uniform(0, 2 * np.pi, (count, 4, 1))
    x = 2 * np.pi * np.arange(points) / points
    return 0.5 * (amplitude * np.sin(k[:, None] * x + phase)).sum(1)


def solve(u: np.ndarray, steps: int = 400) -> np.ndarray:
    """The velocity at time 1, by Runge-Kutta with the viscous term integrated exactly, without aliasing."""
    points, h = u.shape[-1], 1 / steps
    k = np.arange(points // 2 + 1)
    half, kept = np.exp(-NU * k * k * h / 2), k <= points // 3

    def rate(spectrum: np.ndarray) -> np.ndarray:
        velocity = np.fft.irfft(spectrum, points)
        return kept * (-0.5j * k * np.fft.rfft(velocity * velocity))

    s = np.fft.rfft(u)
    for _ in range(steps):
        a = rate(s)
        b = rate(half * (s + h / 2 * a))
        c = rate(half * s + h / 2 * b)
        d = rate(half * half * s + h * half * c)
        s = half * half * s + h / 6 * (half * half * a + 2 * half * (b + c) + d)
    return np.fft.irfft(s, points)


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """The mean over samples of the L2 error relative to the solution."""
    return float((np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)).mean())


def train(model: nn.Module, x: leafgrad.Tensor, y: leafgrad.Tensor, steps: int) -> None:
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        chosen = leafgrad.randint(0, len(x), (BATCH,))
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.2e}")


def picture(path: Path, u: np.ndarray, expected: np.ndarray, found: np.ndarray) -> None:
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    x = np.arange(u.shape[-1]) / u.shape[-1]
    for i, axis in enumerate(axes):
        axis.plot(x, u[i], ":", color="gray", label="initial")
        axis.plot(x, expected[i], color="black", label="solver")
        axis.plot(x, found[i], "--", color="tab:red", label="operator")
        axis.set_xlabel("x")
    axes[0].legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500, help="steps of Adam")
    parser.add_argument("--samples", type=int, default=512, help="of which it learns")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    leafgrad.manual_seed(0)
    rng = np.random.default_rng(0)

    u = initial(rng, args.samples, 256)
    x, y = (leafgrad.tensor(a[:, None, ::4], dtype=leafgrad.float32) for a in (u, solve(u)))
    model = FNO(1, 1, MODES, WIDTH, BLOCKS)
    train(model, x, y, args.steps)

    u = initial(rng, 64, 256)
    expected = solve(u)
    print(f"error of no change: {relative_error(u, expected):.3f}")
    for every in (4, 1):
        with leafgrad.no_grad():
            found = model(leafgrad.tensor(u[:, None, ::every], dtype=leafgrad.float32))[:, 0].numpy()
        print(f"relative L2 error on {256 // every} points: {relative_error(found, expected[:, ::every]):.4f}")
    picture(args.out / "burgers_operator.png", u, expected, found)


if __name__ == "__main__":
    main()
