"""Random ops: by a seed they are functions like others, and over many calls they have a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

import leafgrad
from leafgrad.errors import CompileError
from leafgrad.testing.conformance.programs import declines, names_of, together
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, host, outputs, tensor

NUMBERS, FEWER = 40000, 6000  # drawn of each kind, and under vmap, which takes longer
LEVELS = np.linspace(0.02, 0.98, 25)  # quantiles at which distributions are compared
LIMIT = 6.0  # standard errors
NEAR = 40  # how far apart numbers of a call are that are compared with each other
NEIGHBOURS = "of the differences between numbers of one call, "
REMEDY = "draw all random numbers from generator, and from it alone"


def draws(subject: Subject) -> None:
    """Equal seeds give equal numbers, eagerly and compiled, others other ones; each way gives one distribution."""
    for sample in subject.samples:
        if not any(r.numel() for r in subject.run(sample)):
            continue
        again(subject, sample)
        plain = numbers(partial(called, subject, sample))
        for what, way, count in ways(subject, sample):
            several = plain[: len(plain) // count * count].reshape(-1, count * plain.shape[1])
            compare_draws(subject, sample, numbers(way, FEWER), several, what)
        if (reference := subject.reference) is not None:
            given = sample.params | {"generator": np.random.default_rng(0)}
            wanted = numbers(partial(reference, *sample.args, **given))
            compare_draws(subject, sample, plain, wanted, "beside the reference")
    compiled(subject)


def again(subject: Subject, sample: Sample) -> None:
    """One seed twice, and several others."""
    first, second = (flat(subject.run(sample)) for _ in range(2))
    if not np.array_equal(first, second, equal_nan=True):
        raise subject.fault(sample, f"{first[:4]}, as before", f"{second[:4]}", REMEDY, "the same seed again")
    others = [flat(replace(subject, seed=seed).run(sample)) for seed in range(1, 40)]
    if all(np.array_equal(other, first, equal_nan=True) for other in others):
        raise subject.fault(sample, "other numbers", "the same ones", REMEDY, "with other seeds")


def flat(results: Any) -> Any:
    """All numbers of the results of a call, as float64."""
    return np.concatenate(
        [np.ravel(host(r.detach()) if hasattr(r, "detach") else r).astype("float64") for r in outputs(results)]
    )


def called(subject: Subject, sample: Sample) -> Any:
    """One call, which draws what comes next."""
    return subject.op(*subject.tensors(sample), **sample.params)


def numbers(call: Callable[[], Any], most: int = NUMBERS) -> Any:
    """Many calls, one a row."""
    leafgrad.manual_seed(1)
    first = flat(call())
    count = min(most // 10, max(40, most // max(1, first.size)))
    return np.stack([first, *(flat(call()) for _ in range(count - 1))])


def ways(subject: Subject, sample: Sample) -> list[tuple[str, Callable[[], Any], int]]:
    """Other ways to draw the same, and for how many calls each stands."""
    found: list[tuple[str, Callable[[], Any], int]] = []
    op, params = subject.op, sample.params
    if sample.floats and "float32" in subject.dtypes:
        found.append(("in float32", partial(called, subject, sample.of("float32")), 1))
    if sample.arrays:
        dims = tuple(0 if i in sample.arrays else None for i in range(len(sample.args)))
        stacked = [tensor(np.stack([a] * 2), subject.device) if isinstance(a, np.ndarray) else a for a in sample.args]

        def batched() -> Any:
            mapped = leafgrad.func.vmap(lambda *each: op(*each, **params), in_dims=dims, randomness="different")
            results = outputs(mapped(*stacked))
            return [r[k] for k in (0, 1) for r in results]

        found.append(("under vmap", batched, 2))
    return found


def compare_draws(subject: Subject, sample: Sample, got: Any, want: Any, what: str) -> None:
    """A Fault if two tables of draws do not come from one distribution."""
    if got.shape[1] != want.shape[1]:
        raise subject.fault(sample, f"{want.shape[1]} numbers", f"{got.shape[1]}", REMEDY, what)
    for of, a, b in [("", got, want), *zip(repeat(NEIGHBOURS), apart_in(got), apart_in(want))]:
        apart = distance(a, b)
        if apart > LIMIT:
            raise subject.fault(
                sample, f"{of}the distribution of mean {b.mean():.4g} and standard deviation {b.std():.4g}",
                f"one of {a.mean():.4g} and {a.std():.4g}, {apart:.0f} standard errors apart",
                "let the forward draw from one distribution, whatever runs it", what, "batched,vjp",
            )  # fmt: skip
    with np.errstate(all="ignore"):
        error = np.sqrt(got.var(0) / len(got) + want.var(0) / len(want))
        apart = np.abs(got.mean(0) - want.mean(0)) / error
    if np.any(apart[np.isfinite(apart)] > LIMIT):
        k = int(np.nanargmax(np.where(np.isfinite(apart), apart, 0)))
        raise subject.fault(
            sample, f"mean {want.mean(0)[k]:.4g} of number {k}", f"{got.mean(0)[k]:.4g}",
            "let each number have its own distribution, whatever runs the op", what, "batched",
        )  # fmt: skip


def apart_in(table: Any) -> list[Any]:
    """Differences of neighbours among the numbers of each call, along all dimensions: whether one goes with another."""
    count = table.shape[1]
    return [table[:, n:] - table[:, :-n] for n in range(1, count) if count % n == 0 and (n < NEAR or 2 * n == count)]


def distance(a: Any, b: Any) -> float:
    """How far two tables are apart in how many numbers lie below some levels, in standard errors.

    Those of calls, since the numbers of one call may depend on each other.
    """
    if not a.size or not b.size:
        return 0.0
    most, both = 0.0, np.concatenate([a.ravel(), b.ravel()])
    rounding = 1e-5 * float(np.abs(both[np.isfinite(both)]).max(initial=0.0))
    for level in np.quantile(both, LEVELS, method="inverted_cdf") + rounding:
        below = [(table <= level).mean(1) for table in (a, b)]
        step = abs(float(below[0].mean() - below[1].mean()))
        error = math.sqrt(np.concatenate([part - part.mean() for part in below]).var() * (1 / len(a) + 1 / len(b)))
        if step > 1e-9:
            most = max(most, step / error if error > 1e-9 else math.inf)
    return most


def compiled(subject: Subject) -> None:
    """A compiled step draws what the function does."""
    samples = [s for s in subject.samples if s.arrays]
    if not samples:
        raise Skip("no sample has arrays, so nothing is compiled")
    unseeded = replace(subject, seed=None)
    function = together(unseeded, samples)
    given = [tensor(s.args[i], "cpu") for s in samples for i in s.arrays]
    for name in names_of(subject):
        step = leafgrad.compile(function, executor=name)
        for seed in (1, 2, 3):
            leafgrad.manual_seed(seed)
            want = flat(function(*given))
            leafgrad.manual_seed(seed)
            try:
                got = flat(step(*given))
            except CompileError as error:
                declines(subject, name, error)
                break
            if not np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True):
                raise subject.fault(
                    samples[0], f"{want[:4]}", f"{got[:4]}", REMEDY, f"executor {name!r}", "lower,rewrite,shape"
                )
