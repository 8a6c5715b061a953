"""``check_executor``: whether an executor runs ops, training steps and derivatives, and what it does with errors."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import leafgrad
from leafgrad import modes, nn, plugins
from leafgrad.autograd import grad
from leafgrad.compile.ir.rounding import close
from leafgrad.errors import CompileError
from leafgrad.optim import Adam
from leafgrad.testing.conformance.report import Fault, Report, Skip, outcome
from leafgrad.testing.making import make_tensor

Function = Callable[..., Any]

OPS: Final[dict[str, Function]] = {
    "arithmetic": lambda x, y: (x + y, x - 2, x * y, x / (y.abs() + 1), -x, x**2, x % 3),
    "functions": lambda x, y: (x.exp(), x.tanh(), x.sin(), (x.abs() + 1).log(), x.abs().sqrt(), x.sigmoid(), x.erf()),
    "choices": lambda x, y: (x.clamp(-1, 1), leafgrad.where(x > y, x, y), leafgrad.maximum(x, y), x.relu(), x > y),
    "sums": lambda x, y: (x.sum(), x.mean(0), x.amax(1), x.var(1), x.cumsum(1), x.softmax(1), x.logsumexp(0)),
    "shapes": lambda x, y: (
        x.T.contiguous(),
        x.reshape(-1)[1:],
        leafgrad.cat((x, y), 1),
        x.unsqueeze(1) + y,
        x.flip(0),
    ),
    "matrices": lambda x, y: (x @ y.T, x.T @ y, leafgrad.einsum("ij,kj->ik", x, y)),
    "places": lambda x, y: (x[:, [0, 1]], x.gather(1, x.argsort(1)), x.sort(1)[0], x.argmax(1)),
    "integers": lambda x, y: ((x * 3).long() // 2, (x > 0).sum(), x.int() & 3, x > 0, x.long() * 2**40 + 1),
}
"""Name -> core ops, as functions of two matrices."""

SHAPES: Final = ((3, 4), (1, 2), (64, 65), (0, 2))


def differing(got: Any, wanted: Any) -> str | None:
    """How two results differ, nested as they may be."""
    if isinstance(wanted, (tuple, list)):
        return next((d for g, w in zip(got, wanted, strict=True) if (d := differing(g, w)) is not None), None)
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"expected {wanted.dtype} of shape {tuple(wanted.shape)}, got {got.dtype} of shape {tuple(got.shape)}"
    array = got.detach().numpy()
    if not (array.dtype.isnative and array.flags.writeable):
        return "expected an array that can be written, in the machine's order of bytes, got another"
    return None if close(array, wanted.detach().numpy()) else f"expected {wanted}, got {got}"


def agree(name: str, function: Function, what: str, calls: Sequence[Sequence[Any]]) -> None:
    """Each call gives what it gives uncompiled; a Skip if the executor declines the program."""
    compiled = leafgrad.compile(function, executor=name)
    for args in calls:
        wanted = function(*args)
        with declining(what):
            got = compiled(*args)
        different = differing(got, wanted)
        if different is not None:
            raise Fault(f"{what}: {different}")


@contextlib.contextmanager
def declining(what: str) -> Iterator[None]:
    """A Skip where an executor declines a program, a Fault where it fails on it."""
    try:
        yield
    except CompileError as error:
        if error.__cause__ is None:
            raise Skip(f"declines {what}: {error}") from error
        raise Fault(f"{what}: {error}") from error


def agree_in_each(name: str, programs: Iterable[tuple[Function, str, Sequence[Sequence[Any]]]]) -> None:
    """All that the executor takes agree; a Skip that counts those that it declines, if there are any."""
    declined, count = list[str](), 0
    for function, what, calls in programs:
        count += 1
        try:
            agree(name, function, what, calls)
        except Skip as skip:
            declined.append(str(skip))
    if declined:
        some = "" if len(declined) == count else f"{len(declined)} of {count}, the others agree: "
        raise Skip(some + declined[0])


def matrices(shape: tuple[int, ...], dtype: str) -> list[Any]:
    return [make_tensor(shape, dtype=getattr(leafgrad, dtype), device="cpu", low=-3, high=3) for _ in range(2)]


def ops(name: str) -> None:
    """Core ops, float32 and float64, of several shapes, each run three times on other numbers."""
    agree_in_each(name, (
        (function, f"{what}, {dtype} {shape}", [matrices(shape, dtype) for _ in range(3)])
        for what, function in OPS.items()
        for dtype in ("float32", "float64")
        for shape in SHAPES
        if shape[0] or what not in ("sums", "places")
    ))  # fmt: skip


def layouts(name: str) -> None:
    """Inputs that are views: transposed, reversed, broadcast, with gaps."""
    x, y = matrices((6, 8), "float32")
    views = [(x, y), (x.T, y.T), (x[::2], y[1::2]), (x[:1].expand(6, 8), y), (x[:, 2:5], y[:, 2:5])]

    def function(p: Any, q: Any) -> tuple[Any, ...]:
        return p * q + 1, p.sum(0), p @ q.T

    agree_in_each(name, ((function, f"views of strides {a.stride()}", [(a, b)] * 3) for a, b in views))


def network() -> nn.Module:
    leafgrad.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))


def derivatives(name: str) -> None:
    """First, second and third derivatives of a network with respect to its input."""
    model = network()

    def function(x: Any) -> tuple[Any, ...]:
        found = [model(x).sum()]
        for _ in range(3):
            (d,) = grad(found[-1].sum(), x, create_graph=True)
            found.append(d)
        return tuple(f.detach() for f in found)

    given = [[make_tensor((5, 3), dtype=leafgrad.float64, device="cpu", requires_grad=True)] for _ in range(3)]
    model.double()
    agree(name, function, "derivatives", given)


def trained(steps: int, wrap: Callable[[Function], Function]) -> list[Any]:
    """The losses, and then the parameters, of a training with dropout and Adam."""
    model, x = network(), leafgrad.rand(16, 3)
    optimizer = Adam(model.parameters(), lr=0.01)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (nn.functional.dropout(model(x), 0.3) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = wrap(step)
    losses = [run(x) for _ in range(steps)]
    return [*losses, *(p.detach() for p in model.parameters())]


def training(name: str) -> None:
    """Six steps of Adam, with dropout: losses, weights, and random numbers drawn as uncompiled."""
    wanted = [*trained(6, lambda step: step), leafgrad.rand(2)]
    got = [*trained(6, lambda step: leafgrad.compile(step, executor=name)), leafgrad.rand(2)]
    for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
        if not leafgrad.allclose(g, w, rtol=1e-4, atol=1e-6):
            raise Fault(f"training, {'loss' if i < 6 else 'weight or random number'} {i}: expected {w}, got {g}")


def runs(name: str) -> None:
    """A program that was right in its first runs is right in a hundred."""

    def function(x: Any, y: Any) -> Any:
        return (x * y).sin() + x, (x @ y.T).sum(0)

    agree(name, function, "one of a hundred runs", [matrices((5, 7), "float32") for _ in range(100)])


def memory(name: str) -> None:
    """What earlier calls returned stays what it was, and so do arguments."""
    compiled = leafgrad.compile(lambda x: (x * 2, x.sum()), executor=name)
    given = [leafgrad.full((4, 4), float(i)) for i in range(5)]
    kept = [compiled(x) for x in given]
    for i, (doubled, total) in enumerate(kept):
        if (
            doubled.tolist() != [[2.0 * i] * 4] * 4
            or total.item() != 16 * i
            or given[i].tolist() != [[float(i)] * 4] * 4
        ):
            raise Fault(f"call {i}: a later call changed what it returned or was given; each result in new memory")


def errors(name: str) -> None:
    """An index out of range raises what it raises uncompiled; nothing is written, and the next call is right."""
    weight = nn.Parameter(leafgrad.ones(4))

    def step(i: Any) -> Any:
        with modes.no_grad():
            weight.add_(1)
        return (weight * 2)[i].sum()

    compiled = leafgrad.compile(step, executor=name)
    for k in range(6):
        try:
            compiled(leafgrad.tensor([0, 7 if k == 4 else 1]))
        except IndexError:
            if k != 4:
                raise
        else:
            if k == 4:
                raise Fault("index 7 of 4 elements: expected an IndexError, got a result")
        if weight.tolist() != [2.0 + k] * 4:
            raise Fault(f"after call {k}: expected the weight at {2 + k}, got {weight.tolist()}")


def interrupts(name: str) -> None:
    """After a call that a signal interrupted, calls are right."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise Skip("signals come to the main thread, on POSIX")

    class Interrupt(BaseException):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupt

    x = leafgrad.linspace(0.5, 2, 20000)

    def function(t: Any) -> Any:
        return (t.sin() * t).exp().cumsum(0), t.sum()

    compiled, wanted = leafgrad.compile(function, executor=name), function(x)
    for _ in range(2):
        compiled(x)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(1, 20):
            with contextlib.suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 2e-5 * k)
                compiled(x)
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    different = differing(compiled(x), wanted)
    if different is not None:
        raise Fault(f"after an interrupt: {different}")


