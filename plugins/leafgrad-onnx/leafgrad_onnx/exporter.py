"""``leafgrad.onnx.export``: a function or a Module, as ``leafgrad.trace`` records it, becomes an ONNX file."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

import onnx

import leafgrad
from leafgrad.batching.pytree import flatten, unflatten
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.lines import Line
from leafgrad.compile.ir.sources import Argument, Captured
from leafgrad.compile.passes.pairs import pairs
from leafgrad_onnx import forms as forms
from leafgrad_onnx.build import Build, Interface, bytes_of, data_of
from leafgrad_onnx.errors import OnnxExporterError
from leafgrad_onnx.lengths import Lengths
from leafgrad_onnx.writer import HERE, OnnxWriter

OPSETS = range(18, 24)
ANYWAY: dict[str, tuple[Any, ...]] = {
    "export_params": (True,), "keep_initializers_as_inputs": (False, None),
    **dict.fromkeys(("do_constant_folding", "optimize", "verify", "verbose", "dynamo"), (True, False, None)),
}  # fmt: skip


class TrainingMode(Enum):
    """Of modules, while they are written: as for inference, as they are, or as for training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def export(
    model: Callable[..., Any],
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    **options: Any,
) -> onnx.ModelProto:
    """Write what a call computes as an ONNX model.

    Everything that ``leafgrad.trace`` records goes into the file, derivatives too: of a function that calls
    ``autograd.grad``, the file computes the derivatives. Tensors that the function reaches from outside become
    initializers; a Module's have the names of its ``state_dict``. Numbers among the arguments are constants of the
    file. Complex tensors are, in the file, real ones with a last dimension of size 2, as of ``view_as_real``.

    With ``dynamic_axes`` the function is traced at four lengths, from which one graph is made; the file then is run at
    further ones, and what it gives is compared with what the function gives.

    Args:
        model: a Module, or any function of tensors.
        args: its arguments: a tuple, or one tensor. Of tensors dtype and shape matter.
        f: the file. It is replaced as a whole, or not at all. None: nothing is written.
        kwargs: arguments by name.
        input_names: names of the inputs, in the order of the tensors among the arguments.
        output_names: names of the outputs, in the order of the tensors among the results.
        opset_version: 18, which is the default, to 23.
        dynamic_axes: for inputs by name, which axes may have another length: ``{"x": {0: "batch"}}``. Axes of one name
            are always equally long. Names of outputs only name their axes.
        training: ``TrainingMode.EVAL`` writes a Module as for inference, whatever its mode.
        options: those of PyTorch's that ask for what is done anyway: ``export_params=True``,
            ``keep_initializers_as_inputs=False``, ``do_constant_folding``, ``optimize``, ``verify``, ``verbose`` and
            ``dynamo``.

    Returns:
        The model, as the package ``onnx`` has it.

    Raises:
        OnnxExporterError: an op without an ONNX form, or lengths that the graph does not follow; with op and line.
        TraceError: the function needs values.
    """
    check_options(options)
    opset = OPSETS.start if opset_version is None else opset_version
    check_names(input_names, output_names, opset)
    given = args if isinstance(args, tuple) else (args,)
    with in_mode(model, training), exporting():
        exporter = Exporter(model, given, dict(kwargs or {}), input_names, output_names)
        made = exporter.model(opset, dynamic_axes or {})
    if f is not None:
        save(made, f)
    return made


def check_options(options: Mapping[str, Any]) -> None:
    """An error unless options of PyTorch's ask for what is done anyway."""
    for name, value in options.items():
        if name not in ANYWAY:
            raise TypeError(f"onnx.export() got an unexpected keyword argument {name!r}")
        if value not in ANYWAY[name]:
            raise NotImplementedError(f"onnx.export: {name}={value!r}; here it is always {ANYWAY[name][0]!r}")


def check_names(inputs: Any, outputs: Any, opset: Any) -> None:
    """An error unless names are names, and the opset one that is written."""
    if opset not in OPSETS:
        raise OnnxExporterError(
            f"onnx.export: opset_version: expected {OPSETS.start} to {OPSETS.stop - 1}, got {opset!r}"
        )
    for what, names in (("input_names", inputs), ("output_names", outputs)):
        if names is None:
            continue
        if isinstance(names, str) or not all(isinstance(n, str) and n for n in names):
            raise TypeError(f"onnx.export: {what}: expected a list of names, got {names!r}")
    together = [*(inputs or ()), *(outputs or ())]
    if len(set(together)) != len(together):
        raise ValueError(f"onnx.export: expected different input_names and output_names, got {together}")


_exporting: ContextVar[bool] = ContextVar("_exporting", default=False)


