"""Mixture of experts, vector quantization and sampling of tokens."""

import torch
import torch.nn.functional as F
from fixed import fill, show, wave
from torch import nn


class MoE(nn.Module):
    def __init__(self, dim=4, experts=4, k=2):
        super().__init__()
        self.gate, self.k = nn.Linear(dim, experts, bias=False), k
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 6), nn.ReLU(), nn.Linear(6, dim)) for _ in range(experts)
        )

    def forward(self, x):
        logits = self.gate(x)
        weights, chosen = torch.topk(F.softmax(logits, dim=1, dtype=torch.float), self.k, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            idx, top_x = torch.where(mask[i])
            if top_x.numel():
                out.index_add_(0, top_x, expert(x[top_x]) * weights[top_x, idx, None])
        density = mask.float().sum(1).mean(1)
        return out, (density * F.softmax(logits, 1).mean(0)).sum() * len(self.experts)


class VectorQuantizer(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.embedding = nn.Embedding(n, dim)

    def forward(self, z):
        d = z.pow(2).sum(1, keepdim=True) + self.embedding.weight.pow(2).sum(1) - 2 * z @ self.embedding.weight.t()
        indices = torch.argmin(d, dim=1)
        q = self.embedding(indices)
        loss = F.mse_loss(q.detach(), z) * 0.25 + F.mse_loss(q, z.detach())
        return z + (q - z).detach(), loss, indices


def top_k_top_p_filtering(logits, top_k=0, top_p=1.0, filter_value=-float("Inf")):
    if top_k > 0:
        logits = logits.masked_fill(logits < torch.topk(logits, top_k)[0][..., -1, None], filter_value)
    if top_p < 1.0:
        sorted_logits, sorted_indices = torch.sort(logits, descending=True)
        remove = torch.cumsum(F.softmax(sorted_logits, dim=-1), dim=-1) > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = 0
        logits = logits.masked_fill(remove.scatter(1, sorted_indices, remove), filter_value)
    return logits


moe, x = fill(MoE()), wave(7, 4)
opt = torch.optim.Adagrad(moe.parameters(), lr=0.1)
for _ in range(3):
    out, aux = moe(x)
    loss = F.mse_loss(out, x.flip(0)) + 0.01 * aux
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.4f} {aux.item():.4f}")
show("out", out)
vq = fill(VectorQuantizer(5, 4))
z = x.clone().requires_grad_()
q, loss, indices = vq(z)
(q.sum() + loss).backward()
print(indices, vq.embedding.weight.grad.abs().sum(1) > 0)
show("z", z.grad)
logits = wave(2, 8) * 3
filtered = top_k_top_p_filtering(logits, top_k=5, top_p=0.8)
print(filtered.isinf().sum(1))
print(torch.multinomial(F.softmax(filtered, -1), 1).shape, F.gumbel_softmax(logits, hard=True).sum(-1))
show("entropy", torch.distributions.Categorical(logits=logits).entropy())
hist = torch.histc(logits, bins=4, min=-3, max=3)
print(hist, torch.bucketize(torch.tensor([0.1, 2.0]), torch.linspace(-3, 3, 4)))
print(torch.einsum("bi,bj->bij", x, x).diagonal(dim1=1, dim2=2).sum(-1).allclose(x.pow(2).sum(-1)))
