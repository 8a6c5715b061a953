"""Learning to learn: gradients through steps of gradient descent, with and without torch.func."""

import math

import torch
from fixed import fill, show, wave
from functorch import grad as functorch_grad, vmap as functorch_vmap
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

net = fill(torch.nn.Sequential(torch.nn.Linear(1, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)))
params = dict(net.named_parameters())
amplitude, phase = torch.tensor([0.5, 1.0, 2.0]), torch.tensor([0.0, 1.0, math.pi / 2])
x = torch.linspace(-2, 2, 6).unsqueeze(1)
y = amplitude[:, None, None] * torch.sin(x + phase[:, None, None])


def loss(p, x, y):
    return torch.nn.functional.mse_loss(functional_call(net, p, (x,)), y)


def adapt(p, x, y, alpha=0.1):
    g = grad(loss)(p, x, y)
    return {k: p[k] - alpha * g[k] for k in p}


def outer(p, x1, y1, x2, y2):
    return loss(adapt(p, x1, y1), x2, y2)


optimizer = torch.optim.Adam(params.values(), lr=1e-2)
for _ in range(3):
    losses = vmap(outer, in_dims=(None, None, 0, None, 0))(params, x[:3], y[:, :3], x[3:], y[:, 3:])
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    show("losses", losses)

value = grad_and_value(loss)({k: p.detach() for k, p in params.items()}, x, y[0])
show("value", value[1])
samples = vmap(grad(loss), (None, 0, 0))({k: p.detach() for k, p in params.items()}, x, y[0])
show("per sample", samples["0.bias"])


def f(v):
    return (v**3).sum() + v.prod()


v = wave(3) + 2
show("hessian", hessian(f)(v))
print(torch.allclose(jacfwd(grad(f))(v), jacrev(grad(f))(v)))
show("jvp", jvp(f, (v,), (torch.ones(3),))[1])
show("vjp", vjp(f, v)[1](torch.tensor(1.0))[0])
show("functorch", functorch_vmap(functorch_grad(torch.sin))(v))

w = torch.tensor([0.1], requires_grad=True)
inner = w
for _ in range(3):
    (g,) = torch.autograd.grad(((inner - 1) ** 2 * inner).sum(), inner, create_graph=True)
    inner = inner - 0.1 * g
inner.backward()
show("through", w.grad)
