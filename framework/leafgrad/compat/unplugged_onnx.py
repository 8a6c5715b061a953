"""What ``torch.onnx`` has without leafgrad-onnx: the answer to those who ask whether they are being exported."""

from leafgrad.compat.absent import refused

__all__ = ["export", "is_in_onnx_export"]

export = refused("torch.onnx.export", "pip install leafgrad-onnx, which does it")


def is_in_onnx_export() -> bool:
    """False: nothing exports."""
    return False
