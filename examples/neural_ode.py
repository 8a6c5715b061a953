"""A neural ordinary differential equation learns of hares and lynxes from a record, and foretells what becomes of them.

The record is a solution of Lotka and Volterra's equations; the network, du/dt = N(u), does not know them. Gradients
flow back through the steps of Runge and Kutta's method, all of it compiled (Chen et al., NeurIPS 2018).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

import leafgrad as lg
from leafgrad import Tensor, nn, optim
from leafgrad.utils import Training

DT, SEEN, FUTURE = 0.1, 100, 300  # a step in time; steps in the record, one and a half turns, and after it
SHOT = 20  # training starts anew from each point of the record, and follows it for so many steps


def lotka_volterra(u: Tensor) -> Tensor:
    """The truth: hares breed and are eaten, lynxes eat and starve. (n, 2) -> (n, 2)"""
    hares, lynxes = u.unbind(-1)
    return lg.stack([hares - hares * lynxes, hares * lynxes - lynxes], -1)


def solve(f: Callable[[Tensor], Tensor], u: Tensor, steps: int, dt: float = DT) -> Tensor:
    """The classical Runge-Kutta method of fourth order, from u (n, 2). -> (steps + 1, n, 2)"""
    path = [u]
    for _ in range(steps):
        a = f(u)
        b = f(u + dt / 2 * a)
        c = f(u + dt / 2 * b)
        u = u + dt / 6 * (a + 2 * b + 2 * c + f(u + dt * c))
        path.append(u)
    return lg.stack(path)


@lg.no_grad()
def draw(net: nn.Module, truth: Tensor, found: Tensor, file: Path) -> None:
    """Both populations over time, and the learned flow with the path on it."""
    fig = Figure(figsize=(13, 4.6), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(2, 1))
    times = [DT * i for i in range(len(truth))]
    for name, colour, exact, learned in zip(("hares", "lynxes"), ("C0", "C3"), truth.T, found.T, strict=True):
        left.plot(times, exact.tolist(), color="0.8", lw=5)
        left.plot(times, learned.tolist(), color=colour, label=name)
    left.axvspan(0, DT * SEEN, color="0.95", zorder=0)
    left.set(title="shaded: where it learned; grey: the truth", xlabel="time", xlim=(0, times[-1]), ylim=(0, 2.8))
    left.legend(loc="upper right", ncols=2)
    side = lg.linspace(0, 2.8, 29)
    flow = net(lg.cartesian_prod(side, side)).reshape(29, 29, 2).permute(2, 1, 0).numpy()
    right.streamplot(side.numpy(), side.numpy(), *flow, color="0.75", linewidth=0.8, arrowsize=0.8)
    right.plot(*truth[: SEEN + 1].T.tolist(), "k", lw=2)
    right.set(title="the learned flow, and the record", xlabel="hares", ylabel="lynxes", aspect="equal")
    fig.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000, help="steps of Adam")
    parser.add_argument("--quick", dest="steps", action="store_const", const=500, help="500 steps, not 2000")
    parser.add_argument("--out", type=Path, default=Path("neural_ode"), help="folder for picture and checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    args = parser.parse_args()
    lg.manual_seed(args.seed)
    lg.set_default_dtype(lg.float64)
    start = lg.tensor([[2.0, 0.5]], device=args.device)
    truth = solve(lotka_volterra, start, 4 * (SEEN + FUTURE), DT / 4)[::4, 0]
    starts = truth[: SEEN + 1 - SHOT]
    goals = lg.stack([truth[i : i + len(starts)] for i in range(SHOT + 1)])
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2)).to(args.device)
    optimizer = optim.Adam(net.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)

    @lg.compile
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = (solve(net, starts, SHOT) - goals).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    trained = {"net": net, "optimizer": optimizer, "schedule": schedule}
    setup = {"seed": args.seed, "steps": args.steps}
    with Training(args.out, every=50, resume=args.resume, setup=setup, **trained) as training:
        for _ in training.steps(args.steps):
            loss = step()
            schedule.step()
            training.note(loss=loss)
    found = solve(net, start, SEEN + FUTURE)[:, 0].detach()
    errors = ((found - truth) / truth.std()).square().mean(1)
    print(f"relative error where it learned: {errors[1 : SEEN + 1].mean().sqrt().item():.4f}")
    print(f"relative error after that: {errors[SEEN + 1 :].mean().sqrt().item():.4f}")
    args.out.mkdir(parents=True, exist_ok=True)
    draw(net.cpu(), truth.cpu(), found.cpu(), args.out / "neural_ode.png")


if __name__ == "__main__":
    main()
