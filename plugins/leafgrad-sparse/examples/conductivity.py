"""See into a plate: find its conductivity k from temperatures, where -div(k grad u) = f and u = 0 on the border.

The plate is a grid of finite volumes; the system is a sparse matrix, assembled anew of k at each step, and solved by
conjugate gradients. Gradients flow back through solver, products and assembly. Heat comes from four places in turn, and
the measured temperatures have noise of one per cent. Writes `conductivity.png` into --out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import leafgrad as lg
from leafgrad import Tensor, optim
from leafgrad_sparse import SparseMatrix, from_coo

N = 20  # cells along each side
ITERATIONS = 60  # of conjugate gradients
SOURCES = [(5, 5), (5, 14), (14, 5), (14, 14)]

CELLS = np.arange(N * N).reshape(N, N)
PAIRS = np.concatenate([
    np.stack([CELLS[:, :-1].ravel(), CELLS[:, 1:].ravel()]), np.stack([CELLS[:-1].ravel(), CELLS[1:].ravel()])
], axis=1)  # fmt: skip
BORDER = np.concatenate([CELLS[0], CELLS[-1], CELLS[:, 0], CELLS[:, -1]])
ROWS = np.concatenate([PAIRS[0], PAIRS[1], PAIRS[0], PAIRS[1], BORDER])
COLUMNS = np.concatenate([PAIRS[0], PAIRS[1], PAIRS[1], PAIRS[0], BORDER])


def system(k: Tensor) -> SparseMatrix:
    """The matrix of the equation for the conductivity of each cell, (N * N,); half a cell lies before the border."""
    left, right = k[lg.tensor(PAIRS[0])], k[lg.tensor(PAIRS[1])]
    between = 2 * left * right / (left + right)
    return from_coo(
        ROWS, COLUMNS, lg.cat([between, between, -between, -between, 2 * k[lg.tensor(BORDER)]]), (N * N, N * N)
    )


def solve(a: SparseMatrix, f: Tensor) -> Tensor:
    """The u with a @ u = f by conjugate gradients, with the diagonal as preconditioner. (n, k) -> (n, k)"""
    diagonal = lg.zeros(N * N, dtype=f.dtype).index_add(0, a.rows, a.values * (a.rows == a.columns))
    u, r = lg.zeros_like(f), f
    z = r / diagonal[:, None]
    p, rz = z, (r * z).sum(0)
    for _ in range(ITERATIONS):
        q = a @ p
        step = rz / (p * q).sum(0)
        u, r = u + step * p, r - step * q
        z = r / diagonal[:, None]
        rz, before = (r * z).sum(0), rz
        p = z + rz / before * p
    return u


def roughness(k: Tensor) -> Tensor:
    """The sum of the jumps of log(k), which rewards plain patches. (N * N,) -> ()"""
    jump = k.log()[lg.tensor(PAIRS[0])] - k.log()[lg.tensor(PAIRS[1])]
    return (jump * jump + 1e-4).sqrt().sum()


def draw(file: Path, truth: Tensor, found: Tensor, u: Tensor) -> None:
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    fields = {"conductivity": truth, "found": found, "temperature, heated at one place": u}
    for axis, (title, field) in zip(figure.subplots(1, 3), fields.items(), strict=True):
        shown = {} if "temp" in title else {"vmin": 0.5, "vmax": 3.5}
        figure.colorbar(axis.imshow(field.reshape(N, N).numpy(), **shown), ax=axis)
        axis.set(title=title, xticks=[], yticks=[])
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150, help="steps of Adam")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lg.manual_seed(0)
    lg.set_default_dtype(lg.float64)

    y, x = lg.meshgrid(lg.arange(N), lg.arange(N), indexing="ij")
    inclusion = ((x - 12) ** 2 + (y - 8) ** 2 < 20).double() * 2
    truth = (1 + inclusion).reshape(-1)
    heat = lg.zeros(N * N, len(SOURCES))
    for i, (row, column) in enumerate(SOURCES):
        heat[row * N + column, i] = 1.0
    exact = solve(system(truth), heat)
    measured = exact * (1 + 0.01 * lg.randn(*exact.shape))

    log_k = lg.zeros(N * N, requires_grad=True)
    optimizer = optim.Adam([log_k], lr=0.05)
    for step in range(args.steps):
        optimizer.zero_grad()
        k = log_k.exp()
        misfit = ((solve(system(k), heat) - measured) ** 2).sum() / (measured**2).sum()
        loss = misfit + 2e-6 * roughness(k)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: misfit {misfit.item():.2e}")
    found = log_k.detach().exp()
    print(f"error of a plain plate: {((1 - truth).norm() / truth.norm()).item():.3f}")
    print(f"relative error: {((found - truth).norm() / truth.norm()).item():.3f}")
    draw(args.out / "conductivity.png", truth, found, exact[:, 0])


if __name__ == "__main__":
    main()
