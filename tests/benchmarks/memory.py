"""Peak memory of a process: an import, a small classifier, a Burgers step of 10,000 points, and `make demo`."""

from __future__ import annotations

import resource
import runpy
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from compare import Row, peer, start, tell

RUNS = {"import": 0, "classifier, 1000 steps": 1000, "Burgers, eager": 10, "Burgers, compiled": 10}
DEMO = Path(__file__).parents[2] / "examples" / "burgers.py"


def peak() -> float:
    """Megabytes of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(what: str, name: str) -> None:
    if what == "make demo":
        sys.argv = [str(DEMO), "--quick"]
        runpy.run_path(str(DEMO))["main"]()
        return
    import burgers_eager
    import mlp

    library = peer(name)
    step = mlp.case(library)["and Adam: the whole step"] if what.startswith("class") else burgers_eager.case(library)
    if what.endswith("compiled"):
        step = library.compile(step)
    for _ in range(RUNS[what]):
        step()


def alone(what: str, name: str) -> float | None:
    """The peak of a process of its own."""
    if find_spec(name) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:  # for the demo's picture
        command = [sys.executable, __file__, what, name]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return float(done.stdout.split()[-1])


def main() -> None:
    start("Peak memory of the process")
    for what in RUNS:
        names = {"leafgrad": "leafgrad"} | ({} if what.endswith("compiled") else {"PyTorch": "torch"})
        target = 0.3 if what == "Burgers, eager" else None
        tell(Row(what, "MB", {label: alone(what, name) for label, name in names.items()}, target))
    tell(Row("make demo", "MB", {"leafgrad": alone("make demo", "leafgrad"), "allowed": 150}, 1.0))


if __name__ == "__main__":
    if sys.argv[1:]:
        run(*sys.argv[1:])
        print(peak())
    else:
        main()
