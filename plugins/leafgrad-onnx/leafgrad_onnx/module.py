"""``leafgrad.onnx.load``: an ONNX file as a Module that runs, trains and compiles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

import leafgrad
from leafgrad import nn
from leafgrad.errors import TraceError
from leafgrad_onnx import files
from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.host import folded
from leafgrad_onnx.operators import OPERATORS
from leafgrad_onnx.operators.registry import Operator, tensor_of

FLOATS = ("float16", "float32", "float64", "bfloat16")


def load(f: str | os.PathLike[str]) -> OnnxModule:
    """The model of an ONNX file.

    Initializers of floats become Parameters, under their names; the others, and what the file calls constants, do not
    train. The Module takes a tensor for each input of the file, in order or by name, and returns the output, or a tuple
    of all outputs.

    Raises:
        OnnxLoadError: the file is no ONNX model, or one that leafgrad does not run: a newer opset, an unknown operator
            (all are named), a dtype that leafgrad lacks, data outside of the file's folder, or sizes that its data do
            not fill.
        OSError: the file cannot be read.
    """
    path = os.fspath(f)
    size = os.path.getsize(path)
    if size >= 1 << 31:
        raise OnnxLoadError(f"onnx.load: {path} has {size:,} bytes, and an ONNX file has less than {1 << 31:,}")
    with open(path, "rb") as file:
        data = file.read()
    return from_proto(files.parse(data, path), os.path.dirname(os.path.abspath(path)))


def from_proto(model: onnx.ModelProto, folder: str | None = None) -> OnnxModule:
    """The same of a model in memory; ``folder`` is where data may lie that the file itself has not."""
    opset = files.opset_of(model)
    model = inlined(model)
    for graph in files.graphs_of(model.graph):
        if graph.sparse_initializer:
            raise OnnxLoadError("onnx.load: sparse initializers, which leafgrad has not")
    unknown = sorted(
        {
            n.op_type if n.domain in ("", "ai.onnx") else f"{n.domain}.{n.op_type}"
            for g in files.graphs_of(model.graph)
            for n in g.node
        }
        - OPERATORS.keys()
    )
    if unknown:
        raise OnnxLoadError(f"onnx.load: no operator {', '.join(unknown)}; leafgrad runs {len(OPERATORS)} of ONNX's")
    files.order(model.graph, ())
    return OnnxModule(OnnxGraph(model.graph, opset, folder))


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its functions, and operators that ONNX defines by others, in place."""
    from onnx import inliner

    wanted = {
        (n.domain, n.op_type)
        for g in files.graphs_of(model.graph)
        for n in g.node
        if n.op_type not in OPERATORS or n.domain not in ("", "ai.onnx")
    }
    if not wanted:
        return model
    model = complete(model, wanted)
    try:
        found: onnx.ModelProto = inliner.inline_selected_functions(model, sorted(wanted), inline_schema_functions=True)
    except Exception as error:  # whatever ONNX's own code says of a file that is not in order
        names = ", ".join(sorted(name for _, name in wanted))
        raise OnnxLoadError(f"onnx.load: no operator {names}, and no functions for them: {error}") from None
    return found


