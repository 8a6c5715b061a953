"""Attention of queries to keys and values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from leafgrad import modes
from leafgrad.dtypes import bool_, float32, of, promote_types
from leafgrad.nn.functional.dropout import dropout
from leafgrad.nn.fused import Fused
from leafgrad.ops import attention as ops
from leafgrad.tensor.arguments import expect_fitting, expect_tensor
from leafgrad.tensor.creation import ones
from leafgrad.tensor.formats import preserved
from leafgrad.tensor.shapes import broadcast_shapes
from leafgrad.tensor.tensor import Tensor

__all__ = ["scaled_dot_product_attention"]

NAME = "scaled_dot_product_attention"


class AttentionKind(NamedTuple):
    """The numbers that attention depends on."""

    scale: float
    causal: bool
    dropout_p: float = 0.0


def attend(kind: AttentionKind, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention by its definition, with all scores at once."""
    scores = (q * kind.scale) @ k.transpose(-2, -1)
    if kind.causal:
        later = ones(scores.shape[-2:], dtype=bool_, device=q.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    if mask is None:
        return dropout(scores.softmax(-1), kind.dropout_p) @ v
    scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is bool_ else scores + mask
    nothing = (scores == -math.inf).all(-1, keepdim=True)  # where no key takes part, the result is 0
    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
    return dropout(weights, kind.dropout_p) @ v


class Attention(Fused):
    """``attend`` without dropout, of tensors with the same batch dimensions."""

    @staticmethod
    def definition(kind: AttentionKind, *args: Any) -> tuple[Tensor, ...]:
        return (attend(kind, *args),)

    @staticmethod
    def run(kind: AttentionKind, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        out, norm = ops.attention(q, k, v, mask, scale=kind.scale, causal=kind.causal)
        return (out,), (norm,)

    @staticmethod
    def gradients(kind: AttentionKind, wanted: tuple[bool, ...], saved: Any, grads: Any) -> tuple[Any, ...]:
        q, k, v, mask, out, norm = saved
        found = ops.attention_gradients(*grads, q, k, v, out, norm, mask, scale=kind.scale, causal=kind.causal)
        return *(d if want else None for d, want in zip(found, wanted, strict=False)), None


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T scale + attn_mask) value. (..., L, E), (..., S, E), (..., S, D) -> (..., L, D)

    Vaswani et al. (2017). The scores (..., L, S) are computed in blocks and never held as a whole, unless there is
    dropout, or the gradient of a mask or a derivative of higher order is asked for; compiled steps hold up to four
    million of them.

    Args:
        attn_mask: bool, true where a query sees a key; or a summand of the scores, float32 or of the dtype of
            ``query``. It broadcasts to (..., L, S). A query that sees no key gets zeros.
        dropout_p: the probability with which softmax's results are zeroed, at all times: pass 0 in evaluation.
        is_causal: query i sees the keys up to i, and there is no ``attn_mask``.
        scale: 1 / sqrt(E) if None.
        enable_gqa: key and value may have fewer heads (dimension -3) than query, each for several of query's.

    Raises:
        RuntimeError: shapes or dtypes do not go together, or ``attn_mask`` with ``is_causal``.
    """
    check_attention(query, key, value)
    if enable_gqa:
        key, value = grouped(query, key, "key"), grouped(query, value, "value")
    batch, of_keys, of_values = query._data.shape[:-2], key._data.shape[:-2], value._data.shape[:-2]
    fused = len(batch) == 2 and batch == of_keys == of_values and query._data.shape[-1] == value._data.shape[-1]
    if not batch == of_keys == of_values:
        batch = broadcast_shapes(batch, of_keys, of_values)
        query, key, value = (
            t if t.shape[:-2] == batch else t.expand(*batch, *t.shape[-2:]) for t in (query, key, value)
        )
    if attn_mask is not None:
        check_mask(attn_mask, is_causal, query, (*batch, query.shape[-2], key.shape[-2]))
        if attn_mask.dtype not in (bool_, query.dtype):
            wide = promote_types(attn_mask.dtype, query.dtype)
            q, k, v, mask = (t.to(wide) for t in (query, key, value, attn_mask))
            return scaled_dot_product_attention(q, k, v, mask, dropout_p, scale=scale).to(query.dtype)
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    size = query._data.shape[-1]
    kind = AttentionKind(scale if scale is not None else 1 / math.sqrt(size) if size else 0.0, is_causal, dropout_p)
    learned = attn_mask is not None and attn_mask.requires_grad and modes.is_grad_enabled()
    if dropout_p or learned:
        return attend(kind, query, key, value, attn_mask)
    (result,) = Attention.apply(kind, query, key, value, attn_mask)
    return preserved(result, query) if fused else result


def check_attention(query: Tensor, key: Tensor, value: Tensor) -> None:
    """A RuntimeError where queries, keys and values do not go together."""
    if not (isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)):
        for argument, t in zip(("query", "key", "value"), (query, key, value), strict=True):
            expect_tensor(t, argument, NAME)
    q, k, v = query._data.shape, key._data.shape, value._data.shape
    if len(q) < 2 or len(k) < 2 or len(v) < 2:
        dims = f"query.dim: {len(q)}, key.dim: {len(k)}, value.dim: {len(v)}"
        raise RuntimeError(f"Expected query, key, and value to all be at least 2 dimensional, but got {dims}")
    dtype = of(query._data)
    mixed = not modes.get() & modes.AUTOCAST and not dtype is of(key._data) is of(value._data)
    if mixed or not dtype.is_floating_point:
        got = f"query.dtype: {dtype}, key.dtype: {key.dtype}, value.dtype: {value.dtype}"
        raise RuntimeError(f"Expected query, key, and value to have the same floating dtype, but got {got}")
    if q[-1] != k[-1]:
        raise RuntimeError(f"{NAME}: expected query and key of the same size, got {q[-1]} and {k[-1]}")
    if k[-2] != v[-2]:
        raise RuntimeError(f"{NAME}: expected one value for each key, got {key.shape[-2]} and {value.shape[-2]}")


def check_mask(mask: Tensor, is_causal: bool, query: Tensor, shape: tuple[int, ...]) -> None:
    """A RuntimeError where ``mask`` is none for scores of ``shape``."""
    if is_causal:
        raise RuntimeError(f"{NAME}: Explicit attn_mask should not be set when is_causal=True")
    if expect_tensor(mask, "attn_mask", NAME).dtype not in (bool_, float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.dtype} and query.dtype: {query.dtype}; convert it with .to(dtype)"
        )
    expect_fitting(mask, shape, "attn_mask", NAME)


def grouped(query: Tensor, shared: Tensor, name: str) -> Tensor:
    """Keys or values with one head for each of ``query``'s."""
    if query.ndim < 3 or shared.ndim < 3:
        raise RuntimeError(f"enable_gqa: expected heads in dimension -3, got {name} of {shared.ndim} dimensions")
    heads, own = query.shape[-3], shared.shape[-3]
    if not own or heads % own:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query, got {own} in {name} and "
            f"{heads}"
        )
    return shared.repeat_interleave(heads // own, -3)
