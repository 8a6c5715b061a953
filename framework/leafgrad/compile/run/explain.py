"""What a compiled function has done so far, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from leafgrad.compile.guard.conditions import Miss, mode_name
from leafgrad.compile.guard.guards import Guards
from leafgrad.compile.ir.graph import Equation
from leafgrad.compile.record.lazy import Parts
from leafgrad.compile.run.call import Call
from leafgrad.errors import FreedGraphError

SHOWN = 40  # guards on what is not an argument


def text(
    name: str,
    calls: Sequence[Call],
    misses: Sequence[Miss],
    failures: int,
    reason: str | None,
    last: Any,
    how: str | None,
) -> str:
    """Programs, guards, retraces with their reasons, how an open step runs, and what the executors say."""
    if not calls and not failures:
        state = "has not been called" if reason is None else f"its first call was open, since {reason}"
        return f"{name}: {state}"
    plural = "program" if len(calls) == 1 else "programs"
    lines = [f"{name}: {len(calls)} {plural}, traced again {len(misses)} times"]
    if reason is not None:
        lines += opened(name, reason, last)
        lines += [] if how is None else [f"  {how}"]
    lines += [f"  {m.path} was {m.before} and became {m.now}" for m in misses]
    lines += advice(misses)
    for i, call in enumerate(calls):
        lines += ["", f"program {i + 1}, run {call.hits} times"]
        lines += [f"  {line}" for line in [*program(call), *guards(call.guards)]]
    return "\n".join(lines)


def opened(name: str, reason: str, last: Any) -> list[str]:
    """Why a step is open, and the parts in which it ran last."""
    lines = [
        f"{name}: open, since {reason}",
        "  its Python runs at each call, and its ops are compared with those of earlier calls; to close it, pass what "
        "changes as an argument, or take it out of the function",
    ]
    if isinstance(last, Parts):
        for i, part in enumerate(last.parts):
            ops = sum(isinstance(e, Equation) for e in part.events)
            if not ops:
                continue
            how = "op by op" if part.runner is None else "; ".join(part.runner.program.explain())
            end = f", up to {last.tears[i][0]} at {last.tears[i][1]}" if i < len(last.tears) else ""
            lines.append(f"  part {i + 1}: {ops} equations{end}: {how}")
    return lines


def advice(misses: Sequence[Miss]) -> list[str]:
    """What to do about a value that keeps changing."""
    counts = Counter(m.path for m in misses)
    return [
        f"  {path} changed {count} times: keep it out of the function, or pass it as a tensor"
        for path, count in counts.items()
        if count > 1
    ]


def program(call: Call) -> list[str]:
    """Size, effects and the executor's own words."""
    runner = call.runner
    graph = runner.graph
    kinds = Counter(type(e).__name__ for e in graph.effects)
    words = {"Write": "tensors written in place", "SetGrad": "gradients set", "SetRequiresGrad": "requires_grad set"}
    lines = [f"{runner.before} equations traced, {len(graph)} after the passes; {len(graph.inputs)} inputs"]
    lines += [f"effects: {', '.join(f'{n} {words[k]}' for k, n in kinds.items())}"] if kinds else []
    lines += runner.program.explain()
    if call.backward is not None:
        state = "compiled" if call.backward.runs else "traced"
        lines.append(f"{len(call.differentiable)} results have gradients; their backward pass is {state}")
    return [*lines, *(f"result {i} {withheld(refused.error)}" for i, refused in call.refused.items())]


def withheld(error: Exception) -> str:
    """Why a result that requires grad cannot be differentiated outside: nothing to mend if the step has done so."""
    if isinstance(error, FreedGraphError):
        return "was differentiated inside, and cannot be once more outside"
    return f"has no gradients: {error}"


def guards(found: Guards) -> list[str]:
    """The conditions in a reader's words."""
    lines = [f"guards: {mode_name(found.flags)}; {len(found.conditions)} conditions"]
    lines += [f"  {c.path}: {c.expected}" for c in found.conditions[:SHOWN]]
    if len(found.conditions) > SHOWN:
        lines.append(f"  and {len(found.conditions) - SHOWN} more")
    return lines
