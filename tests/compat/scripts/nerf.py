"""Rays, positional encodings and volume rendering, in the style of NeRF."""

import torch
import torch.nn.functional as F
from fixed import fill, show, wave
from torch import nn


def positional_encoding(x, n=3):
    out = [x]
    for i in range(n):
        for fn in (torch.sin, torch.cos):
            out.append(fn(2.0**i * x))
    return torch.cat(out, dim=-1)


def get_rays(h, w, focal, c2w):
    i, j = torch.meshgrid(torch.linspace(0, w - 1, w), torch.linspace(0, h - 1, h), indexing="xy")
    dirs = torch.stack([(i - w * 0.5) / focal, -(j - h * 0.5) / focal, -torch.ones_like(i)], -1)
    rays_d = torch.sum(dirs[..., None, :] * c2w[:3, :3], -1)
    return c2w[:3, -1].expand(rays_d.shape), rays_d


def cumprod_exclusive(t):
    c = torch.cumprod(t, -1)
    c = torch.roll(c, 1, -1)
    c[..., 0] = 1.0
    return c


def sample_pdf(bins, weights, n):
    weights = weights + 1e-5
    pdf = weights / torch.sum(weights, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    u = torch.linspace(0.0, 1.0, steps=n).expand(list(cdf.shape[:-1]) + [n]).contiguous()
    inds = torch.searchsorted(cdf, u, right=True)
    below, above = (
        torch.max(torch.zeros_like(inds - 1), inds - 1),
        torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds),
    )
    inds_g = torch.stack([below, above], -1)
    shape = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
    cdf_g = torch.gather(cdf.unsqueeze(1).expand(shape), 2, inds_g)
    bins_g = torch.gather(bins.unsqueeze(1).expand(shape), 2, inds_g)
    denom = cdf_g[..., 1] - cdf_g[..., 0]
    denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
    return bins_g[..., 0] + (u - cdf_g[..., 0]) / denom * (bins_g[..., 1] - bins_g[..., 0])


class NeRF(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2, self.layer3 = nn.Linear(21, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


def render(model, rays_o, rays_d, n=6):
    z = torch.linspace(1.0, 3.0, n).to(rays_o)
    pts = rays_o[..., None, :] + rays_d[..., None, :] * z[..., :, None]
    field = model(positional_encoding(pts.reshape(-1, 3))).reshape(pts.shape[:-1] + (4,))
    sigma, rgb = F.relu(field[..., 3]), torch.sigmoid(field[..., :3])
    one_e_10 = torch.tensor([1e10]).expand(z[..., :1].shape)
    dists = torch.cat((z[..., 1:] - z[..., :-1], one_e_10), dim=-1)
    alpha = 1.0 - torch.exp(-sigma * dists)
    weights = alpha * cumprod_exclusive(1.0 - alpha + 1e-10)
    return (weights[..., None] * rgb).sum(dim=-2), (weights * z).sum(dim=-1), weights


model = fill(NeRF())
rays_o, rays_d = get_rays(4, 5, 3.0, torch.eye(4))
target = (wave(4, 5, 3) + 1) / 2
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    rgb, depth, weights = render(model, rays_o, rays_d)
    loss = F.mse_loss(rgb, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f} {-10.0 * torch.log10(loss).item():.2f}")
show("rgb", rgb)
show("depth", depth)
show("fine", sample_pdf(torch.linspace(1, 3, 6).expand(4, 6), torch.arange(20.0).reshape(4, 5), 5))
show("jacobian", torch.autograd.functional.jacobian(lambda o: render(model, o, rays_d[0])[1], rays_o[0].contiguous()))
