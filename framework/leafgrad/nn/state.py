"""Loading a state dict into a module, all or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from leafgrad import modes
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    from leafgrad.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict(strict=False)`` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def load(module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Load ``state_dict``, or raise an error that lists every mismatch and change nothing."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    own = module.state_dict(keep_vars=True)
    missing = [key for key in own if key not in state_dict]
    unexpected = [key for key in state_dict if key not in own]
    errors = []
    if strict and missing:
        errors.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
    if strict and unexpected:
        errors.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
    errors += [e for key in own if key in state_dict and (e := _mismatch(key, own[key], state_dict[key]))]
    if errors:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors))
    with modes.no_grad():
        # Conversions may fail (no memory on the device); writing what is converted does not.
        ready = {key: _converted(own[key], state_dict[key], assign) for key in own if key in state_dict}
        for key, new in ready.items():
            if assign:
                path, _, name = key.rpartition(".")
                setattr(module.get_submodule(path), name, new)
            else:
                own[key].copy_(new)
    return IncompatibleKeys(missing, unexpected)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _mismatch(key: str, own: Tensor, new: Any) -> str | None:
    """What is wrong with ``new`` in the place of ``own``."""
    if not isinstance(new, Tensor):
        return (
            f'While copying the parameter named "{key}", expected leafgrad.Tensor or Tensor-like object from '
            f"checkpoint but received {type(new)}"
        )
    if new.shape != own.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {new.shape} from checkpoint, the shape in current "
            f"model is {own.shape}."
        )
    return None


def _converted(own: Tensor, new: Tensor, assign: bool) -> Tensor:
    if not assign:
        return new.detach().to(own.device, own.dtype)
    if isinstance(own, Parameter):
        return new if isinstance(new, Parameter) else Parameter(new, requires_grad=own.requires_grad)
    return new
