"""An LSTM learns sine waves from one value to the next, and then continues waves that it has not seen.

It reads 100 values of a wave; for the next 200 it is fed with its own predictions. L-BFGS trains it, in float64.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import matplotlib

import leafgrad as lg
from leafgrad import Tensor, nn, optim
from leafgrad.utils import Training

STEP = 2 * math.pi / 40  # 40 values a period
SEEN, AHEAD = 100, 200


class Predictor(nn.Module):
    """The next value of each wave, at every step. (waves, steps) -> (waves, steps), and the state after them"""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True, dtype=lg.float64)
        self.head = nn.Linear(hidden, 1, dtype=lg.float64)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, state = self.lstm(x.unsqueeze(-1), state)
        return self.head(y).squeeze(-1), state

    @lg.no_grad()
    def continued(self, x: Tensor, steps: int) -> Tensor:
        """``steps`` further values of each wave. (waves, seen) -> (waves, steps)"""
        y, state = self(x)
        values = [y[:, -1:]]
        while len(values) < steps:
            y, state = self(values[-1], state)
            values.append(y)
        return lg.cat(values, 1)


def waves(phases: Tensor, steps: int) -> Tensor:
    """sin(phase + t), one row for each phase. (waves,) -> (waves, steps)"""
    return lg.sin(phases.unsqueeze(1) + STEP * lg.arange(steps, dtype=lg.float64, device=phases.device))


def draw(seen: Tensor, truth: Tensor, ahead: Tensor, file: Path) -> None:
    """Three waves: what was read of them, and how they were continued."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
    for ax, read, wave, found in zip(axes, seen.tolist(), truth.tolist(), ahead.tolist(), strict=False):
        ax.plot(range(SEEN + AHEAD), read + wave, color="0.75", lw=4, label="wave")
        ax.plot(range(SEEN), read, color="C0", label="read")
        ax.plot(range(SEEN, SEEN + AHEAD), found, color="C1", label="continued")
    fig.legend(*axes[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
    axes[-1].set_xlabel("step")
    fig.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller network and fewer steps")
    parser.add_argument("--steps", type=int, help="steps of L-BFGS, 20 evaluations each; 20 by default, 8 with --quick")
    parser.add_argument("--out", type=Path, default=Path("sine_lstm"), help="folder for picture and checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    args = parser.parse_args()
    lg.manual_seed(args.seed)

    model = Predictor(16 if args.quick else 32).to(args.device)
    train = waves(2 * math.pi * lg.rand(32, dtype=lg.float64, device=args.device), SEEN + 1)
    optimizer = optim.LBFGS(model.parameters(), tolerance_change=0, history_size=20, line_search_fn="strong_wolfe")

    @lg.compile
    def loss_and_gradients() -> Tensor:
        optimizer.zero_grad()
        errors = model(train[:, :-1])[0] - train[:, 1:]
        loss = (errors[:, 10:] ** 2).mean()  # the first values do not tell yet which wave it is
        loss.backward()
        return loss

    setup = {"seed": args.seed, "quick": args.quick}
    with Training(args.out, every=1, resume=args.resume, setup=setup, model=model, optimizer=optimizer) as training:
        for _ in training.steps(args.steps or (8 if args.quick else 20)):
            training.note(loss=optimizer.step(loss_and_gradients))

    phases = lg.tensor([0.3, 2.0, 4.0], dtype=lg.float64, device=args.device)
    seen, truth = waves(phases, SEEN + AHEAD).split([SEEN, AHEAD], 1)
    ahead = model.continued(seen, AHEAD)
    args.out.mkdir(parents=True, exist_ok=True)
    draw(seen, truth, ahead, args.out / "sine_lstm.png")
    print(f"root mean square error over {AHEAD} steps: {(ahead - truth).pow(2).mean().sqrt().item():.3f}")


if __name__ == "__main__":
    main()
