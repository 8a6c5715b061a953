"""The backward pass of one recorded call, written out for each op at its first.

A pass over small arrays spends its time on calls and tuples, not on arithmetic. So the checks of saved values
and the calls of an op's rules are put into one function; into another of Tensors, for passes that are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.ops import dispatch, messages
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
        {name} = {value}
"""
OUT = """
    out = node.out
    if out is not None and node.version is not None and node.version.seq > seq:
        raise messages.modified(node, out, node.version)
"""
RAW, RECORDED = "{name}._data", "connect({name}, {edge})"
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


def compile_pull(calls: list[RuleCall], recorded: bool = False) -> Callable[..., Any]:
    """``Op.pull``, or ``Op.pull_recorded``, for an op with a fixed number of arguments, one call for each."""
    names, edges = [f"x{i}" for i in range(len(calls))], [f"e{i}" for i in range(len(calls))]
    read = " ".join([source for _, sources in calls for source in sources])
    text = HEAD.format(names=", ".join(names) + ",", edges=", ".join(edges) + ",")
    for i, (name, edge) in enumerate(zip(names, edges, strict=True)):
        value = (RECORDED if recorded else RAW).format(name=name, edge=edge)
        text += ARGUMENT.format(name=name, value=value) if f"args[{i}]" in read else ""
    if "out" in read:
        text += OUT + ("    out = reconnect_output(node)\n" if recorded else "")
    text += "".join([f"    {name} = node.{name}\n" for name in ("shapes", "params") if name in read])
    text += "    pulled = []\n"
    here = {f"args[{i}]": name for i, name in enumerate(names)}
    for i, (_, sources) in enumerate(calls):
        call = ", ".join([str(i) if source == "index" else here.get(source, source) for source in sources])
        text += RULE.format(i=i, call=call)
    scope: dict[str, Any] = {f"rule{i}": getattr(rule, "function", rule) for i, (rule, _) in enumerate(calls)}
    scope |= {"FREED": FREED, "TensorBase": TensorBase, "messages": messages, "nothing": (None,) * len(calls)}
    scope |= {"connect": dispatch.connect, "reconnect_output": dispatch.reconnect_output}
    exec(compile(text + "    return pulled\n", WRITTEN, "exec"), scope)
    pull: Callable[..., Any] = scope["pull"]
    return pull
