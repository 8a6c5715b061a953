"""Regression with a Gaussian process: kernels, Cholesky factors, hyperparameters by gradients."""

import math

import torch
from fixed import show

torch.set_default_dtype(torch.double)


class GP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = torch.nn.ParameterDict(
            {name: torch.nn.Parameter(torch.tensor(0.0)) for name in ("length", "amplitude", "noise")}
        )

    def kernel(self, a, b):
        sp = torch.nn.functional.softplus
        d = torch.cdist(a / sp(self.raw["length"]), b / sp(self.raw["length"]))
        return sp(self.raw["amplitude"]) * torch.exp(-0.5 * d.pow(2))

    def nll(self, x, y):
        K = self.kernel(x, x) + torch.nn.functional.softplus(self.raw["noise"]) * torch.eye(len(x))
        L = torch.linalg.cholesky(K)
        alpha = torch.cholesky_solve(y, L) if hasattr(torch, "cholesky_solve") else torch.linalg.solve(K, y)
        return 0.5 * (y.mT @ alpha).squeeze() + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)

    def posterior(self, x, y, new):
        K = self.kernel(x, x) + torch.nn.functional.softplus(self.raw["noise"]) * torch.eye(len(x))
        L = torch.linalg.cholesky(K)
        k = self.kernel(x, new)
        v = torch.linalg.solve_triangular(L, k, upper=False)
        mean = k.T @ torch.linalg.solve_triangular(L.T, torch.linalg.solve_triangular(L, y, upper=False), upper=True)
        return mean, self.kernel(new, new) - v.T @ v


x = torch.linspace(-2, 2, 9).unsqueeze(-1)
y = torch.sin(2 * x)
gp = GP()
optimizer = torch.optim.Adam(gp.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
for i in range(8):
    optimizer.zero_grad()
    loss = gp.nll(x, y)
    loss.backward()
    optimizer.step()
    scheduler.step(loss)
    print(i, f"{loss.item():.4f}")
with torch.no_grad():
    mean, cov = gp.posterior(x, y, torch.tensor([[0.1], [3.0]]))
show("mean", mean)
show("cov", cov)
K = gp.kernel(x, x)
sign, logdet = torch.linalg.slogdet(K + torch.eye(9))
show("logdet", logdet)
show("eig", torch.linalg.eigvalsh(K)[-3:])
U, S, Vh = torch.linalg.svd(K, full_matrices=False)
print(torch.allclose(U @ torch.diag(S) @ Vh, K), torch.linalg.matrix_rank(K + torch.eye(9)), sign.item())
print({k: round(v.item(), 3) for k, v in gp.raw.items()})
torch.set_default_dtype(torch.float)
