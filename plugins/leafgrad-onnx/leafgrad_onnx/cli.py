"""``leafgrad onnx export|check|show``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from importlib import import_module
from typing import Any

import onnx

import leafgrad
from leafgrad_onnx import files
from leafgrad_onnx.errors import OnnxError
from leafgrad_onnx.exporter import OPSETS, export
from leafgrad_onnx.module import load
from leafgrad_onnx.types import NAME

PARSER = argparse.ArgumentParser(prog="leafgrad onnx", description="Write, check and show ONNX files.")
COMMANDS = PARSER.add_subparsers(dest="command", required=True, metavar="export|check|show")

EXPORT = COMMANDS.add_parser("export", help="write what a Module or a function computes")
EXPORT.add_argument("target", metavar="MODULE:NAME", help="a Module or a function, in a module that can be imported")
EXPORT.add_argument("file", metavar="FILE.onnx")
EXPORT.add_argument(
    "--input", action="append", default=[], metavar="[NAME=][DTYPE:]SIZES",
    help="an input, as x=float32:batch*5,3: an axis with a name may have another length than 5",
)  # fmt: skip
EXPORT.add_argument("--output", action="append", metavar="NAME", help="the name of an output")
EXPORT.add_argument("--opset", type=int, default=OPSETS.start, help=f"{OPSETS.start} to {OPSETS.stop - 1}")

CHECK = COMMANDS.add_parser("check", help="whether a file is in order, and leafgrad runs it")
CHECK.add_argument("file", metavar="FILE.onnx")

SHOW = COMMANDS.add_parser("show", help="what is in a file")
SHOW.add_argument("file", metavar="FILE.onnx")
SHOW.add_argument("-v", "--verbose", action="store_true", help="all nodes")


def main(argv: list[str]) -> int:
    """Run the command; returns the exit status: 0, 1 if a file is not in order, 2 for a wrong call."""
    options = PARSER.parse_args(argv)
    try:
        run = {"export": run_export, "check": run_check, "show": run_show}[options.command]
        return run(options)
    except (OnnxError, OSError) as error:
        print(f"leafgrad onnx: {error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        print(f"leafgrad onnx: {error}", file=sys.stderr)
        return 2


# ---- export -------------------------------------------------------------------------------------------------------


def run_export(options: argparse.Namespace) -> int:
    module, _, name = options.target.partition(":")
    if not name:
        raise ValueError(f"export: expected MODULE:NAME, as in mymodel:net, got {options.target!r}")
    folder = os.path.dirname(options.file) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"export: FILE.onnx: expected a folder that there is, got {folder}; make it first")
    sys.path.insert(0, os.getcwd())
    model: Any = import_module(module)
    for part in name.split("."):
        model = getattr(model, part)
    inputs = [described(text, i) for i, text in enumerate(options.input)]
    names = [name for name, _, _ in inputs]
    axes = {name: symbols for name, _, symbols in inputs if symbols}
    tensors = tuple(tensor for _, tensor, _ in inputs)
    try:
        made = export(
            model, tensors, options.file, input_names=names, output_names=options.output, opset_version=options.opset,
            dynamic_axes=axes,
        )  # fmt: skip
    except (RuntimeError, TypeError) as error:
        if isinstance(error, OnnxError):
            raise
        given = " ".join(options.input) or "none, which is given as --input x=float32:batch*5,3"
        raise ValueError(f"export: --input: expected what {options.target} takes, got {given}: {error}") from error
    print(f"{options.file}: {len(made.graph.node)} nodes, {len(made.graph.initializer)} initializers")
    return 0


def described(text: str, i: int) -> tuple[str, Any, dict[int, str]]:
    """Name, example and names of axes of an input that is given as text."""
    found = re.fullmatch(r"(?:(\w+)=)?(?:(\w+):)?([\w*]+(?:,[\w*]+)*|)", text)
    if found is None:
        raise ValueError(f"export: --input: expected e.g. x=float32:batch*5,3, got {text!r}")
    name, dtype, sizes = found[1] or f"input_{i}", found[2] or "float32", found[3]
    kinds = [*NAME.values(), "complex64", "complex128"]
    if dtype not in kinds:
        raise ValueError(f"export: --input: expected a dtype of {', '.join(kinds)}, got {dtype!r}")
    shape, symbols = [], {}
    for d, part in enumerate(filter(None, sizes.split(","))):
        symbol, star, size = part.rpartition("*")
        if not size.isdigit():
            raise ValueError(f"export: --input: expected sizes such as 5 or batch*5, got {part!r}")
        if star:
            symbols[d] = symbol
        shape.append(int(size))
    kind = getattr(leafgrad, dtype)
    make = leafgrad.randn if kind.is_differentiable else leafgrad.zeros
    return name, make(*shape, dtype=kind), symbols


# ---- check and show -----------------------------------------------------------------------------------------------


def read(path: str) -> onnx.ModelProto:
    """The model of a file, as it is."""
    with open(path, "rb") as file:
        return files.parse(file.read(), path)


def run_check(options: argparse.Namespace) -> int:
    module = load(options.file)  # its errors say what is wrong with sizes, before ONNX's checker takes memory
    try:
        onnx.checker.check_model(options.file)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        print(f"leafgrad onnx: {options.file}: onnx.checker: {error}", file=sys.stderr)
        return 1
    count = sum(p.numel() for p in module.parameters())
    print(f"{options.file}: in order; opset {module.opset_version}, {count:,} numbers in parameters")
    return 0


def run_show(options: argparse.Namespace) -> int:
    model = read(options.file)
    graph = model.graph
    maker = f"{model.producer_name} {model.producer_version}".strip() or "unknown"
    print(f"{options.file}: opset {files.opset_of(model)}, by {maker}")
    given = {t.name for t in graph.initializer}
    for title, infos in (("inputs", [i for i in graph.input if i.name not in given]), ("outputs", graph.output)):
        print(title)
        for info in infos:
            print(f"  {info.name}: {kind(info)}")
    print("initializers")
    for t in graph.initializer:
        print(f"  {t.name}: {NAME.get(t.data_type, t.data_type)}[{', '.join(map(str, t.dims))}]")
    print("nodes")
    if options.verbose:
        for n in graph.node:
            print(
                f"  {', '.join(n.output)} = {n.op_type}({', '.join(n.input)})"
                + (f"  # {n.doc_string}" if n.doc_string else "")
            )
    else:
        for name, count in Counter(n.op_type for n in graph.node).most_common():
            print(f"  {count} {name}")
    return 0


def kind(info: onnx.ValueInfoProto) -> str:
    """Dtype and shape of a value in a word."""
    tensor = info.type.tensor_type
    sizes = [d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in tensor.shape.dim]
    return f"{NAME.get(tensor.elem_type, tensor.elem_type)}[{', '.join(sizes)}]"
