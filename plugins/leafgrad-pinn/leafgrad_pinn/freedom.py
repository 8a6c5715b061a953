"""What the conditions leave open, told at the end by the rank of the linearised problem.

A direction e of fields and unknowns is free where A e is nothing beside e: the smallest generalised singular values. So
are symmetries, such as u times a factor, as far as the residuals that are left can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy import linalg

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.determinacy import spoken_of
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.field import Field, columns_of
from leafgrad_pinn.integrals import Integral
from leafgrad_pinn.linearised import Linearised, Polynomials, numbers
from leafgrad_pinn.observations import At, Data
from leafgrad_pinn.problem import Problem
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import norm
from leafgrad_pinn.slopes import Moving
from leafgrad_pinn.taylor import Unfit
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.unknowns import Unknown, moved

FREE = (
    1e-6  # of the terms, what a direction changes residuals by: well-posed problems have 0.03 and more, free ones 1e-7
)
NAMED = 1e-6  # how far a direction may be from what it is called
ABOUT = 3.0, 1e-3  # times the residuals, but at most so much: what a symmetry of the solution may change them by
INDIFFERENT = 1e-2  # of the terms: what unknowns without effect may change at most
FITS = 1e-4  # how far a symmetry may be from polynomials
PART = 0.01  # of a direction's square: what has less is not named
LEAST = 6  # polynomials of a coordinate, where given points tell no more apart
HELD = 0.03  # of the terms, what each direction changes residuals by where fewer polynomials than usual are to tell
TOLD = 0.01  # of polynomials over the domain, what they are at given points that tell them apart
MOVED = 0.1  # of the fields: how far they may move until the residuals tell, or it is a doubt
FOLLOWED = {1: (18, 6, 64), 2: (8, 5, 36), 3: (5, 3, 0)}  # polynomials, those beside slopes or many, and many
APART = 1e-8  # of the largest singular value: what sets directions of a basis apart
DEGREES = {1: 18, 2: 15, 3: 8}  # polynomials of each coordinate at most, by the number of these
COLUMNS = 450  # of all fields

Named = tuple[str, Array]  # words, and a direction (k,)
Moved = Callable[[float, float, float], tuple[float, float]]

SMALL, FAR = 1e-6, (0.3, -0.17)  # how far unknowns are moved
COMBINED: dict[str, Moved] = {  # two unknowns, moved so that a combination of theirs stays
    "*": lambda a, b, s: (a * math.exp(s), b * math.exp(-s)),
    "/": lambda a, b, s: (a * math.exp(s), b * math.exp(s)),
    "+": lambda a, b, s: (a + s * (abs(a) + abs(b)), b - s * (abs(a) + abs(b))),
    "-": lambda a, b, s: (a + s * (abs(a) + abs(b)), b + s * (abs(a) + abs(b))),
}


@leafgrad.enable_grad()
def directions(trainee: Trainee) -> tuple[str, str]:
    """What may be added to the fields and unknowns, in words, "" where all is determined, or it cannot be told; and
    that this is so for equations at given points."""
    names = trainee.problem.domain.names
    if len(names) not in DEGREES:
        return "", ""
    degree, few = degree_of(trainee.problem)
    if not degree:
        return "", few
    try:
        problem = Linearised(trainee, dict.fromkeys(names, degree))
        a, left = problem.everything(3 * degree ** len(names), np.random.default_rng(0))
    except Unfit:
        return "", ""
    if problem.energies or not (np.isfinite(a).all() and np.isfinite(left).all()):
        return "", ""
    points = problem.domain.interior(4 * problem.size, "sobol", np.random.default_rng(0))
    r: Array = np.asarray(np.linalg.qr(sizes(problem, points), mode="r"))
    whitened = np.linalg.qr(linalg.solve_triangular(r.T, a.T, lower=True).T, mode="r")
    _, found, rows = np.linalg.svd(whitened)
    open_ = rows[np.count_nonzero(found > FREE) :]
    known: list[Named] = []
    for words, c in of_unknowns(problem):
        add(known, words, r @ c, True)
    for words, c in simple(problem):
        add(known, words, r @ c, explained(open_, r @ c) > 1 - NAMED)
    for words, c, size in symmetries(problem, points):
        e = r @ c
        limit = max(FREE, min(ABOUT[0] * float(np.linalg.norm(left)) / size, ABOUT[1])) if size else FREE
        add(known, words, e, float(np.linalg.norm(whitened @ e)) <= limit * float(np.linalg.norm(e)))
    rest = unexplained(open_, known)
    count = len(known) + len(rest)
    if not count:
        return "", few if found[-1] < HELD else ""
    c = linalg.solve_triangular(r, rest.T)
    said = [*(words for words, _ in known), *([described(problem, points, c, bool(known))] if len(rest) else [])]
    return told(count, said), ""


def told(count: int, said: Sequence[str]) -> str:
    """That so many directions are free, and which."""
    return f"{'1 direction is' if count == 1 else f'{count} directions are'} free: {', '.join(said)}"


@leafgrad.enable_grad()
def hidden(trainee: Trainee) -> tuple[str, dict[str, float]]:
    """What `directions` does not see: growth that its polynomials cannot follow, and thin layers that may move.

    Returns:
        What is free as far as the residuals tell that are left, in words; or else how large these make an error, beside
        each field, along what changes them little.
    """
    problem = trainee.problem
    names, kinds = problem.domain.names, (Data, At, Integral)
    if len(names) not in DEGREES or any(c.own is not None or isinstance(c, kinds) for c in problem.conditions):
        return "", {}
    found: dict[str, float] = {}
    try:
        for bases in followed(trainee):
            free, errors = least_seen(bases)
            if free:
                return free, {}
            found = {name: max(error, found.get(name, 0.0)) for name, error in errors.items()}
    except Unfit:
        pass
    return "", found


def followed(trainee: Trainee) -> Iterator[Linearised]:
    """The problem with slopes of its solution in the basis, and with many polynomials along each coordinate in turn."""
    names = trainee.problem.domain.names
    count = max(1, round(len(trainee.problem.fields) ** (1 / len(names))))
    degree, few, many = (max(3, size // count) for size in FOLLOWED[len(names)])
    yield Moving(trainee, dict.fromkeys(names, degree), dict.fromkeys(names, few))
    for name in names if len(names) < 3 else ():
        yield Linearised(trainee, dict.fromkeys(names, few) | {name: many})


def least_seen(problem: Linearised) -> tuple[str, dict[str, float]]:
    """What is free in a basis, or the errors of what changes residuals least, as `hidden` has both."""
    a, left = problem.everything(3 * problem.size, np.random.default_rng(0))
    if problem.energies or not (np.isfinite(a).all() and np.isfinite(left).all()):
        return "", {}
    points = problem.domain.interior(4 * problem.size, "sobol", np.random.default_rng(0))
    whole = sizes(problem, points)
    lengths = np.linalg.norm(whole, axis=0)
    lengths[lengths == 0] = 1
    _, found, rows = np.linalg.svd(np.linalg.qr(whole / lengths, mode="r"))
    kept = found > APART * found[0]
    orthonormal = (rows[kept].T / found[kept]) / lengths[:, None]
    _, found, rows = np.linalg.svd(np.linalg.qr(a @ orthonormal, mode="r"))
    norms, error = sizes_of(problem, points), float(np.linalg.norm(left))
    known = math.hypot(*norms.values())
    limit = max(FREE, min(error / (MOVED * known), ABOUT[1])) if known else FREE
    if count := int(np.count_nonzero(found <= limit)):
        return told(count, [described(problem, points, orthonormal @ rows[-count:].T, False)]), {}
    if found[-1] > ABOUT[1]:
        return "", {}
    c = orthonormal @ rows[-1] * (error / found[-1])
    return "", {name: norm(problem.basis(name, points) @ c) / (problem.fields[name].scale or 1) / size
                for name, size in norms.items() if size}  # fmt: skip


def sizes_of(problem: Linearised, points: Array) -> dict[str, float]:
    """The root mean square of each field at points, beside its scale."""
    trainee = problem.trainee
    columns = columns_of(problem.domain, points, trainee.dtype, trainee.device)
    values = problem.system.fields(columns)
    return {name: norm(numbers(values[name])[problem.within(name, points)]) / (problem.fields[name].scale or 1)
            for name in problem.bases}  # fmt: skip


def degree_of(problem: Problem) -> tuple[int, str]:
    """How many polynomials each coordinate has, no more than given points tell apart, 0 for too few; and in words that
    they are fewer for that."""
    dim, given = len(problem.domain.names), places(problem)
    full = max(4, min(DEGREES[dim], int((COLUMNS / len(problem.fields)) ** (1 / dim))))
    fields, degree = {field.name: field for field in problem.fields}, full
    while degree and not all(tells(problem.domain, fields[n], points, degree) for n, points in given.items()):
        degree -= 1
    counts = ", ".join(f"{len(points)} points of the equations of {name}" for name, points in given.items())
    few = f"the {counts} are too few, or too close together, to tell" if degree < full else ""
    return degree if degree >= min(LEAST, full) else 0, few


def places(problem: Problem) -> dict[str, Array]:
    """For each field whose equations all hold at given points alone, these (n, d)."""
    found: dict[str, Array] = {}
    inside = [(c, spoken_of(problem, c)) for c in problem.conditions if isinstance(c, Interior)]
    for field in problem.fields:
        given = [c.placed(problem.domain) for c, names in inside if field.name in names]
        if given and (batches := [batch["points"] for batch in given if batch]) and len(batches) == len(given):
            found[field.name] = np.concatenate(batches)
    return found


def tells(domain: Domain, field: Field, points: Array, degree: int) -> bool:
    """Whether points (n, d) tell so many polynomials of each coordinate apart, as those of the whole domain do."""
    basis = Polynomials(field, dict.fromkeys(domain.names, degree))
    if len(points) < basis.size:
        return False
    whole = domain.interior(8 * basis.size, "sobol", np.random.default_rng(0))
    whole = whole if field.part is None else whole[domain.covered(field.part, whole)]
    some = points[:: max(1, len(points) // (8 * basis.size))]
    values = [basis(dict(zip(domain.names, rows.T, strict=True)), ()) for rows in (some, whole)]
    here, there = (np.asarray(np.linalg.qr(v / len(v) ** 0.5, mode="r")) for v in values)
    return bool(linalg.svdvals(linalg.solve_triangular(there.T, here.T, lower=True))[-1] > TOLD)


def sizes(problem: Linearised, points: Array) -> Array:
    """Rows whose mean square is that of the fields and unknowns, in units of their scales."""
    rows = [problem.basis(n, points[problem.within(n, points)]) / (problem.fields[n].scale or 1) for n in problem.bases]
    each = np.zeros((problem.numbers, problem.size))
    for k, (unknown, number) in enumerate(zip(problem.system.unknowns, problem.system.numbers, strict=True)):
        each[k, problem.size - problem.numbers + k] = 1 / scale_of(unknown, number)
    return np.concatenate([np.concatenate(rows) / len(points) ** 0.5, each])


def add(known: list[Named], words: str, direction: Array, free: bool) -> None:
    """Note a direction, divided by its length, that is free and no sum of those before."""
    if free and (size := np.linalg.norm(direction)):
        new = direction / size
        for _, other in known:
            new = new - (other @ new) * other
        if np.linalg.norm(new) > 0.1:
            known.append((words, new / np.linalg.norm(new)))


def explained(rows: Array, direction: Array) -> float:
    """The part of a direction (k,) that lies in orthonormal ones (m, k)."""
    size = float(np.linalg.norm(direction))
    return float(np.linalg.norm(rows @ direction)) / size if size else 0.0


def unexplained(rows: Array, known: list[Named]) -> Array:
    """Orthonormal directions that, with those that are known, make the rows: (m, k)."""
    if not known or not len(rows):
        return rows
    inside = np.stack([direction for _, direction in known]) @ rows.T
    _, found, turned = np.linalg.svd(inside)
    return np.asarray(turned[np.count_nonzero(found > 0.5) :] @ rows)


def described(problem: Linearised, points: Array, c: Array, more: bool) -> str:
    """Directions without a simple name, by coefficients (k, m): of what, and where they are largest."""
    many = c.shape[1]
    squares = {n: np.square(problem.basis(n, points) @ c / (problem.fields[n].scale or 1)).sum(1)
               for n in problem.bases}  # fmt: skip
    first = problem.size - problem.numbers
    shares = {n: float(square.mean()) for n, square in squares.items()}
    for k, (u, number) in enumerate(zip(problem.system.unknowns, problem.system.numbers, strict=True), first):
        shares[u.name] = float(np.square(c[k] / scale_of(u, number)).sum())
    named = [n for n, share in shares.items() if share > PART * many]
    count = f"{many} {'more ' if more else ''}change{'s' * (many > 1)} of {' and '.join(named)}"
    if not (fields := [n for n in named if n in squares]):
        return count
    place = points[int(np.argmax(sum(squares[n] for n in fields)))]
    where = ", ".join(f"{name} = {value:.2g}" for name, value in zip(problem.domain.names, place, strict=True))
    return f"{count}, largest about {where}"


def simple(problem: Linearised) -> Iterator[Named]:
    """Constants and multiples of coordinates added to each field, by name, as coefficients (size,)."""
    for name, (begin, basis) in problem.bases.items():
        step = basis.size
        for which, (coordinate, degree) in enumerate([("", 1), *zip(basis.domain.names, basis.degrees, strict=True)]):
            step //= degree  # how far apart the next polynomials of a coordinate are
            if coordinate in basis.periodic:
                continue
            c = np.zeros(problem.size)
            c[begin + (step if which else 0)] = 1
            yield f"{name} + {f'multiple of {coordinate}' if which else 'constant'}", c


def of_unknowns(problem: Linearised) -> Iterator[Named]:
    """Unknowns that no residual depends on, and pairs of which all depend on one combination alone."""
    first, system = problem.size - problem.numbers, problem.system
    unknowns = list(zip(system.unknowns, system.numbers, strict=True))
    for k, (unknown, number) in enumerate(unknowns):
        c = np.zeros(problem.size)
        c[first + k] = scale_of(unknown, number)
        if all(indifferent(problem, s * c[first:]) for s in FAR):
            yield f"{unknown.name}, on which no residual depends", c
    for (i, (a, x)), (j, (b, y)) in combinations(enumerate(unknowns), 2):
        values = float(a.number(x.detach())), float(b.number(y.detach()))
        for sign, along in COMBINED.items():
            pairs = [along(*values, s) for s in (SMALL, *FAR)]
            if any(u.positive and value <= 0 for pair in pairs for u, value in zip((a, b), pair, strict=True)):
                continue
            steps = [np.zeros(problem.size) for _ in pairs]
            for c, (p, q) in zip(steps, pairs, strict=True):
                c[[first + i, first + j]] = a.raw_of(p) - a.raw_of(values[0]), b.raw_of(q) - b.raw_of(values[1])
            if all(indifferent(problem, c[first:]) for c in steps[1:]):
                yield f"{a.name} and {b.name}, of which {a.name} {sign} {b.name} alone is determined", steps[0]


def scale_of(unknown: Unknown, number: Tensor) -> float:
    """What change of its parameter counts as large."""
    return 1.0 if unknown.positive else max(abs(float(number.detach())), abs(unknown.raw)) or 1.0


def indifferent(problem: Linearised, steps: Array) -> bool:
    """Whether residuals are as they were, up to what they are, with the unknowns moved."""
    trainee = problem.trainee

    def residuals() -> list[Array]:
        return [numbers(trainee.residuals(index, batch)) for index, batch in enumerate(trainee.batches)]

    before = residuals()
    with moved(list(problem.system.numbers), steps):
        after = residuals()
    return all(norm(there - here) <= FREE + min(norm(here), INDIFFERENT)
               for here, there in zip(before, after, strict=True))  # fmt: skip


def symmetries(problem: Linearised, points: Array) -> Iterator[tuple[str, Array, float]]:
    """What makes solutions of solutions: in words, as coefficients, and how large the fields are that it changes.

    A factor of a field, or of all; one of a field and an unknown; a turn of a complex field; and a shift along a
    coordinate.
    """
    domain, trainee = problem.domain, problem.trainee
    if any(field.part is not None for field in problem.fields.values()):
        return
    columns = columns_of(domain, points, trainee.dtype, trainee.device)
    values = problem.system.fields(columns)
    parts = {name: problem.fit(name, points, numbers(values[name])) for name in problem.bases}
    norms = {n: float(np.sqrt(np.square(numbers(values[n])).mean())) / (problem.fields[n].scale or 1) for n in parts}
    good = {name: c for name, (c, misfit) in parts.items() if misfit < FITS and c.any()}
    everything = float(np.sqrt(sum(size**2 for size in norms.values())))
    if len(good) == len(parts) > 1:
        yield "all fields times a factor", np.sum(list(good.values()), axis=0), everything
    for name, c in good.items():
        if any(name in pair for pair in problem.system.pairs.values()):
            continue
        yield f"{name} times a factor", c, norms[name]
        for k, (unknown, number) in enumerate(zip(problem.system.unknowns, problem.system.numbers, strict=True)):
            for sign, word in ((-1, "*"), (1, "/")):
                both = c.copy()
                both[problem.size - problem.numbers + k] = sign * (1 if unknown.positive else float(number.detach()))
                alone = f"{name} {word} {unknown.name}"
                yield f"{name} and {unknown.name}, of which {alone} alone is determined", both, norms[name]
    for name, (real, imag) in problem.system.pairs.items():
        turned = {real: -numbers(values[imag]), imag: numbers(values[real])}
        if set(turned) <= set(good):
            c = np.sum([problem.fit(part, points, there)[0] for part, there in turned.items()], axis=0)
            yield f"{name} times a phase", c, everything
    for coordinate in domain.names:
        slopes = {n: leafgrad.autograd.grad(values[n].sum(), columns[coordinate], retain_graph=True)[0]
                  for n in good if coordinate in problem.fields[n].domain.names}  # fmt: skip
        slid = {n: problem.fit(n, points, numbers(slope)) for n, slope in slopes.items()}
        if slid and len(good) == len(parts) and all(misfit < FITS for _, misfit in slid.values()):
            yield f"all moved along {coordinate}", np.sum([c for c, _ in slid.values()], axis=0), everything
