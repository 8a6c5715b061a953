"""DistributedDataParallel: as one process trains with the whole batch, uncompiled and compiled."""

from __future__ import annotations

import pytest

import leafgrad as lg
from leafgrad import nn
from leafgrad.nn.parallel import DistributedDataParallel

SETTING = """
    def layers(norm=False):
        middle = [nn.BatchNorm1d(6)] if norm else []
        return nn.Sequential(nn.Linear(2, 6), *middle, nn.Tanh(), nn.Linear(6, 1)).to(lg.float64)
    def flat(module):
        return lg.cat([p.detach().reshape(-1) for p in module.parameters()])
    def equal_everywhere(t):
        rows = dist.functional.all_gather(t)
        return all(bool((row == rows[0]).all()) for row in rows)
    lg.manual_seed(3)
    X = lg.randn(12, 2, dtype=lg.float64)
"""

STEPS = """
    def trained(net, x, make, compiled, accumulate=1, clip=False):
        optimizer = make(net.parameters())
        def step(*parts):
            optimizer.zero_grad()
            for part in parts:
                part = part.detach().requires_grad_()
                u = net(part)
                slope, = lg.autograd.grad(u.sum(), part, create_graph=True)
                loss = ((u - 1) ** 2).mean() + (slope ** 2).mean()
                loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            return loss.detach()
        run = lg.compile(step) if compiled else step
        for _ in range(6):
            run(*x.chunk(accumulate))
        return flat(net)

    makes = {
        "sgd": lambda p: lg.optim.SGD(p, lr=0.1, momentum=0.9),
        "adam": lambda p: lg.optim.Adam(p, lr=0.01),
        "adamw": lambda p: lg.optim.AdamW(p, lr=0.01, foreach=False),
    }
    ways = {}, {"accumulate": 2}, {"clip": True}
    for number, (name, make) in enumerate(makes.items()):
        for options in ways if size > 2 else ways[number:number + 1]:
            lg.manual_seed(5)
            alone = layers()
            start = {k: v.clone() for k, v in alone.state_dict().items()}
            want = trained(alone, X if "accumulate" not in options else
                           X.reshape(size, 2, -1, 2).transpose(0, 1).reshape(-1, 2), make, False, **options)
            for compiled in (False, True):
                lg.manual_seed(rank)  # what the other ranks start from does not count
                net = layers()
                if rank == 0:
                    net.load_state_dict(start)
                got = trained(DistributedDataParallel(net), dist.shard(X), make, compiled, **options)
                assert equal_everywhere(got), (name, options, compiled)
                assert lg.allclose(got, want, rtol=1e-9, atol=1e-12), (name, options, compiled, got - want)
"""


@pytest.mark.slow
def test_on_three_ranks(ranks):
    code = SETTING + STEPS + '    print("right", flush=True)\n'
    assert ranks(code, 3).stdout.count("right") == 3


