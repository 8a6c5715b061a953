"""Averages of weights, schedules and states that are saved and taken up again."""

import copy
import io

import torch
from fixed import fill, show, wave
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR, StepLR
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn


class EMA:
    def __init__(self, model, decay):
        self.module, self.decay = copy.deepcopy(model).eval(), decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.mul_(self.decay).add_(m.detach(), alpha=1 - self.decay)
            else:
                e.copy_(m)


def make():
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


model = fill(make())
ema, swa = EMA(model, 0.9), AveragedModel(model)
other = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
warmup = LinearLR(optimizer, start_factor=0.1, total_iters=3)
scheduler = SequentialLR(optimizer, [warmup, CosineAnnealingLR(optimizer, T_max=6)], milestones=[3])
x, y = wave(8, 3), wave(8, 1, shift=1.0)


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()


for i in range(5):
    loss = step()
    ema.update(model)
    swa.update_parameters(model)
    other.update_parameters(model)
    print(f"{loss:.4f} {optimizer.param_groups[0]['lr']:.5f}")
update_bn([x], swa)
show("ema", ema.module(x)[:3])
show("swa", swa.eval()(x)[:3])
show("other", other.module[0].weight)
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 5, "best": 0.1}, file)
file.seek(0)
next_losses = [step(), step()]
loaded = torch.load(file, map_location="cpu", weights_only=True)
model = make()
print(model.load_state_dict(loaded["model"]), loaded["epoch"], loaded["best"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
optimizer.load_state_dict(loaded["optimizer"])
print(optimizer.param_groups[0]["lr"] == loaded["optimizer"]["param_groups"][0]["lr"])
for group in optimizer.param_groups:
    group["lr"] = loaded["optimizer"]["param_groups"][0]["lr"]
scheduler = LambdaLR(optimizer, lambda epoch: 1.0)
scheduler.base_lrs, first = [loaded["optimizer"]["param_groups"][0]["lr"]], step()
print(abs(first - next_losses[0]) < 1e-5)
missing = make().load_state_dict({"0.weight": torch.zeros(4, 3), "extra": torch.zeros(1)}, strict=False)
print(missing.missing_keys[:2], missing.unexpected_keys)
try:
    make().load_state_dict({"0.weight": torch.zeros(2, 2)})
except RuntimeError as e:
    print(str(e).splitlines()[0])
s = SWALR(torch.optim.SGD(make().parameters(), lr=1.0), swa_lr=0.05)
print(type(s).__name__, StepLR(torch.optim.SGD(make().parameters(), lr=1.0), 2).get_last_lr())
