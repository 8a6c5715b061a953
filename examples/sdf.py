"""A network learns the signed distance from a torus, knowing but points of the surface and their normals.

Elsewhere it is told that |grad f| = 1 (Gropp et al., ICML 2020). Errors are those in [-1, 1]^3, by the closed form.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

import leafgrad as lg
from leafgrad import Tensor, nn, optim
from leafgrad.nn import functional as F
from leafgrad.utils import Training

RING, TUBE = 0.6, 0.25  # the radii of the torus


def torus(x: Tensor) -> Tensor:
    """The exact signed distance, negative inside. (n, 3) -> (n, 1)"""
    return ((x[:, :2].norm(dim=1, keepdim=True) - RING).square() + x[:, 2:].square()).sqrt() - TUBE


def surface(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Points on it at angles around the ring and the tube, and their normals. (n,), (n,) -> (n, 3), (n, 3)"""
    normals = lg.stack([u.cos() * v.cos(), u.sin() * v.cos(), v.sin()], 1)
    return RING * lg.stack([u.cos(), u.sin(), 0 * u], 1) + TUBE * normals, normals


@lg.enable_grad()  # normals are gradients, also for those who want no others
def with_normals(distance: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Distances and their gradients by x, both of which can be trained. (n, 3) -> (n, 1), (n, 3)"""
    d = distance(x := x.detach().requires_grad_())
    return d, *lg.autograd.grad(d.sum(), x, create_graph=True)


@lg.no_grad()
def draw(net: nn.Module, file: Path) -> None:
    """The surface, its colours those of its normals, and level lines and normals in the plane y = 0."""
    left, right = (fig := Figure(figsize=(12, 5.8), layout="constrained")).subplots(1, 2)
    x, z = lg.meshgrid(lg.linspace(-1, 1, 161), lg.linspace(-1, 1, 161), indexing="xy")
    eye = lg.tensor([0.0, -0.8, 0.6])  # it is far away, in this direction
    p = lg.stack([x, 0.6 * z, 0.8 * z], -1).flatten(0, 1) + eye
    for _ in range(20):  # sphere tracing: along each ray as far as surely nothing is hit
        p = p - net(p) * eye
    colours = lg.where(net(p).abs() < 0.01, 0.5 + 0.5 * F.normalize(with_normals(net, p)[1]), 1.0)
    left.imshow(colours.reshape(161, 161, 3).tolist(), origin="lower", interpolation="bilinear")
    left.set(title="the learned surface, coloured by its normals", frame_on=False, xticks=[], yticks=[])
    learned, exact = (f(lg.stack([x, 0 * x, z], -1).flatten(0, 1)).reshape(161, 161).tolist() for f in (net, torus))
    grid, levels = (x.tolist(), z.tolist()), [0.1 * i for i in range(-3, 10)]
    right.contourf(*grid, learned, levels, cmap="RdBu", vmin=-0.9, vmax=0.9, extend="max")
    right.contour(*grid, learned, levels, colors="k", linestyles="-", linewidths=[0.7] * 3 + [2] + [0.7] * 9)
    right.contour(*grid, exact, levels, colors="w", linestyles=":")
    feet, _ = surface(lg.pi * lg.arange(2).repeat_interleave(16), lg.pi / 8 * lg.arange(32))
    right.quiver(*feet[:, ::2].T.tolist(), *with_normals(net, feet)[1][:, ::2].T.tolist(), scale=20, width=0.004)
    right.set(title="distance at y = 0: learned in colours and black, exact in white", aspect="equal")
    fig.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000, help="steps of Adam")
    parser.add_argument("--quick", dest="steps", action="store_const", const=300, help="300 steps, not 3000")
    parser.add_argument("--out", type=Path, default=Path("sdf"), help="folder for picture and checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    args = parser.parse_args()
    lg.manual_seed(args.seed)
    hidden = [layer for n in (3, 64, 64) for layer in (nn.Linear(n, 64), nn.Softplus(beta=20))]
    optimizer = optim.Adam((net := nn.Sequential(*hidden, nn.Linear(64, 1)).to(args.device)).parameters(), lr=5e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)

    @lg.compile
    def step(on: Tensor, truth: Tensor, anywhere: Tensor) -> tuple[Tensor, ...]:
        optimizer.zero_grad()
        (d, normals), (_, slopes) = with_normals(net, on), with_normals(net, anywhere)
        terms = 30 * (d**2).mean(), ((normals - truth) ** 2).sum(1).mean(), ((slopes.norm(dim=1) - 1) ** 2).mean()
        (terms[0] + terms[1] + terms[2]).backward()
        optimizer.step()
        return terms

    trained = {"net": net, "optimizer": optimizer, "schedule": schedule}
    setup = {"seed": args.seed, "steps": args.steps}
    with Training(args.out, every=100, resume=args.resume, setup=setup, **trained) as training:
        for _ in training.steps(args.steps):
            angles, anywhere = lg.rand(2, 512, device=args.device), lg.rand(512, 3, device=args.device)
            distance, normal, slope = step(*surface(*(2 * lg.pi * angles)), 2 * anywhere - 1)
            schedule.step()
            training.note(distance=distance, normal=normal, slope=slope)
    x = 2 * lg.rand(20_000, 3, device=args.device) - 1
    (d, normals), (exact, truth) = with_normals(net, x), with_normals(torus, x)
    print(f"distance, root mean square error: {F.mse_loss(d, exact).sqrt().item():.4f}")
    print(f"|grad f| = 1, mean error: {(normals.norm(dim=1) - 1).abs().mean().item():.4f}")
    print(f"normals, degrees: {F.cosine_similarity(normals, truth).clamp(-1, 1).acos().rad2deg().mean().item():.2f}")
    args.out.mkdir(parents=True, exist_ok=True)
    draw(net.cpu(), args.out / "sdf.png")


if __name__ == "__main__":
    main()
