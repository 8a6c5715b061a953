"""Spherical harmonics, rotations and tensor products, in the style of e3nn."""

import math
from typing import NamedTuple

import torch
from fixed import fill, show, wave


class Ir(NamedTuple):
    l: int
    p: int

    @property
    def dim(self):
        return 2 * self.l + 1


@torch.jit.ignore
def normalize(x):
    return torch.nn.functional.normalize(x, dim=-1)


def spherical_harmonics(l, x):
    x = normalize(x)
    if l == 0:
        return torch.ones_like(x[..., :1])
    if l == 1:
        return math.sqrt(3) * x
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    parts = [a * b, b * c, (2 * c.pow(2) - a.pow(2) - b.pow(2)) / (2 * 3**0.5), a * c, (a.pow(2) - b.pow(2)) / 2]
    return math.sqrt(15) * torch.stack(parts, dim=-1)


def rotation(axis, angle):
    x, y, z = torch.nn.functional.normalize(axis, dim=0)
    k = torch.stack([torch.stack([z * 0, -z, y]), torch.stack([z, z * 0, -x]), torch.stack([-y, x, z * 0])])
    return torch.linalg.matrix_exp(angle * k)


class SoftOneHot(torch.nn.Module):
    number: torch.jit.Final[int]

    def __init__(self, end, number):
        super().__init__()
        self.number = number
        values = torch.linspace(0.0, end, number + 2)
        self.register_buffer("values", values[1:-1])
        self.step = float(values[1] - values[0])

    def forward(self, x):
        diff = (x[..., None] - self.values) / self.step
        smooth = torch.where(diff.abs() < 1, torch.exp(-1 / (1 - diff.pow(2)).clamp(min=1e-6)), torch.zeros_like(diff))
        return smooth * 1.14136 * math.exp(2.0)


class Convolution(torch.nn.Module):
    """Messages of scalars and vectors, with weights from distances."""

    def __init__(self, channels=3):
        super().__init__()
        self.embed = SoftOneHot(4.0, 5)
        self.fc = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.SiLU(), torch.nn.Linear(8, 3 * channels))
        self.channels = channels

    def forward(self, scalars, vectors, pos, src, dst):
        edge = pos[dst] - pos[src]
        w = self.fc(self.embed(edge.norm(dim=-1))).view(-1, 3, self.channels)
        sh = spherical_harmonics(1, edge)
        s = w[:, 0] * scalars[src] + w[:, 1] * torch.einsum("eci,ei->ec", vectors[src], sh)
        v = w[:, 2, :, None] * torch.linalg.cross(vectors[src], sh[:, None, :].expand_as(vectors[src]), dim=-1)
        n = pos.shape[0]
        return (
            torch.zeros(n, self.channels).index_add(0, dst, s),
            torch.zeros(n, self.channels, 3).index_add_(0, dst, v),
        )


torch.set_default_dtype(torch.float64)
x = wave(4, 3)
for l in range(3):
    show(f"Y{l}", spherical_harmonics(l, x))
R = rotation(torch.tensor([1.0, 2.0, 3.0]), 0.7)
print(torch.allclose(R @ R.T, torch.eye(3)), torch.linalg.det(R).item())
print(torch.allclose(spherical_harmonics(1, x @ R.T), spherical_harmonics(1, x) @ R.T))
conv = fill(Convolution()).double()
pos = (wave(5, 3) * 2).requires_grad_()
src, dst = torch.tensor([[i, j] for i in range(5) for j in range(5) if i != j]).T
s, v = conv(wave(5, 3), wave(5, 3, 3), pos, src, dst)
s2, v2 = conv(wave(5, 3), wave(5, 3, 3) @ R.T, pos @ R.T, src, dst)
print(torch.allclose(s, s2), torch.allclose(v @ R.T, v2))
(forces,) = torch.autograd.grad(s.sum(), pos, create_graph=True)
show("forces", -forces)
show("net", forces.sum(0))
ir = Ir(2, -1)
print(ir.dim, ir, torch.get_default_dtype())
torch.set_default_dtype(torch.float32)