def complete(model: onnx.ModelProto, kinds: set[tuple[str, str]]) -> onnx.ModelProto:
    """A copy whose nodes of these kinds have all attributes that have a default, which functions read."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    version = files.opset_of(model)
    for graph in files.graphs_of(copy.graph):
        for node in graph.node:
            if (node.domain, node.op_type) not in kinds:
                continue
            try:
                schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            except (onnx.defs.SchemaError, TypeError):  # none of ONNX's, or no text at all
                continue
            given = {a.name for a in node.attribute}
            node.attribute.extend(
                a.default_value for name, a in schema.attributes.items() if name not in given and a.default_value.type
            )
    return copy


class OnnxNode:
    """A node, ready to run."""

    def __init__(self, node: onnx.NodeProto, program: OnnxGraph) -> None:
        self.kind = node.op_type
        self.operator: Operator = OPERATORS[node.op_type]
        self.inputs = list(node.input)
        self.outputs = list(node.output)
        self.label = node.name or node.op_type
        self.attributes: dict[str, Any] = {}
        for attribute in node.attribute:
            if attribute.name not in self.operator.attributes:
                if attribute.name in IGNORED:
                    continue
                raise OnnxLoadError(f"onnx.load: {self.kind} has no attribute {attribute.name!r} that leafgrad knows")
            self.attributes[attribute.name] = program.attribute(attribute)
        self.fixed = dict(self.attributes)
        if self.operator.opset:
            self.fixed["opset"] = program.opset
        if self.operator.outputs:
            self.fixed["outputs"] = len(self.outputs)
        self.inner = [v for v in self.attributes.values() if isinstance(v, OnnxGraph)]


IGNORED = frozenset({"consumed_inputs", "is_test"})  # of opsets 1 to 6


class OnnxGraph:
    """A graph, ready to run.

    Attributes:
        inputs, outputs: names, in order; inputs are those without an initializer.
        arrays, constants: initializers, and what nodes say, by name.
        read_on_host: names that a node reads to know what to do.
    """

    def __init__(self, graph: onnx.GraphProto, opset: int, folder: str | None) -> None:
        self.opset, self.folder = opset, folder
        self.arrays = {t.name: files.array_of(t, folder) for t in graph.initializer}
        self.kinds = {i.name: kind_of(i) for i in graph.input}
        self.inputs = [i.name for i in graph.input if i.name not in self.arrays]
        self.outputs = [o.name for o in graph.output]
        self.steps = [OnnxNode(node, self) for node in graph.node]
        self.constants = {
            s.outputs[0]: np.asarray(s.operator.run(**s.fixed)) for s in self.steps if s.kind == "Constant"
        }
        self.steps = [s for s in self.steps if s.kind != "Constant"]
        self.last = self.last_reads()

    def attribute(self, proto: onnx.AttributeProto) -> Any:
        """The value of an attribute."""
        kinds = onnx.AttributeProto
        match proto.type:
            case kinds.TENSOR:
                return files.array_of(proto.t, self.folder)
            case kinds.GRAPH:
                return OnnxGraph(proto.g, self.opset, self.folder)
            case kinds.STRING:
                return proto.s.decode("utf-8", "replace")
            case kinds.FLOAT | kinds.INT | kinds.FLOATS | kinds.INTS:
                value = onnx.helper.get_attribute_value(proto)
                return value if isinstance(value, (int, float)) else list(value)
            case kinds.STRINGS:
                return [s.decode("utf-8", "replace") for s in proto.strings]
        raise OnnxLoadError(f"onnx.load: the attribute {proto.name!r} is of a type that leafgrad does not know")

    def last_reads(self) -> list[list[str]]:
        """For each step, the names that nothing reads after it."""
        seen = set(self.outputs)
        found = []
        for step in reversed(self.steps):
            names = {*step.inputs, *step.outputs, *(n for p in step.inner for n in p.reads())}
            found.append([n for n in names - seen if n])
            seen |= names
        return found[::-1]

    def reads(self) -> set[str]:
        """All names in the graph, and in those within it."""
        return {*self.outputs, *(n for s in self.steps for n in (*s.inputs, *(m for p in s.inner for m in p.reads())))}

    def on_host(self) -> set[str]:
        """Names of values that some node takes as a NumPy array."""
        found = set()
        for step in self.steps:
            found |= {n for i, n in enumerate(step.inputs) if step.operator.on_host(i)}
            for program in step.inner:
                found |= program.on_host()
        return found


class OnnxModule(nn.Module):
    """A graph of ONNX as a Module.

    Attributes:
        input_names, output_names: those of the file.
        opset_version: of the file.
    """

    def __init__(self, program: OnnxGraph) -> None:
        super().__init__()
        self.input_names, self.output_names = list(program.inputs), list(program.outputs)
        self.opset_version = program.opset
        self._program = program
        self._held: dict[str, Lazy] = {}
        self._paths: dict[str, tuple[Any, str]] = {}
        host = program.on_host()
        for name, array in program.arrays.items():
            if array.dtype.name in FLOATS and name not in host:
                self._own(name, nn.Parameter(tensor_of(array)))
            else:
                self._own(name, tensor_of(array))
                self._held[name] = Lazy(array, *self._paths[name])
        for name, array in program.constants.items():
            self._own(name, tensor_of(array), persistent=False)
            self._held[name] = Lazy(array, *self._paths[name])
        program.arrays = program.constants = {}

    def _own(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Keep a tensor under its name, whose dots are modules within modules, as in a ``state_dict``."""
        *path, last = name.split(".")
        module: Any = self
        for part in path:
            inner = module._modules.get(part)
            if inner is None:
                if not part or hasattr(module, part):
                    module, last = self, name.replace(".", "_")
                    break
                inner = nn.Module()
                module.add_module(part, inner)
            module = inner
        while not last or hasattr(module, last):
            last += "_"
        if isinstance(tensor, nn.Parameter):
            module.register_parameter(last, tensor)
        else:
            module.register_buffer(last, tensor, persistent=persistent)
        self._paths[name] = module, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs for these inputs; for several outputs a tuple.

        Raises:
            TypeError: other inputs than the file has. OnnxLoadError: a node cannot be run; the message names it.
        """
        if len(args) > len(self.input_names) or not kwargs.keys() <= set(self.input_names[len(args) :]):
            raise TypeError(f"expected the inputs {self.input_names}, got {len(args)} and {sorted(kwargs)}")
        env: dict[str, Any] = {"": None, **dict(zip(self.input_names, args, strict=False)), **kwargs}
        missing = [n for n in self.input_names if n not in env]
        if missing:
            raise TypeError(f"expected the inputs {self.input_names}; {', '.join(missing)} is missing")
        for name in self.input_names:
            check_input(name, env[name], *self._program.kinds[name])
        for name, (module, last) in self._paths.items():
            env[name] = self._held[name] if name in self._held else getattr(module, last)
        found = [as_tensor(v) for v in self.run(self._program, env)]
        return found[0] if len(found) == 1 else tuple(found)

    def run(self, program: OnnxGraph, env: dict[str, Any]) -> list[Any]:
        """The outputs of a graph, given the values that it reads."""
        for step, gone in zip(program.steps, program.last, strict=True):
            values = self.values(step, env)
            if len(values) < sum(map(bool, step.outputs)):
                raise OnnxLoadError(f"{step.label}: {step.kind} has {len(values)} outputs, not {len(step.outputs)}")
            for name, value in zip(step.outputs, values, strict=False):
                if name:
                    env[name] = value
            for name in gone:
                env.pop(name, None)
        return [env[name] for name in program.outputs]

    def values(self, step: OnnxNode, env: dict[str, Any]) -> Sequence[Any]:
        """What a node makes."""
        try:
            given = [env[name] for name in step.inputs]
            arrays = [v.array if isinstance(v, Lazy) else v for v in given]
            alone = bool(arrays) and all(isinstance(a, np.ndarray) for a in arrays)
            made = folded(step.kind, arrays, step.attributes) if alone else None
            if made is None:
                inputs = [
                    None if v is None else on_host(v, step.operator) if step.operator.on_host(i) else as_tensor(v)
                    for i, v in enumerate(given)
                ]
                fixed = step.fixed
                if step.inner:
                    fixed = {k: Inner(self, v, env) if isinstance(v, OnnxGraph) else v for k, v in fixed.items()}
                made = step.operator.run(*inputs, **fixed)
        except OnnxLoadError as error:
            raise OnnxLoadError(f"{step.label}: {error}") from None
        except (TraceError, MemoryError):
            raise
        except Exception as error:  # of leafgrad's own functions, for inputs that the operator does not take
            raise OnnxLoadError(f"{step.label}: {step.kind} failed: {type(error).__name__}: {error}") from error
        return made if isinstance(made, tuple) else (made,)

    def extra_repr(self) -> str:
        return f"inputs={self.input_names}, outputs={self.output_names}, nodes={len(self._program.steps)}"


class Lazy:
    """A constant of the file: an array of the host, or the tensor that a module has of it."""

    def __init__(self, array: np.ndarray[Any, Any], module: Any, name: str) -> None:
        self.array, self.module, self.name = array, module, name
        self.numbers: Any = array.reshape(-1).tolist() if array.ndim <= 1 else array

    @property
    def tensor(self) -> Any:
        return getattr(self.module, self.name)


class Inner:
    """A graph within a node, as a function of its inputs that sees the values around it."""

    def __init__(self, module: OnnxModule, program: OnnxGraph, env: dict[str, Any]) -> None:
        self.module, self.program, self.env = module, program, env
        self.outputs = program.outputs

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        names = self.program.inputs
        if len(given) > len(names):
            raise OnnxLoadError(f"a graph of {len(names)} inputs is given {len(given)}")
        env = {**self.env, **self.program.arrays, **self.program.constants, **dict(zip(names, given, strict=False))}
        return tuple(self.module.run(self.program, env))

    @staticmethod
    def host(value: Any) -> np.ndarray[Any, Any]:
        return np.array(value)

    @staticmethod
    def number(value: Any) -> Any:
        return as_array(value).reshape(-1)[0].item()

    @staticmethod
    def tensor(value: Any) -> Any:
        return as_tensor(value)


def on_host(value: Any, operator: Operator) -> Any:
    """What an operator takes as numbers: a constant's as a list, which a program may read and stay closed."""
    return value.numbers if isinstance(value, Lazy) and operator.host is not None else as_array(value)


