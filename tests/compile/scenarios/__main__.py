"""What becomes of each row, without pytest.

``PYTHONPATH=tests python -m compile.scenarios [EXECUTOR [KIND]]``; the executor ``eager`` compares eager with eager.
"""

from __future__ import annotations

import collections
import sys
import warnings

from compile.scenarios.harness import ROWS, check


def main(executor: str = "numpy", kind: str = "") -> None:
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for name, row in sorted(ROWS.items()):
        if not row.kind.startswith(kind):
            continue
        try:
            refusals = check(row, None if executor == "eager" else executor)
            outcome, why = ("refused", refusals[0]) if refusals else ("same", "")
        except Exception as error:
            outcome, why = "DIFFERENT", f"{type(error).__name__}: {error}".splitlines()[0]
        found[row.kind][outcome].append(name)
        if outcome != "same":
            print(f"{outcome:9} {name}: {why[:400]}", flush=True)
    print()
    total: collections.Counter[str] = collections.Counter()
    for each, outcomes in found.items():
        counts = {outcome: len(names) for outcome, names in sorted(outcomes.items())}
        total.update(counts)
        print(f"{each:12}", ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    print(f"{'all':12}", ", ".join(f"{count} {outcome}" for outcome, count in sorted(total.items())))


main(*sys.argv[1:])
