"""An encoder with a configuration, outputs that are dicts, and tied weights, in the style of Hugging Face."""

import math
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Optional

import torch
import torch.utils._pytree
from fixed import fill, show
from torch import nn


class ModelOutput(OrderedDict):
    def __init_subclass__(cls):
        torch.utils._pytree.register_pytree_node(
            cls, lambda out: (list(out.values()), list(out)), lambda values, keys: cls(**dict(zip(keys, values)))
        )

    def __post_init__(self):
        for f in fields(self):
            if getattr(self, f.name) is not None:
                self[f.name] = getattr(self, f.name)

    def to_tuple(self):
        return tuple(self.values())


@dataclass
class MaskedLMOutput(ModelOutput):
    loss: Optional[torch.FloatTensor] = None
    logits: Optional[torch.FloatTensor] = None
    hidden_states: Optional[tuple] = None


@dataclass
class Config:
    vocab_size: int = 11
    hidden_size: int = 8
    num_attention_heads: int = 2
    num_hidden_layers: int = 2
    max_position_embeddings: int = 6
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        ids = torch.arange(config.max_position_embeddings).expand((1, -1))
        self.register_buffer("position_ids", ids, persistent=False)

    def forward(self, input_ids):
        n = input_ids.size(1)
        return self.LayerNorm(self.word(input_ids) + self.position(self.position_ids[:, :n]))


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(config.hidden_size, config.hidden_size) for _ in range(3))

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, hidden, mask):
        q, k, v = (self.transpose_for_scores(f(hidden)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size) + mask
        context = torch.matmul(nn.functional.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return context.view(context.size()[:-2] + (self.heads * self.size,))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = SelfAttention(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size)

    def forward(self, x, mask):
        return self.norm(x + nn.functional.gelu(self.dense(self.attention(x, mask))))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layer = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.apply(self._init_weights)
        self.decoder.weight = self.embeddings.word.weight

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=self.config.initializer_range)
            if getattr(module, "padding_idx", None) is not None:
                module.weight.data[module.padding_idx].zero_()
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.bias.data.zero_()

    @property
    def dtype(self):
        return next(self.parameters()).dtype

    def get_extended_attention_mask(self, attention_mask):
        extended = attention_mask[:, None, None, :].to(dtype=self.dtype)
        return (1.0 - extended) * torch.finfo(self.dtype).min

    def forward(self, input_ids=None, attention_mask=None, labels=None, output_hidden_states=None, return_dict=True):
        x = self.embeddings(input_ids)
        mask = self.get_extended_attention_mask(attention_mask)
        states = (x,)
        for layer in self.layer:
            x = layer(x, mask)
            states += (x,)
        logits = self.decoder(x) + self.bias
        loss = None
        if labels is not None:
            loss = nn.CrossEntropyLoss()(logits.view(-1, self.config.vocab_size), labels.view(-1))
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=states if output_hidden_states else None)


model = fill(Model(Config()))
print(model.decoder.weight is model.embeddings.word.weight, len(list(model.parameters())))
ids = torch.tensor([[1, 5, 3, 2], [4, 9, 0, 0]], dtype=torch.long)
labels = torch.where(ids == 3, ids, torch.full_like(ids, -100))
out = model(ids, attention_mask=(ids != 0).long(), labels=labels, output_hidden_states=True)
print(list(out), len(out.hidden_states), type(out.to_tuple()).__name__)
show("loss", out["loss"])
show("logits", out.logits)
out.loss.backward()
show("grad", model.embeddings.word.weight.grad[3])
doubled = torch.utils._pytree.tree_map(lambda t: t * 2, out)
print(type(doubled).__name__, torch.equal(doubled.logits, out.logits * 2))
mask = torch.zeros(2, 4).masked_fill(ids == 0, float("-inf"))
print(mask)
print(sorted(k for k in model.state_dict() if "position" in k))
