"""How convolutions become C: with frames in memory, where kernels are small."""

from __future__ import annotations

from collections.abc import Sequence

from leafgrad.compile.ir.graph import Equation
from leafgrad.lowering import window_patterns
from leafgrad.lowering.forms import Form
from leafgrad.lowering.sweeps import Line
from leafgrad_native import frames


class FramedConvolution(window_patterns.ConvolutionPattern):
    """A convolution, or one of its two derivatives, over a frame."""

    def fits(self, e: Equation) -> bool:
        return super().fits(e) and frames.fits(self.kind, e)

    def scratch(self, x: Form, outputs: int, sweeps: list[tuple[Line, ...]], chunk: bool) -> tuple[Form, ...]:
        return frames.scratch(x, outputs, sweeps, chunk)


def convolution(kind: str, windows: Sequence[Sequence[int]], groups: int) -> FramedConvolution:
    """As in ``leafgrad.lowering.window_patterns``."""
    return FramedConvolution(kind, windows, groups)
