"""Optimizers of one's own: Lion, SAM, a schedule, and parameters in groups."""

import torch
from fixed import fill, show, wave
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import required


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError("Invalid learning rate: {}".format(lr))
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad, state = p.grad, self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class SAM(Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norms = [p.grad.norm(p=2) for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.norm(torch.stack(norms), p=2)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)).to(p))
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()


class WarmupPoly(LRScheduler):
    def __init__(self, optimizer, warmup, total, power=2.0, last_epoch=-1):
        self.warmup, self.total, self.power = warmup, total, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch < self.warmup:
            return [base * (self.last_epoch + 1) / self.warmup for base in self.base_lrs]
        left = 1 - (self.last_epoch - self.warmup) / (self.total - self.warmup)
        return [base * left**self.power for base in self.base_lrs]


x, y = wave(6, 3), wave(6, 2, shift=1.0)
net = fill(torch.nn.Linear(3, 2))


def closure():
    net.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    return loss


lion = Lion([{"params": [net.weight], "weight_decay": 0.1}, {"params": [net.bias]}], lr=0.02)
schedule = WarmupPoly(lion, 2, 6)
for _ in range(5):
    loss = lion.step(closure)
    schedule.step()
    print(f"{loss.item():.4f} {schedule.get_last_lr()[0]:.5f}")
show("weight", net.weight)
sam = SAM(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for _ in range(3):
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    sam.first_step(zero_grad=True)
    torch.nn.functional.mse_loss(net(x), y).backward()
    sam.second_step(zero_grad=True)
    print(f"{loss.item():.4f}")
print(lion)
print(sorted(lion.state_dict()), required)
lion.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
print(len(lion.param_groups), lion.defaults)
