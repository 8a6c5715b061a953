"""Peak memory of a process that imports a library and runs a small classifier or a Burgers step of 10,000 points."""

from __future__ import annotations

import resource
import subprocess
import sys
from importlib.util import find_spec

from compare import header, one_thread, peer

RUNS = {"classifier": 1000, "Burgers": 10, "Burgers, compiled": 10}


def peak() -> float:
    """Megabytes of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(name: str, what: str) -> None:
    import burgers_eager
    import mlp

    library = peer(name)
    imported = peak()
    step = mlp.case(library)["and Adam: the whole step"] if what == "classifier" else burgers_eager.case(library)
    if what.endswith("compiled"):
        step = library.compile(step)
    for _ in range(RUNS[what]):
        step()
    print(f"  {what:18} {name:10} {imported:8.1f} MB imported, {peak():8.1f} MB at the end")


def main() -> None:
    one_thread()
    header("Peak memory of the process")
    for what in RUNS:
        for name in ("leafgrad", "torch"):
            if find_spec(name) is not None and not (name == "torch" and what.endswith("compiled")):
                subprocess.run([sys.executable, __file__, name, what], check=True)


if __name__ == "__main__":
    run(*sys.argv[1:]) if len(sys.argv) > 1 else main()
