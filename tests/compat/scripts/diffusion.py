"""Denoising diffusion: a schedule, time embeddings, training and sampling."""

import math

import torch
import torch.nn.functional as F
from fixed import fill, show, wave
from torch import nn


def exists(x):
    return x is not None


def extract(a, t, x_shape):
    b, *_ = t.shape
    return a.gather(-1, t).reshape(b, *((1,) * (len(x_shape) - 1)))


def cosine_beta_schedule(timesteps, s=0.008):
    t = torch.linspace(0, timesteps, timesteps + 1, dtype=torch.float64) / timesteps
    alphas = torch.cos((t + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas = alphas / alphas[0]
    return torch.clip(1 - alphas[1:] / alphas[:-1], 0, 0.999)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half = self.dim // 2
        emb = torch.exp(torch.arange(half, device=x.device) * -(math.log(10000) / (half - 1)))
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Net(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.time = nn.Sequential(SinusoidalPosEmb(dim), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim * 2))
        self.inp, self.out = nn.Conv1d(1, dim, 3, padding=1), nn.Conv1d(dim, 1, 3, padding=1)
        self.norm = nn.GroupNorm(2, dim)

    def forward(self, x, t):
        h = self.norm(self.inp(x))
        scale, shift = self.time(t).unsqueeze(-1).chunk(2, dim=1)
        return self.out(F.silu(h * (scale + 1) + shift))


class Diffusion(nn.Module):
    def __init__(self, model, timesteps=10):
        super().__init__()
        self.model, self.timesteps = model, timesteps
        betas = cosine_beta_schedule(timesteps)
        alphas = 1.0 - betas
        cumprod = torch.cumprod(alphas, dim=0)
        prev = F.pad(cumprod[:-1], (1, 0), value=1.0)

        def register_buffer(name, val):
            self.register_buffer(name, val.to(torch.float32))

        register_buffer("betas", betas)
        register_buffer("sqrt_cumprod", torch.sqrt(cumprod))
        register_buffer("sqrt_one_minus", torch.sqrt(1.0 - cumprod))
        register_buffer("sqrt_recip_alphas", torch.sqrt(1.0 / alphas))
        register_buffer("posterior_variance", betas * (1.0 - prev) / (1.0 - cumprod))
        snr = cumprod / (1 - cumprod)
        register_buffer("loss_weight", snr.clone().clamp_(max=5) / snr)

    def q_sample(self, x, t, noise):
        return extract(self.sqrt_cumprod, t, x.shape) * x + extract(self.sqrt_one_minus, t, x.shape) * noise

    def forward(self, x, t, noise):
        pred = self.model(self.q_sample(x, t, noise), t)
        loss = F.mse_loss(pred, noise, reduction="none").flatten(1).mean(1)
        return (loss * extract(self.loss_weight, t, loss.shape)).mean()

    @torch.no_grad()
    def sample(self, x):
        for i in reversed(range(self.timesteps)):
            t = torch.full((x.shape[0],), i, dtype=torch.long)
            mean = extract(self.sqrt_recip_alphas, t, x.shape) * (
                x - extract(self.betas, t, x.shape) * self.model(x, t) / extract(self.sqrt_one_minus, t, x.shape)
            )
            x = mean if i == 0 else mean + torch.sqrt(extract(self.posterior_variance, t, x.shape)) * wave(*x.shape)
        return x.clamp(-3, 3)


diffusion = fill(Diffusion(Net()))
optimizer = torch.optim.AdamW(diffusion.parameters(), lr=1e-2)
x = wave(3, 1, 8)
for step in range(4):
    loss = diffusion(x, torch.tensor([step, 3, 9]), wave(3, 1, 8, shift=float(step)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
show("sample", diffusion.sample(wave(2, 1, 8)))
show("betas", diffusion.betas)
print(sorted(n for n, _ in diffusion.named_buffers()), exists(None))
