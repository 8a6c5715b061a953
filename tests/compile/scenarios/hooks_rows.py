"""Hooks of tensors, modules and optimizers: with state, added and removed between calls."""

from __future__ import annotations

import types

from compile.scenarios.harness import points, row
from compile.scenarios.steps import network

import leafgrad
from leafgrad import nn, optim


@row
def forward_hook_that_reads_state(w):
    net, o = network(), types.SimpleNamespace(k=1.0)
    net[1].register_forward_hook(lambda module, args, out: out * o.k)
    step = w.compile(lambda x: net(x))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def forward_hook_added_and_removed(w):
    net, handles = network(), []
    step = w.compile(net)
    for on in w.turns(False, True, False):
        if on:
            handles.append(net[0].register_forward_hook(lambda module, args, out: out * 2))
        while handles and not on:
            handles.pop().remove()
        w.call(step, points())


@row
def forward_hook_that_records(w):
    net, log = network(), []
    net[1].register_forward_hook(lambda module, args, out: log.append(out.detach().clone()))
    step = w.compile(lambda x: net(x).sum())
    w.watch(log)
    for i in range(7):
        w.call(step, points() + i)


@row
def forward_hook_that_counts(w):
    net, o = network(), types.SimpleNamespace(calls=0)

    def count(module, args, out):
        o.calls += 1

    net.register_forward_hook(count)
    step = w.compile(lambda x: net(x).sum() + o.calls)
    for _ in range(7):
        w.call(step, points())


@row
def forward_pre_hook(w):
    net, o = network(), types.SimpleNamespace(k=1.0)
    net[0].register_forward_pre_hook(lambda module, args: (args[0] * o.k,))
    step = w.compile(net)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def hook_replaced(w):
    net, o = network(), types.SimpleNamespace(handle=None)
    step = w.compile(net)
    for k in w.turns(1.0, 2.0, 3.0):
        if o.handle is not None:
            o.handle.remove()
        o.handle = net[1].register_forward_hook(lambda module, args, out, k=k: out * k)
        w.call(step, points())


@row
def backward_hook_of_a_module(w):
    net, o = network(), types.SimpleNamespace(k=1.0)
    net[1].register_full_backward_hook(lambda module, gi, go: (gi[0] * o.k,))

    def step(x):
        net.zero_grad()
        net(x).sum().backward()

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def backward_hook_that_records(w):
    net, log = network(), []
    net[1].register_full_backward_hook(lambda module, gi, go: log.append(go[0].detach().clone()))

    def step(x):
        net.zero_grad()
        net(x).sum().backward()

    step = w.compile(step)
    w.watch(log)
    for i in range(7):
        w.call(step, points() + i)


@row
def hook_of_a_parameter(w):
    net, o = network(), types.SimpleNamespace(k=1.0)
    net[0].weight.register_hook(lambda g: g * o.k)

    def step(x):
        net.zero_grad()
        net(x).sum().backward()

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def hook_of_a_parameter_added_and_removed(w):
    net, handles = network(), []

    def step(x):
        net.zero_grad()
        net(x).sum().backward()

    step = w.compile(step)
    for on in w.turns(False, True, False):
        if on:
            handles.append(net[0].weight.register_hook(lambda g: g * 2))
        while handles and not on:
            handles.pop().remove()
        w.call(step, points())


@row
def hook_of_a_parameter_and_a_backward_pass_outside(w):
    net, o = network(), types.SimpleNamespace(k=1.0)
    net[0].weight.register_hook(lambda g: g * o.k)
    step = w.compile(lambda x: net(x).sum())
    for o.k in w.turns(1.0, 2.0, 3.0):
        net.zero_grad()
        w.call(step, points()).backward()
        w.see("gradients", [p.grad for p in net.parameters()])


@row
def hook_of_an_intermediate_tensor(w):
    net, o = network(), types.SimpleNamespace(k=1.0)

    def step(x):
        net.zero_grad()
        hidden = net[0](x)
        hidden.register_hook(lambda g: g * o.k)
        net[2](hidden.tanh()).sum().backward()

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def hook_of_an_intermediate_tensor_that_records(w):
    net, log = network(), []

    def step(x):
        net.zero_grad()
        hidden = net[0](x)
        hidden.register_hook(lambda g: log.append(g.norm().detach()))
        net[2](hidden.tanh()).sum().backward()

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def hook_of_an_argument(w):
    o = types.SimpleNamespace(k=1.0)

    def step(x):
        (x * x).sum().backward()

    step = w.compile(step)
    for o.k in w.turns(1.0, 2.0, 3.0):
        x = points().requires_grad_()
        x.register_hook(lambda g: g * o.k)
        w.call(step, x)


