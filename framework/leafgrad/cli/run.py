"""``leafgrad run``: a Python script, as it is or with leafgrad in place of PyTorch."""

from __future__ import annotations

import argparse
import io
import os
import sys
import types
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

SCRIPT = "LEAFGRAD_SCRIPT"  # where worker processes that start from nothing find its path
PACKAGE = "LEAFGRAD_PACKAGE"  # and the package that it is in, if it runs as a module
RANKS = "LEAFGRAD_RANKS"  # which a rank has from its launcher

PARSER = argparse.ArgumentParser(
    prog="leafgrad run",
    usage="%(prog)s [-h] [--as-torch] [--ranks N] [-m] SCRIPT [ARGS...]",
    description="Run a Python script as `python SCRIPT ARGS...` does, or a module as `python -m`.",
    allow_abbrev=False,
)
PARSER.add_argument("--as-torch", action="store_true", help="let `import torch` give leafgrad")
PARSER.add_argument("--ranks", type=int, metavar="N", help="run N processes, which leafgrad.distributed joins")
PARSER.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module or package")
PARSER.add_argument("script", metavar="SCRIPT", help="a Python file")
ARGS = PARSER.add_argument("args", nargs=argparse.REMAINDER, help="what the script finds in sys.argv[1:]")
ARGS.required = False  # as it is, but Python 3.11 says otherwise


class Again(ModuleSpec):
    """The spec of a main module in whose place worker processes that start from nothing run ``leafgrad.cli.again``."""

    def __init__(self, package: str) -> None:
        super().__init__("leafgrad.cli.again", None)
        self.package = package

    @property
    def parent(self) -> str:
        """The package in which its relative imports are."""
        return self.package


def main(argv: list[str]) -> int:
    """Run a script; returns the exit status."""
    options = PARSER.parse_args(argv)
    try:
        source = b"" if options.module else read(options.script)
    except OSError as error:
        print(f"leafgrad run: can't open {options.script!r}: {error.strerror}", file=sys.stderr)
        return 2
    if options.ranks is not None:
        return launch(options)
    if RANKS in os.environ:
        from leafgrad.distributed import launcher

        launcher.enter()
    if options.as_torch:
        from leafgrad.compat import install_as_torch

        install_as_torch()
    path, main = os.path.abspath(options.script), types.ModuleType("__main__")
    sys.path[0] = os.getcwd() if options.module else os.path.dirname(os.path.realpath(path))
    if options.module:
        spec = spec_of(options.script)
        if spec is None or spec.origin is None:
            print(f"leafgrad run: no module named {options.script!r}, or none that runs", file=sys.stderr)
            return 2
        main.__spec__, main.__package__, path = spec, spec.parent, spec.origin
        source = read(path)
    sys.argv = [path if options.module else options.script, *options.args]
    vars(main).update(__file__=path, __builtins__=__builtins__)
    if options.as_torch:
        package = main.__package__ or ""
        main.__spec__ = Again(package)
        os.environ.update({SCRIPT: path, PACKAGE: package})
    return status_of(source, main)


def spec_of(module: str) -> ModuleSpec | None:
    """The spec of a module, or of a package's ``__main__``; None if there is none."""
    try:
        spec = find_spec(module)
        inner = spec is not None and spec.submodule_search_locations is not None
        return find_spec(f"{module}.__main__") if inner else spec
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            return None
        raise


def status_of(source: bytes, main: types.ModuleType) -> int:
    """Run source code as the module ``__main__``; returns the exit status, of which other ranks hear."""
    status = 1
    try:
        status = execute(source, main)
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        raise
    finally:
        if status:
            end_others(status)
    return status


def end_others(status: int) -> None:
    """Where this is one of several ranks, the others end, too: by the group that they have met in, or at once."""
    from leafgrad.distributed import is_initialized, launcher, process_group

    if is_initialized():
        process_group.ends_with(status)
    else:
        launcher.end_all(status)


def launch(options: argparse.Namespace) -> int:
    """Run a script in several processes; returns the exit status."""
    from leafgrad.distributed import launcher

    given = [*["--as-torch"] * options.as_torch, *["-m"] * options.module]
    again = ["run", *given, options.script, *options.args]
    try:
        return launcher.run_ranks([sys.executable, "-m", "leafgrad", *again], options.ranks)
    except (ImportError, ValueError, OSError) as error:
        print(f"leafgrad run: --ranks: {error}", file=sys.stderr)
        return 2


def read(path: str) -> bytes:
    """The source code of a script."""
    with io.open_code(path) as file:
        return file.read()


def execute(source: bytes, main: types.ModuleType) -> int:
    """Run source code as the module ``__main__``; returns 1 after an exception, which is shown as Python shows it."""
    sys.modules["__main__"] = main
    try:
        exec(compile(source, str(main.__file__), "exec", dont_inherit=True), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # without this function
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            print("leafgrad run: with --as-torch before the script `import torch` gives leafgrad", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0
