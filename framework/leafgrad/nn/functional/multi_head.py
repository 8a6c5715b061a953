"""Attention with several heads: projections, masks, and what is added to keys and values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from leafgrad.dtypes import bool_
from leafgrad.nn.functional.attention import scaled_dot_product_attention
from leafgrad.nn.functional.dropout import dropout
from leafgrad.nn.functional.linear import linear
from leafgrad.ops.messages import warn
from leafgrad.tensor.arguments import expect_fitting, expect_tensor
from leafgrad.tensor.joining import cat
from leafgrad.tensor.shapes import permuted, reshaped
from leafgrad.tensor.tensor import Tensor

__all__ = ["multi_head_attention_forward"]


def expect(condition: bool, message: str) -> None:
    """An AssertionError, PyTorch's type for the shapes of attention, unless ``condition`` holds."""
    if not condition:
        raise AssertionError(message)


# ---- masks --------------------------------------------------------------------------------------------------------


def check_mask(mask: Tensor | None, name: str) -> None:
    """An AssertionError unless a mask is None, bool or floating."""
    if mask is not None:
        dtype = expect_tensor(mask, name, "attention").dtype
        expect(dtype is bool_ or dtype.is_floating_point, f"only bool and floating types of {name} are supported")


def summand(mask: Tensor, dtype: Any) -> Tensor:
    """A mask that is true where a key takes no part, or a summand of the scores, as the latter."""
    if mask.dtype is not bool_:
        return mask
    return mask.new_zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)


def merged(mask: Tensor | None, padding: Tensor | None, dtype: Any) -> Tensor | None:
    """Both masks as ``scaled_dot_product_attention`` takes one. Bool ones are true where a key takes no part."""
    if mask is not None and padding is not None:
        if mask.dtype is not padding.dtype:
            warn("Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.")
        if mask.dtype is bool_ and padding.dtype is bool_:
            return ~(mask | padding)
        return summand(mask, dtype) + summand(padding, dtype)
    only = padding if mask is None else mask
    return ~only if only is not None and only.dtype is bool_ else only


def by_head(mask: Tensor, heads: int) -> Tensor:
    """A mask (batch * heads, L, S) as (batch, heads, L, S); one for all as it is."""
    return mask if mask.ndim == 2 else mask.unflatten(0, (-1, heads))


def with_keys(mask: Tensor, by: int) -> Tensor:
    """``mask`` with ``by`` further keys, which take part."""
    return mask if not by else cat([mask, mask.new_zeros((*mask.shape[:-1], by))], -1)


# ---- heads --------------------------------------------------------------------------------------------------------


