"""``leafgrad pinn``: runs the problems in a folder of scripts, each of which defines ``solve(run)``."""

from __future__ import annotations

import argparse
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import leafgrad
from leafgrad_pinn.solution import Solution

FOLDER = Path("examples/pinn")


@dataclass(frozen=True)
class Options:
    """What a script is asked for.

    Attributes:
        quick: less training, at most a minute.
        options: to be handed to ``Problem.solve`` as they are: seeds, dtype, out, resume.
    """

    quick: bool
    options: dict[str, Any]


def parser() -> argparse.ArgumentParser:
    """The command line's."""
    made = argparse.ArgumentParser(prog="leafgrad pinn", description="Solve differential equations by networks.")
    made.add_argument("--folder", type=Path, default=FOLDER, help=f"where the scripts are (default: {FOLDER})")
    commands = made.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the problems, with what each is")
    run = commands.add_parser("run", help="solve one; its errors are printed, its files are in --out")
    run.add_argument("name", metavar="NAME", help="a problem")
    run.add_argument("--quick", action="store_true", help="less training, at most a minute")
    run.add_argument("--seeds", type=int, default=1, help="how many seeds (default: 1)")
    run.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    run.add_argument(
        "--out", type=Path, help="folder for checkpoints, history, solution and picture (default: runs/NAME)"
    )
    run.add_argument("--resume", action="store_true", help="go on from the checkpoints in --out")
    return made


def main(argv: list[str]) -> int:
    """Run a command line; returns the exit status."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as exit:  # argparse has said why
        return int(exit.code or 0)
    scripts = {path.stem: path for path in sorted(args.folder.glob("*.py"))}
    if not scripts:
        print(f"leafgrad pinn: no scripts in {args.folder}; name their folder with --folder", file=sys.stderr)
        return 2
    if args.command == "list":
        width = max(map(len, scripts))
        for name, path in scripts.items():
            print(f"{name:{width}}  {first_line(path)}")
        return 0
    if args.name not in scripts:
        print(f"leafgrad pinn run: expected one of {', '.join(scripts)}, got {args.name!r}", file=sys.stderr)
        return 2
    return run(scripts[args.name], args)


def run(path: Path, args: argparse.Namespace) -> int:
    """Solve the problem of a script; print errors, write the picture."""
    out = args.out or Path("runs") / path.stem
    options = {"seeds": args.seeds, "dtype": getattr(leafgrad, args.dtype), "out": out, "resume": args.resume}
    script = runpy.run_path(str(path))
    solution: Solution = script["solve"](Options(args.quick, options))
    if drawn := len(solution.domain.names) <= 2:
        solution.plot(out / f"{path.stem}.png", slices=script.get("SLICES"))
    if solution.reference is not None:
        print(solution.errors)
    for name, value in solution.unknowns.items():
        print(f"{name} = {value:.6g}")
    for one in solution.runs:
        print(f"seed {one.seed}: {'; '.join(one.reasons)}")
    if drawn:
        print(f"picture {out / path.stem}.png")
    return 0


def first_line(path: Path) -> str:
    """Of a script's docstring, without running it."""
    text = path.read_text(encoding="utf-8").lstrip()
    return text.removeprefix('"""').partition("\n")[0].strip().removesuffix('"""')
