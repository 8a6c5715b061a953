"""Gradients of each order against differences of the order before, and forward mode against both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from leafgrad.autograd import forward, grad
from leafgrad.modes import no_grad
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import TOLERANCES, Sample, Subject, difference, host, tensor

DIRECTIONS = 2
RTOL = 1e-7  # of what the differences and the gradient add up, where the differences settle
STEPS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)  # tried where the first does not
EPSILON = 2.0**-52

Arrays = list[Any]
Function = Callable[..., list[Any]]


class Derived:
    """A derivative of the op at one sample, as a function of the arrays that it is differentiated by.

    Attributes:
        places: the arguments that it is differentiated by.
        order: how often.
        seeds: for each order, the gradient of what comes before it.
        scale: the largest sum of values of an order so far, of which rounding leaves something in all that follow.
    """

    def __init__(self, subject: Subject, sample: Sample, places: list[int]) -> None:
        self.subject, self.sample, self.places = subject, sample, places
        self.order = 0
        self.seeds: list[Arrays] = []
        self.rng = np.random.default_rng(sample.number)
        self.scale = 0.0

    def tensors(self, arrays: Arrays) -> tuple[list[Any], list[Any]]:
        """Leaves of the arrays, and the results of this order, all of floating-point numbers."""
        given = self.subject.tensors(self.sample, device="cpu")
        leaves = [tensor(a, "cpu").requires_grad_() for a in arrays]
        for i, leaf in zip(self.places, leaves, strict=True):
            given[i] = leaf
        found = [r for r in self.subject.run(self.sample, given) if r.dtype.is_floating_point]
        for seeds in self.seeds:
            found = pulled(found, leaves, seeds)
        return leaves, found

    def values(self, arrays: Arrays) -> Arrays:
        """The results of this order."""
        if self.order:
            return [host(r.detach()) for r in self.tensors(arrays)[1]]
        with no_grad():
            return [host(r) for r in self.tensors(arrays)[1]]

    def seeded(self, found: list[Any]) -> Arrays:
        """A gradient for each result; not constant, for the sum of a softmax has none."""
        signs = [self.rng.choice([-1.0, 1.0], r.shape) for r in found]
        return [np.asarray(self.rng.uniform(0.5, 1.5, r.shape) * s) for r, s in zip(found, signs, strict=True)]

    def up(self, seeds: Arrays) -> None:
        """Go on to the next order."""
        self.seeds.append(seeds)
        self.order += 1


def pulled(found: list[Any], leaves: list[Any], seeds: Arrays) -> list[Any]:
    """The gradients by all leaves, zeros where there are none."""
    pairs = [(r, tensor(s, "cpu")) for r, s in zip(found, seeds, strict=True) if r.requires_grad]
    if not pairs:
        return [leaf.detach() * 0.0 for leaf in leaves]
    results, given = ([p[k] for p in pairs] for k in (0, 1))
    return list(grad(results, leaves, given, create_graph=True, materialize_grads=True))


def derivatives(subject: Subject) -> Iterator[Derived]:
    """Each sample of float64 numbers with its differentiable arguments."""
    count = 0
    for given in subject.samples if subject.orders and "nondifferentiable" not in subject.traits else ():
        sample = given.of("float64")
        places = [i for i in subject.differentiable(sample) if sample.args[i].size]
        if places:
            count += 1
            yield Derived(subject, sample, places)
    if not count:
        raise Skip("nothing to differentiate: no order was asked for, no argument has a rule, or none has elements")


def gradients(subject: Subject) -> None:
    """Gradients of each order are the differences of the order before, in several random directions."""
    for derived in derivatives(subject):
        point = [derived.sample.args[i] for i in derived.places]
        for order in range(1, subject.orders + 1):
            leaves, found = derived.tensors(point)
            if not found:
                break
            derived.scale = max(derived.scale, *[float(abs(host(r.detach())).sum()) for r in found])
            seeds = derived.seeded(found)
            exact = [host(g.detach()) for g in pulled(found, leaves, seeds)]
            for _ in range(DIRECTIONS):
                along(derived, order, point, seeds, exact, list(range(len(point))))
            if not any(r.requires_grad for r in found):
                break
            derived.up(seeds)


def along(derived: Derived, order: int, point: Arrays, seeds: Arrays, exact: Arrays, moved: list[int]) -> None:
    """Compare along one random direction in which the arguments numbered ``moved`` move."""
    signs = [derived.rng.choice([-1.0, 1.0], a.shape) for a in point]
    steps = [np.asarray(derived.rng.uniform(0.5, 1.0, a.shape) * s) for a, s in zip(point, signs, strict=True)]
    steps = [u if k in moved else np.zeros_like(u) for k, u in enumerate(steps)]
    terms = np.concatenate([(g * u).ravel() for g, u in zip(exact, steps, strict=True)])

    def at(t: float) -> Any:
        values = derived.values([a + t * u for a, u in zip(point, steps, strict=True)])
        return np.concatenate([(s * v).ravel() for s, v in zip(seeds, values, strict=True)])

    found = float(terms.sum())
    wanted, doubt = slope(at, found, float(np.abs(terms).sum()), derived.scale)
    if np.isnan(wanted) and np.isnan(found):
        return
    if not abs(found - wanted) <= doubt:
        blame(derived, order, point, seeds, exact, moved, (wanted, found, doubt))


def slope(at: Callable[[float], Any], claimed: float, size: float, scale: float) -> tuple[float, float]:
    """The derivative of the sum of ``at(t)`` at 0 by central differences, and how far off it may be.

    Differences over h and h / 2 are extrapolated (Richardson). Where they do not give what is claimed, steps of many
    sizes are tried, and those that agree best with their neighbours count (Ridders 1982).
    """
    first, doubt = extrapolated(at, 2e-3, size, scale)
    if abs(first - claimed) <= doubt:
        return first, doubt
    tries = [extrapolated(at, h, size, scale) for h in STEPS]
    best = (first, np.inf)
    for (a, da), (b, db) in pairwise(tries):
        apart = 3 * abs(a - b) + min(da, db)
        if apart < best[1]:
            best = b if db < da else a, apart
    return best


def extrapolated(at: Callable[[float], Any], h: float, size: float, scale: float) -> tuple[float, float]:
    """One extrapolated difference, and what rounding may have done to it."""
    ends = [at(t) for t in (h, -h, h / 2, -h / 2)]
    wide, narrow = (ends[0] - ends[1]) / (2 * h), (ends[2] - ends[3]) / h
    rounding = 16 * EPSILON / h * max(scale, float(np.abs(ends[0]).sum()))
    result = float(((4 * narrow - wide) / 3).sum())
    return result, RTOL * (size + float(np.abs(narrow).sum())) + rounding


def blame(
    derived: Derived,
    order: int,
    point: Arrays,
    seeds: Arrays,
    exact: Arrays,
    moved: list[int],
    numbers: tuple[float, float, float],
) -> None:
    """Raise the Fault, by the name of the argument where one alone is wrong."""
    if len(moved) > 1:
        for k in moved:
            along(derived, order, point, seeds, exact, [k])
    subject, wanted, found, doubt = derived.subject, *numbers
    names = ", ".join(repr(subject.argument(derived.places[k])) for k in moved)
    what = f"gradient of order {order} for {names}, along a random direction"
    unsettled = not doubt < 1e-2 * (abs(wanted) + abs(found))
    if unsettled and "random" in subject.traits:
        raise Skip("what is drawn jumps as arguments move, so differences tell nothing of gradients")
    if unsettled:
        remedy = "the differences do not settle: choose samples away from where the op is not smooth, or mend the rule"
    else:
        others = "" if order == 1 else " or of an op that it uses"
        remedy = f"mend the vjp rule for {names}{others}, or move the sample if the op has a kink there"
    raise subject.fault(
        derived.sample, f"{wanted:.9g} (differences, to {doubt:.1g})", f"{found:.9g}", remedy, what, "vjp"
    )


def jvp(subject: Subject) -> None:
    """Forward mode gives the transpose of the backward pass, of the op and of its gradient."""
    for derived in derivatives(subject):
        point = [derived.sample.args[i] for i in derived.places]
        for order in range(1, min(subject.orders, 2) + 1):
            leaves, found = derived.tensors(point)
            if not any(r.requires_grad for r in found):
                break
            seeds = derived.seeded(found)
            steps = [derived.rng.uniform(-1.0, 1.0, a.shape) for a in point]
            tangents = forward.push(tuple(found), tuple(leaves), tuple(tensor(u, "cpu") for u in steps))
            forth = [(s * host(t.detach())).ravel() for s, t in zip(seeds, tangents, strict=True)]
            back = [(host(g.detach()) * u).ravel() for g, u in zip(pulled(found, leaves, seeds), steps, strict=True)]
            terms, others = np.concatenate(forth), np.concatenate(back)
            size = float(np.abs(terms).sum() + np.abs(others).sum())
            one, two = float(terms.sum()), float(others.sum())
            if not (abs(one - two) <= 1e-9 * (size + 1e-3) or (np.isnan(one) and np.isnan(two))):
                raise subject.fault(
                    derived.sample, f"{two:.9g} (backward)", f"{one:.9g} (forward)",
                    "mend a trait that does not hold, or a rule that is not linear in g",
                    f"jvp of order {order}", "vjp",
                )  # fmt: skip
            derived.up(seeds)


def backward(subject: Subject) -> None:
    """Gradients have the dtype, shape and device of their arguments, and are the same whether recorded or not."""
    if not subject.orders or "nondifferentiable" in subject.traits:
        raise Skip("nothing to differentiate")
    for dtype, sample in subject.each_dtype():
        places = subject.differentiable(sample)
        given = subject.tensors(sample, places)
        found = [r for r in subject.run(sample, given) if r.requires_grad]
        if not found:
            continue
        rng = np.random.default_rng(0)
        seeds = [tensor(rng.uniform(0.5, 1.5, r.shape).astype(r.dtype.name), subject.device) for r in found]
        wanted = [given[i] for i in places]
        plain = grad(found, wanted, seeds, retain_graph=True, allow_unused=True)
        recorded = grad(found, wanted, seeds, create_graph=True, allow_unused=True)
        for i, x, g, h in zip(places, wanted, plain, recorded, strict=True):
            what = f"gradient for {subject.argument(i)!r}"
            remedy = f"let the vjp rule for {subject.argument(i)!r} give one result on arrays and on tensors"
            if (g is None) != (h is None):
                raise subject.fault(
                    sample, "a gradient in both passes, or in none", f"{g} and {h}", remedy, what, "vjp"
                )
            for r in (g, h) if g is not None else ():
                if (r.dtype, r.device, r.shape) != (x.dtype, x.device, x.shape):
                    raise subject.fault(
                        sample, f"{x.dtype} {tuple(x.shape)} on {x.device}",
                        f"{r.dtype} {tuple(r.shape)} on {r.device}", remedy, what, "vjp",
                    )  # fmt: skip
            if g is not None:
                wrong = difference(host(h.detach()), host(g), TOLERANCES.get(dtype, max(subject.rtol, 1e-12)))
                if wrong is not None:
                    raise subject.fault(sample, *wrong, remedy, what + ", recorded", "vjp")
        if dtype in TOLERANCES:
            precise(
                subject,
                dtype,
                sample,
                places,
                [host(s) for s in seeds],
                [None if g is None else host(g) for g in plain],
            )


def precise(subject: Subject, dtype: str, sample: Sample, places: list[int], seeds: Arrays, got: Arrays) -> None:
    """A Fault unless gradients of a lower precision are those of float64, but for what rounding may leave."""
    given = subject.tensors(sample.of("float64"), places)
    found = [r for r in subject.run(sample, given) if r.requires_grad]
    high = [tensor(s.astype("float64"), subject.device) for s in seeds]
    if [r.dtype.name for r in found] != ["float64"] * len(high):
        return  # of a parameter, not of the arguments
    wanted = grad(found, [given[i] for i in places], high, allow_unused=True)
    for i, g, r in zip(places, got, wanted, strict=True):
        if g is None or r is None:
            continue
        w = host(r)
        finite = np.isfinite(g) & np.isfinite(w)
        scale = max(1.0, float(np.abs(w[finite]).max(initial=0.0)))
        wrong = difference(
            np.where(finite, g, 0).astype("float64"), np.where(finite, w, 0), 10 * TOLERANCES[dtype] * scale
        )
        if wrong is not None:
            remedy = f"let the vjp rule for {subject.argument(i)!r} hold in each precision"
            raise subject.fault(sample, *wrong, remedy, f"gradient for {subject.argument(i)!r}", "vjp")
