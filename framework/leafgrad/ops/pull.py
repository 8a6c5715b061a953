"""The backward pass of one recorded call, written out for each op at its first.

A pass over small arrays spends its time on calls and tuples, not on arithmetic. So the checks of saved values
and the calls of an op's rules are put into one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.ops import messages
from leafgrad.ops.node import FREED, TensorBase

HEAD = """
def pull(node, g, needed):
    saved = node.saved
    if saved is FREED:
        raise messages.freed()
    {names} = saved or nothing
    seq = node.seq
"""
ARGUMENT = """
    if isinstance({name}, TensorBase):
        if {name}._version is not None and {name}._version.seq > seq:
            raise messages.modified(node, {name}._data, {name}._version)
        {name} = {name}._data
"""
MIDDLE = """
    out = node.out
    if out is not None and node.version is not None and node.version.seq > seq:
        raise messages.modified(node, out, node.version)
    args, shapes, params, edges, pulled = ({names}), node.shapes, node.params, node.edges, []
"""
RULE = """
    index, edge = {index}, edges[{index}]
    if edge is not None and (needed is None or edge in needed):
        pulled.append((edge, rule{index}({call})))
"""


def compile_rule(rule: Callable[..., Any], call: str) -> Callable[..., Any]:
    """A rule in the one form ``f(g, args, out, shapes, params, index)``; ``call`` says what it is called with."""
    text = f"lambda rule: lambda g, args, out, shapes, params, index: rule({call})"
    made: Callable[..., Any] = eval(compile(text, __file__, "eval"))(rule)
    return made


def compile_pull(rules: list[tuple[Callable[..., Any], str]]) -> Callable[..., Any]:
    """``Op.pull`` for an op with a fixed number of arguments.

    Args:
        rules: for each argument its rule, and what to call it with, in terms of g, args, out, shapes and params.
    """
    names = [f"x{i}" for i in range(len(rules))]
    joined = ", ".join(names) + ","
    text = HEAD.format(names=joined)
    text += "".join(ARGUMENT.format(name=name) for name in names)
    text += MIDDLE.format(names=joined)
    text += "".join(RULE.format(index=i, call=call) for i, (_, call) in enumerate(rules))
    scope: dict[str, Any] = {f"rule{i}": rule for i, (rule, _) in enumerate(rules)}
    scope |= {"FREED": FREED, "TensorBase": TensorBase, "messages": messages, "nothing": (None,) * len(rules)}
    exec(compile(text + "    return pulled\n", __file__, "exec"), scope)
    pull: Callable[..., Any] = scope["pull"]
    return pull
