"""``leafgrad pinn``: lists and runs the problems of the package, or of a folder, and writes a table of their errors."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

import leafgrad
from leafgrad.utils import Checkpoints
from leafgrad_pinn.scripts import Options, Script, find, read, shipped

TABLE = Path("docs/benchmarks/pinn.md")


def parser() -> argparse.ArgumentParser:
    """The command line's."""
    made = argparse.ArgumentParser(prog="leafgrad pinn", description="Solve differential equations by networks.")
    made.add_argument(
        "--folder", type=Path, default=shipped(), help="where the scripts are (default: those of the package)"
    )
    commands = made.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the problems, with what each is")
    run = commands.add_parser("run", help="solve one; its errors are printed, its files are in --out")
    run.add_argument("name", metavar="NAME", help="a problem, or a script of one, NAME.py")
    options(run)
    run.add_argument(
        "--out", type=Path, help="folder for checkpoints, history, solution and picture (default: runs/NAME)"
    )
    earlier = run.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="go on from the checkpoints in --out")
    earlier.add_argument("--overwrite", action="store_true", help="start anew in place of an earlier run in --out")
    new = commands.add_parser("new", help="write a script, NAME.py, to start from")
    new.add_argument("name", metavar="NAME", help="of the problem")
    table = commands.add_parser("table", help="solve some, or all, and write their errors and times into a table")
    table.add_argument("names", metavar="NAME", nargs="*", help="problems (default: all); others keep their rows")
    options(table)
    table.add_argument("--runs", type=Path, help="folder for checkpoints: a run that was stopped goes on from there")
    table.add_argument("--out", type=Path, default=TABLE, help=f"the table, beside which is a .json (default: {TABLE})")
    return made


def options(command: argparse.ArgumentParser) -> None:
    """Those of all commands that solve."""
    command.add_argument("--quick", action="store_true", help="less training, at most a minute")
    command.add_argument("--seeds", type=count, default=1, help="how many seeds (default: 1)")
    command.add_argument("--dtype", choices=["float32", "float64"], default="float64")


def count(text: str) -> int:
    """How many, of which there must be one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1, got {text!r}")
    return int(text)


def main(argv: list[str]) -> int:
    """Run a command line; returns the exit status."""
    args = parser().parse_args(argv)
    if args.command == "new":
        return new(args.name)
    if own(args) and not Path(args.name).is_file():
        print(f"leafgrad pinn run: no file {args.name}; leafgrad pinn new writes one to start from", file=sys.stderr)
        return 2
    scripts, failed = read(Path(args.name)) if own(args) else find(args.folder)
    for file, error in failed.items():
        place = raised_at(error, Path(args.name) if own(args) else args.folder / file)
        print(f"leafgrad pinn: {place} raises {type(error).__name__}: {error}", file=sys.stderr)
    if failed and own(args):
        return 2
    if not scripts:
        where, way = (args.name, "define solve(run) there") if own(args) else (args.folder, "name another by --folder")
        print(f"leafgrad pinn: no problems in {where}; {way}", file=sys.stderr)
        return 2
    if args.command == "list":
        width = max(map(len, scripts))
        for name, script in scripts.items():
            print(f"{name:{width}}  {script.title}")
        return 1 if failed else 0
    if own(args):
        args.name = Path(args.name).stem if Path(args.name).stem in scripts else next(iter(scripts))
    names = [args.name] if args.command == "run" else args.names or list(scripts)
    if unknown := [name for name in names if name not in scripts]:
        print(
            f"leafgrad pinn {args.command}: expected one of {', '.join(scripts)}, got {unknown[0]!r}", file=sys.stderr
        )
        return 2
    if wrong := unwritable(args):
        print(f"leafgrad pinn {args.command}: {wrong}", file=sys.stderr)
        return 2
    if args.command == "run":
        return run(scripts[args.name], args)
    from leafgrad_pinn.table import ResultsTable  # and with it the whole package, which a list does without

    table = ResultsTable(args.out, scripts)
    for name in names:
        print(table.measure(name, args.quick, args.seeds, args.dtype, args.runs))
    return 1 if failed and not args.names else 0  # all were asked for


def own(args: argparse.Namespace) -> bool:
    """Whether a command names a script of the user's."""
    return args.command == "run" and args.name.endswith(".py")


def raised_at(error: Exception, path: Path) -> str:
    """Where an error came up in a script: its path, and the line if it was run so far."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}, line {lines[-1]}," if lines else str(path)


def new(name: str) -> int:
    """Write a script to start from; an error if there is one of that name, or it is no name of a file."""
    path = Path(f"{name.removesuffix('.py')}.py")
    if not path.stem.isidentifier():
        print(f"leafgrad pinn new: expected a name such as my_problem, got {name!r}", file=sys.stderr)
        return 2
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(Path(__file__).with_name("template.txt").read_text(encoding="utf-8").format(name=path.stem))
    except OSError as error:
        print(f"leafgrad pinn new: {path} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{path} is written; leafgrad pinn run {path} solves it")
    return 0


def unwritable(args: argparse.Namespace) -> str:
    """What is wrong with the folders that a command writes to, now rather than after the training; "" if nothing is."""
    single = args.command == "run"
    for option, folder in (
        ("--out", args.out if single else args.out.parent),
        ("--runs", None if single else args.runs),
    ):
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return f"{option}: {folder} cannot be made a folder: {error.strerror}; name another"
    return ""


def run(script: Script, args: argparse.Namespace) -> int:
    """Solve a problem; print errors, write the picture."""
    out = args.out or Path("runs") / script.name
    options = {"seeds": args.seeds, "dtype": getattr(leafgrad, args.dtype), "out": out, "resume": args.resume}
    if args.overwrite:
        remove(out)
    try:
        solution = script.solve(Options(args.quick, options))
    except FileExistsError as error:
        text = f"{error}".replace("resume=True to go on", "--resume to go on, or --overwrite to start anew in it")
        print(f"leafgrad pinn run: {text}", file=sys.stderr)
        return 2
    except ValueError as error:
        if not f"{error}".startswith("resume: "):
            raise
        print(f"leafgrad pinn run: {error}; --overwrite starts anew", file=sys.stderr)
        return 2
    print("\n".join(script.report(solution)))
    if solution.domain.functions and solution.reference is not None:
        solution = solution.unseen()
    if len(solution.domain.names) <= 2 and not solution.domain.functions:
        picture = out / f"{script.name}.png"
        slices = script.given.get("SLICES")
        solution.plot(picture, slices=slices)
        print(f"picture {picture}")
    return 0


def remove(out: Path) -> None:
    """Delete the solution and the checkpoints of an earlier run in a folder."""
    for folder in out.glob("seed*"):
        for path in Checkpoints(folder).paths():
            path.unlink()
    (out / "solution.safetensors").unlink(missing_ok=True)
