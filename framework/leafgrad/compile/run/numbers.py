"""The numbers that a program computes by expressions: some of its inputs, results, what it leaves behind, and tests."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leafgrad import backends
from leafgrad.compile.guard.guards import Guards
from leafgrad.compile.ir.graph import Value
from leafgrad.compile.ir.sources import Expression
from leafgrad.compile.record.events import Kind, as_inputs
from leafgrad.compile.record.symbolic import text_of
from leafgrad.compile.record.trace import Traced


class Strayed(Exception):
    """A value that the program computed decides for another way than the Python went; nothing is done yet."""


class SymbolicValues:
    """The numbers that a program computes by expressions: some of its inputs, results, and what it leaves behind.

    Attributes:
        written: numbers that are left in containers, each with its expression.
        outcomes: tests of computed values that decided which way the Python went.
        compute_early: the function of leaves that gives inputs, then results that come from them alone.
        forms: what tells these numbers from those of another recording.
    """

    def __init__(self, traced: Traced, guards: Guards, inputs: Sequence[Value], written: Sequence[Any]) -> None:
        texts = [s.text for v in inputs if isinstance(s := traced.graph.inputs[v], Expression)]
        self.inputs = len(texts)
        self.written = [(w._replace(number=None, before=None), text_of(w.number)) for w in written]  # lest it is kept
        results, left = (
            [o.text for o in traced.outputs if isinstance(o, Expression)],
            [text for _, text in self.written],
        )
        self.outcomes = guards.symbolic.outcomes
        self.items = list(traced.items.values())
        self.late = [text for text in (*results, *left, *self.outcomes) if READ.search(text)]
        self.early = [text for text in results if not READ.search(text)]
        self.left = [text for text in left if not READ.search(text)]
        self.compute_early = guards.expressions([*texts, *self.early])
        self.compute_left = guards.expressions(self.left)
        self.compute_late = guards.expressions(self.late, [f"r{k}" for k in traced.items])
        places = [(id(w.container), w.key, text) for w, text in self.written]
        self.forms = results, places, [*guards.symbolic.relations], dict.fromkeys(self.outcomes), traced.items

    def after(self, leaves: Sequence[Any], given: Sequence[Any], arrays: Sequence[Any]) -> dict[str, Any]:
        """What expressions of results, of what is left behind and of outcomes give.

        Raises:
            Strayed: an outcome is another one.
        """
        found = dict(zip(self.early, given[self.inputs :], strict=True))
        if self.late:
            read = [backends.backend_of(arrays[i]).item(arrays[i]) for i in self.items]
            found.update(zip(self.late, self.compute_late(leaves, *read), strict=True))
            if not all(found[test] for test in self.outcomes):
                raise Strayed
        return found

    def leaving(self, leaves: Sequence[Any], numbers: Mapping[str, Any]) -> list[Callable[[], None]]:
        """Two steps that put what is left behind where it belongs.

        It is computed of what is there by now, for a thread or a signal's handler may have written meanwhile.
        """
        found: dict[str, Any] = {}

        def find() -> None:
            found.update(zip(self.left, self.compute_left(leaves), strict=True))

        def put() -> None:
            for place, text in self.written:
                place.put(found[text] if text in found else numbers[text])

        return [find, put]


NO_NUMBERS: tuple[Any, ...] = [], [], [], {}, {}  # the forms of none
READ = re.compile(r"\br\d")  # the name of a value that was read


class NumberInputs:
    """The arrays of numbers that are inputs: a new one only for another number.

    Args:
        kinds: the dtype and place of each.
    """

    def __init__(self, kinds: Sequence[Any]) -> None:
        self.kinds = list(kinds)
        self.last: list[tuple[float, Any]] = [(math.nan, None)] * len(kinds)

    def __call__(self, numbers: Sequence[float]) -> list[Any]:
        """The array of each of the first numbers."""
        found, pairs = [], self.last
        due: dict[Kind, list[int]] = {}
        for k, kind in enumerate(self.kinds):
            number = numbers[k]
            last, array = pairs[k]
            if number != last or not number:  # -0.0 equals 0.0
                due.setdefault(kind, []).append(k)
            found.append(array)
        for kind, ks in due.items():
            for k, array in zip(ks, as_inputs([float(numbers[k]) for k in ks], kind), strict=True):
                found[k] = array
                pairs[k] = numbers[k], array  # in one piece, since threads may call at once
        return found
