"""The ONNX forms of leafgrad's own ops, by ``op.lower("onnx", rule)``. Elementwise ops have theirs from their C."""

from leafgrad_onnx.forms import choose, elementwise, products, recurrent, reduce, shape, windows

__all__ = ["choose", "elementwise", "products", "recurrent", "reduce", "shape", "windows"]
