"""Networks: parameters, buffers, modes and layers that are replaced, frozen, tied, loaded or written to."""

from __future__ import annotations

import copy
import types

from compile.scenarios.harness import points, row
from compile.scenarios.steps import batch, gradients, network

import leafgrad
from leafgrad import nn, optim


@row
def requires_grad_flipped(w):
    net = network()
    step = gradients(w, net)
    for on in w.turns(True, False, True):
        net[0].weight.requires_grad_(on)
        w.call(step, batch())


@row
def requires_grad_of_the_whole_net(w):
    net = network()
    step = gradients(w, net)
    for on in w.turns(True, False, True):
        net.requires_grad_(on)
        w.call(step, batch())


@row
def frozen_and_differentiated_outside(w):
    net = network()
    step = w.compile(lambda x: (net(x) ** 2).mean())
    for on in w.turns(True, False, True):
        net[0].requires_grad_(on)
        net.zero_grad()
        w.call(step, batch()).backward()
        w.see("gradients", [p.grad for p in net.parameters()])


@row
def gradient_set_to_none_or_zeros_outside(w):
    p = nn.Parameter(points())
    step = w.compile(lambda x: (p * x).sum().backward())
    for kind in w.turns("as it is", "none", "zeros", "ones"):
        if kind == "none":
            p.grad = None
        elif kind != "as it is":
            p.grad = leafgrad.full((3,), float(kind == "ones"))
        w.call(step, points())


@row
def gradient_accumulates_over_calls(w):
    net = network()
    step = w.compile(lambda x: (net(x) ** 2).mean().backward())
    for i in range(9):
        w.call(step, batch(i))
        if i % 3 == 2:
            net.zero_grad()


@row
def gradient_accumulates_and_steps_by_a_counter(w):
    net, o = network(), types.SimpleNamespace(i=0)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        loss = (net(x) ** 2).mean() / 3
        loss.backward()
        o.i += 1
        if o.i % 3 == 0:
            sgd.step()
            sgd.zero_grad()
        return loss

    step = w.compile(step)
    for i in range(10):
        w.call(step, batch(i))


@row
def state_dict_is_loaded(w):
    net = network()
    states = [copy.deepcopy(network().state_dict()) for _ in range(3)]
    step = gradients(w, net)
    for i in w.turns(0, 1, 2):
        net.load_state_dict(states[i])
        w.call(step, batch())


@row
def state_dict_is_assigned(w):
    net = network()
    states = [copy.deepcopy(network().state_dict()) for _ in range(3)]
    step = gradients(w, net)
    for i in w.turns(0, 1, 2):
        net.load_state_dict(states[i], assign=True)
        w.call(step, batch())


@row
def data_is_assigned(w):
    net = network()
    step = gradients(w, net)
    for k in w.turns(1.0, 2.0, 3.0):
        net[0].weight.data = leafgrad.full((4, 3), k)
        w.call(step, batch())


@row
def data_of_another_shape_is_assigned(w):
    p = nn.Parameter(points())
    step = w.compile(lambda: (p**2).sum())
    for n in w.turns(3, 4, 1):
        p.data = points(n)
        w.call(step)


@row
def data_is_written_to(w):
    net = network()
    step = gradients(w, net)
    for k in w.turns(1.0, 2.0, 3.0):
        net[0].weight.data.fill_(k)
        w.call(step, batch())


@row
def parameter_is_replaced(w):
    net = network()
    step = gradients(w, net)
    for k in w.turns(1.0, 2.0, 3.0):
        net[0].weight = nn.Parameter(leafgrad.full((4, 3), k))
        w.call(step, batch())


@row
def parameter_of_another_dtype(w):
    net = nn.Linear(3, 2)
    step = w.compile(lambda: (net.weight**2).sum())
    for dtype in w.turns(leafgrad.float32, leafgrad.float64, leafgrad.float32):
        net.to(dtype)
        w.call(step)


@row
def layer_is_replaced(w):
    net = network()
    step = w.compile(net)
    for cls in w.turns(nn.Tanh, nn.Sigmoid, nn.Softplus):
        net[1] = cls()
        w.call(step, batch())


@row
def layer_is_inserted_and_deleted(w):
    net = network()
    step = w.compile(net)
    for i in range(9):
        w.call(step, batch())
        if i in (0, 4):
            net.insert(1, nn.Softplus())
        if i == 6:
            del net[1]


@row
def list_of_modules_grows(w):
    layers = nn.ModuleList([nn.Linear(3, 3)])

    def step(x):
        for layer in layers:
            x = layer(x).tanh()
        return x

    step = w.compile(step)
    for i in range(8):
        w.call(step, batch())
        if i in (1, 4):
            layers.append(nn.Linear(3, 3))


@row
def net_is_replaced(w):
    o = types.SimpleNamespace(net=network())
    step = w.compile(lambda x: o.net(x))
    nets = [network() for _ in range(3)]
    for i in w.turns(0, 1, 2):
        o.net = nets[i]
        w.call(step, batch())


@row
def net_as_an_argument(w):
    nets = [network(), network(), nn.Linear(3, 1)]
    step = w.compile(lambda net, x: net(x))
    for i in w.turns(0, 1, 2):
        w.call(step, nets[i], batch())


@row
def attribute_of_a_layer(w):
    net = nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU(0.1))
    step = w.compile(net)
    for net[1].negative_slope in w.turns(0.1, 0.5, 0.9):
        w.call(step, batch())
