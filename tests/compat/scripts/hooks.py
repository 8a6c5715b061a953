"""Features, gradients and parameters watched by hooks; Grad-CAM."""

from collections import defaultdict
from functools import partial

import torch
from fixed import fill, show, wave
from torch import nn

net = fill(
    nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 2)
    )
).eval()
features, grads, shapes = {}, {}, defaultdict(list)


def keep(name, module, inputs, output):
    features[name] = output.detach()


def keep_grad(module, grad_input, grad_output):
    grads[type(module).__name__] = grad_output[0]


handles = [m.register_forward_hook(partial(keep, n)) for n, m in net.named_modules() if isinstance(m, nn.Conv2d)]
handles.append(net[2].register_full_backward_hook(keep_grad))
handles.append(net.register_forward_pre_hook(lambda m, args: (args[0] * 2,)))
handles.append(net[5].register_forward_hook(lambda m, a, out: out + 1))
for name, m in net.named_children():
    handles.append(m.register_forward_hook(lambda m, a, out, name=name: shapes[name].append(tuple(out.shape))))
x = wave(2, 1, 6, 6)
out = net(x)
out[:, 1].sum().backward()
show("feature", features["0"])
show("grad", grads["ReLU"])
print(dict(shapes))
weights = grads["ReLU"].mean(dim=(2, 3), keepdim=True)
cam = torch.relu((weights * features["0"]).sum(1, keepdim=True))
cam = nn.functional.interpolate(cam, x.shape[2:], mode="bilinear", align_corners=False)
show("cam", (cam - cam.amin()) / (cam.amax() - cam.amin() + 1e-8))
for h in handles:
    h.remove()
show("without", net(x))

p = nn.Parameter(torch.ones(3))
p.register_hook(lambda g: g.clamp(max=1.0))
q = p * 2
q.retain_grad()
q.register_hook(lambda g: g * 3)
(q * torch.arange(3.0)).sum().backward()
print(p.grad, q.grad, p.is_leaf, q.is_leaf, q.requires_grad)


class Logger(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.calls = inner, 0
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.mean.lerp_(x.mean(), 0.5)
        return self.inner(x)


log = Logger(nn.Identity())
log(x), log(x)
print(log.calls, f"{log.mean.item():.4f}", list(log.state_dict()), log.get_submodule("inner"))
