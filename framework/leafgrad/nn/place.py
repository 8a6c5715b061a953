"""Which layer of a model an error comes from, told by a note on the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leafgrad.ops import messages
from leafgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    from leafgrad.nn.module import Module


class ModulePlace(str):
    """The note: a layer's path, seen from the outermost module that the error has passed so far."""

    layer: Module
    given: str


def name_layer(error: Exception, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note on an error that leaves ``module`` which layer it comes from: each module outside gives a longer path."""
    notes = getattr(error, "__notes__", [])
    at = next((i for i, note in enumerate(notes) if isinstance(note, ModulePlace)), None)
    if at is None:
        error.add_note(note_of(module, "", module, given(args, kwargs)))
        return
    note: ModulePlace = notes[at]
    path = next((path for path, found in module.named_modules() if found is note.layer), "")
    if path:
        notes[at] = note_of(note.layer, path, module, note.given)


def note_of(layer: Module, path: str, root: Module, given: str) -> ModulePlace:
    """``In encoder.layers.0.linear1 (Linear) of Model, given float32 (4, 3)``"""
    kind = type(layer).__name__
    note = ModulePlace(f"In {path} ({kind}) of {type(root).__name__}{given}" if path else f"In {kind}{given}")
    note.layer, note.given = layer, given
    return note


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The tensors that a layer was called with, in few words."""
    told = [messages.describe(a) for a in args if isinstance(a, Tensor)]
    told += [f"{name}: {messages.describe(a)}" for name, a in kwargs.items() if isinstance(a, Tensor)]
    return f", given {', '.join(told)}" if told else ""
