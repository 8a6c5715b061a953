"""Time to the same error: DeepXDE on PyTorch, and leafgrad's scripts in examples/pinn, on one thread.

    pip install deepxde torch
    python tests/benchmarks/pinn_deepxde.py                 # writes docs/benchmarks/pinn_deepxde.json
    python tests/benchmarks/pinn_deepxde.py lorenz --seconds 60

DeepXDE gets the networks, points and optimizers of its documented examples: Helmholtz over a square with hard
boundaries (here Poisson), Burgers forward, Lorenz inverse; then L-BFGS for the rest of its time. Both are measured
against the references of leafgrad_pinn, by the largest relative L2 error of the fields, in processor seconds of
training, with compilation and without looks at the error.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from compare import installed, machine, peer, start

os.environ.setdefault("DDE_BACKEND", "pytorch")

LOOK = 100  # steps between two looks at the error
FIGURES = Path("docs/benchmarks/pinn_deepxde.json")
SCRIPTS = Path("examples/pinn")


@dataclass
class Setup:
    """A problem as DeepXDE is given it.

    Attributes:
        data, net: its own.
        reference: of leafgrad_pinn.
        adam: steps of Adam, lr 1e-3, before L-BFGS.
        unknowns: by name, with their true values.
    """

    data: Any
    net: Any
    reference: Any
    adam: int
    unknowns: dict[str, tuple[Any, float]]


def poisson_2d(dde: Any, pinn: Any) -> Setup:
    sin = dde.backend.sin
    square = dde.geometry.Rectangle([0, 0], [1, 1])

    def equation(x: Any, u: Any) -> Any:
        laplacian = dde.grad.hessian(u, x, i=0, j=0) + dde.grad.hessian(u, x, i=1, j=1)
        return laplacian + 2 * math.pi**2 * sin(math.pi * x[:, 0:1]) * sin(math.pi * x[:, 1:2])

    net = dde.nn.FNN([2, 150, 150, 150, 1], "sin", "Glorot uniform")
    net.apply_output_transform(lambda x, u: x[:, 0:1] * (1 - x[:, 0:1]) * x[:, 1:2] * (1 - x[:, 1:2]) * u)
    box = pinn.Box(x=(0, 1), y=(0, 1))
    exact = pinn.references.exact(box, u=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y))
    return Setup(dde.data.PDE(square, equation, [], num_domain=400), net, exact, 5000, {})


def burgers_1d(dde: Any, pinn: Any) -> Setup:
    nu = 0.01 / math.pi
    domain = dde.geometry.GeometryXTime(dde.geometry.Interval(-1, 1), dde.geometry.TimeDomain(0, 1))

    def equation(x: Any, u: Any) -> Any:
        u_x, u_t = dde.grad.jacobian(u, x, i=0, j=0), dde.grad.jacobian(u, x, i=0, j=1)
        return u_t + u * u_x - nu * dde.grad.hessian(u, x, i=0, j=0)

    edges = dde.icbc.DirichletBC(domain, lambda x: 0, lambda _, on: on)
    start = dde.icbc.IC(domain, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on)
    data = dde.data.TimePDE(domain, equation, [edges, start], num_domain=2540, num_boundary=80, num_initial=160)
    net = dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal")
    return Setup(data, net, pinn.references.burgers(nu), 15000, {})


def constant(value: float) -> Callable[[Any], float]:
    """DeepXDE looks at the number of arguments."""
    return lambda _: value


def lorenz(dde: Any, pinn: Any) -> Setup:
    truth = pinn.references.lorenz(10.0, 15.0, 8 / 3, stop=3, nt=301)
    names = list(truth.fields)
    values = np.stack([truth.fields[name] for name in names], 1)
    unknowns = [dde.Variable(1.0) for _ in names]
    sigma, rho, beta = unknowns

    def equation(t: Any, f: Any) -> list[Any]:
        x, y, z = f[:, 0:1], f[:, 1:2], f[:, 2:3]
        x_t, y_t, z_t = (dde.grad.jacobian(f, t, i=i) for i in range(3))
        return [x_t - sigma * (y - x), y_t - x * (rho - z) + y, z_t - x * y + beta * z]

    span = dde.geometry.TimeDomain(0, 3)
    starts = [dde.icbc.IC(span, constant(v), lambda _, on: on, component=i) for i, v in enumerate(values[0])]
    times = truth.axes["t"][::10, None]
    seen = [dde.icbc.PointSetBC(times, values[::10, i : i + 1], component=i) for i in range(3)]
    data = dde.data.PDE(span, equation, [*starts, *seen], num_domain=400, num_boundary=2, anchors=times)
    net = dde.nn.FNN([1, 40, 40, 40, 3], "tanh", "Glorot uniform")
    known = {"sigma": (sigma, 10.0), "rho": (rho, 15.0), "beta": (beta, 8 / 3)}
    return Setup(data, net, truth, 60000, known)


PROBLEMS: dict[str, Callable[[Any, Any], Setup]] = {
    "poisson_2d": poisson_2d,
    "burgers_1d": burgers_1d,
    "lorenz": lorenz,
}


def watcher(dde: Any, points: Any, truth: Any, limit: float) -> Any:
    """A callback that notes ``curve``: pairs of processor seconds and error; it ends the training at the limit."""

    class Watch(dde.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.curve: list[tuple[float, float]] = []
            self.looks, self.apart = 0, 0.0
            self.begin = time.process_time()

        def on_epoch_end(self) -> None:
            step = self.model.train_state.step
            if step // LOOK == self.looks:
                return
            self.looks, now = step // LOOK, time.process_time()
            found = self.model.predict(points)
            errors = np.linalg.norm(found - truth, axis=0) / np.linalg.norm(truth, axis=0)
            seconds = now - self.begin - self.apart
            self.curve.append(look(seconds, errors.max()))
            self.apart += time.process_time() - now
            self.model.stop_training = seconds > limit

    return Watch()


def of_deepxde(name: str, limit: float) -> dict[str, Any]:
    """Train with DeepXDE."""
    import deepxde as dde

    import leafgrad_pinn as pinn

    dde.config.set_random_seed(0)
    setup = PROBLEMS[name](dde, pinn)
    reference, names = setup.reference, list(setup.reference.axes)
    truth = np.stack([reference.values(field, names).ravel() for field in reference.fields], 1)
    known = np.isfinite(truth).all(1)
    points = np.stack([column.ravel() for column in reference.columns(names)], 1)
    watch = watcher(dde, points[known].astype(np.float32), truth[known], limit)
    model = dde.Model(setup.data, setup.net)
    variables = [variable for variable, _ in setup.unknowns.values()]
    model.compile("adam", lr=1e-3, external_trainable_variables=variables)
    model.train(iterations=setup.adam, display_every=5000, callbacks=[watch])
    adam = len(watch.curve)
    if watch.curve[-1][0] < limit:
        dde.optimizers.set_LBFGS_options(maxiter=15000)
        dde.optimizers.config.LBFGS_options["iter_per_step"] = LOOK
        model.compile("L-BFGS", external_trainable_variables=variables)
        watch.looks = 0
        model.train(display_every=5000, callbacks=[watch])
    off = {name: abs(float(variable.detach()) / value - 1) for name, (variable, value) in setup.unknowns.items()}
    versions = versions_of("deepxde", "torch")
    return {"versions": versions, "curve": watch.curve, "looks in Adam": adam, "unknowns off by": off, "limit": limit}


def of_leafgrad(name: str, quick: bool) -> dict[str, Any]:
    """Run the script in examples/pinn."""
    from leafgrad_pinn.scripts import Options, find

    script = find(SCRIPTS)[0][name]
    with mock.patch("time.perf_counter", time.process_time):  # which `Run.history` counts
        solution = script.solve(Options(quick, {"seeds": 1}))
    (run,) = solution.runs
    fields = [f"error {field}" for field in solution.reference.fields]
    rows = [row for row in run.history if all(field in row for field in fields)]
    off = {name: abs(run.unknowns[name] / value - 1) for name, value in script.given.get("TRUTH", {}).items()}
    curve = [look(row["seconds"], max(row[f] for f in fields)) for row in rows]
    return {"versions": versions_of("leafgrad", "numpy"), "curve": curve, "unknowns off by": off}


def versions_of(*packages: str) -> str:
    return ", ".join(map(installed, packages))


def look(seconds: float, error: float) -> tuple[float, float]:
    """A point of a curve, in the digits that count."""
    return round(seconds, 2), float(f"{error:.3e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROBLEMS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=180, help="that DeepXDE may train (default: 180)")
    parser.add_argument("--quick", action="store_true", help="run the scripts of leafgrad with --quick")
    parser.add_argument("--only", choices=["deepxde", "leafgrad"], help="measure one, keep the other's figures")
    args = parser.parse_args()
    if args.only != "leafgrad" and None in (peer("torch"), peer("deepxde")):
        sys.exit("pinn_deepxde: needs the packages torch and deepxde")
    for name in args.names or PROBLEMS:
        command = f"python tests/benchmarks/pinn_deepxde.py {name} --only"
        row: dict[str, Any] = {"machine": machine()}
        if args.only != "leafgrad":
            row["deepxde"] = of_deepxde(name, args.seconds)
            row["deepxde"]["command"] = f"{command} deepxde --seconds {args.seconds:g}"
        if args.only != "deepxde":
            row["leafgrad"] = of_leafgrad(name, args.quick)
            row["leafgrad"]["command"] = f"{command} leafgrad{' --quick' * args.quick}"
        figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        figures.setdefault(name, {}).update(row)
        FIGURES.write_text(json.dumps(figures, sort_keys=True) + "\n")
        print(name, {who: row[who]["curve"][-1] for who in ("deepxde", "leafgrad") if who in row}, flush=True)


if __name__ == "__main__":
    start("PINNs beside DeepXDE", cores=os.cpu_count())
    main()
