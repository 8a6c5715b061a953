"""Conditions of guards: expressions that are compiled into one function, and what a reader is told of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leafgrad import devices, modes
from leafgrad.compile.guard.environment import GONE, SCALARS, Class, ClassBody, Contents, Keys, Place, now
from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.ops import messages
from leafgrad.ops.node import SymbolBase
from leafgrad.tensor.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Condition:
    """One condition.

    Attributes:
        test: a Python expression in the names of the guards' scope; ``a0``, ``a1``, … are the leaves of the arguments.
        path: what it looks at, in a reader's words.
        expected: what that was when the function was traced.
        now: what it is for the given leaves.
        kind: ``"shape"`` of a tensor, among its facts; ``"value"`` of a number or object; ``"test"``, the outcome of
            one that decided which way the Python went; ``"graph"``, the autograd graph behind tensors; or ``"state"``,
            whatever else tensors are to each other.
        covered: whether another one, of many places at once, holds only if it does.
    """

    test: str
    path: str
    expected: str
    now: Callable[[Sequence[Any]], str]
    kind: str
    covered: bool


@dataclass(frozen=True)
class Miss:
    """The condition that failed: how many held before it, what it looks at, what that was and what it is."""

    held: int
    path: str
    before: str
    now: str
    kind: str = "state"


def brief(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, Tensor):
        return facts(value)
    if value is GONE:
        return "nothing"
    if isinstance(value, SCALARS):
        return messages.describe(value)
    if isinstance(value, Class):
        return f"of class {value[0].__qualname__}"
    if isinstance(value, (ClassBody, Contents, Keys)):
        return str(value)
    name = attribute_of(value, "__qualname__")
    return f"the {type(value).__name__} {name}" if name else f"a {type(value).__name__} at {id(value):#x}"


def facts(t: Tensor) -> str:
    """What matters of a tensor: ``float32 (3,) on cpu, requires grad``."""
    if isinstance(t._data, SymbolBase):
        return "a tensor made in the call"
    history = "" if t._node is None else ", requires grad" if t.is_leaf else ", computed with grad"
    history += ", with hooks" * (t._node is not None and t._node.hooked)
    history += ", made in inference mode" * t.is_inference()
    return f"{messages.describe(t)} on {devices.of(t._data)}{history}"


def compiled(conditions: Sequence[Condition], count: int, scope: dict[str, Any]) -> Callable[[Sequence[Any]], bool]:
    """A function of ``count`` leaves: whether all conditions hold. What is gone altogether does not."""
    tests = "\n            and ".join(c.test for c in conditions) or "True"
    return _function(f"return (\n            {tests}\n        )", "False", count, scope)


def first_to_fail(conditions: Sequence[Condition], leaves: Sequence[Any], scope: dict[str, Any]) -> int:
    """How many conditions hold before the first that does not; of many, a few are compiled and tried first."""
    held = 0
    for most in (16, 256, len(conditions)):
        tests = [f"at = {i}\n        if not ({c.test}): return at" for i, c in enumerate(conditions[:most])]
        body = "\n        ".join([*tests, f"return {len(tests)}"])
        held = _function(body, "at", len(leaves), scope)(leaves)
        if held < most:
            break
    return held


def _function(body: str, where_gone: str, count: int, scope: dict[str, Any]) -> Callable[[Sequence[Any]], Any]:
    """A function of ``count`` leaves, with what it returns where something that its tests look at is gone."""
    unpack = f"    {''.join(f'a{i}, ' for i in range(count))}= leaves\n" if count else ""
    source = (
        f"def holds(leaves):\n{unpack}    try:\n        {body}\n"
        "    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError):\n"
        f"        return {where_gone}\n"
    )
    return written(source, "holds", scope)


def written(source: str, name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function ``name`` of this text, in the names of ``scope``."""
    space = dict(scope)
    exec(_code(source), space)
    function: Callable[..., Any] = space.pop(name)
    return function


@lru_cache(maxsize=256)
def _code(source: str) -> Any:
    """Its code: programs of one function ask for much the same, and Python takes a millisecond for some."""
    return compile(source, "<leafgrad guards>", "exec")


def now_of(place: Place, _: Any) -> str:
    """What to say of what a place holds now."""
    return brief(now(place))


def gradient_of(i: int, t: Tensor) -> Callable[[Sequence[Any]], str]:
    """What to say of the gradient of the ``i``-th leaf of a call, or of ``t`` if ``i`` is negative."""

    def now(leaves: Sequence[Any]) -> str:
        owner = t if i < 0 else leaves[i]
        if owner._leaf is None or owner._leaf.grad is None:
            return "None"
        return "a gradient" if owner._leaf.grad._node is None else "a gradient that requires grad"

    return now


def mode_name(flags: int) -> str:
    """The mode in words."""
    parts = ["gradients on" if flags & modes.GRAD else "gradients off"]
    parts += ["inference mode"] * bool(flags & modes.INFERENCE) + ["anomaly detection"] * bool(flags & modes.ANOMALY)
    return ", ".join(parts)
