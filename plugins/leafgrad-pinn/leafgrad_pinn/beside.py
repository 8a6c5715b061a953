"""What of the table says how long DeepXDE takes for the same problems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

TEXT = """\
## Beside DeepXDE

The same equations by DeepXDE on PyTorch, with the networks, points and optimizers of its documented examples (float32,
Adam, then L-BFGS), and by the scripts of leafgrad: processor seconds of training on one thread, with compilation, to
the least error that DeepXDE reached in its time. Errors are the largest relative L2 errors of a problem's fields, one
seed. DeepXDE was stopped at a limit, and still improved. The scripts use float64, Gauss-Newton or Levenberg-Marquardt
steps or least squares, and for Burgers' equation that its solution is odd: the comparison is of what each offers, not
of the same training.

| problem | error | DeepXDE s | leafgrad s | | least error of leafgrad | after s |
|---|---|---|---|---|---|---|
"""

Curve = Sequence[tuple[float, float]]  # seconds, and the error then


def section(path: Path) -> str:
    """The section that ``tests/benchmarks/pinn_deepxde.py`` wrote the figures of; empty where there are none."""
    if not path.exists():
        return ""
    problems = json.loads(path.read_text(encoding="utf-8"))
    rows = [row(name, p["deepxde"]["curve"], p["leafgrad"]["curve"]) for name, p in problems.items()]
    both = [problem[library] for problem in problems.values() for library in ("deepxde", "leafgrad")]
    made = dict.fromkeys([*(p["machine"] for p in problems.values()), *(figures["versions"] for figures in both)])
    commands = "\n".join(f"    {figures['command']}" for figures in both)
    return TEXT + "\n".join(rows) + f"\n\nMachine: {', '.join(made)}. Commands:\n\n{commands}\n\n"


def row(name: str, theirs: Curve, ours: Curve) -> str:
    """A problem's row."""
    (seconds, error), (ours_seconds, ours_error) = best(theirs), best(ours)
    reached = next((seconds for seconds, found in ours if found <= error), None)
    shown = "never |" if reached is None else f"{reached:.1f} | {seconds / reached:.1f} times as fast"
    return f"| {name} | {error:.1e} | {seconds:.0f} | {shown} | {ours_error:.1e} | {ours_seconds:.1f} |"


def best(curve: Curve) -> tuple[float, float]:
    """The least error, after the seconds that it took."""
    return min(curve, key=lambda look: look[1])
