"""Eager steps of wide networks, with the memory of earlier steps kept and given back to the system; beside PyTorch.

Each time is the median of a process of its own, since how a process's malloc behaves follows from what it did before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from importlib.util import find_spec

from compare import Row, start, tell

STEPS = """
import statistics, sys, time
if sys.argv[1] == "torch":
    import torch as lg
else:
    import leafgrad as lg
nn, width, rows = lg.nn, int(sys.argv[2]), int(sys.argv[3])
layers = [part for _ in range(3) for part in (nn.Linear(width, width), nn.ReLU())]
net = nn.Sequential(*layers, nn.Linear(width, 10))
adam, x, y = lg.optim.Adam(net.parameters()), lg.rand(rows, width), lg.rand(rows, 10)
times = []
for _ in range(60):
    begin = time.perf_counter()
    adam.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    adam.step()
    times.append(time.perf_counter() - begin)
print(statistics.median(times[20:]))
"""
GIVEN_BACK = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=7"}  # the default, but leafgrad leaves malloc alone then


def seconds(package: str, width: int, rows: int, **environment: str) -> float | None:
    if find_spec(package) is None:
        return None
    command = [sys.executable, "-c", STEPS, package, str(width), str(rows)]
    done = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    start("Steps of wide networks: four layers, ReLU, Adam")
    for width, rows in ((128, 256), (256, 256), (512, 16), (512, 256), (1024, 16), (1024, 256)):
        found: dict[str, list[float | None]] = {"leafgrad": [], "given back": [], "PyTorch": []}
        for _ in range(5):
            found["leafgrad"].append(seconds("leafgrad", width, rows))
            found["given back"].append(seconds("leafgrad", width, rows, **GIVEN_BACK))
            found["PyTorch"].append(seconds("torch", width, rows))
        medians = {n: None if None in ts else 1e3 * statistics.median(map(float, ts)) for n, ts in found.items()}
        tell(Row(f"width {width}, {rows} rows", "ms", medians, 1.0))


if __name__ == "__main__":
    main()
