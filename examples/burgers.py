"""Burgers' equation by a physics-informed network, scored against the exact solution.

    u_t + u u_x = nu u_xx  on  [-1, 1] x [0, 1],   nu = 0.01 / pi,   u(x, 0) = -sin(pi x),   u(-1, t) = u(1, t) = 0

The network is built so that it meets the initial and boundary values exactly and is odd in x, as the solution
is; what is left to learn is the residual at points that are drawn anew, more of them where it is large (residual
adaptive distribution: Wu et al., Comput. Methods Appl. Mech. Eng. 403, 2023). L-BFGS minimises it.

    python examples/burgers.py            # the whole training
    python examples/burgers.py --quick    # a shorter one
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import leafgrad
from leafgrad import Tensor, nn
from leafgrad.autograd import grad
from leafgrad.utils import Checkpoints, Interrupts

NU = 0.01 / np.pi
STRETCH = 8.0  # the shock is thin in x: the network sees 8 x
SOFTEN = 0.1  # points weigh 1 / (1 + 0.1 |u_x|): within the shock the residual is large where the error is not
POOL = 20_000  # candidates from which collocation points are drawn
AT_ONCE = 2_000  # of which residuals are computed together, to save memory
BLOCK = 25  # iterations between two looks at the clock, and what an interruption loses at most


@dataclass(frozen=True)
class Recipe:
    """How long to train: ``steps`` iterations of L-BFGS, with ``points`` new points every ``round``."""

    steps: int
    round: int
    points: int


FULL = Recipe(steps=7500, round=500, points=1500)
QUICK = Recipe(steps=2000, round=250, points=1000)


# ---- the exact solution -------------------------------------------------------------------------------------------


def exact(x: Any, t: Any, nodes: int = 200) -> Any:
    """u(x, t) in float64 by the Cole-Hopf transform, its Gaussian integrals by Gauss-Hermite quadrature.

    With phi of the heat equation, u = -2 nu phi_x / phi (Cole 1951, Hopf 1950); both integrals are averages over
    the points x - 2 sqrt(nu t) z of the initial values, with weights exp(-z^2).
    """
    x, t = np.broadcast_arrays(x, t)
    if x.ndim > 1:  # row by row, to save memory
        return np.stack([exact(*row, nodes=nodes) for row in zip(x, t, strict=True)])
    z, weight = np.polynomial.hermite.hermgauss(nodes)
    y = np.pi * (x[..., None] - 2 * np.sqrt(NU * t[..., None]) * z)
    exponent = -np.cos(y) / (2 * np.pi * NU)
    kernel = weight * np.exp(exponent - exponent.max(axis=-1, keepdims=True))  # phi spans e^100; the maximum cancels
    return -(np.sin(y) * kernel).sum(-1) / kernel.sum(-1)


def relative_l2(u: Any, v: Any) -> float:
    """|u - v| / |v| over all points."""
    return float(np.linalg.norm(u - v) / np.linalg.norm(v))


# ---- the network --------------------------------------------------------------------------------------------------


class Burgers(nn.Module):
    """u(x, t) = -sin(pi x) + t (1 - x^2) (N(x, t) - N(-x, t)).  (n, 1), (n, 1) -> (n, 1)"""

    def __init__(self, width: int = 20, depth: int = 3) -> None:
        super().__init__()
        sizes = [2] + [width] * depth
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1, bias=False))  # a bias would cancel
        for p in self.parameters():
            nn.init.xavier_uniform_(p) if p.ndim == 2 else nn.init.zeros_(p)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        right, left = (self.net(leafgrad.cat([side * STRETCH * x, t], 1)) for side in (1, -1))
        u: Tensor = -leafgrad.sin(np.pi * x) + t * (1 - x * x) * (right - left)
        return u


def residual(model: Burgers, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """u_t + u u_x - nu u_xx, and u_x, at points that require grad."""
    u = model(x, t)
    u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - NU * u_xx, u_x


def draw(model: Burgers, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """n points of the right half (symmetry gives the left), more where the residual is large, with weights."""
    device = next(model.parameters()).device
    x = leafgrad.rand(POOL, 1, device=device, requires_grad=True)
    t = leafgrad.rand(POOL, 1, device=device, requires_grad=True)
    few = zip(x.split(AT_ONCE), t.split(AT_ONCE), strict=True)
    parts = [[value.detach() for value in residual(model, *part)] for part in few]
    r, u_x = map(leafgrad.cat, zip(*parts, strict=True))
    weight = 1 / (1 + SOFTEN * u_x.abs())
    size = (weight * r).abs().flatten()
    chosen = leafgrad.multinomial(size / size.mean() + 1, n)
    x, t = x.detach()[chosen], t.detach()[chosen]
    return x.requires_grad_(), t.requires_grad_(), weight[chosen]


# ---- training -----------------------------------------------------------------------------------------------------


class Training:
    """A model, its optimizer and where they stand; all of it goes into a checkpoint."""

    def __init__(self, recipe: Recipe, device: str, setup: dict[str, Any]) -> None:
        self.recipe = recipe
        self.setup = {**setup, "round": recipe.round, "points": recipe.points}
        self.model = Burgers().to(device)
        self.losses: list[float] = []
        self.steps = 0
        self.seconds = 0.0
        self.evaluate = loss_and_gradients(self.model)
        self.begin_round()

    def begin_round(self) -> None:
        """New points, and an optimizer that knows nothing of the old ones."""
        self.points = draw(self.model, self.recipe.points)
        self.optimizer = leafgrad.optim.LBFGS(
            self.model.parameters(),
            max_iter=BLOCK,
            max_eval=2 * BLOCK,
            tolerance_grad=0,
            tolerance_change=0,
            history_size=100,
            line_search_fn="strong_wolfe",
        )

    def run(self, checkpoints: Checkpoints, interrupts: Interrupts) -> None:
        """Train to the end, or to that of a block in which Ctrl-C or the like came; each ends with a checkpoint."""
        with tqdm(total=self.recipe.steps, initial=self.steps, desc="training", unit="it") as bar:
            while self.steps < self.recipe.steps and not interrupts.received:
                start = time.perf_counter()
                if self.steps and self.steps % self.recipe.round == 0:
                    self.begin_round()
                self.optimizer.step(lambda: self.evaluate(*self.points))
                loss = float(self.evaluate(*self.points))
                if not math.isfinite(loss):
                    raise FloatingPointError(
                        f"the mean squared residual is {loss} after step {self.steps + BLOCK}; the state after step "
                        f"{self.steps} is in {checkpoints.folder}"
                    )
                self.losses.append(loss)
                self.steps += BLOCK
                self.seconds += time.perf_counter() - start
                checkpoints.save(self.state())
                bar.set_postfix(loss=f"{loss:.2e}", refresh=False)
                bar.update(BLOCK)

    def state(self) -> dict[str, Any]:
        """Everything that a resumed run needs to go on as if nothing had happened."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "points": [p.detach() for p in self.points],
            "random": leafgrad.get_rng_state(),
            "losses": self.losses,
            "steps": self.steps,
            "seconds": self.seconds,
            "setup": self.setup,
        }

    def resume(self, checkpoints: Checkpoints) -> None:
        """Take over the newest checkpoint; ValueError if it is of another training."""
        saved = checkpoints.latest(map_location=self.points[0].device)
        for name, value in self.setup.items():
            if saved["setup"][name] != value:
                raise ValueError(f"--resume: the checkpoint has {name} {saved['setup'][name]}, not {value}")
        if saved["steps"] > self.recipe.steps:
            raise ValueError(f"--resume: the checkpoint is already at step {saved['steps']} of {self.recipe.steps}")
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        x, t, weight = saved["points"]
        self.points = x.requires_grad_(), t.requires_grad_(), weight
        leafgrad.set_rng_state(saved["random"].cpu())
        self.losses, self.steps, self.seconds = saved["losses"], saved["steps"], saved["seconds"]


