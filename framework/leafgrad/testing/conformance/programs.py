"""Compiled, an op gives what it gives eagerly: shapes that a trace states, and values by every executor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import leafgrad
from leafgrad import plugins
from leafgrad.autograd import grad
from leafgrad.compile import trace
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.replay import run_equation
from leafgrad.compile.ir.sources import Captured
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.passes import optimize
from leafgrad.errors import CompileError
from leafgrad.ops.op import Op
from leafgrad.ops.trigonometric import cos, sin
from leafgrad.testing.conformance.batches import batches, mapped
from leafgrad.testing.conformance.report import Skip
from leafgrad.testing.conformance.subject import Sample, Subject, difference, host, tensor

ROWS, PART = 130, 64  # of a batch, and of a chunk: the last one is shorter
LARGEST = 2**22  # elements of an array whose dimensions of one length are made ROWS long
OF = "vjp,shape,chunk,batched,summed,rewrite,lower,c,ufunc"  # declarations by which a program goes
REFUSALS = (ValueError, TypeError, IndexError, RuntimeError, AssertionError)
DECLINES = "executor {!r}: declines"
EVERYTHING = ("numpy", "replay")  # executors that run every program
Function = Callable[..., tuple[Any, ...]]


def declines(subject: Subject, executor: str, error: CompileError) -> None:
    """Note that an executor declines to run the op; raise the error if it failed."""
    if executor in EVERYTHING or error.__cause__ is not None:
        raise error
    subject.untried.append(f"{DECLINES.format(executor)}: {error}")


def shapes(subject: Subject) -> None:
    """The shapes and dtypes that a trace states are those that the op gives."""
    # One trace has all calls, since each takes its time; where it fails, each call has its own, to tell which it is.
    made = [*subject.samples, *broadcast_samples(subject), *shorter(subject)]
    calls = [
        sample.of(dtype) if dtype else sample
        for sample in made
        for dtype in (subject.dtypes if sample.floats and subject.dtypes else [""])
    ]
    try:
        as_stated(subject, calls)
    except Exception:
        for call in calls:
            subject.samples.current = call
            as_stated(subject, [call])
        raise


def as_stated(subject: Subject, calls: list[Sample]) -> None:
    """A Fault of the first call where an equation of a trace of all gives something else than it states."""
    given = [tensor(call.args[i], "cpu") for call in calls for i in call.arrays]
    graph = trace(together(subject, calls), *given)
    at = {v: host(s.tensor if isinstance(s, Captured) else given[s.index]) for v, s in graph.inputs.items()}
    for equation in graph.equations:
        found = run_equation(equation, at)
        at.update(zip(equation.outputs, found if equation.several else (found,), strict=True))
        for stated in equation.outputs:
            real = at[stated]
            if (stated.shape, stated.dtype) != (real.shape, real.dtype.name):
                raise subject.fault(
                    calls[0], f"{real.dtype} {real.shape}, as the op gives", f"{stated.dtype} {stated.shape}",
                    "mend the shape rule, or the trait from which one follows", f"predicted for {equation}", "shape",
                )  # fmt: skip


def broadcast_samples(subject: Subject) -> Iterator[Sample]:
    """Samples with one array cut to size 1 along an axis, or with an axis more, where the op takes that."""
    for sample in subject.samples if isinstance(subject.op, Op) else ():
        for i in sample.arrays if len(sample.arrays) > 1 else ():
            a = sample.args[i]
            cut = [np.take(a, [0], axis) for axis in range(a.ndim) if a.shape[axis] > 1]
            for other in (*cut, a[None]):
                made = f"with {subject.argument(i)!r} of shape {other.shape}"
                args = tuple([other if k == i else b for k, b in enumerate(sample.args)])
                found = replace(sample, args=args, made=made)
                what = f"{subject.argument(i)!r} broadcast from some other shapes"
                if takes(subject, found, partial(subject.run, found), what):
                    yield found


def shorter(subject: Subject) -> Iterator[Sample]:
    """Samples with all dimensions of one length cut by one, where the op takes that."""
    for sample in subject.samples if isinstance(subject.op, Op) else ():
        for n in sorted({n for i in sample.arrays for n in sample.args[i].shape if n > 2}):
            cut = [a[tuple([slice(k - (k == n)) for k in a.shape])] if isinstance(a, np.ndarray) else a
                   for a in sample.args]  # fmt: skip
            found = replace(sample, args=tuple(cut), made=f"with its dimensions of length {n} made {n - 1} long")
            if takes(subject, found, partial(subject.run, found), ""):
                yield found


def takes(subject: Subject, sample: Sample, call: Callable[[], Any], what: str) -> bool:
    """Whether the op takes a sample that the kit made; one that it refuses is noted as not exercised, as ``what``.

    Only what an op may well say of shapes is a refusal. Anything else, as an AttributeError, is a bug in it.
    """
    subject.samples.current = sample
    try:
        call()
    except Exception as error:
        reason = error.__cause__ or error  # dispatch says which op it was
        if not isinstance(reason, REFUSALS):
            raise
        if what:
            subject.untried.append(f"{what}: the op refuses ({type(reason).__name__})")
        return False
    return True


def together(subject: Subject, samples: list[Sample]) -> Function:
    """All calls as one function of the arrays of all samples."""
    calls = tuple(samples)  # which guards know, so that programs close

    def function(*given: Any) -> tuple[Any, ...]:
        rest = iter(given)
        found: list[Any] = []
        for sample in calls:
            args = [next(rest) if isinstance(a, np.ndarray) else a for a in sample.args]
            found += subject.run(sample, args)
        return tuple(found)

    return function


def tensors_of(subject: Subject, samples: list[Sample]) -> list[Any]:
    """The arrays of all samples; those with a gradient rule require grad."""
    found = []
    for sample in samples:
        given = subject.tensors(sample, subject.differentiable(sample), "cpu")
        found += [given[i] for i in sample.arrays]
    return found


def differentiated(function: Function, orders: int = 2) -> Function:
    """The results, and the first derivatives of a sum of them; with two orders, the second ones, too."""

    def derived(*given: Any) -> tuple[Any, ...]:
        inputs = [g for g in given if g.requires_grad]
        found = function(*given)
        parts = [(sin(r) * 1.5).sum() for r in found if r.requires_grad]
        if not parts:
            return found
        first = grad(sum(parts[1:], parts[0]), inputs, create_graph=orders > 1, materialize_grads=True)
        if orders == 1:
            return *found, *first
        again = sum(((cos(g) + g * x).sum() for g, x in zip(first, inputs, strict=True)), parts[0] * 0.0)
        return *found, *[g.detach() for g in first], *grad(again, inputs, materialize_grads=True)  # zeros are leaves

    return derived


def dims(subject: Subject) -> None:
    """A negative ``dim`` counts from the end, eagerly and under vmap; "compile" has the same compiled."""
    turned = list(negatives(subject))
    for sample, negative in turned:
        given = tensors_of(subject, [sample])
        ways: dict[str, Callable[[Sample], Function]] = {
            "": lambda s: together(subject, [s]),
            "under vmap": lambda s: of_arrays(s, mapped(subject, s, tuple(0 if i in s.arrays else None
                                                                     for i in range(len(s.args))))),
        }  # fmt: skip
        for what, way in ways.items():
            arrays = [tensor(np.stack([host(g.detach())] * 2), "cpu") for g in given] if what else given
            want = [host(r.detach()) for r in way(sample)(*arrays)]
            for r, w in zip(way(negative)(*arrays), want, strict=True):
                subject.compare(negative, host(r.detach()), w, subject.rtol, "take dim modulo ndim", what)
    if not turned:
        raise Skip("no sample has a dim")


def negatives(subject: Subject) -> Iterator[tuple[Sample, Sample]]:
    """Samples with a ``dim``, each with one whose ``dim`` is the same from the end."""
    for sample in subject.samples:
        dim = sample.params.get("dim")
        ndim = max((sample.args[i].ndim for i in sample.arrays), default=0)
        if dim is None or not ndim or "reduction" not in subject.traits:
            continue
        several = isinstance(dim, tuple)
        turned = tuple(d % ndim - ndim for d in (dim if several else (dim,)))
        if turned:
            yield sample, replace(sample, params=sample.params | {"dim": turned if several else turned[0]})


def compiled(subject: Subject) -> None:
    """Every executor gives what eager does: the results, and two derivatives."""
    samples, turned = subject.samples, [negative for _, negative in negatives(subject)]
    smooth = subject.orders >= 2 and "nondifferentiable" not in subject.traits
    function = together(subject, samples)
    given, what = tensors_of(subject, samples), ""
    if smooth:
        function, what = differentiated(function), "with two derivatives"
    names, own = names_of(subject), tensors_of(subject, turned)
    whole = joined([(function, given), (together(subject, turned), own)])
    if not names:  # a program by itself, which is what executors have in common
        by_itself(subject, samples[0], whole, given + own)
    for executor in names:
        compare_programs(subject, [*samples, *turned], whole, given + own, executor, what)
    told = " ".join(subject.untried)
    if names and all(DECLINES.format(name) in told for name in names):
        raise Skip(f"declines: {', '.join(names)}")


def chunks(subject: Subject) -> None:
    """The same for a batch that is long enough for executors to go through it in parts."""
    long = stretched(subject)
    found = chunked(subject) + long
    if not found:
        raise Skip("the op has neither a batching rule nor a chunk rule, or no sample has elements")
    for sample, function, given in found:
        by_itself(subject, sample, function, given, PART)
    others = [
        name for name in names_of(subject) if name not in EVERYTHING
    ]  # one just ran in parts, the other never does
    what, found = f"a batch of {ROWS}", chunked(subject, 1) + long if others else []
    for executor in others:
        try:  # one program of first derivatives, since a compiler takes its time for each
            whole = joined([(function, given) for _, function, given in found])
            compare_programs(subject, [found[0][0]], whole, [g for *_, given in found for g in given], executor, what)
        except AssertionError:
            for sample, function, given in found:
                compare_programs(subject, [sample], function, given, executor, what)
            raise


def joined(parts: list[tuple[Function, list[Any]]]) -> Function:
    """Several functions as one, of the arguments of all."""

    def function(*given: Any) -> tuple[Any, ...]:
        rest = iter(given)
        found: list[Any] = []
        for part, own in parts:
            found += part(*[next(rest) for _ in own])
        return tuple(found)

    return function


def by_itself(subject: Subject, sample: Sample, function: Function, given: list[Any], rows: int | None = None) -> None:
    """A Fault unless a program, which may take some rows at a time, gives what the function does."""
    made = {id(r): r for r in function(*given) if not any(r is g for g in given)}  # a program gives each once
    want = [host(r.detach()) for r in made.values()]
    graph = optimize(trace(function, *given))
    results = NumpyProgram(graph, rows)(given_to(graph, given))[
        : len(want)
    ]  # behind them, what a backward pass would need
    where = "as a program" if rows is None else f"{rows} of {ROWS} rows at a time"
    for k, (r, w) in enumerate(zip(results, want, strict=True)):
        agree(subject, sample, host(r), w, f"{where}, result {k}")


def given_to(graph: Graph, given: list[Any]) -> list[Any]:
    """What a program of a graph is given where its function was traced with these tensors."""
    sources: list[Any] = list(graph.inputs.values())
    return [host((s.tensor if isinstance(s, Captured) else given[s.index]).detach()) for s in sources]


def names_of(subject: Subject) -> list[str]:
    """The executors asked for, or all that are installed and run programs on the CPU."""
    if subject.executors is not None:
        return list(subject.executors)
    plugins.load()
    found = []
    for spec in plugins.executors():
        if getattr(plugins.resolve(spec.target), "device_type", None) in (None, "cpu"):
            found.append(spec.name)
    return found


def chunked(subject: Subject, orders: int = 2) -> list[tuple[Sample, Function, list[Any]]]:
    """The op and its derivatives on a long batch, where it has a batching rule.

    Of an elementwise op, one for samples of the same dimensions: its rows are alike, whatever its parameters are.
    """
    found, seen = [], set()
    if isinstance(subject.op, Op) and subject.op.batching is None:
        return []
    for group in batches(subject, ROWS):
        sample, places = group[0], group[0].arrays
        dimensions = tuple([np.ndim(a) for a in sample.args])
        if not any(sample.args[i].size for i in places) or ("elementwise" in subject.traits and dimensions in seen):
            continue
        seen.add(dimensions)
        dims = tuple(0 if i in places else None for i in range(len(sample.args)))
        whole = [tensor(np.stack([s.args[i] for s in group]), "cpu") for i in places]
        function = of_arrays(sample, mapped(subject, sample, dims))
        smooth = [places.index(i) for i in subject.differentiable(sample)] if subject.orders else []
        for k in smooth:
            whole[k].requires_grad_()
        found.append((sample, differentiated(function, orders) if smooth else function, whole))
    return found


def stretched(subject: Subject) -> list[tuple[Sample, Function, list[Any]]]:
    """The op between two others on long arrays, where a chunk rule of its own says how rows go through it.

    All dimensions of one length are made long at once; where the op does not take that, there is nothing to compare.
    """
    if not isinstance(subject.op, Op) or subject.op.origins.get("chunk", "trait ").startswith("trait "):
        return []
    found = []
    for sample in subject.samples:
        for n in {n for i in sample.arrays for n in sample.args[i].shape if n > 1}:
            if max(math.prod(ROWS if k == n else k for k in sample.args[i].shape) for i in sample.arrays) > LARGEST:
                continue
            args = tuple([longer(a, n) if isinstance(a, np.ndarray) else a for a in sample.args])
            long = replace(sample, args=args, made=f"with its dimensions of length {n} made {ROWS} long")
            function, given = between(together(subject, [long])), [tensor(args[i], "cpu") for i in long.arrays]
            what = f"chunks of dimensions of length {n}, made {ROWS} long"
            if takes(subject, long, partial(function, *given), what):
                found.append((long, function, given))
    return found


def longer(array: Any, n: int) -> Any:
    """The array with its dimensions of length ``n`` made ``ROWS`` long, by repetition."""
    for axis in [k for k, length in enumerate(array.shape) if length == n]:
        array = np.take(array, np.arange(ROWS) % n, axis)
    return array


def between(function: Function) -> Function:
    """The function, of arrays and with results that are computed in the same program."""

    def floating(t: Any) -> bool:
        return bool(t.dtype.is_floating_point)

    def inner(*given: Any) -> tuple[Any, ...]:
        found = function(*[g * abs(cos(g * 0.0)) if floating(g) else g for g in given])
        return tuple([sin(r) if floating(r) else r for r in found])

    return inner


def of_arrays(sample: Sample, function: Function) -> Function:
    """The function of the arrays alone, the other arguments being those of the sample."""

    def of_arrays(*given: Any) -> tuple[Any, ...]:
        rest = iter(given)
        return function(*[next(rest) if isinstance(a, np.ndarray) else a for a in sample.args])

    return of_arrays


def compare_programs(
    subject: Subject, samples: list[Sample], function: Function, given: list[Any], executor: str, what: str
) -> None:
    """A Fault unless the compiled function gives at each call what the function does."""
    want = [host(r.detach()).copy() for r in function(*given)]
    where = f"executor {executor!r}" + (f", {what}" if what else "")
    remedy = "mend the trait or declaration of the op that does not hold"
    step = leafgrad.compile(function, executor=executor)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                results = step(*given)
            except CompileError as error:
                declines(subject, executor, error)
                return
        for warning in said:  # an executor that compares by itself tells what differs; NumPy tells of nan and inf
            if issubclass(warning.category, RuntimeWarning) and "encountered in" not in str(warning.message):
                raise subject.fault(samples[0], "the same by this executor", str(warning.message), remedy, where, OF)
        for k, (r, w) in enumerate(zip(results, want, strict=True)):
            if disagreement(host(r.detach()), w) is not None:
                agree(subject, samples[0] if len(samples) == 1 else blamed(subject, samples, executor, what),
                      host(r.detach()), w, f"{where}, result {k}")  # fmt: skip


def disagreement(found: Any, wanted: Any) -> tuple[str, str] | None:
    """What was expected and what came, where they differ by more than rounding."""
    finite = np.abs(wanted[np.isfinite(wanted)]) if wanted.dtype.kind == "f" else np.zeros(0)
    rtol = {"float32": 1e-5, "float16": 1e-2}.get(wanted.dtype.name, 1e-10)
    scale = max(1.0, float(finite.max(initial=0.0)))
    return difference(found, wanted, rtol if wanted.dtype.kind != "f" else rtol * scale)


def agree(subject: Subject, sample: Sample, found: Any, wanted: Any, where: str) -> None:
    """A Fault unless the arrays are the same but for rounding."""
    wrong = disagreement(found, wanted)
    if wrong is not None:
        raise subject.fault(sample, *wrong, "mend the trait or declaration of the op that does not hold", where, OF)


def blamed(subject: Subject, samples: list[Sample], executor: str, what: str) -> Sample:
    """Raise for the first sample that differs on its own; the first of all if none does."""
    for sample in samples:
        function = together(subject, [sample])
        if what:
            function = differentiated(function)
        compare_programs(subject, [sample], function, tensors_of(subject, [sample]), executor, what)
    return samples[0]
