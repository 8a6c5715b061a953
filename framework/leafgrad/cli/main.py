"""Finds the command, from the core or a plugin, and runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import leafgrad
from leafgrad import plugins
from leafgrad.errors import PluginError
from leafgrad.plugins import added

USAGE = "usage: leafgrad COMMAND ARGS...\n       leafgrad COMMAND --help"
BRINGS = {name: f"leafgrad-{name}" for name in ("cuda", "onnx", "pinn")}  # commands of packages of this repository


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process if none is given; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"leafgrad {leafgrad.__version__}")
        return 0
    try:
        command = plugins.command(arguments[0])
    except (plugins.UnknownNameError, PluginError) as error:
        package = BRINGS.get(arguments[0])
        missing = package is not None and find_spec(package.replace("-", "_")) is None
        remedy = f"; {added.brought_by(package)}" if package and missing else ""
        print(f"leafgrad: {error}{remedy}\n{USAGE}", file=sys.stderr)
        return 2
    try:
        run = plugins.resolve(command.target)
    except PluginError as error:
        print(f"leafgrad: {error}", file=sys.stderr)
        return 2
    try:
        status = status_of(run, arguments[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # who reads, `head` for instance, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def status_of(run: Callable[[list[str]], int | None], arguments: list[str]) -> int:
    """The exit status that a command returns, or that argparse exits with, which has said why."""
    try:
        return run(arguments) or 0
    except SystemExit as exit:
        if isinstance(exit.code, str):  # of a script, for Python to print
            raise
        return int(exit.code or 0)


def overview() -> str:
    """What ``leafgrad --help`` prints."""
    load_all()
    commands = sorted(plugins.commands(), key=lambda command: command.name)
    width = max(len(command.name) for command in commands)
    lines = [f"  {command.name:{width}}  {command.help}" for command in commands]
    return "\n".join([USAGE, "", "commands:", *lines])


def load_all() -> None:
    """Load all plugins; what is wrong with one is said, and the others are there."""
    try:
        plugins.load()
    except PluginError as error:
        print(f"leafgrad: {error}", file=sys.stderr)