def is_in_onnx_export() -> bool:
    """Whether a function is being exported."""
    return _exporting.get()


@contextmanager
def exporting() -> Iterator[None]:
    """Within it a function is being exported."""
    token = _exporting.set(True)
    try:
        yield
    finally:
        _exporting.reset(token)


@contextmanager
def in_mode(model: Any, training: TrainingMode) -> Iterator[None]:
    """Within it a Module is in a mode; afterwards each of its modules is as it was."""
    if training not in list(TrainingMode):
        raise TypeError(f"onnx.export: training: expected a TrainingMode, got {training!r}")
    if training is TrainingMode.PRESERVE or not isinstance(model, leafgrad.nn.Module):
        yield
        return
    before = [(m, m.training) for m in model.modules()]
    try:
        model.train(training is TrainingMode.TRAINING)
        yield
    finally:
        for module, mode in before:
            module.training = mode


class Exporter:
    """One export: the function, its arguments, and the names of the file."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        input_names: Sequence[str] | None,
        output_names: Sequence[str] | None,
    ) -> None:
        self.function = function
        self.asked = caller()
        leaves, self.structure = flatten((args, kwargs))
        self.where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, leafgrad.Tensor)]
        self.complex = {i for i in self.where if leaves[i].dtype.is_complex}
        self.leaves = [as_pairs(leaf) if i in self.complex else leaf for i, leaf in enumerate(leaves)]
        self.output_names = output_names
        self.outputs = 0
        state = function.state_dict(keep_vars=True) if isinstance(function, leafgrad.nn.Module) else {}
        self.saved = {id(t) for t in state.values()}
        self.known = {id(t): name for name, t in tensors_of(function)}
        self.graph = self.trace(self.leaves)
        self.inputs = self.named_inputs(input_names)
        if output_names is not None and len(output_names) != len(self.graph.results):
            raise ValueError(
                f"onnx.export: expected {len(self.graph.results)} output_names, as the function returns so many "
                f"tensors, got {list(output_names)}"
            )
        self.results = list(output_names or self.default_outputs(len(self.graph.results)))

    def default_outputs(self, count: int) -> Iterator[str]:
        for i in range(count):
            name = "output" if count == 1 else f"output_{i}"
            while name in self.inputs:
                name += "_"
            yield name

    def call(self, leaves: Sequence[Any]) -> list[Any]:
        """Copies of the tensors among the results of a call with other arguments, without their history.

        Of results in the memory of each other a trace would make that memory one more result. Complex ones are pairs
        of real ones, here as there.
        """
        given = [leafgrad.view_as_complex(leaf) if i in self.complex else leaf for i, leaf in enumerate(leaves)]
        args, kwargs = unflatten(self.structure, iter(given))
        found, _ = flatten(self.function(*args, **kwargs))
        tensors = [t.detach() for t in found if isinstance(t, leafgrad.Tensor)]
        tensors = [(leafgrad.view_as_real(t) if t.dtype.is_complex else t).clone() for t in tensors]
        if not tensors:
            raise OnnxExporterError("onnx.export: expected a function that returns tensors, got one that returns none")
        return tensors

    def trace(self, leaves: Sequence[Any]) -> Graph:
        """The program of a call."""
        tensors = [leaves[i] for i in self.where]

        def traced(*given: Any) -> list[Any]:
            changed = list(leaves)
            for i, tensor in zip(self.where, given, strict=True):
                changed[i] = tensor
            return self.call(changed)

        return pairs(leafgrad.trace(traced, *tensors))

    def named_inputs(self, names: Sequence[str] | None) -> list[str]:
        """A name for each tensor among the arguments."""
        if names is not None:
            if len(names) != len(self.where):
                raise ValueError(
                    f"onnx.export: expected {len(self.where)} input_names, one for each tensor among the arguments, "
                    f"got {list(names)}"
                )
            return list(names)
        taken = {*self.known.values(), *(self.output_names or ())}
        found = []
        for path in paths_of(self.function, self.structure, self.leaves, self.where):
            name = path
            while name in taken:
                name += "_"
            taken.add(name)
            found.append(name)
        return found

    # ---- one program --------------------------------------------------------------------------------------------

    def written(self, graph: Graph) -> OnnxWriter:
        """The nodes of a program."""
        names, constants = {}, {}
        taken = {*self.inputs, *self.results}
        for value, source in graph.inputs.items():
            if isinstance(source, Argument):
                names[value] = self.inputs[source.index]
            elif isinstance(source, Captured):
                name = self.known.get(id(source.tensor)) or graph.names.get(value) or "captured"
                while name in taken:
                    name += "_"
                names[value] = name
                taken.add(name)
                if self.is_constant(source.tensor):
                    constants[name] = data_of(source.tensor)
            else:
                raise OnnxExporterError("onnx.export: the function reads an array that belongs to no tensor")
        writer = OnnxWriter(graph, names, self.asked)
        writer.arrays.update(constants)
        return writer.run()

    def is_constant(self, tensor: Any) -> bool:
        """Whether a Module keeps a tensor that it does not save: what it reads, and nobody trains."""
        return isinstance(self.function, leafgrad.nn.Module) and not (tensor.requires_grad or id(tensor) in self.saved)

    def model(self, opset: int, axes: Mapping[str, Any]) -> onnx.ModelProto:
        """The whole."""
        dynamic = self.dynamic(axes)
        if not dynamic:
            writer = self.written(self.graph)
            shapes: list[Any] = [list(v.shape) for v in self.graph.results]
            interface = Interface(self.described({}, self.leaves), self.outputs_of(writer, shapes))
            return Build(writer, interface, opset).model()
        return Lengths(self, dynamic, axes).model(opset)

    def described(
        self, symbols: Mapping[tuple[str, int], str], leaves: Sequence[Any]
    ) -> list[tuple[str, str, list[Any]]]:
        """Name, dtype and shape of each input."""
        found = []
        for name, i in zip(self.inputs, self.where, strict=True):
            t = leaves[i]
            shape = [symbols.get((name, d), n) for d, n in enumerate(t.shape)]
            found.append((name, str(t.dtype).rpartition(".")[2], shape))
        return found

    def outputs_of(self, writer: OnnxWriter, shapes: Sequence[Any]) -> list[tuple[str, str, str, Any]]:
        """Name, the name that the writer has for it, dtype and shape of each output."""
        values = writer.graph.results
        return [(n, writer.names[v], v.dtype, s) for n, v, s in zip(self.results, values, shapes, strict=True)]

    def dynamic(self, axes: Mapping[str, Any]) -> dict[tuple[str, int], str]:
        """The symbol of each axis of an input that may have another length."""
        found: dict[tuple[str, int], str] = {}
        for name, wanted in axes.items():
            if name not in self.inputs and name not in self.results:
                raise ValueError(
                    f"onnx.export: dynamic_axes: no input or output {name!r}; there are {[*self.inputs, *self.results]}"
                )
            entries = wanted if isinstance(wanted, Mapping) else {d: f"{name}_dim_{d}" for d in wanted}
            if name not in self.inputs:
                continue
            i = self.where[self.inputs.index(name)]
            ndim = self.leaves[i].ndim - (i in self.complex)
            for d, symbol in entries.items():
                if not -ndim <= d < ndim:
                    raise ValueError(f"onnx.export: dynamic_axes: {name!r} has {ndim} axes, got axis {d}")
                found[name, d % ndim] = str(symbol)
        return found


def as_pairs(x: leafgrad.Tensor) -> leafgrad.Tensor:
    """A complex tensor as its real and imaginary parts, along a last dimension."""
    return leafgrad.view_as_real(x.detach()).requires_grad_(x.requires_grad)


def caller() -> Line:
    """The line outside of leafgrad that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == HERE:
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