def as_array(value: Any) -> Any:
    """A value on the host."""
    if isinstance(value, Lazy):
        return value.array
    return value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()


def as_tensor(value: Any) -> Any:
    """A value as a tensor."""
    if isinstance(value, Lazy):
        return value.tensor
    return tensor_of(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def kind_of(info: onnx.ValueInfoProto) -> tuple[str | None, list[int | None] | None]:
    """The dtype and the sizes that the file says of an input; None for what it does not say."""
    kind = info.type.tensor_type
    sizes = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    dtype = files.dtype_of(kind.elem_type, f"the input {info.name!r}") if kind.elem_type else None
    return dtype, sizes if kind.HasField("shape") else None


def check_input(name: str, given: Any, dtype: str | None, sizes: list[int | None] | None) -> None:
    """An error unless an input has the dtype and the sizes that the file says."""
    if not isinstance(given, leafgrad.Tensor):
        raise TypeError(f"input {name!r}: expected a tensor, got {type(given).__name__}")
    if dtype is not None and str(given.dtype).rpartition(".")[2] != dtype:
        raise TypeError(f"input {name!r}: expected {dtype}, got {given.dtype}; convert it with .to(dtype)")
    if sizes is not None:
        fits = len(sizes) == given.ndim and all(n is None or n == m for n, m in zip(sizes, given.shape, strict=True))
        if not fits:
            raise TypeError(f"input {name!r}: expected the shape {sizes} (None: any), got {list(given.shape)}")
