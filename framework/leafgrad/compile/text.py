"""A graph as a short readable program."""

from __future__ import annotations

from typing import Any

from leafgrad.compile.graph import Argument, Captured, Equation, Given, Grad, Graph, Live, SetGrad, Source, Value, Write

SHORT = {"float": "f", "int": "i", "uint": "u", "bool": "bool"}


def kind(value: Value) -> str:
    """``f32[64, 2]``."""
    name = value.dtype
    for long in ("float", "uint", "int"):
        if name.startswith(long):
            name = SHORT[long] + name.removeprefix(long)
            break
    return f"{name}[{', '.join(map(str, value.shape))}]"


def expression(equation: Equation, names: dict[Value, str]) -> str:
    """``tanh(a)``, ``sum(b, dim=(0,))``."""
    parts = [names[v] if isinstance(v, Value) else repr(v) for v in equation.inputs]
    parts += [f"{k}={brief(v)}" for k, v in equation.params.items() if equation.op.signature.parameters.get(k) != v]
    return f"{equation.name}({', '.join(parts)})"


def brief(value: Any) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def origin(source: Source) -> str:
    match source:
        case Argument(index):
            return f"argument {index}"
        case Captured():
            return "captured"
        case Live():
            return "read at each call"
        case Grad(of):
            return f".grad of {origin(of)}"
        case Given(index):
            return f"given {index}"


def render(graph: Graph) -> str:
    """One line per input, equation and effect, with shapes, dtypes and source lines."""
    names = graph.named()
    rows = [(f"  {names[value]}: {kind(value)}", origin(source)) for value, source in graph.inputs.items()]
    for equation in graph.equations:
        left = ", ".join(f"{names[v]}: {kind(v)}" for v in equation.outputs)
        rows.append((f"  {left} = {expression(equation, names)}", str(equation.line)))
    by_source = {source: names[value] for value, source in graph.inputs.items()}
    for effect in graph.effects:
        target = by_source.get(effect.source, f"({origin(effect.source)})")
        suffix = {Write: "[...]", SetGrad: ".grad"}.get(type(effect), ".requires_grad")
        what = "None" if effect.value is None else names[effect.value]
        rows.append((f"  {target}{suffix} = {what if suffix != '.requires_grad' else 'True'}", "effect"))
    width = min(72, max((len(left) for left, _ in rows), default=0))
    lines = [f"{left:<{width}}  # {right}" for left, right in rows]
    returned = ", ".join(names[v] for v in graph.results) or "nothing"
    return "\n".join(["program:", *lines, f"  return {returned}"])
