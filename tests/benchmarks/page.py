"""Runs every benchmark and writes docs/benchmarks/cpu.md: ``python tests/benchmarks/page.py PAGE [SCRIPT ...]``.

With scripts named, only those run, and the page has no others.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compare import ROWS, Row, installed, machine, number

FOLDER = Path(__file__).parent
PACKAGES = ("leafgrad", "numpy", "torch", "jax")
RUNS = """
pinn.py --dtype float32
pinn.py --dtype float32 --threads 2
pinn.py --dtype float64 --width 20 --rounds 5
pinn.py --dtype float64 --width 20 --rounds 5 --threads 2
pinn.py --dtype float32 --equations --rounds 3
native.py
native.py --scale
training.py
sequences.py
conv.py
ensembles.py
func.py
jets.py
chain.py
mlp.py
burgers_eager.py
optimizers.py
open_steps.py
dataloader.py
ranks.py docs/scaling.md
import_time.py
memory.py
"""


def run(command: str) -> list[dict[str, Any]]:
    """What a script records: its titles and rows."""
    script, *options = command.split()
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([sys.executable, FOLDER / script, *options], check=True, env={**os.environ, ROWS: file.name})
        return [json.loads(line) for line in Path(file.name).read_text(encoding="utf-8").splitlines()]


def section(command: str, entries: list[dict[str, Any]]) -> tuple[list[str], list[Row]]:
    """The lines of a script's section, and its rows."""
    (title,) = {str(entry["title"]) for entry in entries if "title" in entry}
    rows = [Row(**entry) for entry in entries if "title" not in entry]
    return [f"## {title}", "", f"`python tests/benchmarks/{command}`", "", *table(rows), ""], rows


def table(rows: list[Row]) -> list[str]:
    """One line for each row, one column for each name that one of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    more = list(dict.fromkeys(name for row in rows for name in row.more))
    ratios = any(row.ratio is not None for row in rows)
    lines = [
        line(["", *names, "unit", *["ratio"] * ratios, *more]),
        line(["---"] * (2 + len(names) + ratios + len(more))),
    ]
    for row in rows:
        cells = [number(row.values[name]) if name in row.values else "" for name in names]
        ratio = ["" if row.ratio is None else f"{row.ratio:.2f}"] * ratios
        lines.append(
            line([row.what, *cells, row.unit, *ratio, *(number(row.more[m]) if m in row.more else "" for m in more)])
        )
    return lines


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def summary(sections: list[tuple[str, str, list[Row]]]) -> list[str]:
    """Every figure that is aimed at something."""
    lines = [line(["figure", "ratio", "aim", "script"]), line(["---"] * 4)]
    for title, script, rows in sections:
        for row in rows:
            if row.target is not None:
                got = "no peer installed" if row.ratio is None else f"{row.ratio:.2f}"
                lines.append(line([f"{title}: {row.what}", got, f"{row.target:g}", f"`{script}`"]))
    return lines


def commit() -> str:
    """The commit of this checkout, and whether it has changes."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=FOLDER, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "framework", "plugins", "tests/benchmarks")
    return git("rev-parse", "--short", "HEAD") + (", with changes" if changed else "")


def write(page: str, found: dict[str, list[dict[str, Any]]], minutes: float) -> None:
    """The page, of what each command recorded."""
    done, body = [], []
    for command, entries in found.items():
        lines, rows = section(command, entries)
        done.append((lines[0].removeprefix("## "), command.split()[0], rows))
        body += lines
    packages = ", ".join(filter(None, map(installed, PACKAGES)))
    head = f"""# Measured on a CPU

Written by `make bench` in {minutes:.0f} minutes, all of it on one machine and one commit:

{machine()}; {platform.system()} {platform.release()}; Python {platform.python_version()};
{packages}; commit {commit()}.

The libraries take turns, in random order, on the same cores: one, unless the title says otherwise. Figures are
medians. A ratio is leafgrad's figure over that of the best other one. "leafgrad" compiled is as C, by
[leafgrad-native](../../plugins/leafgrad-native/README.md); without that plugin it is the NumPy executor. Where machines
are shared, ratios vary by about a tenth, and times by more.

## Summary
"""
    text = "\n".join([head, *summary(done), "", *body]).rstrip() + "\n"
    Path(page).write_text(text, encoding="utf-8")


def main(page: str, *scripts: str) -> None:
    begin = time.perf_counter()
    commands = [command for command in RUNS.split("\n") if command and (not scripts or command.split()[0] in scripts)]
    found = {command: run(command) for command in commands}
    write(page, found, (time.perf_counter() - begin) / 60)


if __name__ == "__main__":
    main(*sys.argv[1:])
