"""Affine maps, and look-ups in tables of vectors."""

from __future__ import annotations

from leafgrad.dtypes import int64
from leafgrad.ops import matmul as ops
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import arange
from leafgrad.tensor.tensor import Tensor

__all__ = ["bilinear", "embedding", "linear", "one_hot"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input weight^T + bias. (..., in), (out, in), (out,) -> (..., out)"""
    result: Tensor = ops.linear(input, weight, bias)
    return result


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 weight[k] input2^T + bias[k] for each k. (..., n), (..., m), (out, n, m), (out,) -> (..., out)"""
    product = ((input1.unsqueeze(-2).unsqueeze(-2) @ weight).squeeze(-2) * input2.unsqueeze(-2)).sum(-1)
    return product if bias is None else product + bias


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of ``weight`` that ``input`` names. (...) integer, (rows, dim) -> (..., dim)

    Args:
        padding_idx: a row that gets no gradient; negative counts from the end.

    Raises:
        RuntimeError: ``input`` is not an integer tensor. IndexError: an index is outside the table.
    """
    expect_tensor(input, "input", "embedding")
    if input.dtype.category != 1:
        raise RuntimeError(f"embedding: input: expected an integer tensor of row numbers, got {input.dtype}")
    rows: Tensor = weight[input]
    if padding_idx is not None:
        padding = (input == padding_idx % weight.shape[0]).unsqueeze(-1)
        rows = where(padding, rows.detach(), rows)
    return rows


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class that each element names, else 0. (...) int64 -> (..., num_classes) int64

    Args:
        num_classes: one more than the greatest class, if -1 (which reads the values from the device).
    """
    if tensor.dtype is not int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type int64, got {tensor.dtype}")
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    return (tensor.unsqueeze(-1) == arange(num_classes, device=tensor.device)).to(int64)
