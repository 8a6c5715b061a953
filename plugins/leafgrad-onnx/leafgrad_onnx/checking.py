"""What ``leafgrad.testing.check_op`` asks of an op that says how it is written into ONNX files."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np

import leafgrad
from leafgrad.testing import assert_close
from leafgrad_onnx.errors import OnnxError
from leafgrad_onnx.exporter import export
from leafgrad_onnx.module import from_proto


def check(op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> None:
    """The ONNX file of a call computes what the op does, in float32 as most files are.

    Raises:
        AssertionError: it computes something else. unittest.SkipTest: it cannot be written, or not be read.
    """
    arrays = [leafgrad.from_numpy(narrow(a)) for a in args if isinstance(a, np.ndarray)]

    def call(*given: Any) -> Any:
        rest = iter(given)
        return op(*[next(rest) if isinstance(a, np.ndarray) else a for a in args], **params)

    try:
        module = from_proto(export(call, tuple(arrays)))
    except OnnxError as error:
        raise SkipTest(str(error)) from error
    with leafgrad.no_grad():
        wanted, got = call(*arrays), module(*arrays)
    try:
        assert_close(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"the ONNX file of it: {error}; mend its rule of lower('onnx', ...)") from error


def narrow(array: Any) -> Any:
    """The array, in float32 where it is of float64."""
    return array.astype("float32") if array.dtype == "float64" else array
