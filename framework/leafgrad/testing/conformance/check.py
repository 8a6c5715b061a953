"""``check_op``: all checks of an op, by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import Any, Final
from unittest import SkipTest

from leafgrad import devices, plugins
from leafgrad.ops.op import Op
from leafgrad.ops.traits import TRAITS
from leafgrad.tensor.random import fork_rng
from leafgrad.testing import fake
from leafgrad.testing.conformance import (
    batches,
    draws,
    edges,
    elsewhere,
    gradients,
    jets,
    kernels,
    memory,
    pairs,
    programs,
    rules,
    samples as sampling,
    traits,
    values,
)
from leafgrad.testing.conformance.declared import DeclarationWatch, declarations_in_words
from leafgrad.testing.conformance.report import Fault, Report, Result, Skip, outcome
from leafgrad.testing.conformance.subject import Subject

Check = Callable[[Subject], None]


def with_complex(subject: Subject) -> None:
    """What holds for real numbers holds for complex ones: values, derivatives, vmap, programs, and a rule for pairs."""
    if not subject.complex:
        raise Skip("the op takes no complex numbers beside real ones")
    for parts in subject.complex:
        pairs.follow_rule(subject, parts)
        for name in OF_PAIRS:
            found = outcome(name, CHECKS[name], parts, parts.words)
            if found.outcome == "failed":
                raise Fault(f"{name}: {found.reason}")


CHECKS: Final[dict[str, Check]] = {
    "forward": values.forward,
    "values": values.values,
    "precision": values.precision,
    "arrays": values.arrays,
    "state": rules.state,
    "draws": draws.draws,
    "inputs": memory.inputs,
    "aliases": memory.aliases,
    "layouts": memory.layouts,
    "gradients": gradients.gradients,
    "jvp": gradients.jvp,
    "jets": jets.jets,
    "backward": gradients.backward,
    "rules": rules.reads,
    "vmap": batches.batched,
    "dims": programs.dims,
    "shapes": programs.shapes,
    "compile": programs.compiled,
    "chunks": programs.chunks,
    "edges": edges.edges,
    "stand-in": elsewhere.stand_in,
    "kernels": kernels.kernels,
    "names": elsewhere.names,
    "pickle": elsewhere.pickled,
    "elementwise": traits.elementwise,
    "sizes": edges.sizes,
    "linear": traits.linear,
    "bilinear": traits.bilinear,
    "reduction": traits.reduction,
    "comparison": traits.comparison,
    "view": traits.view,
    "nondifferentiable": traits.nondifferentiable,
    "float": traits.default_dtype,
    "promote": traits.promote,
    "complex": with_complex,
}
"""Name -> check."""

CLAIMED: Final = {name: name for name in TRAITS if name in CHECKS and name != "complex"} | {
    "dims": "reduction",
    "draws": "random",
    "edges": "elementwise",
    "sizes": "elementwise",
}
"""Checks that run where the op claims a trait."""

OF_PAIRS: Final = (
    "forward values precision inputs aliases layouts gradients jvp jets backward vmap shapes compile stand-in".split()
)
"""What is checked with complex numbers beside real ones."""


def listed(op: Any) -> dict[str, Check]:
    """The checks that plugins have for an op, by name."""
    specs = plugins.checks(op, taken=CHECKS) if isinstance(op, Op) else []
    return {spec.name: partial(of_plugin, spec) for spec in specs}


def of_plugin(spec: plugins.CheckSpec, subject: Subject) -> None:
    """A check that a plugin has, on each sample."""
    check, tried, reason = plugins.resolve(spec.target), 0, "there are no samples"
    for sample in subject.samples:
        try:
            check(subject.declared, tuple(map(copy, subject.paired(sample.args))), dict(sample.params))
            tried += 1
        except SkipTest as skip:
            reason = f"{sample}: {skip}"
            subject.untried.append(f"{spec.name}: {reason}")
        except AssertionError as error:
            where = f"{subject.call(sample)}: {error}"
            raise Fault(f"{where}. Declared: {declarations_in_words(subject.op)}") from error
    if not tried:
        raise Skip(reason)


SEEDED: Final = frozenset(
    "forward draws arrays inputs aliases layouts gradients backward stand-in kernels rules names pickle".split()
)
"""Checks of a random op: with a seed it is a function of its arguments. That of draws does more than the others."""

FLOATS: Final = ("float64", "float32", "float16")


def check_op(
    op: Any,
    samples: Iterable[Any] | None = None,
    reference: Callable[..., Any] | None = None,
    orders: int = 3,
    *,
    device: Any = "cpu",
    dtypes: Iterable[str] = FLOATS,
    rtol: float = 1e-12,
    executors: Iterable[str] | None = None,
    checks: Iterable[str] | None = None,
) -> Report:
    """Check an op, or a function of tensors: values, gradients, traits, vmap, compile, devices, memory.

    Args:
        samples: ``(args, params)`` each: a tuple of NumPy arrays, numbers or None, and a dict. Where the op is
            differentiated, float64 or complex128 arrays away from points at which it is not smooth. Of an op that
            takes both, the kit makes those that are missing. By default they are drawn in
            [0.1, 0.9) where the traits tell what the op takes: elementwise ops,
            and of one array reductions and ops along a dimension.
        reference: the same of NumPy arrays, with the same parameters; it is given float64.
        orders: how often to differentiate; 0 for never.
        device: where values and gradients of the lower precisions are computed.
        dtypes: what floating-point arrays are brought to; empty to take them as they are.
        rtol: relative and absolute tolerance of values in float64.
        executors: the names of those that run it compiled; by default all that are installed and run on the CPU. With
            none it is run as a program by itself, once.
        checks: the names of those to run, of ``CHECKS`` and of plugins'; all by default.

    Returns:
        The report: what passed, what was left out for which reason, and, if all checks ran, what was not exercised.

    Raises:
        ConformanceError: some checks failed; an AssertionError that names each. ValueError: no such check, or the op
        needs samples.
    """
    report = examine(
        op, samples, reference, orders, device=device, dtypes=dtypes, rtol=rtol, executors=executors, checks=checks
    )
    report.require()
    return report


def examine(
    op: Any,
    samples: Iterable[Any] | None = None,
    reference: Callable[..., Any] | None = None,
    orders: int = 3,
    *,
    device: Any = "cpu",
    dtypes: Iterable[str] = FLOATS,
    rtol: float = 1e-12,
    executors: Iterable[str] | None = None,
    checks: Iterable[str] | None = None,
) -> Report:
    """The report of ``check_op``, whatever it says."""
    known = CHECKS | listed(op)
    wanted = list(known if checks is None else [checks] if isinstance(checks, str) else checks)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"check_op: checks: unknown check {unknown[0]!r}; expected some of {', '.join(known)}")
    found = sampling.drawn(op) if samples is None else sampling.given(samples)
    if devices.device(device).type == "fake":
        fake.register()
    pristine = rules.snapshots(op)
    found, kept = sampling.departing(op, found, reference)
    chosen = None if executors is None else tuple(executors)
    subject = pairs.arranged(Subject(
        op, found, reference, orders, devices.at(*devices.device(device).resolve()), tuple(dtypes), rtol, chosen,
        seed=0 if "random" in getattr(op, "traits", ()) else None, pristine=pristine,
    ))  # fmt: skip
    report = Report(f"{'op' if hasattr(op, 'signature') else 'function'} {subject.name!r}")
    with fork_rng(), warnings.catch_warnings(), DeclarationWatch(op, checks is None, known) as watch:
        warnings.filterwarnings("ignore", "There is a performance drop because vmap has no batching rule")
        for name in wanted:
            if name not in CLAIMED or CLAIMED[name] in subject.traits:
                subject.samples.current = None
                drawn = "random" in subject.traits and name not in SEEDED
                result = (
                    Result(name, "skipped", "the op is random", 0.0)
                    if drawn
                    else outcome(name, known[name], subject, subject.words)
                )
                report.results.append(result)
                if name == "forward" and result.outcome == "failed":
                    break  # every other would fail alike
    report.untried += [f"parameter {which}" for which in kept]
    report.untried += [*dict.fromkeys(subject.untried), *watch.unseen()]
    return report
