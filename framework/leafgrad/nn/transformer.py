"""Transformers, after Vaswani et al. (2017), "Attention is all you need"."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from leafgrad.nn import functional as F, init
from leafgrad.nn.attention import MultiheadAttention
from leafgrad.nn.containers import ModuleList
from leafgrad.nn.dropout import Dropout
from leafgrad.nn.functional.multi_head import check_mask
from leafgrad.nn.linear import Linear
from leafgrad.nn.module import Module
from leafgrad.nn.normalization import LayerNorm
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import full
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


class Layer(Module):
    """What the layers of encoder and decoder share: attention to itself, and two linear layers at the end."""

    attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        for name in self.attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **where)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        count = len(self.attentions) + 1
        for i in range(count):
            setattr(self, f"norm{i + 1}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in range(count):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        self.activation = named_activation(activation)

    def _block(self, x: Tensor, i: int, function: Callable[[Tensor], Tensor]) -> Tensor:
        """x plus the dropped-out result of block i, with the norm before it or after all."""
        norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + drop(function(norm(x)))
        result: Tensor = norm(x + drop(function(x)))
        return result

    def _feed(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result


def named_activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function that a layer's ``activation`` means."""
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


class TransformerEncoderLayer(Layer):
    """Attention to itself and two linear layers, each with a residual connection and a norm.

    Args:
        d_model: the size of the input and the result.
        nhead: the number of heads.
        dim_feedforward: the size between the two linear layers.
        dropout: the probability with which elements are zeroed in training, in four places.
        activation: between the linear layers: "relu", "gelu", or a function.
        layer_norm_eps: added to the variance in the norms.
        batch_first: (batch, length, d_model) instead of (length, batch, d_model).
        norm_first: norms come before the blocks instead of after them. Xiong et al. (2020).
        bias: False leaves the biases of linear layers and norms out.

    Raises:
        RuntimeError: an unknown ``activation``. AssertionError: ``nhead`` does not divide ``d_model``.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """(L, N, d_model), or without N -> the same

        Args:
            src_mask: (L, L) or (N * nhead, L, L), true where a query must not see a key, or a summand of the scores.
            src_key_padding_mask: (N, L), true where a key is to be left out, or a summand of the scores.
            is_causal: says that ``src_mask`` is causal, so that it need not be looked at.
        """
        check_mask(src_key_padding_mask, "src_key_padding_mask")
        check_mask(src_mask, "src_mask")

        def attend(x: Tensor) -> Tensor:
            result: Tensor = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]
            return result

        return self._block(self._block(src, 1, attend), 2, self._feed)


class TransformerDecoderLayer(Layer):
    """Attention to itself, attention to an encoder's result, and two linear layers, each with a residual connection.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: see
            ``TransformerEncoderLayer``.
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """(L, N, d_model), (S, N, d_model) -> (L, N, d_model); or all without N

        Args:
            memory: the result of the encoder.
            tgt_mask, memory_mask: (L, L) and (L, S), or for each head, as in ``TransformerEncoderLayer.forward``.
            tgt_key_padding_mask, memory_key_padding_mask: (N, L) and (N, S).
            tgt_is_causal, memory_is_causal: say that a mask is causal, so that it need not be looked at.
        """

        def attend(x: Tensor) -> Tensor:
            own = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)
            result: Tensor = own[0]
            return result

        def look(x: Tensor) -> Tensor:
            other = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )
            result: Tensor = other[0]
            return result

        return self._block(self._block(self._block(tgt, 1, attend), 2, look), 3, self._feed)


def copies(layer: Module, count: int) -> ModuleList:
    """``count`` modules like ``layer``, each with parameters of its own and the same values."""
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """Encoder layers one after another.

    Args:
        encoder_layer: a layer, of which each layer is a copy.
        num_layers: how many there are.
        norm: a module that is applied to the last result.
        enable_nested_tensor, mask_check: taken as PyTorch takes them, and without effect: there are no nested tensors.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """(L, N, d_model) -> the same; the masks are those of ``TransformerEncoderLayer.forward``."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, False if is_causal is None else is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Decoder layers one after another.

    Args:
        decoder_layer: a layer, of which each layer is a copy.
        num_layers: how many there are.
        norm: a module that is applied to the last result.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """(L, N, d_model), (S, N, d_model) -> (L, N, d_model); see ``TransformerDecoderLayer.forward``."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, False if tgt_is_causal is None else tgt_is_causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it returns. Matrices start Xavier uniform.

    Args:
        d_model: the size of the inputs and the result.
        nhead: the number of heads.
        num_encoder_layers, num_decoder_layers: how many layers there are.
        custom_encoder, custom_decoder: modules to use instead.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: see
            ``TransformerEncoderLayer``.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        common = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*common, **where), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*common, **where), num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """(S, N, d_model), (L, N, d_model) -> (L, N, d_model); or all without N

        The masks are those of ``TransformerEncoderLayer.forward`` and ``TransformerDecoderLayer.forward``.

        Raises:
            RuntimeError: ``src`` and ``tgt`` differ in batch, or in size from ``d_model``.
        """
        for t, name in ((src, "src"), (tgt, "tgt")):
            expect_tensor(t, name, "Transformer")
        batch = 0 if self.batch_first else 1
        if src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if not src.ndim or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        result: Tensor = self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask under which no query sees a later key: -inf above the diagonal, else 0. (sz, sz)"""
        return full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)
