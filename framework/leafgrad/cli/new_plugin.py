"""``leafgrad new-plugin``: a distribution to start from, of each kind of plugin, with tests and all that belongs to it.

What it writes lies in ``template/``: what all kinds have in common in ``all``, and what a kind has in a folder of its
name; where both have a file, the kind's text follows. Each file has ``.in`` behind its name. NAME stands where the
plugin's name goes, and WHAT where it is said what the plugin brings.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import leafgrad
from leafgrad import plugins
from leafgrad.cli.main import load_all
from leafgrad.errors import PluginError

PARSER = argparse.ArgumentParser(
    prog="leafgrad new-plugin", description="Write a plugin to start from, into a new folder leafgrad-NAME."
)
PARSER.add_argument("name", metavar="NAME", help="the plugin's name: lower-case letters, digits, single underscores")
KINDS = {
    "op": "ops",
    "layers": "layers",
    "backend": "an array library",
    "executor": "an executor",
    "command": "a command",
    "modules": "functions",
}
"""Kind -> what such a plugin brings."""
PARSER.add_argument("--kind", choices=KINDS, default="op", help="what it brings (default: %(default)s)")
PARSER.add_argument("--path", metavar="DIR", type=Path, default=Path(), help="where the folder goes (default: here)")


def main(argv: list[str]) -> int:
    """Write it, and say what comes next; returns the exit status."""
    options = PARSER.parse_args(argv)
    try:
        folder = create(options.name, options.path, options.kind)
    except (PluginError, OSError) as error:
        print(f"leafgrad new-plugin: {error}", file=sys.stderr)
        return 2
    print(f"{folder}: the code is in leafgrad_{options.name}/; `make test` there installs and tests it")
    return 0


def create(name: str, path: Path, kind: str = "op") -> Path:
    """Write the distribution of a new plugin of a kind; returns its folder, ``path / "leafgrad-NAME"``.

    Where leafgrad itself is a checkout, ``local.mk``, which git ignores, tells ``make test`` to install that one.

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
    for part in ("all", kind):
        write(files("leafgrad.cli") / "template" / part, folder, {"NAME": name, "WHAT": KINDS[kind]})
    checkout = Path(leafgrad.__file__).resolve().parents[2]
    if (checkout / "framework" / "leafgrad" / "__init__.py").is_file() and (checkout / "pyproject.toml").is_file():
        (folder / "local.mk").write_text(f"LEAFGRAD ?= {checkout}\n", encoding="utf-8")
    return folder


def write(template: Traversable, folder: Path, words: dict[str, str]) -> None:
    """Write all files of a folder of the template, behind what a file has already."""
    for entry in template.iterdir():
        target = folder / entry.name.replace("NAME", words["NAME"]).removesuffix(".in")
        if entry.is_dir():
            target.mkdir(exist_ok=True)
            write(entry, target, words)
        else:
            text = entry.read_text(encoding="utf-8")
            for word, meant in words.items():
                text = text.replace(word, meant)
            with target.open("a", encoding="utf-8") as file:
                file.write(text)
