"""The backward pass of one recorded call, written out for each op at its first.

A pass over small arrays spends its time on calls and tuples, not on arithmetic. So the checks of saved values
and the calls of an op's rules are put into one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.ops import messages
from leafgrad.ops.node import FREED, TensorBase
from leafgrad.ops.tracebacks import WRITTEN

# A rule, and what to call it with: sources in terms of g, args, out, shapes, params and index.
RuleCall = tuple[Callable[..., Any], tuple[str, ...]]

HEAD = """
def pull(node, g, needed):
    saved = node.saved
    if saved is FREED:
        raise messages.freed()
    {names} = saved or nothing
    {edges} = node.edges
    seq = node.seq
"""
ARGUMENT = """
    if isinstance({name}, TensorBase):
        if {name}._writes is not None and {name}._writes.seq > seq:
            raise messages.modified(node, {name}._data, {name}._writes)
        {name} = {name}._data
"""
OUT = """
    out = node.out
    if out is not None and node.version is not None and node.version.seq > seq:
        raise messages.modified(node, out, node.version)
"""
RULE = """
    if e{i} is not None and (needed is None or e{i} in needed):
        pulled.append((e{i}, rule{i}({call})))
"""


def compile_rule(call: RuleCall) -> Callable[..., Any]:
    """A rule in the one form ``f(g, args, out, shapes, params, index)``."""
    rule, sources = call
    text = f"lambda rule: lambda g, args, out, shapes, params, index: rule({', '.join(sources)})"
    made: Callable[..., Any] = eval(compile(text, WRITTEN, "eval"))(rule)
    return made


def compile_pull(calls: list[RuleCall]) -> Callable[..., Any]:
    """``Op.pull`` for an op with a fixed number of arguments, one call for each."""
    names, edges = [f"x{i}" for i in range(len(calls))], [f"e{i}" for i in range(len(calls))]
    read = " ".join([source for _, sources in calls for source in sources])
    text = HEAD.format(names=", ".join(names) + ",", edges=", ".join(edges) + ",")
    text += "".join([ARGUMENT.format(name=name) for i, name in enumerate(names) if f"args[{i}]" in read])
    text += OUT if "out" in read else ""
    text += "".join([f"    {name} = node.{name}\n" for name in ("shapes", "params") if name in read])
    text += "    pulled = []\n"
    here = {f"args[{i}]": name for i, name in enumerate(names)}
    for i, (_, sources) in enumerate(calls):
        call = ", ".join([str(i) if source == "index" else here.get(source, source) for source in sources])
        text += RULE.format(i=i, call=call)
    scope: dict[str, Any] = {f"rule{i}": getattr(rule, "function", rule) for i, (rule, _) in enumerate(calls)}
    scope |= {"FREED": FREED, "TensorBase": TensorBase, "messages": messages, "nothing": (None,) * len(calls)}
    exec(compile(text + "    return pulled\n", WRITTEN, "exec"), scope)
    pull: Callable[..., Any] = scope["pull"]
    return pull
