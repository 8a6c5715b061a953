"""Multi-head attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leafgrad.lazy import attach
from leafgrad.nn import init
from leafgrad.nn.functional.multi_head import Heads, Weights, expect, multi_head
from leafgrad.nn.linear import Linear
from leafgrad.nn.module import Module
from leafgrad.nn.parameter import Parameter
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear. It has a name of its own in PyTorch, and so in the reprs of models."""


class MultiheadAttention(Module):
    """Attention of queries to keys and values in several subspaces at once. Vaswani et al. (2017).

    Each head projects queries, keys and values to embed_dim / num_heads dimensions; a last layer takes the results
    of all heads side by side.

    Args:
        embed_dim: E, the size of queries and results.
        num_heads: how many heads there are; a divisor of ``embed_dim``.
        dropout: the probability with which weights are zeroed in training.
        bias: False leaves the biases of all projections out.
        add_bias_kv: learn a key and a value that are added for everyone.
        add_zero_attn: add a key and a value of zeros.
        kdim, vdim: sizes of keys and values; ``embed_dim`` if None.
        batch_first: input and output are (batch, length, ...) instead of (length, batch, ...).

    Attributes:
        in_proj_weight: (3 E, E); or, where a size is not E, q_proj_weight (E, E), k_proj_weight (E, kdim) and
            v_proj_weight (E, vdim). Xavier uniform at first.
        in_proj_bias: (3 E,), zeros at first, or None.
        bias_k, bias_v: (1, 1, E), Xavier normal at first, or None.
        out_proj: the last layer.

    Raises:
        ValueError: a size is not positive. AssertionError: ``num_heads`` does not divide ``embed_dim``.
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        expect(embed_dim % num_heads == 0, f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        same = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if same else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        where = {"device": device, "dtype": dtype}
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(empty(shape, **where)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **where)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result and, with ``need_weights``, the weights.

        Args:
            query, key, value: (L, N, E), (S, N, kdim), (S, N, vdim), or all without N.
            key_padding_mask: (N, S), true where a key is to be left out, or a summand of the scores.
            need_weights: without weights it takes less time, and much less memory.
            attn_mask: (L, S) or (N * heads, L, S), true where a query must not see a key, or a summand of the scores.
            average_attn_weights: give the mean of the heads' weights.
            is_causal: says that ``attn_mask`` is causal, so that it need not be looked at.

        Returns:
            (L, N, E), and None or the weights (N, L, S), or (N, heads, L, S) if not averaged.

        Raises:
            AssertionError, RuntimeError: shapes or dtypes do not go together.
        """
        batched = expect_tensor(query, "query", "MultiheadAttention").ndim == 3
        separate: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        weights = Weights(
            separate if self.in_proj_weight is None else self.in_proj_weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
        )
        return multi_head(
            Heads(self.embed_dim, self.num_heads, self.batch_first and batched),
            (query, key, value),
            weights,
            key_padding_mask,
            attn_mask,
            is_causal,
            self.dropout if self.training else 0.0,
            need_weights,
            average_attn_weights,
        )


if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
