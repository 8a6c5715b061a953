"""The graph of a module for TensorBoard: its operations, in boxes by module, as a protocol buffer of TensorFlow's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leafgrad import modes
from leafgrad.tensor.random import fork_rng
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils.protobuf import bytes_field, number_field, text_field


def graph_def(model: Any, inputs: tuple[Any, ...]) -> bytes:
    """The operations that gradients of ``model(*inputs)`` flow through, parameters and inputs.

    It runs the model once, after which buffers and random numbers are what they were.

    Raises:
        RuntimeError: no gradient flows to a parameter or input.
    """
    scopes: dict[Any, str] = {}  # of operations: the module that made them
    stack = [type(model).__name__]
    handles = []
    for path, module in model.named_modules():
        inside = "/".join([stack[0], *path.split(".")]) if path else stack[0]

        def enter(_: Any, args: Any, inside: str = inside) -> None:
            claim(args, stack[-1], scopes)
            stack.append(inside)

        def leave(_: Any, args: Any, result: Any) -> None:
            claim(result, stack.pop(), scopes)

        handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    given = [x.detach().requires_grad_(x.is_floating_point()) if isinstance(x, Tensor) else x for x in inputs]
    copies = [x.clone() if isinstance(x, Tensor) else x for x in given]  # which the module may write into
    claim(copies, "input", scopes)
    buffers = [(b, b.clone()) for b in model.buffers()]
    try:
        with fork_rng(), modes.enable_grad():
            found = model(*copies)
    finally:
        for handle in handles:
            handle.remove()
        with modes.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
    claim(found, stack[0], scopes)
    if not any(t.grad_fn is not None for t in tensors_within(found)):
        raise RuntimeError("add_graph: expected a result that requires grad, of parameters or of floating inputs")
    leaves = {id(p): f"{stack[0]}/{name.replace('.', '/')}" for name, p in model.named_parameters()}
    leaves |= {id(x): f"input/{i}" for i, x in enumerate(given)}
    names = labelled(scopes, leaves)
    nodes = b"".join(bytes_field(1, node_def(node, name, names)) for node, name in names.items())
    for i, tensor in enumerate(t for t in tensors_within(found) if t.grad_fn is not None):
        reads = text_field(3, names[tensor.grad_fn])
        nodes += bytes_field(1, text_field(1, f"output/{i}") + text_field(2, "IO") + reads)
    return nodes + bytes_field(4, number_field(1, 22))  # the version of the format


def tensors_within(value: Any) -> Iterator[Tensor]:
    """The tensors in a value, nested as it may be."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_within(part)


def claim(value: Any, scope: str, scopes: dict[Any, str]) -> None:
    """Enter the operations that made the tensors in ``value`` as of ``scope``, but those that have one."""
    left = [t.grad_fn for t in tensors_within(value)]
    while left:
        node = left.pop()
        if node is not None and node not in scopes:
            scopes[node] = scope
            left += [source for source, _ in node.next_functions]


def labelled(scopes: dict[Any, str], leaves: dict[int, str]) -> dict[Any, str]:
    """A name for each operation, of which no two are alike."""
    names: dict[Any, str] = {}
    counts: dict[str, int] = {}
    for node, scope in scopes.items():
        variable = getattr(node, "variable", None)
        name = leaves.get(id(variable)) or f"{scope}/{node.name().removesuffix('Backward0')}"
        counts[name] = counts.get(name, -1) + 1
        names[node] = f"{name}_{counts[name]}" if counts[name] else name
    return names


def node_def(node: Any, name: str, names: dict[Any, str]) -> bytes:
    """One operation: its name, kind, and what it reads; of parameters and inputs the shape, too."""
    text = text_field(1, name) + text_field(2, node.name().removesuffix("Backward0"))
    text += b"".join(text_field(3, names[source]) for source, _ in node.next_functions if source is not None)
    if (variable := getattr(node, "variable", None)) is not None:
        shape = b"".join(bytes_field(2, number_field(1, n)) for n in variable.shape)
        shapes = text_field(1, "_output_shapes") + bytes_field(2, bytes_field(1, bytes_field(7, shape)))
        text += bytes_field(5, shapes)
    return text
