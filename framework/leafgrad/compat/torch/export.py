"""``torch.export``: models are not exported."""

from __future__ import annotations

from leafgrad.compat.absent import refused, refused_class

__all__ = ["Dim", "ExportedProgram", "export", "load", "save"]

REMEDY = "leafgrad.trace shows a function as a program, leafgrad.compile runs it as one"

Dim, ExportedProgram = refused_class("torch.export.Dim", REMEDY), refused_class("torch.export.ExportedProgram", REMEDY)
export, load, save = (refused(f"torch.export.{name}", REMEDY) for name in ("export", "load", "save"))
