"""``leafgrad new-plugin``: a distribution to start from, with two ops, their tests, and all that belongs to it.

What it writes lies in ``template/``: each file with ``.in`` behind its name, and NAME where the plugin's name goes.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from leafgrad import plugins
from leafgrad.cli.main import load_all
from leafgrad.errors import PluginError

PARSER = argparse.ArgumentParser(
    prog="leafgrad new-plugin", description="Write a plugin to start from, into a new folder leafgrad-NAME."
)
PARSER.add_argument("name", metavar="NAME", help="the plugin's name: lower-case letters, digits, single underscores")
PARSER.add_argument("--path", metavar="DIR", type=Path, default=Path(), help="where the folder goes (default: here)")


def main(argv: list[str]) -> int:
    """Write it, and say what comes next; returns the exit status."""
    try:
        options = PARSER.parse_args(argv)
        folder = create(options.name, options.path)
    except SystemExit as exit:  # argparse has said why
        return int(exit.code or 0)
    except (PluginError, OSError) as error:
        print(f"leafgrad new-plugin: {error}", file=sys.stderr)
        return 2
    print(f"{folder}: the ops are in leafgrad_{options.name}/ops.py; `make test` there installs and tests them")
    return 0


def create(name: str, path: Path) -> Path:
    """Write the distribution of a new plugin; returns its folder, ``path / "leafgrad-NAME"``.

    Raises:
        PluginError: the name cannot be one, or a plugin has it. FileExistsError: there is such a folder, which stays
        as it is. OSError: it cannot be written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise PluginError(
            f"NAME: expected lower-case letters, digits and single underscores, beginning with a letter, as in "
            f"'heat_kernels'; got {name!r}"
        )
    load_all()
    for plugin in plugins.status():
        if plugin.name == name:
            raise PluginError(f"NAME: {plugin} has that name; choose another, or uninstall it")
    if not path.is_dir():
        raise NotADirectoryError(f"--path: expected a folder that exists, got '{path}'")
    folder = path / f"leafgrad-{name}"
    try:
        folder.mkdir()
    except FileExistsError:
        raise FileExistsError(f"'{folder}' exists already; choose another name or --path, or remove it") from None
    write(files("leafgrad.cli") / "template", folder, name)
    return folder


def write(template: Traversable, folder: Path, name: str) -> None:
    """Write all files of a folder of the template."""
    for entry in template.iterdir():
        target = folder / entry.name.replace("NAME", name).removesuffix(".in")
        if entry.is_dir():
            target.mkdir()
            write(entry, target, name)
        else:
            target.write_text(entry.read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
