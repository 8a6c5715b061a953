"""Low-rank adapters, parametrizations, pruning and weight norm."""

import torch
import torch.nn.utils.parametrize as P
from fixed import fill, show, wave
from torch import nn
from torch.nn.utils import parameters_to_vector, prune, vector_to_parameters
from torch.nn.utils.parametrizations import weight_norm


class LoRA(nn.Module):
    def __init__(self, din, dout, rank=2, alpha=4):
        super().__init__()
        self.A, self.B = nn.Parameter(torch.zeros(rank, dout)), nn.Parameter(torch.zeros(din, rank))
        nn.init.normal_(self.A, mean=0, std=1)
        self.scale, self.enabled = alpha / rank, True

    def forward(self, weight):
        return weight + torch.matmul(self.B, self.A).view(weight.shape) * self.scale if self.enabled else weight


class LoRALinear(nn.Module):
    def __init__(self, linear, r=2):
        super().__init__()
        self.linear = linear
        self.down, self.up = nn.Linear(linear.in_features, r, bias=False), nn.Linear(r, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        for p in self.linear.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


net = fill(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
before = {n: p.clone().detach() for n, p in net.named_parameters()}
for layer in (net[0], net[2]):
    P.register_parametrization(layer, "weight", LoRA(*layer.weight.shape))
for name, p in net.named_parameters():
    p.requires_grad = ".A" in name or ".B" in name
fill_these = [p for p in net.parameters() if p.requires_grad]
with torch.no_grad():
    for i, p in enumerate(fill_these):
        p.copy_(wave(*p.shape, shift=float(i)) * 0.2)
opt = torch.optim.Adam(fill_these, lr=0.05)
x, y = wave(5, 3), wave(5, 2)
for _ in range(3):
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.4f}")
print(torch.equal(net[0].parametrizations.weight.original, before["0.weight"]), P.is_parametrized(net[0]))
print([n for n, _ in net.named_parameters()][:4])
P.remove_parametrizations(net[0], "weight")
show("merged", net[0].weight)

adapted = LoRALinear(fill(nn.Linear(3, 2)))
print(torch.equal(adapted(x), adapted.linear(x)), [n for n, p in adapted.named_parameters() if p.requires_grad])
sym = fill(nn.Linear(3, 3))
P.register_parametrization(sym, "weight", Symmetric())
print(torch.allclose(sym.weight, sym.weight.T))
pruned = fill(nn.Linear(4, 3))
prune.l1_unstructured(pruned, name="weight", amount=0.5)
print(pruned.weight_mask.sum().item(), sorted(n for n, _ in pruned.named_parameters()))
prune.remove(pruned, "weight")
show("pruned", pruned.weight)
wn = weight_norm(fill(nn.Linear(2, 3)), dim=0)
print(sorted(n for n, _ in wn.named_parameters()))
vector = parameters_to_vector(pruned.parameters())
vector_to_parameters(vector * 2, pruned.parameters())
show("doubled", pruned.weight)
