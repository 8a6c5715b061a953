"""The command line: ``leafgrad COMMAND ARGS...``, or ``python -m leafgrad COMMAND ARGS...``."""

from leafgrad.cli.main import main as main
