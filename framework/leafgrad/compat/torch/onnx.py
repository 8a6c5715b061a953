"""``torch.onnx``: models are not exported."""

from __future__ import annotations

from leafgrad.compat.absent import refused

__all__ = ["export", "is_in_onnx_export"]

export = refused("torch.onnx.export", "save the state_dict() as safetensors, and export where PyTorch is installed")


def is_in_onnx_export() -> bool:
    """False."""
    return False