def loss_and_gradients(model: Burgers) -> Callable[..., Tensor]:
    """The function that L-BFGS calls: the loss at given points, its gradients left in ``.grad``."""
    parameters = list(model.parameters())

    @leafgrad.compile
    def evaluate(x: Tensor, t: Tensor, weight: Tensor) -> Tensor:
        model.zero_grad()
        r, _ = residual(model, x, t)
        loss = (weight * r).square().mean()
        loss.backward(inputs=parameters)
        return loss.detach()

    return evaluate


# ---- results ------------------------------------------------------------------------------------------------------


def predict(model: Burgers, x: Any, t: Any) -> Any:
    """The network on the grid of x (m, 1) and t (1, n), as a NumPy array (m, n)."""
    x, t = np.broadcast_arrays(x, t)
    p = next(model.parameters())
    columns = [leafgrad.tensor(v.reshape(-1, 1), dtype=p.dtype, device=p.device) for v in (x, t)]
    with leafgrad.no_grad():
        return model(*columns).cpu().numpy().reshape(x.shape).astype(np.float64)


def plot(path: Path, x: Any, t: Any, u: Any, error: Any, losses: list[float]) -> None:
    """Solution, error map and loss curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
    for axes, values, title, colours in ((left, u, "u(x, t)", "RdBu_r"), (middle, error, "|error|", "magma")):
        shown = axes.pcolormesh(t.ravel(), x.ravel(), values, cmap=colours, shading="nearest", rasterized=True)
        axes.set(xlabel="t", ylabel="x", title=title)
        figure.colorbar(shown, ax=axes)
    right.semilogy(BLOCK * np.arange(1, len(losses) + 1), losses)
    right.set(xlabel="iterations", ylabel="loss", title="mean squared weighted residual")
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a shorter training, to an error of about 1e-3")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and points (default: 0)")
    parser.add_argument("--steps", type=int, help=f"iterations of L-BFGS, a multiple of {BLOCK}")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--out", type=Path, default=Path("burgers"), help="folder for picture and checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    chosen = parser.parse_args()
    if chosen.steps is not None and (chosen.steps < BLOCK or chosen.steps % BLOCK):
        parser.error(f"--steps: expected a positive multiple of {BLOCK}, got {chosen.steps}")
    return chosen


def main() -> int:
    args = arguments()
    recipe = QUICK if args.quick else FULL
    if args.steps is not None:
        recipe = Recipe(args.steps, recipe.round, recipe.points)
    leafgrad.set_default_dtype(getattr(leafgrad, args.dtype))
    leafgrad.manual_seed(args.seed)
    checkpoints = Checkpoints(args.out)
    with Interrupts() as interrupts:
        try:
            training = Training(recipe, args.device, {"seed": args.seed, "dtype": args.dtype})
            if args.resume:
                training.resume(checkpoints)
            training.run(checkpoints, interrupts)
        except (ArithmeticError, ImportError, LookupError, OSError, RuntimeError, ValueError) as error:
            sys.exit(f"burgers.py: {error}")
        if interrupts.received:
            print(f"stopped after {training.steps} of {recipe.steps} iterations; go on with --resume", file=sys.stderr)
            return 128 + interrupts.received

    x, t = np.linspace(-1, 1, 256)[:, None], np.linspace(0, 1, 100)[None, :]
    truth, u = exact(x, t), predict(training.model, x, t)
    picture = args.out / "burgers.png"
    args.out.mkdir(parents=True, exist_ok=True)
    plot(picture, x, t, u, np.abs(u - truth), training.losses)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)  # MB
    print(f"relative L2 error {relative_l2(u, truth):.1e}")
    print(f"reference error {relative_l2(exact(x, t, nodes=100), truth):.1e}")
    print(f"seed {args.seed}")
    print(f"wall time {training.seconds:.1f} s")
    print(f"peak memory {peak:.0f} MB")
    print(f"picture {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