class Heads:
    """The layout of the inputs: (batch, length, embed) if ``batch_first``, else (length, batch, embed)."""

    def __init__(self, embed: int, count: int, batch_first: bool) -> None:
        self.embed, self.count = embed, count
        self.length, self.batch = (1, 0) if batch_first else (0, 1)

    def split(self, x: Tensor) -> Tensor:
        """Projected inputs as (batch, heads, length, size)."""
        *lead, n = x._data.shape
        return permuted(reshaped(x, (*lead, self.count, n // self.count)), (self.batch, 2, self.length, 3))

    def join(self, x: Tensor) -> Tensor:
        """The way back."""
        joined = permuted(x, (0, 2, 1, 3) if self.batch == 0 else (2, 0, 1, 3))
        *lead, count, n = joined._data.shape
        return reshaped(joined, (*lead, count * n))


def project(
    inputs: tuple[Tensor, Tensor, Tensor], weights: Tensor | tuple[Tensor, ...], bias: Tensor | None
) -> tuple[Tensor, ...]:
    """Queries, keys and values, each by a product of its own: parts of one would have to be joined in the gradient."""
    _, key, value = inputs
    shapes = key._data.shape, value._data.shape
    if shapes[0][:2] != shapes[1][:2] or (not isinstance(weights, tuple) and shapes[0] != shapes[1]):
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    parts = weights if isinstance(weights, tuple) else weights.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple([linear(x, w, b) for x, w, b in zip(inputs, parts, biases, strict=True)])


def attend_heads(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, dropout_p: float, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """What the heads return, and their weights if they are needed. 3 (batch, heads, length, size)"""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, dropout_p, causal), None
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is bool_ else scores + mask
    weights = dropout(scores.softmax(-1), dropout_p)
    return weights @ v, weights


class Weights(NamedTuple):
    """The parameters of attention with heads."""

    inward: Tensor | tuple[Tensor, ...]  # (3 E, E), or one for each of query, key, value: (E, size)
    inward_bias: Tensor | None  # (3 E,)
    outward: Tensor  # (E, E)
    outward_bias: Tensor | None  # (E,)
    bias_k: Tensor | None = None  # a key and a value that are added for everyone, (1, 1, E)
    bias_v: Tensor | None = None
    zero: bool = False  # whether a key and a value of zeros are added, too
    static: tuple[Tensor | None, Tensor | None] = (None, None)  # used as keys and values, (batch * heads, S, size)


def multi_head(
    heads: Heads,
    inputs: tuple[Tensor, Tensor, Tensor],
    weights: Weights,
    padding: Tensor | None,
    mask: Tensor | None,
    causal: bool,
    dropout_p: float,
    need_weights: bool,
    average: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """The result in the layout of the inputs, and the weights (batch, L, S), or (batch, heads, L, S), if needed."""
    batched = check_dimensions(inputs, mask, padding)
    size = inputs[0]._data.shape[-1]
    expect(size == heads.embed, f"was expecting embedding dimension of {heads.embed}, but got {size}")
    if not isinstance(causal, bool):
        raise TypeError(f"is_causal: expected a bool, got {type(causal).__name__}")
    if causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if not batched:
        query, key, value = (x.unsqueeze(heads.batch) for x in inputs)
        inputs = (query, key, value)
        padding = None if padding is None else padding.unsqueeze(0)
    q, k, v = keys_and_values(heads, project(inputs, weights.inward, weights.inward_bias), weights)
    check_batches(heads, q, k, v, weights.static)
    static = weights.static[0]
    keys = inputs[1]._data.shape[heads.length] if static is None else static.shape[1]
    sizes = q._data.shape[0], heads.count, q._data.shape[2], keys
    check_sizes(mask, padding, *sizes)
    hint = causal and padding is None and not need_weights
    added = k._data.shape[2] - sizes[3]
    full = merged(
        None if hint or mask is None else with_keys(by_head(mask, heads.count), added),
        None if padding is None else with_keys(padding, added).unsqueeze(1).unsqueeze(1),
        q.dtype,
    )
    y, found = attend_heads(q, k, v, full, hint, dropout_p, need_weights)
    y = linear(heads.join(y), weights.outward, weights.outward_bias)
    if found is not None:
        found = found.mean(1) if average else found
        found = found if batched else found.squeeze(0)
    return y if batched else y.squeeze(heads.batch), found


def keys_and_values(heads: Heads, projected: tuple[Tensor, ...], weights: Weights) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as (batch, heads, length, size), with all that is added."""
    q, *rest = projected
    for i, (bias, static) in enumerate(zip((weights.bias_k, weights.bias_v), weights.static, strict=True)):
        if bias is not None:
            expect(static is None, "bias cannot be added to static key or value")
            if bias.shape[-1:] != (heads.embed,) or bias.numel() != heads.embed:
                name = ("bias_k", "bias_v")[i]
                raise RuntimeError(f"{name}: expected size [1, 1, {heads.embed}], got {list(bias.shape)}")
            shape = list(rest[i].shape)
            shape[heads.length] = 1
            rest[i] = cat([rest[i], bias.expand(shape)], heads.length)
    k, v = (
        heads.split(x) if static is None else static.unflatten(0, (-1, heads.count))
        for x, static in zip(rest, weights.static, strict=True)
    )
    if weights.zero:
        k, v = (cat([x, x.new_zeros((*x.shape[:2], 1, x.shape[3]))], 2) for x in (k, v))
    return heads.split(q), k, v


# ---- the function -------------------------------------------------------------------------------------------------


def check_dimensions(inputs: tuple[Tensor, Tensor, Tensor], mask: Tensor | None, padding: Tensor | None) -> bool:
    """Whether the inputs have a batch; AssertionErrors where dimensions or dtypes of masks do not fit."""
    for x, name in zip(inputs, ("query", "key", "value"), strict=True):
        expect_tensor(x, name, "multi_head_attention_forward")
    n, of_key, of_value = (len(x._data.shape) for x in inputs)
    expect(n in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    what = f"For {'batched' if n == 3 else 'unbatched'} ({n}-D) `query`, expected"
    expect(
        of_key == n == of_value,
        f"{what} `key` and `value` to be {n}-D but found {of_key}-D and {of_value}-D tensors respectively",
    )
    if padding is not None:
        check_mask(padding, "key_padding_mask")
        wanted, found = n - 1, padding.ndim
        expect(
            found == wanted, f"{what} `key_padding_mask` to be `None` or {wanted}-D but found {found}-D tensor instead"
        )
    if mask is not None:
        check_mask(mask, "attn_mask")
        found = mask.ndim
        expect(found in (2, 3), f"{what} `attn_mask` to be `None`, 2-D or 3-D but found {found}-D tensor instead")
    return n == 3


def check_batches(heads: Heads, q: Tensor, k: Tensor, v: Tensor, statics: tuple[Tensor | None, Tensor | None]) -> None:
    """Errors unless there are keys and values for each of the batch, (batch, heads, length, size)."""
    batch = q._data.shape[0]
    if batch == k._data.shape[0] == v._data.shape[0]:
        return
    for x, name, static in zip((k, v), ("key", "value"), statics, strict=True):
        if static is not None:
            wanted = batch * heads.count
            got = static.shape[0]
            expect(got == wanted, f"expecting static_{name[0]}.size(0) of {wanted}, but got {got}")
        elif x.shape[0] != batch:
            raise RuntimeError(
                f"expected query and {name} of one batch size, their dimension {heads.batch}, got {batch} in query and "
                f"{x.shape[0]} in {name}"
            )


def check_sizes(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, queries: int, keys: int) -> None:
    """Errors where the sizes of masks do not fit."""
    if mask is not None:
        shape = (queries, keys) if mask.ndim == 2 else (batch * heads, queries, keys)
        if tuple(mask.shape) != shape:
            raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {shape}.")
    if padding is not None:
        for dim, size in enumerate((batch, keys)):
            got = padding.shape[dim]
            if got != size:
                expect(False, f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {got}")


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What ``nn.MultiheadAttention`` computes; see there. (L, N, E), (S, N, E'), (S, N, E'') -> (L, N, E), (N, L, S)

    Args:
        embed_dim_to_check: E.
        in_proj_weight: (3 E, E); or, with ``use_separate_proj_weight``, ``q_proj_weight`` and the like, (E, size).
        in_proj_bias: (3 E,), or None.
        bias_k, bias_v: a key and a value that are added for everyone, (1, 1, E), or None.
        static_k, static_v: keys and values to use instead, (N * num_heads, S, E / num_heads), or None.
    """
    inward: Any = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    weights = Weights(
        inward, in_proj_bias, out_proj_weight, out_proj_bias, bias_k, bias_v, add_zero_attn, (static_k, static_v)
    )
    if out_proj_bias is not None:
        expect_fitting(out_proj_bias, (embed_dim_to_check,), "out_proj_bias", "multi_head_attention_forward")
    p = dropout_p if training else 0.0
    heads = Heads(embed_dim_to_check, num_heads, batch_first=False)
    inputs = (query, key, value)
    return multi_head(
        heads, inputs, weights, key_padding_mask, attn_mask, is_causal, p, need_weights, average_attn_weights
    )
