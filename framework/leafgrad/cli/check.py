"""``leafgrad check``: the conformance kit on an op, or on all ops of a plugin, with samples that it draws itself."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

from leafgrad import plugins
from leafgrad.cli.main import load_all
from leafgrad.testing.conformance import Report, examine

PARSER = argparse.ArgumentParser(
    prog="leafgrad check", description="Check an op, or all ops of a plugin, with samples drawn at random."
)
PARSER.add_argument("name", metavar="OP|PLUGIN", help="the name of an op, or of a plugin")
PARSER.add_argument("-v", "--verbose", action="store_true", help="list all checks of each op of a plugin")


def main(argv: list[str]) -> int:
    """Print what passed and what failed; returns 0 if all checks passed, 1 if some failed or none could run."""
    options = PARSER.parse_args(argv)
    load_all()
    try:
        ops = chosen_ops(options.name)
    except (plugins.UnknownNameError, plugins.PluginClashError) as error:
        print(f"leafgrad check: {error}", file=sys.stderr)
        return 2
    outcomes = Counter(verdict(op, in_full=options.verbose or len(ops) == 1) for op in ops)
    if len(ops) != 1:
        print(f"{len(ops)} ops: {', '.join(f'{n} {outcome}' for outcome, n in outcomes.items()) or 'nothing to check'}")
    return 0 if outcomes["passed"] and not outcomes["failed"] else 1


def chosen_ops(name: str) -> list[Any]:
    """The ops of a plugin, or the op of that name."""
    for plugin in plugins.status():
        if plugin.name == name and plugin.status == "active":
            if plugin.error:  # others define some of its names, too
                print(f"leafgrad check: {plugin.error}", file=sys.stderr)
            listed = plugin.hooks.get("leafgrad_ops", ())
            return [op for op in plugins.ops() if op.name in listed]
    return [plugins.op(name)]


def verdict(op: Any, in_full: bool) -> str:
    """Check an op and print what was found; returns "passed", "failed", or "not checked", for want of samples."""
    try:
        report = examine(op)
    except ValueError as error:
        print(f"op {op.name!r}: not checked: {error}", flush=True)
        return "not checked"
    print(report if in_full else summary(report), flush=True)
    return "passed" if report.ok else "failed"


def summary(report: Report) -> str:
    """A line for an op, and one for each check that failed."""
    counts = Counter(result.outcome for result in report.results)
    head = f"{report.subject}: {', '.join(f'{n} {outcome}' for outcome, n in counts.items())}"
    return "\n".join([head, *(f"  {result.check}: {result.reason}" for result in report.failures)])
