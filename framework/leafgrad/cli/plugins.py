"""``leafgrad plugins``: the plugins that are installed, what each brings, and what became of it."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator

from leafgrad import plugins
from leafgrad.cli.main import load_all
from leafgrad.cli.table import columns

PARSER = argparse.ArgumentParser(
    prog="leafgrad plugins", description="List the plugins that are installed, and what became of them."
)
PARSER.add_argument("-v", "--verbose", action="store_true", help="list what each brings, by name")
PARSER.add_argument("--json", action="store_true", help="print all of it as JSON")

HEAD = ("name", "distribution", "version", "state", "load time", "hooks", "ops")


def main(argv: list[str]) -> int:
    """Print them; returns the exit status."""
    options = PARSER.parse_args(argv)
    load_all()
    found = plugins.status()
    if options.json:
        print(json.dumps([dataclasses.asdict(plugin) for plugin in found], indent=2))
        return 0
    print(columns(HEAD, [row(plugin) for plugin in found]))
    for plugin in found:
        for line in details(plugin, options.verbose):
            print(line)
    return 0


def row(plugin: plugins.Plugin) -> list[str]:
    """A plugin as a line of the table."""
    return [
        plugin.name,
        plugin.distribution or "(the program)",
        plugin.version,
        plugin.status,
        f"{plugin.load_time * 1000:.0f} ms" if plugin.status == "active" else "",
        " ".join(hook.removeprefix("leafgrad_") for hook in plugin.hooks),
        str(len(plugin.hooks.get("leafgrad_ops", ()))),
    ]


def details(plugin: plugins.Plugin, verbose: bool) -> Iterator[str]:
    """What is wrong with a plugin; if ``verbose``, all that it brings, too."""
    if plugin.error:
        yield f"\n{plugin.error}"
    if verbose and plugin.hooks:
        yield f"\n{plugin}"
        for hook, names in plugin.hooks.items():
            yield f"  {hook}: {', '.join(names)}"
