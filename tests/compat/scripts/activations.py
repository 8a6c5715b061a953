"""Activations as functions, modules and autograd functions, chosen by name, in the style of timm."""

import torch
from fixed import show, wave
from torch import nn
from torch.nn import functional as F


def swish(x, inplace: bool = False):
    return x.mul_(x.sigmoid()) if inplace else x.mul(x.sigmoid())


@torch.jit.unused
def hard_mish(x, inplace: bool = False):
    return 0.5 * x * (x + 2).clamp(min=0, max=2)


class SwishAutoFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mul(torch.sigmoid(x))

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0]
        s = torch.sigmoid(x)
        return grad_output * (s * (1 + x * (1 - s)))


class SwishMe(nn.Module):
    def __init__(self, inplace: bool = False):
        super().__init__()

    def forward(self, x):
        return SwishAutoFn.apply(x)


has_silu = "silu" in dir(torch.nn.functional)
_ACT = dict(
    silu=F.silu if has_silu else swish,
    relu=F.relu,
    relu6=F.relu6,
    gelu=F.gelu,
    elu=F.elu,
    celu=F.celu,
    selu=F.selu,
    mish=F.mish,
    hard_swish=F.hardswish,
    hard_sigmoid=F.hardsigmoid,
    tanh=torch.tanh,
    softplus=F.softplus,
    leaky_relu=F.leaky_relu,
    hard_mish=hard_mish,
    swish=swish,
)

for name, act in _ACT.items():
    x = (wave(5) * 4).requires_grad_()
    y = act(x)
    y.sum().backward()
    show(name, torch.stack([y, x.grad])[:, :3])

a, b = (wave(4).requires_grad_() for _ in range(2))
SwishMe()(a).sum().backward()
F.silu(b).sum().backward()
print(torch.allclose(a.grad, b.grad), torch.jit.is_scripting(), torch.jit.is_tracing())
print(nn.Sequential(nn.Conv2d(1, 2, 3), nn.SiLU(inplace=True), nn.GELU(approximate="tanh"), nn.PReLU(2)))
