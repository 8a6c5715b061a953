"""On the strict stand-in device, with the backends and executors that there are, and in a pickle."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from leafgrad import plugins
from leafgrad.autograd import grad
from leafgrad.ops.op import Op
from leafgrad.plugins.strangers import strangers
from leafgrad.testing import fake
from leafgrad.testing.conformance.report import Fault, Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, tensor

REMEDY = "use functions of xp alone, those that NumPy and CuPy both have"


def stand_in(subject: Subject) -> None:
    """Values and gradients on ``fake:0``, where a hidden call of NumPy or a transfer is an error, are the CPU's."""
    fake.register()
    for sample in subject.samples:
        want, derivatives = run_on(subject, sample, "cpu")
        try:
            got, others = run_on(subject, sample, "fake:0")
        except Exception as error:
            if "cupy" in (kernels := getattr(subject.op, "kernels", {})) and "fake" not in kernels:
                raise Skip("its forward is for NumPy's arrays alone: CuPy's have a kernel") from error
            text = f"{type(error).__name__}: {error}"
            raise subject.fault(sample, "a result on fake:0", text, REMEDY) from error
        for what, pairs in (("", zip(got, want, strict=True)), ("gradient", zip(others, derivatives, strict=True))):
            for g, w in pairs:
                low = {"float32": 1e-5, "float16": 1e-2}.get(w.dtype.name, 0.0)
                subject.compare(sample, g, w, max(subject.rtol, low), REMEDY, what + " on fake:0")


def run_on(subject: Subject, sample: Sample, device: str) -> tuple[list[Any], list[Any]]:
    """Results and gradients on a device."""
    places = subject.differentiable(sample) if subject.orders and "nondifferentiable" not in subject.traits else []
    given = subject.tensors(sample, places, device)
    results = subject.run(sample, given)
    found = [r for r in results if r.requires_grad]
    if not found:
        return [host(r) for r in results], []
    rng = np.random.default_rng(0)
    seeds = [tensor(rng.uniform(0.5, 1.5, r.shape).astype(r.dtype.name), device) for r in found]
    pulled = grad(found, [given[i] for i in places], seeds, create_graph=True, materialize_grads=True)
    return [host(r.detach()) for r in results], [host(g.detach()) for g in pulled]


def names(subject: Subject) -> None:
    """Backends that the op has kernels for, and executors that it has rules for, are there."""
    plugins.load()
    known = [spec.name for spec in plugins.backends()], [spec.name for spec in plugins.executors()]
    for stranger in strangers(subject.op, *known):
        if stranger.near:
            raise Fault(f"{subject.name} has {stranger}")
        raise Skip(f"{subject.name} has {stranger}: nothing tries the rule")


def pickled(subject: Subject) -> None:
    """The op in a pickle is a reference to itself, and its results come back as they were."""
    if not isinstance(subject.op, Op):
        raise Skip("it is a function, not an op")
    name = f"{subject.op.__module__}.{subject.name}"
    try:
        again = pickle.loads(pickle.dumps(subject.op))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        text = f"{type(error).__name__}: {error}"
        remedy = "define the op at the top of a module, under the name of its forward"
        raise subject.fault(subject.samples[0], f"a pickle of {name}", text, remedy) from error
    if again is not subject.op:
        raise subject.fault(subject.samples[0], f"{name} itself from its pickle", repr(again), "do not copy ops")
    for sample in subject.samples[:1]:
        for r in subject.run(sample):
            whole = pickle.loads(pickle.dumps(r))
            subject.compare(sample, host(whole.detach()), host(r.detach()), 0.0, "return plain arrays", "in a pickle")
