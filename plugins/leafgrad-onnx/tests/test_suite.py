"""The node tests of the package onnx: one operator each, with inputs and outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import leafgrad
from leafgrad_onnx.errors import OnnxError
from leafgrad_onnx.module import from_proto
from leafgrad_onnx.types import NAME

RANDOM = ("bernoulli", "training_dropout_default", "training_dropout", "dropout_random")


def cases() -> Iterator[tuple[str, Any, list[tuple[list[Any], list[Any]]], float, float]]:
    """Name, model, inputs with outputs, and tolerances of each node test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        found = load_model_tests(kind="node")
    for case in found:
        if case.data_sets is None:
            pytest.skip("this version of onnx has its node tests as files")
        sets = [tuple([[array(x) for x in side] for side in both]) for both in case.data_sets]
        yield case.name, case.model, sets, case.rtol, case.atol


def array(x: Any) -> Any:
    """What a test gives, as an array."""
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def supported(model: Any) -> bool:
    """Whether all inputs and outputs, and what is within, are tensors of dtypes that leafgrad has."""
    infos = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    if not all(i.type.HasField("tensor_type") and i.type.tensor_type.elem_type in NAME for i in infos):
        return False
    if any(n.domain not in ("", "ai.onnx") for n in model.graph.node):
        return False
    return all(a.i in NAME for n in model.graph.node for a in n.attribute if n.op_type == "Cast" and a.name == "to")


def outcome(model: Any, sets: Any, rtol: float, atol: float) -> str:
    """What becomes of a test: "" if it passes, else why not."""
    try:
        module = from_proto(model)
        for inputs, outputs in sets:
            found = module(*[leafgrad.from_numpy(np.array(x)) for x in inputs])
            results = found if isinstance(found, tuple) else (found,)
            if len(results) != len(outputs):
                return f"WRONG: {len(results)} outputs for {len(outputs)}"
            for got, want in zip(results, outputs, strict=True):
                array = got.detach().numpy()
                if array.shape != want.shape or array.dtype != want.dtype:
                    return f"WRONG: {array.dtype} {array.shape} for {want.dtype} {want.shape}"
                if any(word in model.graph.name for word in RANDOM):
                    continue
                if not np.allclose(
                    array.astype("float64"),
                    want.astype("float64"),
                    rtol=2e-2 if "bf16" in model.graph.name or "BFLOAT16" in model.graph.name else max(rtol, 1e-3),
                    atol=max(atol, 1e-7),
                    equal_nan=True,
                ):
                    return f"WRONG: off by {np.max(np.abs(array.astype('float64') - want.astype('float64')))}"
    except OnnxError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_most_node_tests_of_onnx_pass():
    """Of those of dtypes that leafgrad has; the others say which operator it is, and none gives another number."""
    passed, failed, left = 0, {}, 0
    for name, model, sets, rtol, atol in cases():
        if not supported(model):
            left += 1
            continue
        why = outcome(model, sets, rtol, atol)
        if why:
            failed[name] = why
        else:
            passed += 1
    count = passed + len(failed)
    print(f"\n{passed} of {count} node tests pass, {passed / count:.1%}; {left} are of other dtypes")
    assert passed / count > 0.9
    assert not [why for why in failed.values() if why.startswith("WRONG")]
    assert all("no operator" in why or "dtype" in why or "Scan" in why for why in failed.values()), failed
