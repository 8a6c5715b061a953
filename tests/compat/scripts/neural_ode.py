"""A neural ODE with a Runge-Kutta solver and the adjoint method as an autograd Function."""

import torch
from fixed import fill, show, wave
from torch import nn


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(func, y0, t):
    ys = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        dt, y = t1 - t0, ys[-1]
        k1 = func(t0, y)
        k2 = func(t0 + dt / 3, y + dt * k1 / 3)
        k3 = func(t0 + dt * 2 / 3, y + dt * (k2 - k1 / 3))
        k4 = func(t1, y + dt * (k1 - k2 + k3))
        ys.append(y + (k1 + 3 * (k2 + k3) + k4) * dt * 0.125)
    return torch.stack(ys)


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, *params):
        ctx.func = func
        with torch.no_grad():
            ans = rk4(func, y0, t)
            ctx.save_for_backward(t, ans, *params)
        return ans

    @staticmethod
    def backward(ctx, grad_y):
        func = ctx.func
        t, y, *params = ctx.saved_tensors
        with torch.no_grad():
            shapes = [p.shape for p in params]
            adj_y = grad_y[-1]
            adj_p = [torch.zeros_like(p) for p in params]
            for i in range(len(t) - 1, 0, -1):
                dt = t[i] - t[i - 1]
                with torch.enable_grad():
                    yi = y[i].detach().requires_grad_(True)
                    out = func(t[i], yi)
                    vjp = torch.autograd.grad(out, (yi, *params), adj_y, allow_unused=True)
                adj_y = adj_y + dt * vjp[0] + grad_y[i - 1]
                adj_p = [a + dt * (torch.zeros(s) if g is None else g) for a, g, s in zip(adj_p, vjp[1:], shapes)]
        return (None, adj_y, None, *adj_p)


func = fill(ODEFunc())
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
y0, t = torch.tensor([[2.0, 0.0]]), torch.linspace(0.0, 1.0, 11)
with torch.no_grad():
    true_y = rk4(lambda _, y: torch.mm(y**3, true_A), y0 * 0.5, t)
show("true", true_y[-1])
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    loss = torch.mean(torch.abs(rk4(func, y0, t) - true_y))
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
params = tuple(func.parameters())
exact = torch.autograd.grad(rk4(func, y0, t)[-1].sum(), params)
adjoint = torch.autograd.grad(OdeintAdjoint.apply(func, y0, t, *params)[-1].sum(), params)
show("exact", exact[0])
show("adjoint", adjoint[0])
show("flow", torch.autograd.functional.jacobian(lambda y: rk4(func, y, t)[-1], wave(1, 2)))
