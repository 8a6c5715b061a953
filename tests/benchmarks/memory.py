"""Peak memory of a process that imports a library and trains a small classifier."""

from __future__ import annotations

import resource
import subprocess
import sys
from importlib.util import find_spec

from compare import header, one_thread


def train(name: str) -> None:
    from compare import peer
    from mlp import case

    library = peer(name)
    step = case(library)["and Adam: the whole step"]
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(1000):
        step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  {name:10} {imported / 1024:8.1f} MB imported, {peak / 1024:8.1f} MB after 1000 steps")


def main() -> None:
    one_thread()
    header("Peak memory of the process")
    for name in ("leafgrad", "torch"):
        if find_spec(name) is not None:
            subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    train(sys.argv[1]) if len(sys.argv) > 1 else main()
