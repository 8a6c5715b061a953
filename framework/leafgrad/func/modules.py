"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from leafgrad.tensor.joining import stack
from leafgrad.tensor.tensor import Tensor

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with other tensors in place of its parameters and buffers. The module is unchanged.

    Args:
        module: an ``nn.Module``.
        parameter_and_buffer_dicts: tensors by dotted name, as ``named_parameters()`` gives them, or several such dicts.
            What is not in them is the module's own, and other names are passed over. A buffer that the module replaces
            meanwhile is put there.
        args: one argument, or a tuple of them.
        kwargs: keyword arguments.
        tie_weights: parameters that are one in the module become one new tensor, if one of their names is given.
        strict: refuse names that are missing, and names that the module does not have.

    Raises:
        RuntimeError: names are missing or unexpected under ``strict``. ValueError: no dicts, names given twice, or
            different tensors for tied names.
    """
    check_module(module, "functional_call: module")
    state = merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with with_state(module, state, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def check_module(module: Any, what: str) -> None:
    """A TypeError for anything else; modules are known by what they can do, so that this stands below them."""
    if not callable(getattr(module, "named_parameters", None)):
        raise TypeError(f"{what}: expected an nn.Module, got {type(module).__name__}")


def merged(dicts: Any) -> Any:
    if isinstance(dicts, Mapping):
        return dicts
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


Slot = tuple[dict[str, Any], str]  # the table of a module, and a key of it


def slots(module: Any) -> dict[str, Slot]:
    """Where each parameter and buffer is kept, by dotted name."""
    found = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name in table:
                found[f"{path}.{name}" if path else name] = table, name
    return found


@contextmanager
def with_state(module: Any, state: Any, tie_weights: bool, strict: bool) -> Iterator[None]:
    """Within it the module has the tensors of ``state``."""
    known = slots(module)
    chosen = tied(known, state) if tie_weights else dict(state)
    missing = [name for name, (table, key) in known.items() if name not in chosen and table[key] is not None]
    unexpected = [name for name in chosen if name not in known]
    if strict and (missing or unexpected):
        parts = [
            f"{kind} key(s): {', '.join(map(repr, names))}."
            for kind, names in (("Unexpected", unexpected), ("Missing", missing))
            if names
        ]
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(parts))
    for name, value in chosen.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: {name}: expected a Tensor, got {type(value).__name__}")
    chosen = {name: value for name, value in chosen.items() if name in known}
    before = {name: known[name][0][known[name][1]] for name in chosen}
    try:
        for name, value in chosen.items():
            table, key = known[name]
            table[key] = value
        yield
        for name in state.keys() & chosen.keys():
            table, key = known[name]
            if table[key] is not state[name] and hasattr(state, "__setitem__"):
                state[name] = table[key]
    finally:
        for name, value in before.items():
            table, key = known[name]
            table[key] = value


def tied(known: dict[str, Slot], state: Any) -> dict[str, Any]:
    """``state`` with the other names of tensors that the module has under several."""
    groups: dict[int, list[str]] = {}
    for name, (table, key) in known.items():
        if table[key] is not None:
            groups.setdefault(id(table[key]), []).append(name)
    chosen = dict(state)
    for names in groups.values():
        given = [name for name in names if name in state]
        if not given or len(names) == 1:
            continue
        if any(state[name] is not state[given[0]] for name in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(given)}, which are tied. Consider using "
                "tie_weights=False"
            )
        chosen.update(dict.fromkeys(names, state[given[0]]))
    return chosen


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one kind, each stacked along a new first dimension.

    With ``vmap`` over both and ``functional_call`` of one of them, all run at once. The parameters are new leaves.

    Args:
        models: modules of one class, with parameters of equal shapes.

    Raises:
        RuntimeError: no models, or of different classes or modes, or parameters that differ in ``requires_grad``.
    """
    for model in models:
        check_module(model, "stack_module_state: models")
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len(set(map(type, models))) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return (
        {name: stacked([p[name] for p in parameters], name) for name in parameters[0]},
        {name: stacked([b[name] for b in buffers], name) for name in buffers[0]},
    )


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch normalization in ``root`` keep no running averages, in place, and return ``root``.

    Then it writes nothing, and may be captured by a function that is transformed.

    Args:
        root: the module, which is changed.
    """
    check_module(root, "replace_all_batch_norm_modules_: root")
    for module in root.modules():
        if hasattr(module, "forget_running_stats"):
            module.forget_running_stats()
    return root


def stacked(tensors: list[Any], name: str) -> Tensor:
    flags = {t.requires_grad for t in tensors}
    if len(flags) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    joined = stack(tensors, 0)
    return joined.detach()._set_grad(True) if flags == {True} else joined
