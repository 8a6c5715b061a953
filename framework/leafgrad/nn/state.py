"""Saving the state of a module, and loading it, all or nothing."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from leafgrad import dtypes, modes
from leafgrad.nn.hooks import Hook
from leafgrad.nn.parameter import Parameter, UninitializedTensor
from leafgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    from leafgrad.nn.module import Module

EXTRA = "_extra_state"  # the key of what a module keeps beside its tensors


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict(strict=False)`` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class PendingWrite(NamedTuple):
    """A value that will go into a module once it is known that all fit."""

    module: Module
    name: str
    own: Tensor | None  # None: the extra state
    new: Any
    assign: bool


class MismatchReport(list[str]):
    """What is wrong with a state dict, and what will be written if nothing is."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[PendingWrite] = []
        self.before: list[PendingWrite] = []  # what undoes those that could not wait for the whole

    def write(self) -> None:
        """Write what was found so far, since hooks want to see it."""
        self.before += map(_undoing, self.writes)
        _write(self.writes)
        self.writes = []

    def undo(self) -> None:
        """Put back what was written too early."""
        _write(self.before[::-1])


def tensors(module: Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters and buffers of one module that belong to its state."""
    for name, value in itertools.chain(module._parameters.items(), module._buffers.items()):
        if value is not None and name not in module._not_persistent:
            yield name, value


def hooks_of(module: Module, kind: str) -> list[Hook]:
    return [] if module._hooks is None else list(getattr(module._hooks, kind).values())


# ---- saving -------------------------------------------------------------------------------------------------------


def save(module: Module, destination: dict[str, Any] | None, prefix: str, keep_vars: bool) -> dict[str, Any]:
    """The state of a module and of all below it, in ``destination`` or a new dict."""
    if destination is None:
        destination = OrderedDict()
        destination.__dict__["_metadata"] = OrderedDict()
    metadata = {"version": module._version}
    if (versions := getattr(destination, "_metadata", None)) is not None:
        versions[prefix[:-1]] = metadata
    for hook in hooks_of(module, "save_pre"):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in hooks_of(module, "save"):
        new = hook(module, destination, prefix, metadata)
        destination = destination if new is None else new
    return destination


def save_own(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Put the state of one module into ``destination``."""
    for name, value in tensors(module):
        destination[prefix + name] = value if keep_vars or isinstance(value, UninitializedTensor) else value.detach()
    if module._has_extra_state("get"):
        destination[prefix + EXTRA] = module.get_extra_state()


# ---- loading ------------------------------------------------------------------------------------------------------


def load(module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Load ``state_dict``, or raise an error that lists every mismatch and change nothing."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}; pass what state_dict() gives")
    keys = IncompatibleKeys([], [])
    report = MismatchReport()
    versions = getattr(state_dict, "_metadata", None) or {}
    try:
        _walk(module, OrderedDict(state_dict), "", versions, assign, keys, report)
        errors = [*(_incompatible(keys) if strict else []), *report]
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{text}")
    except BaseException:
        report.undo()
        raise
    _write(report.writes)
    return keys


def _walk(
    module: Module,
    state_dict: dict[str, Any],
    prefix: str,
    versions: Mapping[str, Any],
    assign: bool,
    keys: IncompatibleKeys,
    report: MismatchReport,
) -> None:
    """Let a module look for its values, then all below it; then its hooks, if all is well so far."""
    metadata = {**versions.get(prefix[:-1], {}), "assign_to_params_buffers": assign}
    module._load_from_state_dict(state_dict, prefix, metadata, True, *keys, report)
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            below = {key: value for key, value in state_dict.items() if key.startswith(path)}
            _walk(child, below, path, versions, assign, keys, report)
    for hook in hooks_of(module, "load") if not report else []:
        report.write()
        if hook(module, keys) is not None:
            raise RuntimeError("load_state_dict post-hooks should change the keys in place and return None")


def load_own(
    module: Module,
    state_dict: dict[str, Any],
    prefix: str,
    metadata: Mapping[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Find the values of one module. They are written when all modules have found theirs, if ``errors`` can wait."""
    for hook in hooks_of(module, "load_pre"):
        hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)
    assign = metadata.get("assign_to_params_buffers", False)
    writes = []
    own: dict[str, Tensor | None] = dict(tensors(module))
    if module._has_extra_state("set"):
        own[EXTRA] = None
    for name, value in own.items():
        key = prefix + name
        if key not in state_dict:
            missing += [key] if strict else []
        elif value is not None and (problem := _mismatch(key, value, state_dict[key])):
            errors.append(problem)
        elif isinstance(state_dict[key], UninitializedTensor):
            continue  # both wait
        else:
            writes.append(PendingWrite(module, name, value, state_dict[key], assign))
    if strict:
        known = own.keys() | module._modules.keys()
        for key in state_dict:
            name, _, rest = key.removeprefix(prefix).partition(".")
            if key.startswith(prefix) and (name not in known or (rest and name not in module._modules)):
                unexpected.append(key)
    if isinstance(errors, MismatchReport):
        errors.writes += writes
    elif not errors:
        _write(writes)


def _write(writes: list[PendingWrite]) -> None:
    with modes.no_grad():
        # Conversions may fail (no memory on the device); writing what is converted does not.
        ready = [w._replace(new=_converted(w.own, w.new, w.assign)) for w in writes]
        for module, name, own, new, assign in ready:
            if own is None:
                module.set_extra_state(new)
            elif assign:
                setattr(module, name, new)
            else:
                own.copy_(new)


def _undoing(w: PendingWrite) -> PendingWrite:
    """What takes the write ``w`` back."""
    if w.own is None:
        return w._replace(new=w.module.get_extra_state() if w.module._has_extra_state("get") else w.new)
    return w._replace(new=w.own if w.assign or isinstance(w.own, UninitializedTensor) else w.own.detach().clone())


def _incompatible(keys: IncompatibleKeys) -> Iterator[str]:
    for kind, names in (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys)):
        if names:
            quoted = ", ".join(f'"{name}"' for name in names)
            yield f"{kind} key(s) in state_dict: {quoted}. "


def _mismatch(key: str, own: Tensor, new: Any) -> str | None:
    """What is wrong with ``new`` in the place of ``own``."""
    if not isinstance(new, Tensor):
        return (
            f'While copying the parameter named "{key}", expected {dtypes.namespace}.Tensor or Tensor-like object from '
            f"checkpoint but received {type(new)}"
        )
    if isinstance(own, UninitializedTensor):
        return None
    if isinstance(new, UninitializedTensor):
        return (
            f"{key} of the checkpoint is an uninitialized parameter: call the module that it comes from once before "
            "its state is taken"
        )
    if new.shape == own.shape or (own.ndim == 0 and new.ndim == 1 and new.numel()):
        return None
    return (
        f"size mismatch for {key}: copying a param with shape {new.shape} from checkpoint, the shape in current "
        f"model is {own.shape}."
    )


def _converted(own: Tensor | None, new: Any, assign: bool) -> Any:
    if own is None:
        return new
    if not isinstance(own, UninitializedTensor) and own.ndim == 0 and new.ndim == 1:  # as old checkpoints have numbers
        new = new[0]
    if not assign:
        if isinstance(own, UninitializedTensor):
            own.materialize(new.shape)
        return new.detach().to(own.device, own.dtype)
    if not isinstance(own, Parameter):
        return new
    if isinstance(new, Parameter):
        new.requires_grad_(own.requires_grad)
        return new
    return Parameter(new, requires_grad=own.requires_grad)
