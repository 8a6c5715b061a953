"""What rules keep for the backward pass, and what a forward remembers between calls."""

from __future__ import annotations

import copy
import dis
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from leafgrad.ops.op import Op
from leafgrad.ops.signature import declared
from leafgrad.testing.conformance.declared import code_of, codes, declarations
from leafgrad.testing.conformance.report import Fault, Skip
from leafgrad.testing.conformance.subject import Subject, host

PLAIN = (bool, int, float, complex, str, bytes, type(None), types.ModuleType)


def reads(subject: Subject) -> None:
    """A vjp rule reads each array that it names, and more of it than its shape: what it names is kept."""
    if not isinstance(subject.op, Op):
        raise Skip("it is a function, not an op")
    arrays = {"out", *subject.op.signature.arguments}
    for d in declarations(subject.op):
        if d.what.startswith("vjp ") and code_of(d.function) is not None:
            for name in arrays.intersection(declared(d.function)[0]):
                used = uses(d.function, name)
                if not used:
                    raise Fault(f"{d} names {name!r}, which it does not read, and so keeps it alive; leave it out")
                if name != "out" and used <= {"shape", "ndim"}:
                    raise Fault(
                        f"{d} reads no more of {name!r} than its {' and '.join(sorted(used))}, and so keeps the array "
                        f"alive; name {name}_shape instead"
                    )


def uses(function: Callable[..., Any], name: str) -> set[str]:
    """How the code of a function reads a variable: by which attributes, "" for the variable itself."""
    found = set()
    for code in codes(code_of(function)):
        steps = list(dis.get_instructions(code))
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if step.opname.startswith("LOAD") and name in (
                step.argval if isinstance(step.argval, tuple) else (step.argval,)
            ):
                if step.opname == "LOAD_CLOSURE":
                    continue  # handed to a function within, which reads it or not
                attribute = following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")
                found.add(str(following.argval) if attribute and following is not None else "")
    return found


def state(subject: Subject) -> None:
    """What a call gives does not depend on the calls before it."""
    if not isinstance(subject.op, Op) or not subject.pristine:
        raise Skip("its functions refer to nothing that they could change")
    alone = []
    for sample in subject.samples:
        put_back(subject.pristine)
        alone.append([host(r.detach()).copy() for r in subject.run(sample)])
    remedy = "keep no state: what a forward gives depends on its arguments alone"
    for order in (1, -1):
        put_back(subject.pristine)
        for sample, want in [*zip(subject.samples, alone, strict=True)][::order]:
            for r, w in zip(subject.run(sample), want, strict=True):
                subject.compare(sample, host(r.detach()), w, 0.0, remedy, "after other calls than before")


class Snapshot:
    """What something that a function refers to was like: a cell, a global name, or the attributes of an object."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], None]) -> None:
        self.put = put
        self.value = copied(get())


def copied(value: Any) -> Any:
    """A copy of what can be written into; anything else as it is."""
    if isinstance(value, np.ndarray | list | dict | set):
        return copy.deepcopy(value)
    return value


def put_back(before: list[Snapshot]) -> None:
    """Let all be as it was."""
    for snapshot in before:
        snapshot.put(copied(snapshot.value))


def snapshots(op: Any) -> list[Snapshot]:
    """What the functions of an op, and those that they call in their module, refer to and might change."""
    found: list[Snapshot] = []
    seen: set[int] = set()
    for d in declarations(op):
        for function in reached(d.function, seen):
            found += of_function(function, seen)
    return found


def reached(function: Any, seen: set[int]) -> Iterator[types.FunctionType]:
    """A function and the functions of its module that its code names."""
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function
    named = [function.__globals__.get(n) for code in codes(function.__code__) for n in code.co_names]
    for other in (*named, *cell_contents(function)):
        if isinstance(other, types.FunctionType) and other.__module__ == function.__module__:
            yield from reached(other, seen)


def cell_contents(function: types.FunctionType) -> Iterator[Any]:
    """What the variables of enclosing functions hold that a function reads."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # empty yet
            yield cell.cell_contents


def of_function(function: types.FunctionType, seen: set[int]) -> Iterator[Snapshot]:
    """What one function refers to."""
    space = function.__globals__
    for name in {n for code in codes(function.__code__) for n in code.co_names if n in space}:
        yield from of_value(function.__module__, space[name], partial(space.__setitem__, name), seen)
    for cell in function.__closure__ or ():
        try:
            yield from of_value(function.__module__, cell.cell_contents, partial(setattr, cell, "cell_contents"), seen)
        except ValueError:  # empty yet
            continue
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        if isinstance(value, list | dict | set):
            yield within(value)


def of_value(module: str, value: Any, put: Callable[[Any], None], seen: set[int]) -> Iterator[Snapshot]:
    """A name bound to a number may be bound to another; a container may be filled; an object of the module written."""
    if isinstance(value, Op | types.FunctionType | types.ModuleType | types.BuiltinFunctionType):
        return
    if isinstance(value, np.ndarray | list | dict | set):
        if id(value) not in seen:
            seen.add(id(value))
            yield within(value)
    elif isinstance(value, PLAIN):
        yield Snapshot(lambda: value, put)
    elif id(value) not in seen and getattr(value, "__module__", None) == module:
        seen.add(id(value))
        yield from of_object(value)


def within(value: Any) -> Snapshot:
    """The contents of a container."""

    def put(before: Any) -> None:
        if isinstance(value, np.ndarray):
            value[...] = before
        elif isinstance(value, list):
            value[:] = before
        else:
            value.clear()
            value.update(before)

    return Snapshot(lambda: value, put)


def of_object(value: Any) -> Iterator[Snapshot]:
    """The attributes of an object or a class, that are no functions."""
    kept = {
        name: copied(v)
        for name, v in getattr(value, "__dict__", {}).items()
        if not name.startswith("__") and not callable(v) and not hasattr(v, "__get__")
    }

    def put(before: dict[str, Any]) -> None:
        for name in [
            n
            for n, v in vars(value).items()
            if not n.startswith("__") and not callable(v) and not hasattr(v, "__get__")
        ]:
            if name not in before:
                delattr(value, name)
        for name, old in before.items():
            setattr(value, name, copied(old))

    if hasattr(value, "__dict__"):
        yield Snapshot(lambda: kept, put)
