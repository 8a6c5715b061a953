"""What a compiled function has done so far, for people: ``explain()`` of it."""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterator, Sequence

from leafgrad.compile.guard.conditions import Miss, mode_name
from leafgrad.compile.guard.guards import Guards
from leafgrad.compile.run.call import Call
from leafgrad.compile.run.calls import Calls
from leafgrad.errors import FreedGraphError

__all__ = ["Explanation"]

REMEDIES = {  # by the kind of condition that failed
    "shape": ": pad it to a few shapes",
    "value": ": keep it out of the function, or pass it as a tensor",
}

OPENED = (
    "  it runs uncompiled, since nothing of it can be taken out; to close it, pass what changes as an argument, or "
    "do that outside"
)


class Explanation(str):
    """What ``explain()`` of a compiled function gives: a text, which notebooks show with its guards to unfold.

    Attributes:
        summary: its first line: closed or open and why, how many programs, how often traced again.
        guards: for each program the conditions under which it is run, as lines of text.
    """

    __slots__ = ("guards", "summary")

    guards: tuple[tuple[str, ...], ...]
    summary: str

    def __new__(cls, lines: Sequence[str], guards: Sequence[Sequence[str]] = ()) -> Explanation:
        self = super().__new__(cls, "\n".join(lines))
        self.summary, self.guards = lines[0], tuple(map(tuple, guards))
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        parts = [f"<pre>{html.escape(str(self))}</pre>"]
        for i, conditions in enumerate(self.guards):
            listed = html.escape("\n".join(conditions))
            parts.append(f"<details><summary>guards of program {i + 1}</summary><pre>{listed}</pre></details>")
        return "".join(parts)


def explanation(calls: Calls) -> Explanation:
    """Programs, retraces with their reasons, how an open step runs and where it breaks, and what executors say."""
    name, reason, misses, programs, pace = calls.name, calls.reason, calls.misses, calls.programs, calls.pace
    if not programs and not pace.failures:
        state = "has not been called" if reason is None else f"its first call was open, since {reason}"
        return Explanation([f"{name}: {state}"])
    state = "closed" if reason is None else f"open, since {reason}"
    plural = "program" if len(programs) == 1 else "programs"
    lines = [f"{name}: {state}; {len(programs)} {plural}, traced again {len(misses)} times"]
    if reason is not None:
        chosen = pace.gave_up and calls.breaks.found and os.environ.get("LEAFGRAD_COMPILE") != "always"
        lines += calls.breaks.explain() or [OPENED]
        lines += [f"  {pace.explain()}"] if chosen else []
    lines += causes(misses)
    if misses.waited:
        lines.append(
            f"  {misses.waited} calls ran uncompiled: each kind, of {len(misses.waiting)} that wait, is traced after "
            f"{max(map(misses.needed, misses.waiting), default=0)}{REMEDIES['shape']}"
        )
    if calls.idle.total:
        lines.append(f"  {calls.idle.total} calls ran uncompiled, since so little takes no longer without a program")
    for i, call in enumerate(programs):
        lines += ["", f"program {i + 1}, run {call.hits} times"]
        lines += [f"  {line}" for line in [*facts_of_program(call), rests_on(call.guards)]]
    return Explanation(lines, [[f"{c.path}: {c.expected}" for c in call.guards.conditions] for call in programs])


def causes(misses: Sequence[Miss]) -> Iterator[str]:
    """Why it was traced again, what cost the most first, and what to do about a value that keeps changing."""
    for path, count in Counter(m.path for m in misses).most_common():
        found = [m for m in misses if m.path == path]
        yield from (f"  {m.path} was {m.before} and became {m.now}" for m in found)
        if count > 1:
            yield f"  {path} changed {count} times" + REMEDIES.get(found[-1].kind, "")


EFFECTS = {
    "Write": "tensors written in place",
    "SetData": "tensors given other memory",
    "SetGrad": "gradients set",
    "SetRequiresGrad": "requires_grad set",
}


def facts_of_program(call: Call) -> list[str]:
    """Size, effects and the executor's own words."""
    runner = call.ran
    graph = runner.graph
    kinds = Counter(type(e).__name__ for e in graph.effects)
    lines = [f"{runner.before} equations traced, {len(graph)} after the passes; {len(graph.inputs)} inputs"]
    lines += [f"effects: {', '.join(f'{n} {EFFECTS[k]}' for k, n in kinds.items())}"] if kinds else []
    if call.lengths is not None:
        lines.append(f"for any {of_any_length(call.guards)}: made for {len(call.lengths.runners)} so far")
    lines += ["replayed: what runs it is built when it comes again"] if runner.waits else runner.program.explain()
    if call.backward:
        state = "compiled" if any(b.runs for b in call.backward) else "traced"
        count = sum(len(p.results) for p in call.pullbacks)
        lines.append(f"{count} results have gradients; their backward pass is {state}")
    return [*lines, *(f"result {i} {withheld(refused.error)}" for i, (refused, _) in call.refused.items())]


def of_any_length(found: Guards) -> str:
    """The sizes that may be others."""
    free = found.symbolic.lengths.items()
    return ", ".join([f"{found.paths[i]}.shape[{d}]" for i, dims in free for d in dims])


def withheld(error: Exception) -> str:
    """Why a result that requires grad cannot be differentiated outside: nothing to mend if the step has done so."""
    if isinstance(error, FreedGraphError):
        return "was differentiated inside, and cannot be once more outside"
    return f"has no gradients: {error}"


def rests_on(found: Guards) -> str:
    """How many conditions a program has."""
    return f"guards: {mode_name(found.flags)}; {len(found.conditions)} conditions, listed by explain().guards"