def tensors_of(function: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers of a Module, by their names in its state_dict."""
    if isinstance(function, leafgrad.nn.Module):
        yield from function.named_parameters()
        yield from function.named_buffers()


def paths_of(function: Any, structure: Any, leaves: Sequence[Any], where: Sequence[int]) -> list[str]:
    """Names for the tensors among the arguments: those of the function's parameters, where each is one."""
    args, kwargs = unflatten(structure, iter(leaves))
    call = function.forward if isinstance(function, leafgrad.nn.Module) else function
    found: dict[int, str] = {}
    try:
        bound = inspect.signature(call).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {}
    for name, value in bound.items():
        several, _ = flatten(value)
        tensors = [t for t in several if isinstance(t, leafgrad.Tensor)]
        for k, t in enumerate(tensors):
            found.setdefault(id(t), name if isinstance(value, leafgrad.Tensor) else f"{name}_{k}")
    names: list[str] = []
    for k, i in enumerate(where):
        name = found.get(id(leaves[i]), f"input_{k}")
        names.append(name if name not in names else f"input_{k}")
    return names


def save(model: onnx.ModelProto, f: str | os.PathLike[str]) -> None:
    """Write a model beside the file, then put it in its place."""
    path = os.fspath(f)
    part = f"{path}.part{os.getpid()}"
    try:
        with open(part, "wb") as file:
            file.write(bytes_of(model))
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