# Cases that two ranks go through, which are started once; `STEPS` has each optimizer in one way, on three ranks in all.
CASES = {
    "as one process with the whole batch": STEPS,
    "gradients that are not sent are sent later": """
    net = layers()
    wrapped = DistributedDataParallel(net)
    own, other = dist.shard(X).chunk(2)
    with wrapped.no_sync():
        wrapped(own).mean().backward()
        assert not equal_everywhere(net[0].weight.grad)
    wrapped(other).mean().backward()
    means = [p.grad.clone() for p in net.parameters()]
    assert all(map(equal_everywhere, means))
    net.zero_grad()
    (2 * net(X)).mean().backward()  # also averaged: the parameters are what is watched
    assert all(lg.allclose(p.grad, m, rtol=1e-12) for p, m in zip(net.parameters(), means))
    """,
    "parameters without gradient": """
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(2, 1).to(lg.float64) for _ in range(3))
        def forward(self, x):
            return self.a(x) if rank == 0 else self.b(x) + self.a(x)
    net = Two()
    free = DistributedDataParallel(net, find_unused_parameters=True)
    free(X).sum().backward()
    assert net.c.weight.grad is None
    assert equal_everywhere(net.b.weight.grad) and equal_everywhere(net.a.weight.grad)
    assert lg.allclose(net.b.weight.grad, X.sum(0) / 2)
    try:
        DistributedDataParallel(Two())(X).sum().backward()
    except RuntimeError as error:
        assert "c.weight, c.bias got no gradient in this pass; use them in the loss" in str(error)
    else:
        raise AssertionError("no error")
    """,
    "buffers are those of the first rank": """
    for compiled in (False, True):
        net = layers(norm=True)
        wrapped = DistributedDataParallel(net)
        run = lg.compile(wrapped) if compiled else wrapped
        for _ in range(3):
            run(dist.shard(X))
        dist.broadcast_parameters(net.buffers())
        mean = net[1].running_mean
        assert equal_everywhere(mean) and mean.abs().sum() > 0 and net[1].num_batches_tracked.item() == 3
    """,
    "copies and parameters that come later": """
    import copy, pickle
    def unfrozen(net):
        net[0].weight.requires_grad_(False)
        wrapped = DistributedDataParallel(net)
        wrapped(dist.shard(X)).mean()
        net[0].weight.requires_grad_()
        return wrapped
    def frozen(net):
        wrapped = DistributedDataParallel(net)
        net[0].weight.requires_grad_(False)
        return wrapped
    def replaced(net):
        wrapped = DistributedDataParallel(net)
        net[2] = nn.Linear(6, 1).to(lg.float64)
        return wrapped
    cases = [
        lambda net: copy.deepcopy(DistributedDataParallel(net)),
        lambda net: pickle.loads(pickle.dumps(DistributedDataParallel(net))),
        unfrozen, frozen, replaced,
    ]
    for make in cases:
        for run in (lambda f: f, lg.compile):
            lg.manual_seed(rank)
            wrapped = make(layers())
            backward = run(lambda x: wrapped(x).sin().mean().backward())
            for _ in range(3):
                wrapped.zero_grad()
                backward(dist.shard(X))
            others = {k: lg.ones_like(p) for k, p in wrapped.named_parameters()}
            loss = wrapped(dist.shard(X)).sin().mean()
            lg.func.functional_call(wrapped, others, (X,))
            wrapped.zero_grad()
            loss.backward()
            alone = copy.deepcopy(wrapped.module)
            assert equal_everywhere(flat(alone)), make
            alone.zero_grad()
            alone(X).sin().mean().backward()
            for p, q in zip(wrapped.parameters(), alone.parameters()):
                assert p.grad is q.grad is None or lg.allclose(p.grad, q.grad, rtol=1e-12), make
    """,
    "gradients of mean gradients": """
    import warnings
    warnings.simplefilter("ignore", UserWarning)
    def backward(net, x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward(create_graph=True)
        penalty = sum((p.grad ** 2).sum() for p in net.parameters())
        net.zero_grad()
        penalty.backward()
    alone = layers()
    wrapped = DistributedDataParallel(alone)
    for run in (lambda f: f, lg.compile):
        again = run(lambda x: backward(wrapped, x))
        for _ in range(4):
            again(dist.shard(X))
        means = [p.grad.detach().clone() for p in wrapped.parameters()]
        backward(alone, X)
        assert all(lg.allclose(p.grad, m, rtol=1e-9) for p, m in zip(alone.parameters(), means))
    """,
    "models that differ": """
    try:
        DistributedDataParallel(nn.Linear(2 + rank, 3 - rank, bias=False))
    except RuntimeError as error:
        assert "rank 1: DistributedDataParallel(weight: float32 (2, 3) trained)" in str(error)
    else:
        raise AssertionError("no error")
    """,
    # The same path on the stand-in device, whose arrays the host cannot read.
    "on a device": """
    from leafgrad.testing import fake
    fake.register()
    net = layers().to("fake")
    wrapped = DistributedDataParallel(net)
    wrapped(dist.shard(X).to("fake")).mean().backward()
    got = [p.grad.to("cpu") for p in net.parameters()]
    assert all(map(equal_everywhere, got))
    alone = layers()
    alone.load_state_dict({k: v.to("cpu") for k, v in net.state_dict().items()})
    alone(X).mean().backward()
    assert all(lg.allclose(g, p.grad, rtol=1e-12) for g, p in zip(got, alone.parameters()))
    """,
}


@pytest.fixture(scope="module")
def went_well(ranks_for_all):
    """Checks that a case went well on both ranks."""
    return ranks_for_all(CASES, SETTING)


@pytest.mark.parametrize("name", CASES)
def test_on_two_ranks(went_well, name):
    went_well(name)


@pytest.mark.slow
def test_gradients_of_mean_gradients_in_c(ranks):
    code = SETTING + CASES["gradients of mean gradients"] + '    print("right", flush=True)\n'
    assert ranks(code, LEAFGRAD_EXECUTOR="native").stdout.count("right") == 4  # eager and compiled, on each rank


def test_what_is_no_model_of_parameters(alone):
    with pytest.raises(TypeError, match="module: expected a Module, got CompiledObject"):
        DistributedDataParallel(lg.compile(nn.Linear(2, 1)))
    with pytest.raises(RuntimeError, match="module: expected parameters that require a gradient, got none"):
        DistributedDataParallel(nn.ReLU())
