"""From nodes to a model as the package ``onnx`` has it, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import leafgrad
from leafgrad.compile.ir.sources import Captured
from leafgrad_onnx.errors import OnnxExporterError
from leafgrad_onnx.types import NUMBER
from leafgrad_onnx.writer import EmittedNode, Numbers, OnnxWriter, Subgraph

IR_VERSION = 10  # the newest that runtimes of the last years read
LIMIT = (1 << 31) - 1  # bytes of a file of this format


@dataclass
class Interface:
    """Inputs and outputs of the model.

    Attributes:
        inputs: name, dtype and shape of each; sizes or names of axes.
        outputs: name, the writer's name for it, dtype and shape of each.
    """

    inputs: list[tuple[str, str, list[Any]]]
    outputs: list[tuple[str, str, str, list[Any]]]


class Build:
    """A model of what a writer wrote."""

    def __init__(self, writer: OnnxWriter, interface: Interface, opset: int) -> None:
        self.writer, self.interface, self.opset = writer, interface, opset
        self.alias: dict[str, str] = {}

    def model(self) -> onnx.ModelProto:
        """The model, which ``onnx.checker`` passes."""
        w = self.writer
        constants = self.constants()
        nodes = self.results(merged(w.nodes, self.alias))
        read = {name for node in nodes for name in reads(node)}
        made = [
            helper.make_node(
                n.kind, [self.name(i) for i in n.inputs], n.outputs, f"{n.equation.name if n.equation else 'copy'}_{k}",
                str(w.line(n.equation)), **self.attributes(n),
            )
            for k, n in enumerate(nodes)
        ]  # fmt: skip
        made = [
            helper.make_node("Constant", [], [name], value=tensor(array, name))
            for name, array in constants.items()
            if name in read
        ] + made
        initializers = [tensor(array, name) for name, array in self.captured() if name in read]
        graph = helper.make_graph(
            made,
            "leafgrad",
            [info(name, dtype, shape) for name, dtype, shape in self.interface.inputs],
            [info(name, dtype, shape) for name, _, dtype, shape in self.interface.outputs],
            initializers,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION,
            producer_name="leafgrad", producer_version=version("leafgrad"),
        )  # fmt: skip
        if model.ByteSize() > LIMIT:
            raise OnnxExporterError(f"onnx.export: a model of {model.ByteSize()} bytes; a file holds at most {LIMIT}")
        try:
            onnx.checker.check_model(model, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise OnnxExporterError(f"onnx.export: what was written is no valid ONNX model: {error}") from error
        return model

    def name(self, name: str) -> str:
        return self.alias.get(name, name)

    def attributes(self, node: EmittedNode) -> dict[str, Any]:
        return {k: self.body(v) if isinstance(v, Subgraph) else v for k, v in node.attributes.items()}

    def body(self, body: Subgraph) -> onnx.GraphProto:
        """A graph within a node."""
        nodes = [
            helper.make_node(n.kind, [self.name(i) for i in n.inputs], n.outputs, **self.attributes(n))
            for n in body.nodes
        ]
        inputs, outputs = (
            [info(n, dtype, [None] * len(s)) for n, dtype, s in part] for part in (body.inputs, body.outputs)
        )
        return helper.make_graph(nodes, "step", inputs, outputs)

    # ---- values ---------------------------------------------------------------------------------------------------

    def captured(self) -> list[tuple[str, np.ndarray[Any, Any]]]:
        """The arrays of tensors from outside."""
        found = []
        for value, source in self.writer.graph.inputs.items():
            if isinstance(source, Captured) and self.writer.names[value] not in self.writer.arrays:
                found.append((self.writer.names[value], data_of(source.tensor)))
        return found

    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """Numbers and arrays, each once; equal ones become one."""
        found: dict[str, np.ndarray[Any, Any]] = {}
        known: dict[Any, str] = {}
        for numbers in self.writer.numbers:
            array = array_of(numbers)
            key = (array.dtype.name, array.shape, array.tobytes())
            if key in known:
                self.alias[numbers.name] = known[key]
            else:
                known[key] = numbers.name
                found[numbers.name] = array
        return found | self.writer.arrays

    def results(self, nodes: list[EmittedNode]) -> list[EmittedNode]:
        """The nodes with outputs under their names: copies of what is an input, a constant, or an output already."""
        made = {name for node in nodes for name in node.outputs}
        outputs = [(name, self.name(source)) for name, source, _, _ in self.interface.outputs]
        counts = [source for _, source in outputs]
        renamed = {s: name for name, s in outputs if s in made and counts.count(s) == 1}
        found = [
            EmittedNode(n.kind, tuple([renamed.get(self.name(i), self.name(i)) for i in n.inputs]),
                 tuple([renamed.get(o, o) for o in n.outputs]), n.attributes, n.equation)
            for n in nodes
        ]  # fmt: skip
        for node in found:
            for body in (v for v in node.attributes.values() if isinstance(v, Subgraph)):
                for inner in body.nodes:
                    inner.inputs = tuple([renamed.get(self.name(i), self.name(i)) for i in inner.inputs])
        for name, source in outputs:
            if source not in renamed:
                found.append(EmittedNode("Identity", (source,), (name,), {}, None))
        return found


def merged(nodes: Sequence[EmittedNode], alias: dict[str, str]) -> list[EmittedNode]:
    """Nodes without those that nothing needs to compute twice: equal ones become one, copies go."""
    known: dict[Any, EmittedNode] = {}
    found = []
    for node in nodes:
        inputs = tuple([alias.get(i, i) for i in node.inputs])
        if node.kind == "Identity":
            alias[node.outputs[0]] = inputs[0]
            continue
        plain = not any(isinstance(v, Subgraph) for v in node.attributes.values())
        key = (node.kind, inputs, repr(sorted(node.attributes.items())), len(node.outputs))
        if plain and key in known and node.kind not in DRAWS:
            alias.update(zip(node.outputs, known[key].outputs, strict=True))
            continue
        made = EmittedNode(node.kind, inputs, node.outputs, node.attributes, node.equation)
        known[key] = made
        found.append(made)
    return found


DRAWS = frozenset({"Bernoulli", "RandomUniformLike", "RandomNormalLike"})


def reads(node: EmittedNode) -> list[str]:
    """What a node reads, and the graphs within it."""
    inner = [n for v in node.attributes.values() if isinstance(v, Subgraph) for n in v.nodes]
    return [*node.inputs, *(name for n in inner for name in reads(n))]


def array_of(numbers: Numbers) -> np.ndarray[Any, Any]:
    """Numbers as an array of their dtype."""
    import ml_dtypes

    kind: Any = ml_dtypes.bfloat16 if numbers.dtype == "bfloat16" else numbers.dtype
    with np.errstate(over="ignore"):
        array = np.array(numbers.values, dtype="float64" if numbers.dtype.startswith(("f", "bf")) else None).astype(
            kind
        )
    return array.reshape(()) if numbers.scalar else array


def tensor(array: np.ndarray[Any, Any], name: str) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def data_of(x: leafgrad.Tensor) -> np.ndarray[Any, Any]:
    """The elements of a tensor: of complex ones real and imaginary part, along a last dimension."""
    array: np.ndarray[Any, Any] = (leafgrad.view_as_real(x) if x.dtype.is_complex else x).detach().cpu().numpy()
    return array


def info(name: str, dtype: str, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, NUMBER[dtype], shape)


def bytes_of(model: onnx.ModelProto) -> bytes:
    """The file, the same each time."""
    data: bytes = model.SerializeToString(deterministic=True)
    return data
