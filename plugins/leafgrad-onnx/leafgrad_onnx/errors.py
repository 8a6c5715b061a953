"""What goes wrong with ONNX files."""

from __future__ import annotations


class OnnxError(RuntimeError):
    """An ONNX file cannot be written, or cannot be read."""


class OnnxExporterError(OnnxError):
    """A function cannot be written as an ONNX file; the message names the op and the line that asked for it."""


class OnnxLoadError(OnnxError):
    """A file is no ONNX model, or one that leafgrad does not run; the message names the node."""