def text(name: str) -> None:
    """``source()`` is a string, ``explain()`` a list of strings."""
    compiled = leafgrad.compile(lambda x: x * 2, executor=name)
    compiled(leafgrad.ones(2))
    if not isinstance(compiled.source(), str):
        raise Fault(f"source(): expected a str, got a {type(compiled.source()).__name__}")
    lines = plugins.resolve(plugins.executor(name).target)().compile(compiled.graph).explain()
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise Fault(f"explain(): expected a list of str, got {lines!r}")


CHECKS: Final[dict[str, Callable[[str], None]]] = {
    "ops": ops,
    "layouts": layouts,
    "derivatives": derivatives,
    "training": training,
    "runs": runs,
    "memory": memory,
    "errors": errors,
    "interrupts": interrupts,
    "text": text,
}
"""Name -> check of the executor of that name."""


def check_executor(name: str, checks: Iterable[str] | None = None) -> Report:
    """Check that an executor keeps the contract of ``leafgrad.plugins.Executor``.

    Args:
        name: as in ``compile(step, executor=name)``.
        checks: the names of those to run, of ``leafgrad.testing.executors.CHECKS``; all by default.

    Returns:
        The report: what passed, and what was left out because the executor declines it.

    Raises:
        ConformanceError: some checks failed; an AssertionError that names each. UnknownNameError: no plugin lists the
        executor. ValueError: no such check.
    """
    plugins.executor(name)
    wanted = list(CHECKS if checks is None else [checks] if isinstance(checks, str) else checks)
    unknown = [check for check in wanted if check not in CHECKS]
    if unknown:
        raise ValueError(f"check_executor: checks: unknown check {unknown[0]!r}; expected some of {', '.join(CHECKS)}")
    report = Report(f"executor {name!r}")
    report.results += [outcome(check, declining("its program")(CHECKS[check]), name) for check in wanted]
    report.require()
    return report
