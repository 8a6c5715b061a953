"""A normalizing flow of affine couplings, and a Gaussian mixture fitted by gradients."""

import torch
from fixed import fill, show, wave
from torch import nn
from torch.distributions import MultivariateNormal


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, 6), nn.LeakyReLU(), nn.Linear(6, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, 6), nn.LeakyReLU(), nn.Linear(6, 2))

    def forward(self, z):
        z_ = self.mask * z
        s, t = self.s(z_) * (1 - self.mask), self.t(z_) * (1 - self.mask)
        return z_ + (1 - self.mask) * (z * torch.exp(s) + t), s.sum(dim=1)

    def inverse(self, x):
        x_ = self.mask * x
        s, t = self.s(x_) * (1 - self.mask), self.t(x_) * (1 - self.mask)
        return (1 - self.mask) * (x - t) * torch.exp(-s) + x_, -s.sum(dim=1)


masks = torch.from_numpy(__import__("numpy").array([[0, 1], [1, 0]] * 2).astype("float32"))
flow = fill(nn.ModuleList([Coupling(m) for m in masks]))
prior = MultivariateNormal(torch.zeros(2), torch.eye(2))


def log_prob(x):
    total = x.new_zeros(x.shape[0])
    for layer in reversed(flow):
        x, ldj = layer.inverse(x)
        total += ldj
    return prior.log_prob(x) + total


x = wave(8, 2)
optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=1e-2)
for _ in range(4):
    loss = -log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    print(f"{loss.item():.4f}")
z = x
for layer in flow:
    z, _ = layer(z)
for layer in reversed(flow):
    z, _ = layer.inverse(z)
print(torch.allclose(z, x, atol=1e-5), prior.sample((3,)).shape)

logits, means = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.tensor([[0.5, 0.0], [-0.5, 0.1]]))
scales = nn.Parameter(torch.zeros(2, 2))
mix = torch.optim.SGD([{"params": [logits]}, {"params": [means, scales], "lr": 0.2}], lr=0.1)
for _ in range(5):
    component = torch.distributions.Normal(means, scales.exp()).log_prob(x[:, None, :]).sum(-1)
    nll = -torch.logsumexp(torch.log_softmax(logits, 0) + component, dim=1).mean()
    mix.zero_grad()
    nll.backward()
    mix.step()
show("nll", nll)
show("means", means)
