"""How operators of ONNX are run, by subject."""

from leafgrad_onnx.operators import arrange, control, elementwise, layers, losses, recurrent, reduce, spectra, windows
from leafgrad_onnx.operators.registry import OPERATORS as OPERATORS

__all__ = [
    "OPERATORS",
    "arrange",
    "control",
    "elementwise",
    "layers",
    "losses",
    "recurrent",
    "reduce",
    "spectra",
    "windows",
]
