"""Reading ONNX files, which may be anybody's: what they claim is checked before memory is taken for it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

from leafgrad_onnx.errors import OnnxLoadError
from leafgrad_onnx.types import NAME, NUMBER

NEWEST: Final = 28
DEPTH: Final = 16
FIELDS: Final = {
    1: "float_data", 2: "int32_data", 3: "int32_data", 5: "int32_data", 6: "int32_data", 7: "int64_data",
    9: "int32_data", 10: "int32_data", 11: "double_data", 16: "int32_data",
}  # fmt: skip
ITEMSIZE: Final = {n: 2 if name == "bfloat16" else np.dtype(name).itemsize for name, n in NUMBER.items()}


def parse(data: bytes, where: str) -> onnx.ModelProto:
    """The model that a file holds.

    Raises:
        OnnxLoadError: it is none.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # of protobuf, whichever implementation of it is there
        raise OnnxLoadError(f"onnx.load: {where} is no ONNX file: {error}") from None
    if not model.HasField("graph") or not model.graph.output:
        raise OnnxLoadError(f"onnx.load: {where} is no ONNX file: it has no graph with outputs")
    check_text(model, where)
    return model


def check_text(model: onnx.ModelProto, where: str) -> None:
    """An error unless all names are text."""
    for graph in graphs_of(model.graph):
        names: list[Any] = [v.name for part in (graph.input, graph.output, graph.initializer) for v in part]
        for n in graph.node:
            names += [n.op_type, n.domain, n.name, *n.input, *n.output, *(a.name for a in n.attribute)]
        names += [text for t in graph.initializer for e in t.external_data for text in (e.key, e.value)]
        if any(isinstance(name, bytes) for name in names):
            raise OnnxLoadError(f"onnx.load: {where} is no ONNX file: it has names that are not UTF-8")


def opset_of(model: onnx.ModelProto) -> int:
    """The opset of a model's operators.

    Raises:
        OnnxLoadError: a newer one than is known, or operators of other domains.
    """
    found = 1
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            found = entry.version
    if not 1 <= found <= NEWEST:
        raise OnnxLoadError(
            f"onnx.load: expected an opset of 1 to {NEWEST}, got {found}; export the model for an older one, or "
            "install a newer leafgrad-onnx"
        )
    return found


def graphs_of(graph: onnx.GraphProto, depth: int = 0) -> Iterator[onnx.GraphProto]:
    """A graph and those within its nodes."""
    if depth > DEPTH:
        raise OnnxLoadError(f"onnx.load: graphs within graphs, more than {DEPTH} deep")
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                yield from graphs_of(inner, depth + 1)


def order(graph: onnx.GraphProto, outside: Iterable[str]) -> None:
    """An error unless each node reads what is there before it."""
    known = {"", *outside, *(i.name for i in graph.input), *(t.name for t in graph.initializer)}
    for i, node in enumerate(graph.node):
        for name in node.input:
            if name not in known:
                raise OnnxLoadError(
                    f"onnx.load: node {i}, {node.op_type}, reads {name!r}, which nothing before it makes"
                )
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                order(inner, known)
        for name in node.output:
            if name and name in known:
                raise OnnxLoadError(f"onnx.load: node {i}, {node.op_type}, makes {name!r}, which exists already")
            known.add(name)
    for output in graph.output:
        if output.name not in known:
            raise OnnxLoadError(f"onnx.load: nothing makes the output {output.name!r}")


# ---- arrays ---------------------------------------------------------------------------------------------------------


def dtype_of(number: int, what: str) -> str:
    """The dtype that has this number, of ``what`` the file has; an error where leafgrad has none."""
    if number not in NAME:
        known = onnx.TensorProto.DataType.DESCRIPTOR.values_by_number
        kind = known[number].name if number in known else number
        raise OnnxLoadError(f"onnx.load: {what}: expected a dtype of {', '.join(NAME.values())}, got {kind}")
    return NAME[number]


def array_of(proto: onnx.TensorProto, folder: str | None) -> np.ndarray[Any, Any]:
    """The array of a tensor, whose claimed size must be that of its data.

    Raises:
        OnnxLoadError: a dtype that leafgrad lacks, a shape that its data do not fill, or data elsewhere.
    """
    name = f"the tensor {proto.name!r}"
    dtype_of(proto.data_type, name)
    if any(n < 0 for n in proto.dims) or len(proto.dims) > 64:
        raise OnnxLoadError(f"onnx.load: {name} has the shape {list(proto.dims)[:65]}")
    count, itemsize = math.prod(proto.dims), ITEMSIZE[proto.data_type]
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        held = external(proto, folder, count * itemsize)
        made = onnx.TensorProto()
        made.CopyFrom(proto)
        made.ClearField("external_data")
        made.data_location = onnx.TensorProto.DEFAULT
        made.raw_data = held
        proto = made
    elif proto.HasField("raw_data"):
        if len(proto.raw_data) != count * itemsize:
            raise OnnxLoadError(
                f"onnx.load: {name} of shape {list(proto.dims)} needs {count * itemsize:,} bytes, and has "
                f"{len(proto.raw_data):,}"
            )
    elif len(getattr(proto, FIELDS[proto.data_type])) != count:
        held_count = len(getattr(proto, FIELDS[proto.data_type]))
        raise OnnxLoadError(f"onnx.load: {name} of shape {list(proto.dims)} has {held_count:,} of {count:,} elements")
    try:
        return np.array(numpy_helper.to_array(proto), order="C")
    except (ValueError, TypeError, OverflowError) as error:
        raise OnnxLoadError(f"onnx.load: {name}: {error}") from None


def external(proto: onnx.TensorProto, folder: str | None, size: int) -> bytes:
    """The bytes of a tensor that lie in another file, which must be in the folder of the model."""
    entries = {e.key: e.value for e in proto.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise OnnxLoadError(
            f"onnx.load: the tensor {proto.name!r} lies in another file, {location!r}; load it by a path"
        )
    root = os.path.realpath(folder)
    plain = location and "\0" not in location and not os.path.isabs(location)
    path = os.path.realpath(os.path.join(root, location)) if plain else root
    if path == root or os.path.commonpath([root, path]) != root:
        raise OnnxLoadError(
            f"onnx.load: the tensor {proto.name!r} lies in {location!r}, outside of the folder of the model"
        )
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size))
    except ValueError:
        raise OnnxLoadError(f"onnx.load: the tensor {proto.name!r} has no place in {location!r}: {entries}") from None
    if not os.path.isfile(path):
        raise OnnxLoadError(f"onnx.load: there is no file {location!r}, in which the tensor {proto.name!r} lies")
    if offset < 0 or length != size or offset + length > os.path.getsize(path):
        raise OnnxLoadError(
            f"onnx.load: the tensor {proto.name!r} needs {size:,} bytes from {offset:,} on in {location!r}, which has "
            f"{os.path.getsize(path):,}, and the model says {length:,}"
        )
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)
