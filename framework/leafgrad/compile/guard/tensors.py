"""Conditions on tensors: what they are, whose views they are, their place in the graph, their gradients."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad import backends
from leafgrad.compile.guard.conditions import Condition, facts, gradient_of
from leafgrad.compile.guard.environment import GUARDS, SCALARS, Environment
from leafgrad.compile.ir.keys import same
from leafgrad.compile.ir.sources import Argument, Captured, Grad, KeptArray
from leafgrad.compile.record.symbolic import FUNCTIONS
from leafgrad.ops import dispatch
from leafgrad.ops.node import Leaf
from leafgrad.tensor.tensor import Tensor


class TensorConditions:
    """Conditions, each one expression, in names for the objects that it looks at.

    Args:
        paths: what a reader calls the arguments.
        leaves: the arguments.
        by_identity: whether an equal number or string is another one.

    Attributes:
        given: which leaves are tensors.
        conditions: in the order in which they are asked.
        scope: the objects by their names.
    """

    def __init__(self, paths: Sequence[str], leaves: Sequence[Any], by_identity: bool) -> None:
        self.given = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.by_identity = by_identity
        self.paths = list(paths)
        self.scope: dict[str, Any] = {"__name__": GUARDS, "Leaf": Leaf, **FUNCTIONS}
        self.names: dict[int, str] = {}
        self.conditions: list[Condition] = []

    def add(
        self,
        test: str,
        path: str,
        expected: str,
        now: Callable[[Sequence[Any]], str],
        kind: str = "state",
        covered: bool = False,
    ) -> None:
        self.conditions.append(Condition(test, path, expected, now, kind, covered))

    def name(self, value: Any) -> str:
        """The name of an object in the scope."""
        name = self.names.get(id(value))
        if name is None:
            name = self.names[id(value)] = f"k{len(self.names)}"
            self.scope[name] = value
        return name

    def view(self, view: Any, leaves: Sequence[Any], environment: Environment) -> None:
        """That a view which was recorded as one is the same part of the same memory."""
        place = {id(leaf): i for i, leaf in enumerate(leaves)}
        i, base = place.get(id(view)), view._view.base
        if i is None:
            name, path = self.name(view), environment.tensors.get(id(view), "a captured view")
            test = f"{name}._view.root is {name}._view.base._data"
        else:
            at, path = f"a{i}._view", self.paths[i]
            of = f"a{place[id(base)]}" if id(base) in place else self.name(base)
            test = f"{at} is not None and {at}.base is {of} and {at}.root is {of}._data and {at}.steps == "
            test += self.name(view._view.steps)
        self.add(test, path, "a view of its base", lambda _: "a view of other memory")

    def captured(self, t: Tensor, path: str) -> None:
        at = self.name(t)
        try:
            known = self.name(weakref.ref(t._data))
        except TypeError:
            array = self.array(t._data)
        else:  # mostly it is the very array, of which nobody changes more than the elements
            array = f"(d is {known}() and d.shape == {tuple(t._data.shape)!r} or {self.array(t._data)})"
        self.add(
            f"(d := {at}._data) is d and {array} and {self.node(at, t)}", path, facts(t), lambda _: facts(t), "shape"
        )

    def tensor(self, at: str, t: Tensor, free: Sequence[int] = ()) -> str:
        """That a tensor is as ``t`` is now: array class, shape, dtype, device, place in the graph, no hooks, mode.

        It may have another size in ``free`` dimensions.
        """
        array = self.array(t._data, free)
        return f"(d := {at}._data) is d and {array} and {self.node(at, t)} and {self.inference(at, t)}"

    def inference(self, at: str, t: Tensor) -> str:
        """That a tensor was made in inference mode as ``t`` was, or outside of it."""
        made_there = t._writes is dispatch.INFERENCE_VERSION
        return f"{at}._writes {'is' if made_there else 'is not'} {self.name(dispatch.INFERENCE_VERSION)}"

    def array(self, data: Any, free: Sequence[int] = ()) -> str:
        """That the array ``d`` has the class, shape, dtype, layout and device of ``data``, but for ``free`` sizes."""
        shape = tuple(data.shape)
        rest = [f"d.shape[{i}] == {n}" for i, n in enumerate(shape) if i not in free]
        parts = [
            f"type(d) is {self.name(type(data))}",
            " and ".join([f"d.ndim == {len(shape)}", *rest]) if free else f"d.shape == {shape!r}",
            f"d.dtype == {self.name(data.dtype)}",
        ]
        if data.ndim:
            parts.append("d.flags.c_contiguous" if free else f"d.strides == {tuple(data.strides)!r}")
        backend = backends.backend_of(data)
        if backend.device_count() > 1:
            self.scope[f"{backend.name}_index"] = backend.device_index
            parts.append(f"{backend.name}_index(d) == {backend.device_index(data)}")
        return " and ".join(parts)

    def node(self, at: str, t: Tensor) -> str:
        """That a tensor has a like place in the graph, and the same hooks."""
        parts, node = [], t._node
        at = self.node_of(at)
        if node is None:
            parts.append(f"{at} is None")
        elif type(node) is Leaf:
            hooks = node.hooks.all() if node.hooks is not None else ()
            parts.append(f"type(n := {at}) is Leaf")
            if hooks:
                parts.append(f"n.hooks is not None and n.hooks.all() == {self.name(hooks)}")
            else:
                parts.append("(n.hooks is None or not n.hooks.all())")
        else:
            parts.append(f"(n := {at}) is not None and type(n) is not Leaf")
            parts += [] if node.hooked else ["not n.hooked"]  # a hook that runs in a call opens it
        return " and ".join(parts)

    def distinct(self, leaves: Sequence[Any], known: dict[int, str]) -> None:
        """That the same arguments are one tensor as were, and the same of them are found elsewhere, too."""
        first: dict[int, int] = {}
        for i in self.given:
            k = first.setdefault(id(leaves[i]), i)
            if k != i:
                both = f"{self.paths[k]} and {self.paths[i]}"
                self.add(f"a{k} is a{i}", both, "one tensor", lambda _: "two tensors")
        if len(first) > 1:
            ids = ", ".join(f"id(a{i})" for i in first.values())
            paths = [self.paths[i] for i in first.values()]
            self.add(
                f"len({{{ids}}}) == {len(first)}",
                " and ".join(paths),
                "different tensors",
                lambda _: "one tensor twice",
            )
        for key, i in first.items():
            if key in known:
                self.add(
                    f"a{i} is {self.name(leaves[i])}",
                    f"{self.paths[i]} and {known[key]}",
                    "one tensor",
                    lambda _: "two",
                )
        others = [i for key, i in first.items() if key not in known]
        if others and known:
            self.scope["outside"] = frozenset(known)
            ids = ", ".join(f"id(a{i})" for i in others)
            path = ", ".join(self.paths[i] for i in others)
            self.add(f"outside.isdisjoint(({ids},))", path, "passed as an argument only", lambda _: "captured as well")

    def gradients(
        self,
        touched: Sequence[tuple[Argument | Captured, bool]],
        leaves: Sequence[Any],
        captured: Sequence[Tensor],
        env: Environment,
    ) -> None:
        """That tensors have, or have not, a gradient; that it requires none; and which tensors it is itself."""
        others = {id(t): self.name(t) for t in captured} | {id(leaves[i]): f"a{i}" for i in self.given}
        apart: dict[int, str] = {}
        for source, was_none in touched:
            i = self.given[source.index] if isinstance(source, Argument) else -1
            t = leaves[i] if isinstance(source, Argument) else source.tensor
            at = self.name(t) if i < 0 else f"a{i}"
            path = f"{env.tensors.get(id(t), 'a captured tensor') if i < 0 else self.paths[i]}.grad"
            if was_none:
                test = f"({at}._leaf is None or {at}._leaf.grad is None)"
            else:
                test = (
                    f"({at}._leaf is not None and (g := {at}._leaf.grad) is not None and {self.node_of('g')} is None"
                    f" and (d := g._data) is d and {self.array(t.grad._data)} and {self.inference('g', t.grad)})"
                )
            self.add(test, path, "None" if was_none else "a gradient", gradient_of(i, t))
            if was_none:
                continue
            grad = f"{at}._leaf.grad"
            if id(t.grad) not in others and (id(t.grad) in env.tensors or t.grad._view is not None):  # found otherwise
                others[id(t.grad)] = self.name(t.grad)
            name = others.get(id(t.grad)) or apart.setdefault(id(t.grad), grad)
            if name != grad:
                self.add(f"{grad} is {name}", path, "a tensor that is used otherwise, too", lambda _: "another one")
        if apart:
            ids = "".join(f"id({name}), " for name in others.values() if name not in self.scope)
            fixed = self.name(frozenset(key for key, name in others.items() if name in self.scope))
            of_each = f"(x := {{{', '.join(f'id({grad})' for grad in apart.values())}}})"
            test = f"len{of_each} == {len(apart)} and x.isdisjoint({fixed}) and x.isdisjoint(({ids}))"
            self.add(test, "gradients", "each used as such only", lambda _: "one used otherwise, too")

    @staticmethod
    def node_of(at: str) -> str:
        """The expression of a tensor's node: that of its property, which is called for views alone."""
        return f"({at}._history if {at}._view is None else {at}._node)"

    def name_of(self, source: Any) -> str:
        """The expression of a source's tensor."""
        if isinstance(source, Grad):
            return f"{self.name_of(source.of)}._leaf.grad"
        return self.name(source.tensor) if isinstance(source, Captured) else f"a{self.given[source.index]}"

    def array_of(self, source: Any) -> str:
        """The expression of a source's array, where ``kept`` are those of the graph behind."""
        return f"kept[{source.index}]" if isinstance(source, KeptArray) else f"{self.name_of(source)}._data"

    def same(self, at: str, value: Any) -> str:
        """That a value is this object, or an equal number or string."""
        if value is None or value is True or value is False:
            return f"{at} is {value!r}"
        if type(value) in SCALARS and not self.by_identity and value == value:  # of nan, "in" and "==" see which it is
            name = self.name(value)
            test = f"type(x) is {self.name(type(value))} and x == {name}"
            if type(value) is float and value == 0:
                self.scope["copysign"] = math.copysign
                test += f" and copysign(1, x) == {math.copysign(1, value)!r}"
            elif type(value) is complex:
                self.scope["same"] = same
                test = f"same(x, {name})"
            return f"((x := {at}) is {name} or {test})"
        if type(value) is slice:
            self.scope["same"] = same
            return f"same({at}, {self.name(value)})"
        return f"{at} is {self.name(value)}"
