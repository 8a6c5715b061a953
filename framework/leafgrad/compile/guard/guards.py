"""Guards: under which conditions a program stands for the function it was traced from.

Every condition is one expression; all of them together are compiled into one function, since they run at each call.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from leafgrad import modes
from leafgrad.compile.guard import conditions
from leafgrad.compile.guard.ancestry import walk_of
from leafgrad.compile.guard.conditions import Miss, brief, mode_name, now_of, written
from leafgrad.compile.guard.environment import GONE, SCALARS, Environment, Place, held_in, is_tensors, now
from leafgrad.compile.guard.tensors import TensorConditions
from leafgrad.compile.ir.graph import Graph, Write
from leafgrad.compile.ir.keys import same
from leafgrad.compile.ir.memory import Apart
from leafgrad.compile.ir.sources import Argument, Captured, Expression, KeptArray
from leafgrad.compile.record.trace import Traced
from leafgrad.forks import cached_property
from leafgrad.ops.node import SymbolBase
from leafgrad.tensor.tensor import Tensor

FEW = 32  # keys of a dict that is looked through for names which are absent from it


@dataclass
class Symbolic:
    """The numbers that a recording followed, which guards let differ.

    Attributes:
        relations: expressions that must be true, each with what it looks at, and what it binds to which value, if any.
        outcomes: the same of values that the program computes, with which these are.
        arguments: which leaves, named ``a0``, ``a1``, … in expressions.
        lengths: of tensors among the leaves, dimensions of any size.
        places: numbers outside, or tuples of some, by their names ``p0``, ``p1``, ….
    """

    relations: dict[str, tuple[str, tuple[str, Any] | None]] = field(default_factory=dict)
    outcomes: dict[str, tuple[str, frozenset[int]]] = field(default_factory=dict)
    arguments: set[int] = field(default_factory=set)
    lengths: dict[int, tuple[int, ...]] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    @property
    def used(self) -> bool:
        """Whether any number may differ."""
        return bool(self.arguments or self.places or self.relations)


class Guards(TensorConditions):
    """The conditions under which one program may be run.

    Attributes:
        figures: places outside that held a number or a tensor, or what may hold some.
        apart: a check of what memory is written; None if none is.

    Args:
        flags: the mode.
        structure: of the arguments.
        leaves: the arguments, flat, with ``paths``.
        traced: the recorded call.
        environment: what else was read.
        symbolic: numbers that may differ.
    """

    def __init__(
        self,
        flags: int,
        structure: Any,
        leaves: Sequence[Any],
        paths: Sequence[str],
        traced: Traced,
        environment: Environment,
        symbolic: Symbolic,
    ) -> None:
        super().__init__(paths, leaves, environment.by_identity)
        self.count = len(leaves)
        kinds = (int, float, tuple)
        self.figures = [p for p in environment.places if type(p.value) in kinds or is_tensors(p.value)]
        self.symbolic = symbolic
        self.flags = flags
        self.structure = structure
        captured, ancestors = traced.captured, traced.ancestors
        written = [e.source for e in traced.graph.effects if isinstance(e, Write)]
        self.scope["names"], self.any_name = environment.names, environment.any_name
        for i, leaf in enumerate(leaves):
            self.argument(i, leaf)
        self.distinct(leaves, {id(t): "a captured tensor" for t in captured} | environment.tensors)
        for t in (*captured, *self.unused(environment, captured, leaves)):
            self.captured(t, environment.tensors.get(id(t), "a captured tensor"))
        for view in traced.views:
            self.view(view, leaves, environment)
        for i in [self.given[s.index] for s in written if isinstance(s, Argument)] if flags & modes.GRAD else ():
            test = f"(a{i}._view is None or a{i}._view.origin is None or a{i}._view.base._node is None)"
            self.add(test, self.paths[i], "of memory that may be written", lambda _: "a view that must not be")
        self.gradients(traced.touched, leaves, captured, environment)
        followed = {(id(p.container), p.kind, p.key) for p in symbolic.places.values()}
        self.places([p for p in environment.places if (id(p.container), p.kind, p.key) not in followed])
        self.numbers()
        self.behind = walk_of(ancestors, self, leaves) if ancestors.roots else None
        self.apart = self.apart_of(traced.graph)

    @cached_property
    def accepts(self) -> Callable[[Sequence[Any]], bool]:
        """Whether the leaves of a call fulfil all conditions. Of a recording that is never run again nobody asks it."""
        return conditions.compiled([c for c in self.conditions if not c.covered], self.count, self.scope)

    # ---- the conditions ---------------------------------------------------------------------------------------

    @staticmethod
    def unused(environment: Environment, captured: Sequence[Tensor], leaves: Sequence[Any]) -> list[Tensor]:
        """Tensors of which the Python may have read what they are, a shape say, though not what they hold."""
        used = {id(t) for t in (*captured, *leaves)}
        reached = (environment.seen.get(key) for key in environment.tensors if key not in used)
        return [t for t in reached if isinstance(t, Tensor) and not isinstance(t._data, SymbolBase)]

    def argument(self, i: int, leaf: Any) -> None:
        at = f"a{i}"
        if isinstance(leaf, Tensor):
            test = (
                f"type({at}) is {self.name(type(leaf))} and {self.tensor(at, leaf, self.symbolic.lengths.get(i, ()))}"
            )
            unread = "" if self.any_name else f" or {at}.__dict__.keys().isdisjoint(names)"
            test += f" and (not {at}.__dict__{unread})"
        elif i in self.symbolic.arguments:
            test = f"type({at}) is {self.name(type(leaf))}"
        else:
            test = self.same(at, leaf)
        expected = f"{brief(leaf)}, or another one" if i in self.symbolic.arguments else brief(leaf)
        expected += ", or of another length" if i in self.symbolic.lengths else ""
        kind = "shape" if isinstance(leaf, Tensor) else "value"
        self.add(test, self.paths[i], expected, lambda leaves: brief(leaves[i]), kind)

    def numbers(self) -> None:
        """The types of numbers that may differ, and what decided which way the Python went."""
        for name, place in self.symbolic.places.items():
            value = place.now()
            test = f"({name} := {self.reading(place)}) is {name} and type({name}) is {self.name(type(value))}"
            if type(value) is tuple:
                test += f" and [*map(type, {name})] == {self.name([*map(type, value)])}"
            self.add(test, place.path, f"{brief(value)}, or another one", partial(now_of, place), "value")
        for test, (path, bound) in self.symbolic.relations.items():
            if bound is None:
                self.add(test, path, "on one side of a test", lambda _: "on the other side", "test")
            else:
                text, found = bound
                of = "" if text.partition("[")[0].isidentifier() else "what is computed of "
                self.add(test, of + path, repr(found), partial(self.bound_to, text), "value")

    def bound_to(self, expression: str, leaves: Sequence[Any]) -> str:
        """What it is now."""
        return repr(*self.expressions([expression])(leaves))

    def reading(self, place: Place) -> str:
        """The expression that reads a place which holds a number."""
        at = self.name(place.container)
        if place.kind == "cell":
            return f"{at}.cell_contents"
        key = self.key(place.key)
        return f"{at}.get({key})" if isinstance(place.container, dict) else f"{at}[{key}]"  # a default would be added

    def expressions(self, texts: Sequence[str], items: Sequence[str] = ()) -> Callable[..., tuple[Any, ...]]:
        """A function of the leaves, and of values read, that gives what these expressions are."""
        lines = [f"{name} = {self.reading(place)}" for name, place in self.symbolic.places.items()]
        return self.function(", ".join(["leaves", *items]), [*lines, f"return ({''.join(f'{t}, ' for t in texts)})"])

    def function(self, parameters: str, lines: Sequence[str]) -> Callable[..., Any]:
        """A function with this text, in the names that conditions have; ``leaves`` must be among its parameters."""
        unpack = [f"{''.join(f'a{i}, ' for i in range(self.count))}= leaves"] * bool(self.count)
        text = "\n    ".join([f"def call({parameters}):", *unpack, *lines])
        return written(text, "call", self.scope)

    def places(self, places: Sequence[Place]) -> None:
        """What was read from outside. Whole containers of objects, keys and empty dicts take one look each."""
        self.scope["is_"], self.scope["own"] = operator.is_, operator.attrgetter("__dict__")
        self.scope["keys_of"], self.scope["only_strings"] = chain.from_iterable, frozenset({str}).issuperset
        items: dict[int, list[Place]] = {}
        for place in places:
            if place.kind == "item" and type(place.container) in (list, dict) and type(place.value) not in SCALARS:
                items.setdefault(id(place.container), []).append(place)
        whole = {key: group for key, group in items.items() if len(group) == len(group[0].container) > 2}
        objects = [p for p in places if p.kind == "class"]
        bare = [p.container for p in objects if p.value[1] == {}]
        dicts = {id(p.value[1]): p for p in objects if p.value[1] is not None}
        empty = [p for p in places if p.kind == "absent" and not p.container and id(p.container) in dicts]
        absent = [p for p in places if p.kind == "absent" and 0 < len(p.container) <= FEW]
        named = [p for p in places if p.kind == "keys" and all(type(key) is str for key in p.value)]
        grouped = {id(p) for p in (*empty, *absent, *objects, *named)}
        for place in places:
            covered = id(place.container) in whole if place.kind == "item" else id(place) in grouped
            self.place(place, covered)
        for group in whole.values():
            held = group[0].container
            values = f"{self.name(held)}.values()" if type(held) is dict else self.name(held)
            expected = tuple(held.values() if type(held) is dict else held)
            self.add(
                f"len({self.name(held)}) == {len(held)} and all(map(is_, {values}, {self.name(expected)}))",
                group[0].path,
                "as it was",
                lambda _: "another",
                "value",
            )
        kinds = [p.value[0] for p in objects]
        self.group(f"[*map(type, {{}})] == {self.name(kinds)}", "classes of objects", [p.container for p in objects])
        filled = [p for p in dicts.values() if p.value[1]]
        expected = tuple(p.value[1] for p in filled)
        test = f"all(map(is_, map(own, {{}}), {self.name(expected)}))"
        self.group(test, "dicts of objects", [p.container for p in filled])
        self.group("not any(map(own, {}))", "attributes of tensors", bare)
        self.absent(absent)
        keys = self.name([[*p.value] for p in named])
        lengths, all_keys = self.name([len(p.value) for p in named]), self.name((*chain(*(p.value for p in named)),))
        same = f"[*map(len, {{0}})] == {lengths} and all(map(is_, keys_of({{0}}), {all_keys}))"
        equal = f"[*map(list, {{0}})] == {keys} and only_strings(map(type, keys_of({{0}})))"  # and none of a subclass
        self.group(f"({same} or {equal})", "keys of dicts", [p.container for p in named])

    def absent(self, places: Sequence[Place]) -> None:
        """That no dict has names which were looked for and not found: one look at all of which the same were."""
        names: dict[int, set[Any]] = {}
        dicts = {id(p.container): p.container for p in places}
        for p in places:
            names.setdefault(id(p.container), set()).update(p.key)
        alike: dict[frozenset[Any], list[Any]] = {}
        for key, missing in names.items():
            alike.setdefault(frozenset(missing), []).append(dicts[key])
        for none, of in alike.items():
            self.group(f"all(map({self.name(none)}.isdisjoint, {{}}))", "attributes of objects", of)

    def group(self, test: str, path: str, objects: Sequence[Any]) -> None:
        """One test of many objects."""
        if objects:
            self.add(test.format(self.name(tuple(objects))), path, "as they were", lambda _: "others", "value")

    def place(self, place: Place, covered: bool) -> None:
        at = self.name(place.container)
        match place.kind:
            case "item":
                key = self.key(place.key)
                test = self.same(f"{at}[{key}]", place.value)
                if hasattr(type(place.container), "__missing__"):  # which may add the key
                    test = f"{key} in {at} and {test}"
            case "attribute":
                found = f"{at}.{place.key}" if place.key.isidentifier() else f"getattr({at}, {place.key!r})"
                test = self.same(found, place.value)
            case "slot":
                test = self.same(f"{self.name(place.key)}.__get__({at})", place.value)
            case "cell":
                test = self.same(f"{at}.cell_contents", place.value)
            case "length":
                test = f"len({at}) == {place.value}"
            case "call":
                test = f"{at}() == {self.name(place.value)}"
            case "array":
                test = f"{self.name(type(place.value).of)}({at}) == {self.name(place.value)}"
            case "empty":
                test = f"{at} == {self.name(types.CellType())}"
            case "class":
                test = f"type({at}) is {self.name(place.value[0])}"
                if place.value[1] is not None:
                    test += f" and {at}.__dict__ is {self.name(place.value[1])}"
            case "unset":
                self.scope["held_in"] = held_in
                test = f"held_in({self.name(place.key)}, {at}) is {self.name(GONE)}"
            case "body":
                at = self.name(vars(place.container))
                count, *held = place.value
                present = [(name, value) for name, value in zip(place.key, held, strict=True) if value is not GONE]
                length = f"len({at}) - ('__slotnames__' in {at}) == {count}"
                test = " and ".join([length, *(f"{at}[{n!r}] is {self.name(v)}" for n, v in present)])
            case "absent":
                place = replace(place, key=frozenset(place.key))
                test = f"{at}.keys().isdisjoint({self.name(place.key)})"
            case "keys":
                held = self.name(list(place.value))
                test = f"[*map(id, {at})] == {held}"
                if all(type(key) is str for key in place.value):
                    test = f"[*{at}] == {held} and only_strings(map(type, {at}))"
            case _:
                self.scope["same"] = same
                test = f"same((*{at},), {self.name(place.value)})"
        self.add(test, place.path, brief(place.value), lambda _: brief(now(place)), "value", covered)

    def key(self, key: Any) -> str:
        return repr(key) if type(key) in (str, int) else self.name(key)

    def apart_of(self, graph: Graph) -> Apart | None:
        """A check for a program that writes: of its tensors, and of what it reads of the graph behind them."""
        written = {id(e.source) for e in graph.effects if isinstance(e, Write)}
        if not written:
            return None
        sources = [source for source in graph.inputs.values() if not isinstance(source, Expression)]
        captured = [(source.tensor, id(source) in written) for source in sources if isinstance(source, Captured)]
        others = [source for source in sources if not isinstance(source, Captured)]
        behind = any(isinstance(source, KeptArray) for source in others)
        kept = [f"kept, _ = {self.name(self.behind)}(leaves)"] * behind
        found = f"return [{', '.join([self.array_of(source) for source in others])}]"
        return Apart(captured, self.function("leaves", [*kept, found]), [id(source) in written for source in others])

    # ---- asking -----------------------------------------------------------------------------------------------

    def match(self, flags: int, structure: Any, leaves: Sequence[Any]) -> bool:
        """Whether the program may be run."""
        return (
            flags == self.flags
            and len(leaves) == self.count
            and structure == self.structure
            and self.accepts(leaves)
            and (self.apart is None or self.apart.holds(leaves))
        )

    def miss(self, flags: int, structure: Any, leaves: Sequence[Any]) -> Miss:
        """The first condition that fails."""
        if flags != self.flags:
            return Miss(0, "the mode", mode_name(self.flags), mode_name(flags))
        if structure != self.structure or len(leaves) != self.count:
            return Miss(1, "the arguments", "of another number, nesting or set of keys", "as they are now")
        held = conditions.first_to_fail(self.conditions, leaves, self.scope)
        if held < len(self.conditions):
            failed = self.conditions[held]
            return Miss(2 + held, failed.path, failed.expected, failed.now(leaves), failed.kind)
        return Miss(2 + held, "memory that is written", "one tensor's", "shared with another tensor")
