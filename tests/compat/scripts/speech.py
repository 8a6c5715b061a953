"""Sequences to sequences: mel-like filters, CTC, and a transformer with masks."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from fixed import fill, show, wave


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=20):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 5, stride=2)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0, batch_first=True, norm_first=True),
            num_layers=1,
            enable_nested_tensor=False,
        )
        self.head = nn.Linear(4, 6)

    def forward(self, x):
        return F.log_softmax(self.head(self.encoder(F.gelu(self.conv(x)).transpose(1, 2))), dim=-1)


model = fill(Recognizer())
audio = wave(2, 1, 31)
targets, lengths = torch.tensor([[1, 2, 2], [3, 4, 0]]), torch.tensor([3, 2])
ctc = nn.CTCLoss(blank=5, zero_infinity=True)
optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
for _ in range(3):
    log_probs = model(audio).transpose(0, 1)
    loss = ctc(log_probs, targets, torch.full((2,), log_probs.size(0), dtype=torch.long), lengths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
best = log_probs.argmax(-1)[:, 0]
print([int(t) for t in torch.unique_consecutive(best) if t != 5][:3])

transformer = fill(nn.Transformer(4, 2, 1, 1, 8, dropout=0.0))
src, tgt = wave(5, 2, 4), wave(4, 2, 4, shift=1.0)
pos = PositionalEncoding(4)
mask = nn.Transformer.generate_square_subsequent_mask(4)
print(mask)
padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
out = transformer(pos(src), pos(tgt), tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
show("out", out)
attention = fill(nn.MultiheadAttention(4, 2, batch_first=True))
y, w = attention(src, src, src, need_weights=True, average_attn_weights=False)
show("weights", w)
window = 0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(8) / 8)
frames = audio[0, 0].unfold(0, 8, 4) * window
n = torch.arange(8.0)
basis = torch.stack([torch.cos(2 * math.pi * k * n / 8) for k in range(5)])
show("spectrum", (frames @ basis.T).pow(2).clamp(min=1e-10).log10())
