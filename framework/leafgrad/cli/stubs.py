"""``leafgrad stubs``: what plugins add to leafgrad, for editors and type checkers.

They read it from a package ``leafgrad-stubs`` that stands beside leafgrad and says that it is partial (PEP 561): what
it does not have they take from leafgrad itself.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
from pathlib import Path

import leafgrad
from leafgrad.cli.main import load_all
from leafgrad.tensor.methods import DECLARED
from leafgrad.testing import stubs

PARSER = argparse.ArgumentParser(
    prog="leafgrad stubs",
    description="Write stubs of the methods and functions that installed plugins add. Run it again when they change.",
)
PARSER.add_argument(
    "--path",
    metavar="DIR",
    type=Path,
    default=Path(sysconfig.get_path("purelib")),
    help="where leafgrad-stubs goes (default: the site-packages of this Python)",
)


def main(argv: list[str]) -> int:
    """Write them; returns the exit status."""
    options = PARSER.parse_args(argv)
    load_all()
    folder = options.path / "leafgrad-stubs"
    try:
        for name, text in files().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"leafgrad stubs: {error}", file=sys.stderr)
        return 2
    print(f"{folder}: {', '.join(sorted(DECLARED)) or 'no plugin adds anything'}")
    return 0


def files() -> dict[str, str]:
    """The files of the package, by name."""
    package = Path(leafgrad.__file__).read_text(encoding="utf-8")
    return {
        "py.typed": "partial\n",
        "__init__.pyi": f"{package}\n{stubs.functions()}",
        "tensor/methods.pyi": stubs.stub(added=True),
    }
