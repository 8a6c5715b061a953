"""The settings of a run and the tags of its results, as TensorBoard's page of hyperparameters reads them."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from leafgrad.tensor.tensor import Tensor
from leafgrad.utils.protobuf import bytes_field, number_field, text_field

STRING, BOOL, NUMBER = 1, 2, 3
SUCCESS = 1


def hparams(
    settings: Mapping[str, Any], metrics: Mapping[str, Any], domains: Mapping[str, Sequence[Any]]
) -> dict[str, bytes]:
    """Tag -> content: what settings and results there are, the settings, and that the run has ended well."""
    for name, given in (("hparam_dict", settings), ("metric_dict", metrics)):
        if not isinstance(given, Mapping):
            raise TypeError(f"add_hparams: {name}: expected a dict, got {type(given).__name__}")
    if unknown := domains.keys() - settings.keys():
        raise ValueError(f"add_hparams: hparam_domain_discrete: {min(unknown)!r} is not in hparam_dict")
    values = {name: value_of(name, value) for name, value in settings.items()}
    infos = b"".join(bytes_field(4, info(name, kind, domains.get(name))) for name, (kind, _) in values.items())
    tags = b"".join(bytes_field(5, bytes_field(1, text_field(2, tag))) for tag in metrics)
    pairs = b"".join(bytes_field(1, text_field(1, name) + bytes_field(2, value)) for name, (_, value) in values.items())
    ended = number_field(1, SUCCESS) + double_field(2, time.time())
    parts = {"experiment": infos + tags, "session_start_info": pairs, "session_end_info": ended}
    return {f"_hparams_/{name}": bytes_field(i, part) for i, (name, part) in enumerate(parts.items(), 2)}


def value_of(name: str, value: Any) -> tuple[int, bytes]:
    """The kind of a setting, and its value."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool):
        return BOOL, number_field(4, value)
    if isinstance(value, str):
        return STRING, text_field(3, value)
    if isinstance(value, complex) or not hasattr(value, "__float__"):
        raise TypeError(f"add_hparams: {name!r}: expected a string, a bool or a number, got {type(value).__name__}")
    return NUMBER, double_field(2, float(value))


def info(name: str, kind: int, domain: Sequence[Any] | None) -> bytes:
    """A setting: its name, its kind, and the values that it may have."""
    known = text_field(1, name) + number_field(4, kind)
    if domain is None:
        return known
    return known + bytes_field(5, b"".join(bytes_field(1, value_of(name, value)[1]) for value in domain))


def double_field(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)
