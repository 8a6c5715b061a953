"""Settings of the library that a step reads, or that what it calls reads."""

from __future__ import annotations

import contextlib

from compile.scenarios.harness import points, row

import leafgrad
from leafgrad import distributions, nn
from leafgrad.distributions import kl_divergence
from leafgrad.nn.utils import parametrize


@row
def initial_seed(w):
    step = w.compile(lambda x: x * leafgrad.initial_seed())
    for seed in w.turns(2, 3, 4):
        leafgrad.manual_seed(seed)
        w.call(step, points())


@row
def initial_seed_of_a_generator(w):
    generator = leafgrad.Generator()
    step = w.compile(lambda x: x * generator.initial_seed())
    for seed in w.turns(2, 3, 4):
        generator.manual_seed(seed)
        w.call(step, points())


@row
def default_device(w):
    step = w.compile(lambda x: x * len(leafgrad.zeros(3).device.type))
    for name in w.turns(None, "meta", "cpu"):
        leafgrad.set_default_device(name)
        try:
            w.call(step, leafgrad.arange(1.0, 4.0, device="cpu"))
        finally:
            leafgrad.set_default_device(None)


@row
def formula_of_a_divergence(w):
    class Made(distributions.Normal):
        pass

    p = Made(leafgrad.tensor(0.0), leafgrad.tensor(1.0))
    step = w.compile(lambda x: x * kl_divergence(p, p))
    for k in w.turns(2.0, 3.0, 4.0):
        distributions.register_kl(Made, Made)(lambda p, q, k=k: p.scale * k)
        w.call(step, points())


@row
def process_group(w):
    step = w.compile(lambda x: x * (2 if leafgrad.distributed.is_initialized() else 3))
    try:
        for there in w.turns(False, True, False):
            if there and not leafgrad.distributed.is_initialized():
                leafgrad.distributed.init_process_group()
            elif not there and leafgrad.distributed.is_initialized():
                leafgrad.distributed.destroy_process_group()
            w.call(step, points())
    finally:
        if leafgrad.distributed.is_initialized():
            leafgrad.distributed.destroy_process_group()


@row
def parametrizations_that_are_cached(w):
    class Counted(nn.Module):
        calls = 0

        def forward(self, weight):
            return weight * 2

    net = nn.Linear(3, 3)
    parametrize.register_parametrization(net, "weight", Counted())
    step = w.compile(lambda x: net(x).sum() + net.weight.sum())
    for k in w.turns(1.0, 2.0, 3.0):
        with leafgrad.no_grad():
            net.parametrizations.weight.original.fill_(k)
        with parametrize.cached():
            w.call(step, points())
        w.call(step, points())


@row
def parameters_of_a_distribution_are_checked(w):
    scale = points()
    step = w.compile(lambda x: distributions.Normal(x, scale).log_prob(x))
    for k in w.turns(1.0, 2.0, -1.0):
        scale[1] = k
        w.call(step, points())


@row
def values_of_a_distribution_are_checked(w):
    step = w.compile(lambda x: distributions.Beta(2.0, 3.0).log_prob(x))
    for k in w.turns(0.1, 0.2, 2.0):
        w.call(step, points() * k / 3)


@row
def whether_distributions_check(w):
    step = w.compile(lambda x: distributions.Exponential(x).log_prob(points()))
    try:
        for check in w.turns(True, False, True):
            distributions.Distribution.set_default_validate_args(check)
            w.call(step, points() - 1.5)
    finally:
        distributions.Distribution.set_default_validate_args(True)


@row
def initialization_that_is_skipped(w):
    weight = points()

    def step(x):
        with leafgrad.no_grad():
            nn.init.constant_(weight, 2.0)
        return x * weight

    step = w.compile(step)
    for skipped in w.turns(False, True, False):
        weight.fill_(5.0)
        with nn.init.skipped() if skipped else contextlib.nullcontext():
            w.call(step, points())


@row
def hooks_of_registration(w):
    def step(x):
        net = nn.Module()
        net.register_buffer("gain", x * 2)
        return net.gain * 1.0

    step, handle = w.compile(step), None
    for k in w.turns(None, 2.0, 3.0):
        if handle is not None:
            handle.remove()
        handle = k and nn.modules.module.register_module_buffer_registration_hook(lambda net, name, t, k=k: t * k)
        w.call(step, points())
    if handle is not None:
        handle.remove()
