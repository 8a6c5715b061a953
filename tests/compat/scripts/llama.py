"""A decoder with rotary embeddings, grouped queries, RMSNorm, SwiGLU and a cache, in the style of LLaMA."""

import torch
import torch.nn.functional as F
from fixed import fill, show, wave
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)

    def extra_repr(self):
        return f"{tuple(self.weight.shape)}, eps={self.variance_epsilon}"


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def repeat_kv(x, n_rep):
    batch, heads, n, dim = x.shape
    return x[:, :, None, :, :].expand(batch, heads, n_rep, n, dim).reshape(batch, heads * n_rep, n, dim)


class Rotary(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, position_ids):
        freqs = (
            self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1) @ position_ids[:, None, :].float()
        ).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


class Cache:
    def __init__(self):
        self.k, self.v = [], []

    def update(self, k, v, i):
        if len(self.k) <= i:
            self.k.append(k)
            self.v.append(v)
        else:
            self.k[i] = torch.cat([self.k[i], k], dim=-2)
            self.v[i] = torch.cat([self.v[i], v], dim=-2)
        return self.k[i], self.v[i]

    def length(self):
        return self.k[0].shape[-2] if self.k else 0


class Layer(nn.Module):
    def __init__(self, i, dim=16, heads=4, kv_heads=2):
        super().__init__()
        self.i, self.heads, self.kv, self.dim = i, heads, kv_heads, dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(dim, kv_heads * self.dim, bias=False) for _ in range(2))
        self.o_proj = nn.Linear(dim, dim, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(dim, 20, bias=False),
            nn.Linear(dim, 20, bias=False),
            nn.Linear(20, dim),
        )
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)

    def attend(self, x, cos, sin, cache, mask):
        B, N, _ = x.shape
        q = self.q_proj(x).view(B, N, -1, self.dim).transpose(1, 2)
        k = self.k_proj(x).view(B, N, -1, self.dim).transpose(1, 2)
        v = self.v_proj(x).view(B, N, -1, self.dim).transpose(1, 2)
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        if cache is not None:
            k, v = cache.update(k, v, self.i)
        k, v = repeat_kv(k, self.heads // self.kv), repeat_kv(v, self.heads // self.kv)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(B, N, -1))

    def forward(self, x, *rest):
        x = x + self.attend(self.norm1(x), *rest)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Embedding(10, 16), nn.ModuleList(Layer(i) for i in range(2))
        self.norm, self.rotary = RMSNorm(16), Rotary(4)

    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length()
        n = ids.shape[1]
        position = torch.arange(past, past + n, device=ids.device).unsqueeze(0)
        mask = torch.full((n, past + n), torch.finfo(torch.float32).min)
        mask = torch.triu(mask, diagonal=past + 1)[None, None]
        x, (cos, sin) = self.embed(ids), self.rotary(position)
        for layer in self.layers:
            x = layer(x, cos, sin, cache, mask)
        return F.linear(self.norm(x), self.embed.weight)


model = fill(Model()).eval()
ids = torch.tensor([[1, 2, 3, 4, 5]])
with torch.inference_mode():
    full = model(ids)
    cache = Cache()
    parts = torch.cat([model(ids[:, :3], cache), model(ids[:, 3:4], cache), model(ids[:, 4:], cache)], dim=1)
show("logits", full)
print(torch.allclose(full, parts, atol=1e-5), cache.length(), full.is_inference())
model.half()
print(model.layers[0].norm1, next(model.parameters()).dtype)
show("half", RMSNorm(4).half()(wave(2, 4).half()))
