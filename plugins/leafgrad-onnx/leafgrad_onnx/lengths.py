"""Exports whose inputs may have axes of other lengths: traced at several, tried at others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

import leafgrad
from leafgrad.compile.ir.graph import Graph
from leafgrad_onnx.build import Build, Interface
from leafgrad_onnx.dynamic import Unifier, varying_shape
from leafgrad_onnx.errors import OnnxExporterError, OnnxLoadError
from leafgrad_onnx.writer import OnnxWriter

if TYPE_CHECKING:
    from leafgrad_onnx.exporter import Exporter
    from leafgrad_onnx.module import OnnxModule

LENGTHS = ((1, 2), (3, 5), (7, 4), (2, 9), (10, 6), (5, 3))  # what is added to sizes, first and others by turns
FACTORS = (2, 3, 5, 4)  # by which they are multiplied where that does not go
NEEDED = 4  # programs that are compared
SMALL = 0.1  # of smaller numbers, so much less counts as rounding: what cancels leaves no more


class Lengths:
    """An export whose inputs have axes of other lengths.

    Args:
        symbols: by name of an input and axis.
        axes: what the user gave, with names for axes of outputs.
    """

    def __init__(self, exporter: Exporter, symbols: dict[tuple[str, int], str], axes: Mapping[str, Any]) -> None:
        self.exporter, self.symbols, self.axes = exporter, symbols, axes
        self.example: dict[str, int] = {}
        for (name, d), symbol in symbols.items():
            n = exporter.leaves[exporter.where[exporter.inputs.index(name)]].shape[d]
            if self.example.setdefault(symbol, n) != n:
                raise ValueError(
                    f"onnx.export: dynamic_axes: {symbol!r} is {self.example[symbol]} and {n} in the arguments; "
                    "axes of one name are equally long"
                )

    def sizes(self) -> Iterator[dict[str, int]]:
        """Lengths to try: that of the example, unless one is 1, which hides how it grows; then others."""
        if min(self.example.values()) > 1:
            yield self.example
        for row in LENGTHS:
            yield {s: max(n, 1) + row[i % 2] + 2 * (i // 2) for i, (s, n) in enumerate(self.example.items())}
        for factor in FACTORS:
            yield {s: max(n, 1) * (factor + i) for i, (s, n) in enumerate(self.example.items())}

    def resized(self, sizes: Mapping[str, int]) -> list[Any]:
        """The arguments at other lengths: their elements, repeated."""
        leaves = list(self.exporter.leaves)
        for (name, d), symbol in self.symbols.items():
            i = self.exporter.where[self.exporter.inputs.index(name)]
            n, wanted = leaves[i].shape[d], sizes[symbol]
            if n == 0:
                raise ValueError(f"onnx.export: dynamic_axes: {name!r} has no elements along axis {d}")
            if n != wanted:
                places = leafgrad.arange(wanted, device=leaves[i].device) % n
                leaves[i] = leaves[i].detach().index_select(d, places).requires_grad_(leaves[i].requires_grad)
        return leaves

    def model(self, opset: int) -> onnx.ModelProto:
        """The model, made of programs of several lengths and tried at others."""
        graphs: list[tuple[dict[str, int], Graph]] = []
        failed: Exception | None = None
        seen: list[dict[str, int]] = []
        waiting = self.sizes()
        for sizes in waiting:
            seen.append(sizes)
            try:
                graphs.append((sizes, self.exporter.trace(self.resized(sizes))))
            except Exception as error:  # whatever the user's function raises at a length that does not suit it
                failed = failed or error
            if len(graphs) == NEEDED:
                break
        if len(graphs) < NEEDED:
            raise OnnxExporterError(
                f"onnx.export: dynamic_axes: the function does not run at other lengths than {self.example}, "
                f"e.g. {seen[-1]}: {failed}; leave the axis out, or give axes that must be equally long one name"
            ) from failed
        writers = [self.exporter.written(graph) for _, graph in graphs]
        writer = Unifier(writers, self.exporter.inputs).run()
        interface = self.interface(writer, writers, [sizes for sizes, _ in graphs])
        made = Build(writer, interface, opset).model()
        tried = [dict.fromkeys(self.example, 1), self.example, *waiting][:4]
        tried = self.verify(made, tried)
        entry = made.metadata_props.add()
        entry.key, entry.value = "leafgrad.lengths", repr([*(sizes for sizes, _ in graphs), *tried])
        return made

    def interface(
        self, writer: OnnxWriter, writers: Sequence[OnnxWriter], sizes: Sequence[dict[str, int]]
    ) -> Interface:
        """The inputs and outputs, with names for axes."""
        rows = {symbol: tuple(row[symbol] for row in sizes) for symbol in self.example}
        shapes = []
        for i, name in enumerate(self.exporter.results):
            values = [w.graph.results[i] for w in writers]
            shape = varying_shape(values, rows, name)
            wanted = self.axes.get(name, {})
            for d, symbol in wanted.items() if isinstance(wanted, Mapping) else ():
                if isinstance(shape[d], str):
                    shape[d] = str(symbol)
            shapes.append(shape)
        inputs = self.exporter.described(self.symbols, self.exporter.leaves)
        return Interface(inputs, self.exporter.outputs_of(writer, shapes))

    def verify(self, made: onnx.ModelProto, lengths: Sequence[dict[str, int]]) -> list[dict[str, int]]:
        """Run the model at lengths that it was not made of, too, and compare: at which of them it could be.

        Raises:
            OnnxExporterError: its numbers are not those of the function.
        """
        if any(node.op_type in ("Bernoulli", "RandomUniformLike", "RandomNormalLike") for node in made.graph.node):
            return []
        from leafgrad_onnx.module import from_proto

        module, compared = from_proto(made), []
        for sizes in lengths:
            leaves = self.resized(sizes)
            try:
                expected = self.exporter.call(leaves)
            except Exception:  # whatever the user's function raises at a length that does not suit it
                continue
            compared.append(sizes)
            if (wrong := self.difference(module, leaves, expected)) is not None:
                raise OnnxExporterError(
                    f"onnx.export: dynamic_axes: at {sizes} {wrong}: it does not follow this length alike; leave the "
                    "axis out of dynamic_axes"
                )
        return compared

    def difference(self, module: OnnxModule, leaves: Sequence[Any], expected: Sequence[Any]) -> str | None:
        """How what the file gives differs from what the function returns, or None."""
        try:
            found = module(*[leaves[i].detach() for i in self.exporter.where])
        except OnnxLoadError as error:
            return f"the file does not run, as the function does ({error})"
        results = found if isinstance(found, tuple) else (found,)
        if len(results) != len(expected):
            return f"the function returns {len(expected)} tensors, and the file {len(results)}"
        names = zip(self.exporter.results, results, expected, strict=True)
        differs = next((name for name, a, b in names if not close(a.detach().numpy(), b.numpy())), None)
        return None if differs is None else f"the file's output {differs!r} is not what the function returns"


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two results are the same but for rounding."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b)) if a.dtype.kind in "biu" else True
    scale = float(np.max(np.abs(b), initial=0, where=np.isfinite(b)))
    tolerance = {2: 2e-2, 4: 1e-4, 8: 1e-9}[a.dtype.itemsize]
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * max(scale, SMALL), equal_nan=True))
