"""A physics-informed network for Burgers' equation, trained by Adam and L-BFGS."""

from collections import OrderedDict

import numpy as np
import torch
from fixed import fill, show

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.depth = len(layers) - 1
        self.activation = torch.nn.Tanh
        layer_list = list()
        for i in range(self.depth - 1):
            layer_list.append(("layer_%d" % i, torch.nn.Linear(layers[i], layers[i + 1])))
            layer_list.append(("activation_%d" % i, self.activation()))
        layer_list.append(("layer_%d" % (self.depth - 1), torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(layer_list))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    def __init__(self, X_u, u, X_f, layers, nu):
        self.x_u = torch.tensor(X_u[:, 0:1], requires_grad=True).float().to(device)
        self.t_u = torch.tensor(X_u[:, 1:2], requires_grad=True).float().to(device)
        self.x_f = torch.tensor(X_f[:, 0:1], requires_grad=True).float().to(device)
        self.t_f = torch.tensor(X_f[:, 1:2], requires_grad=True).float().to(device)
        self.u, self.nu, self.iter = torch.tensor(u).float().to(device), nu, 0
        self.lambda_1 = torch.nn.Parameter(torch.tensor([0.5], requires_grad=True).to(device))
        self.dnn = fill(DNN(layers).to(device), 0.5)
        self.dnn.register_parameter("lambda_1", self.lambda_1)
        self.optimizer = torch.optim.LBFGS(
            self.dnn.parameters(),
            lr=1.0,
            max_iter=6,
            max_eval=12,
            history_size=10,
            tolerance_grad=1e-5,
            tolerance_change=1.0 * np.finfo(float).eps,
            line_search_fn="strong_wolfe",
        )
        self.adam = torch.optim.Adam(self.dnn.parameters(), lr=1e-2)

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, t, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
        return u_t + self.lambda_1 * u * u_x - self.nu * u_xx

    def loss(self):
        loss_u = torch.mean((self.u - self.net_u(self.x_u, self.t_u)) ** 2)
        return loss_u + torch.mean(self.net_f(self.x_f, self.t_f) ** 2)

    def loss_func(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.iter += 1
        return loss

    def train(self):
        self.dnn.train()
        for _ in range(5):
            loss = self.loss()
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
        print(f"Adam {loss.item():.3f}")
        self.optimizer.step(self.loss_func)

    def predict(self, X):
        x = torch.tensor(X[:, 0:1], requires_grad=True).float()
        t = torch.tensor(X[:, 1:2], requires_grad=True).float()
        self.dnn.eval()
        return self.net_u(x, t).detach().cpu().numpy(), self.net_f(x, t).detach().cpu().numpy()


np.random.seed(1234)
X_u = np.random.uniform(-1, 1, (20, 2))
X_f = np.vstack([np.random.uniform(-1, 1, (30, 2)), X_u])
model = PhysicsInformedNN(X_u, -np.sin(np.pi * X_u[:, :1]), X_f, [2, 8, 8, 1], 0.01 / np.pi)
model.train()
u, f = model.predict(X_u)
print(u.shape, u.dtype, f.dtype, model.iter > 3)
show("loss", round(model.loss().item(), 2))
print(np.round(model.lambda_1.detach().numpy(), 1))
