"""A vision transformer, in the style of timm."""

import math
from functools import partial
from typing import Final, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from fixed import fill, show, wave
from torch.jit import Final as JitFinal
from torch.nn.init import trunc_normal_


def drop_path(x, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True):
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
    if keep > 0.0 and scale_by_keep:
        mask.div_(keep)
    return x * mask


class DropPath(nn.Module):
    def __init__(self, drop_prob: float = 0.0):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training)

    def extra_repr(self):
        return f"drop_prob={round(self.drop_prob, 3):0.3f}"


class LayerScale(nn.Module):
    def __init__(self, dim, init_values=1e-5, inplace=False):
        super().__init__()
        self.inplace = inplace
        self.gamma = nn.Parameter(init_values * torch.ones(dim))

    def forward(self, x):
        return x.mul_(self.gamma) if self.inplace else x * self.gamma


class Attention(nn.Module):
    fused_attn: JitFinal[bool]

    def __init__(self, dim, num_heads=2, qkv_bias=True, fused=True):
        super().__init__()
        assert dim % num_heads == 0
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.fused_attn = fused
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.q_norm, self.k_norm = nn.LayerNorm(self.head_dim), nn.Identity()
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(0.0)

    def forward(self, x: torch.Tensor, attn_mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.fused_attn and not torch.jit.is_scripting():
            x = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, dropout_p=0.0)
        else:
            attn = (q * self.scale) @ k.transpose(-2, -1)
            x = attn.softmax(dim=-1) @ v
        return self.proj_drop(self.proj(x.transpose(1, 2).reshape(B, N, C)))


class Mlp(nn.Module):
    def __init__(self, dim, hidden, act_layer=nn.GELU):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(dim, hidden), act_layer(), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, norm_layer, dp, fused):
        super().__init__()
        self.norm1, self.attn = norm_layer(dim), Attention(dim, fused=fused)
        self.ls1, self.drop_path1 = LayerScale(dim, 0.1), DropPath(dp) if dp > 0.0 else nn.Identity()
        self.norm2, self.mlp = norm_layer(dim), Mlp(dim, dim * 4)

    def forward(self, x):
        x = x + self.drop_path1(self.ls1(self.attn(self.norm1(x))))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, img_size=8, patch=4, dim=8, depth=2, num_classes=3, fused=True):
        super().__init__()
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, (img_size // patch) ** 2 + 1, dim) * 0.02)
        dpr = [x.item() for x in torch.linspace(0, 0.1, depth)]
        self.blocks = nn.Sequential(*[Block(dim, norm_layer, dpr[i], fused) for i in range(depth)])
        self.norm, self.head = norm_layer(dim), nn.Linear(dim, num_classes)
        trunc_normal_(self.pos_embed, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.zeros_(m.bias)

    @torch.jit.ignore
    def no_weight_decay(self):
        return {"pos_embed", "cls_token"}

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def param_groups(model, weight_decay, no_decay):
    decay, rest = [], []
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        (rest if p.ndim <= 1 or name.endswith(".bias") or name in no_decay else decay).append(p)
    return [{"params": rest, "weight_decay": 0.0}, {"params": decay, "weight_decay": weight_decay}]


model = fill(VisionTransformer())
plain = VisionTransformer(fused=False)
print(plain.load_state_dict(model.state_dict()))
x = wave(2, 3, 8, 8)
show("logits", model.eval()(x))
print(torch.allclose(model(x), plain.eval()(x), atol=1e-5))
optimizer = torch.optim.AdamW(param_groups(model, 0.05, model.no_weight_decay()), lr=1e-2)
print([len(g["params"]) for g in optimizer.param_groups])
for _ in range(3):
    loss = F.cross_entropy(model(x), torch.tensor([0, 2]), label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
show("loss", loss.item())
show("norm", norm)
print(model.blocks[1])
print(sum(p.numel() for p in model.parameters()), math.isfinite(loss.item()))
