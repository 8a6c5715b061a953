"""Networks: parameters, buffers, modes and layers that are replaced, frozen, tied, loaded or written to."""

from __future__ import annotations

import copy
import types

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import nn, optim


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def batch(i=0):
    return (leafgrad.arange(12.0) + i).reshape(4, 3).sin()


def gradients(w, net):
    def step(x):
        net.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        return loss

    return w.compile(step)


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


@row
def probability_of_dropout(w):
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    step = w.compile(net)
    for net[1].p in w.turns(0.5, 0.1, 0.0):
        w.call(step, batch())


@row
def dropout_in_training_and_evaluation(w):
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    step = w.compile(net)
    for training in w.turns(True, False, True):
        net.train(training)
        w.call(step, batch())


@row
def batch_norm_keeps_statistics(w):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    step = gradients(w, net)
    for i in range(7):
        w.call(step, batch(i))


@row
def batch_norm_in_training_and_evaluation(w):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    step = w.compile(net)
    for i, training in enumerate(w.turns(True, False, True)):
        net.train(training)
        w.call(step, batch(i))


@row
def batch_norm_whose_momentum_changes(w):
    norm = nn.BatchNorm1d(3)
    step = w.compile(norm)
    for i, norm.momentum in enumerate(w.turns(0.1, 0.9, None)):
        w.call(step, batch(i))


@row
def batch_norm_whose_statistics_are_reset(w):
    norm = nn.BatchNorm1d(3)
    step = w.compile(norm)
    for i in range(8):
        w.call(step, batch(i))
        if i in (1, 4):
            norm.reset_running_stats()
        if i == 5:
            norm.running_mean = leafgrad.ones(3)


@row
def eval_inside(w):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))

    def step(x):
        net.eval()
        quiet = net(x)
        net.train()
        return quiet + net(x)

    step = w.compile(step)
    for _ in range(6):
        w.call(step, batch())


@row
def buffer_that_counts(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", leafgrad.tensor(0))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    net = Net()
    step = w.compile(net)
    for i in range(8):
        w.call(step, points())
        if i == 4:
            net.calls.zero_()


@row
def buffer_that_is_reassigned(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", leafgrad.zeros(3))

        def forward(self, x):
            self.mean = 0.5 * self.mean + 0.5 * x.mean(dim=0)
            return x - self.mean

    net = Net()
    step = w.compile(net)
    for i in range(8):
        w.call(step, batch(i))


@row
def weights_that_are_tied(w):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.b(self.a(x).tanh())

    net = Net()
    step = gradients(w, net)
    for tied in w.turns(False, True, False):
        net.b.weight = net.a.weight if tied else nn.Parameter(leafgrad.ones(3, 3))
        w.call(step, batch())


@row
def lazy_layer(w):
    net = nn.Sequential(nn.LazyLinear(4), nn.Tanh())
    step = w.compile(net)
    for i in range(6):
        w.call(step, batch(i))


@row
def recurrent_state_is_carried(w):
    cell, o = nn.GRUCell(3, 4), types.SimpleNamespace(h=None)

    def step(x):
        o.h = cell(x, o.h)
        o.h = o.h.detach()
        return o.h.sum()

    step = w.compile(step)
    for i in range(8):
        w.call(step, batch(i))
        if i == 4:
            o.h = None


@row
def exponential_average_of_a_net(w):
    net = network()
    average = copy.deepcopy(net)
    sgd, o = optim.SGD(net.parameters(), lr=0.1), types.SimpleNamespace(decay=0.9)

    def step(x):
        sgd.zero_grad()
        (net(x) ** 2).mean().backward()
        sgd.step()
        with leafgrad.no_grad():
            for ours, theirs in zip(average.parameters(), net.parameters(), strict=True):
                ours.mul_(o.decay).add_(theirs, alpha=1 - o.decay)

    step = w.compile(step)
    for o.decay in w.turns(0.9, 0.5, 0.0):
        w.call(step, batch())


@row
def gradient_clipping(w):
    net, o = network(), types.SimpleNamespace(limit=1.0)
    sgd = optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        sgd.zero_grad()
        (net(x) ** 2).sum().backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), o.limit)
        sgd.step()
        return norm

    step = w.compile(step)
    for o.limit in w.turns(1.0, 0.1, 0.01):
        w.call(step, batch())


@row
def embedding_of_changing_indices(w):
    table = nn.Embedding(5, 3)

    def step(index):
        table.zero_grad()
        (table(index) ** 2).sum().backward()

    step = w.compile(step)
    for index in w.turns([0, 1], [1, 1], [4, 2, 3]):
        w.call(step, leafgrad.tensor(index))


@row
def initialization_inside(w):
    net, o = nn.Linear(3, 2), types.SimpleNamespace(gain=1.0)

    def step(x):
        nn.init.xavier_uniform_(net.weight, gain=o.gain)
        return net(x)

    step = w.compile(step)
    for o.gain in w.turns(1.0, 2.0, 3.0):
        w.call(step, batch())