@row
def hook_after_a_gradient_is_accumulated(w):
    p, seen = nn.Parameter(points()), []
    p.register_hook(lambda g: seen.append(g.sum().detach().clone()))

    def step(x):
        (p * x).sum().backward()

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)
        if i == 3:
            p.grad = None


@row
def retain_grad_inside(w):
    net = network()

    def step(x):
        net.zero_grad()
        hidden = net[0](x)
        hidden.retain_grad()
        net[2](hidden.tanh()).sum().backward()
        return hidden.grad

    step = w.compile(step)
    for i in range(7):
        w.call(step, points() + i)


@row
def retain_grad_of_a_result(w):
    net = network()
    step = w.compile(lambda x: net[0](x).tanh())
    for i in range(7):
        hidden = w.call(step, points() + i)
        hidden.retain_grad()
        hidden.square().sum().backward()
        w.see("gradients", hidden.grad, [p.grad for p in net.parameters()])


@row
def hook_of_a_result(w):
    net, o = network(), types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: net[0](x).tanh())
    for o.k in w.turns(1.0, 2.0, 3.0):
        hidden = w.call(step, points())
        hidden.register_hook(lambda g: g * o.k)
        hidden.square().sum().backward()
        w.see("gradients", [p.grad for p in net.parameters()])


@row
def hook_of_an_optimizer_before_the_step(w):
    net = network()
    sgd, o = optim.SGD(net.parameters(), lr=0.1), types.SimpleNamespace(calls=0)

    def halve(optimizer, args, kwargs):
        o.calls += 1
        for group in optimizer.param_groups:
            group["lr"] *= 0.5

    sgd.register_step_pre_hook(halve)

    def step(x):
        sgd.zero_grad()
        net(x).sum().backward()
        sgd.step()

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def hook_of_an_optimizer_added_and_removed(w):
    net, handles = network(), []
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def clamp(optimizer, args, kwargs):
        with leafgrad.no_grad():
            for p in net.parameters():
                p.clamp_(-0.1, 0.1)

    def step(x):
        sgd.zero_grad()
        net(x).sum().backward()
        sgd.step()

    step = w.compile(step)
    for on in w.turns(False, True, False):
        if on:
            handles.append(sgd.register_step_post_hook(clamp))
        while handles and not on:
            handles.pop().remove()
        w.call(step, points())


@row
def module_called_through_forward_or_call(w):
    net, o = network(), types.SimpleNamespace(hooked=True)
    net[0].register_forward_hook(lambda module, args, out: out + 1)
    step = w.compile(lambda x: net[0](x) if o.hooked else net[0].forward(x))
    for o.hooked in w.turns(True, False, True):
        w.call(step, points())


@row
def global_forward_hook(w):
    net, handles = network(), []
    register = nn.hooks.register_module_forward_hook if hasattr(nn.hooks, "register_module_forward_hook") else None

    def scale(module, args, out):
        return out * 2 if isinstance(module, nn.Tanh) else None

    step = w.compile(net)
    for on in w.turns(False, True, False):
        if on:
            handles.append((register or net[1].register_forward_hook)(scale))
        while handles and not on:
            handles.pop().remove()
        w.call(step, points())
    while handles:
        handles.pop().remove()


@row
def parametrization_added_and_removed(w):
    class Positive(nn.Module):
        def forward(self, weight):
            return weight.exp()

    net = network()
    step = w.compile(lambda x: net(x))
    for i in range(8):
        w.call(step, points())
        if i == 1:
            nn.utils.parametrize.register_parametrization(net[0], "weight", Positive())
        if i == 4:
            nn.utils.parametrize.remove_parametrizations(net[0], "weight")


@row
def weight_norm_is_trained(w):
    net = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        sgd.step()
        return loss

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def spectral_norm_is_trained(w):
    net = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        sgd.step()
        return loss

    step = w.compile(step)
    for i in range(8):
        if i == 5:
            net.eval()
        w.call(step, points())
