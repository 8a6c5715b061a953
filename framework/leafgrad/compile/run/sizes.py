"""The sizes of arguments that come in several lengths, followed through one recorded call.

What stands for such an argument has SymbolicNumbers in its shape, and so has what is made of it. Where the Python asks
what a size is, the answer becomes a guard, as with any number that is followed; where nothing asks, the program is one
for every length.
"""

from __future__ import annotations

import operator
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leafgrad.batching.pytree import DICTS, containers, flatten, is_tuple, parts_of, with_parts
from leafgrad.compile.guard.environment import Environment
from leafgrad.compile.guard.guards import Symbolic
from leafgrad.compile.guard.known import CACHE, file_of, is_plain
from leafgrad.compile.ir.attributes import attribute_of
from leafgrad.compile.ir.graph import Graph
from leafgrad.compile.ir.lengths import Length, resized
from leafgrad.compile.ir.sources import Argument
from leafgrad.compile.record.drawn import Drawer
from leafgrad.compile.record.numbers import Numbers
from leafgrad.compile.record.symbolic import SymbolicNumber, holds, placeholder, settled
from leafgrad.compile.record.trace import Traced
from leafgrad.compile.record.unclosed import Unclosed
from leafgrad.compile.record.watch import Codes, is_ours
from leafgrad.compile.run.left import Written, ordinary, swapped
from leafgrad.errors import TraceError
from leafgrad.ops import dispatch, messages
from leafgrad.ops.op import Op
from leafgrad.tensor.tensor import Tensor

MOST = 10_000  # objects that are looked through
DEPTH = 4  # of objects in each other
# Parts of parameters in which nothing is to be looked for.
PLAIN = (bool, int, float, complex, str, bytes, type(None), slice, SymbolicNumber, Op, type, types.ModuleType)


class Sizes:
    """Those of one recorded call.

    Args:
        numbers: what is followed in it.
        symbolic: what guards are to know of that.
        attempt: the call.
        lengths: for each leaf of the arguments its dimensions that come in several sizes.

    Attributes:
        standing: what stands for arguments, by id, and what for.
        swaps: where that is to be put into lists and dicts while the call runs.
        kept: whether the call has left such a tensor, or a shape, where it looked.
    """

    def __init__(
        self, numbers: Numbers, symbolic: Symbolic, attempt: Any, lengths: Mapping[int, Sequence[int]]
    ) -> None:
        self.numbers, self.symbolic, self.lengths = numbers, symbolic, lengths
        self.leaves, self.paths, self.outside = attempt.leaves, attempt.paths, attempt.before.tensors.keys()
        self.containers, self.watch = list(attempt.given.values()), attempt.watch
        self.standing: dict[int, tuple[Tensor, Tensor]] = {}
        self.swaps: list[Written] = []
        self.kept = False

    def given(self, tree: Any, leaves: Iterator[int]) -> Any:
        """An argument with what stands for tensors in it, of which ``leaves`` are the next ones."""
        if is_tuple(tree):
            before = parts_of(tree)
            parts = [self.given(part, leaves) for part in before]
            if all(map(operator.is_, parts, before)):
                return tree
            return with_parts(tree, parts)
        if type(tree) in DICTS or type(tree) is list:
            for key, part in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
                made = self.given(part, leaves)
                self.swaps += [Written(tree, key, made, part)] if made is not part else []
            return tree
        i = next(leaves)
        free = self.lengths[i] if type(tree) is Tensor else ()
        return self.of(tree, i, self.paths[i], free) if free else tree

    def of(self, tensor: Tensor, i: int, path: str, free: Sequence[int]) -> Tensor:
        """What stands for an argument, the ``i``-th leaf, that may have another size in some dimensions.

        It is the argument itself if that is more than a batch of data, which nothing else holds.
        """
        data, recorder = tensor._data, self.numbers.recorder
        plain = tensor._leaf is tensor._node is None and not vars(tensor)
        memory = dispatch.memory_of(data)
        beside = [t for k, t in enumerate(self.leaves) if isinstance(t, Tensor) and k != i]
        alone = id(tensor) not in self.outside and all(dispatch.memory_of(t._data) is not memory for t in beside)
        if not plain or not alone or recorder.wary or not data.flags.c_contiguous:
            return tensor
        if any(d >= data.ndim or data.shape[d] < 2 for d in free):  # a size of 1 broadcasts
            return tensor
        symbol, inner = recorder.lift(tensor), recorder.inside(tensor)
        recorder.made(inner)
        shape = list(data.shape)
        for d in free:
            shape[d] = self.numbers.size(shape[d], f"a{i}._data.shape[{d}]", f"{path}.shape[{d}]")
            bool(shape[d] >= 2)  # on which the program rests
        symbol.shape = symbol.value.shape = tuple(shape)
        self.symbolic.lengths[i] = tuple(free)
        self.standing[id(inner)] = inner, tensor
        return inner

    def check(self) -> None:
        """A TraceError if the call has given an argument another shape in place, which what stands for it has got."""
        for inner, tensor in self.standing.values():
            if inner._view is not tensor._view is None:
                raise TraceError(
                    "a compiled step gave another shape in place to an argument that comes in several lengths, "
                    f"{messages.describe(tensor)}, and did not at its earlier calls. Do so outside of the step"
                )

    def take_back(self, environment: Environment, result: Any) -> Iterator[Written]:
        """Make ordinary what the call has left where it looked, or in objects that it returns.

        Gives the numbers that it has left, and where they are.
        """
        if self.numbers.hashed:
            forget_cached()
        for inner, tensor in self.standing.values():
            self.kept |= bool(vars(inner))
            vars(tensor).update({name: settled(value) for name, value in vars(inner).items()})
        places = environment.places if self.standing else ()
        outside = {id(p.container): p.container for p in places if not isinstance(p.container, types.ModuleType)}
        returned = [leaf for leaf in flatten(result)[0] if is_holder(leaf)] if self.standing else []
        waiting, seen = [*outside.values(), *self.containers, *returned], {*outside, *environment.seen}
        while waiting:
            container = waiting.pop()
            for written in self.made_ordinary(container, id(container) in outside):
                if id(container) in outside and type(written.number) is SymbolicNumber:
                    yield written
                else:
                    self.kept = True
            values = values_of(container)
            own = container if isinstance(container, dict) else attribute_of(container, "__dict__")
            if id(container) in outside and isinstance(own, dict):  # of an object or a module, perhaps
                values = [value for name, value in own.items() if name in environment.names]
            new = [value for value in values if is_holder(value) and id(value) not in seen]
            seen |= {*map(id, new)}
            waiting += new
            if len(seen) > len(outside) + len(environment.seen) + MOST:
                self.kept = True
                break

    def made_ordinary(self, container: Any, outside: bool) -> list[Written]:
        """Put arguments and numbers in the place of what stands for them in a container; what was there.

        Of a place outside the program tells the number, so that nothing is read for it.
        """
        plain: dict[int, Any] = {key: tensor for key, (_, tensor) in self.standing.items()}
        held = [v for v in values_of(container) if type(v) in ALONE or id(v) in plain or isinstance(v, OF_PARTS)]
        if not held and type(container) in WITHOUT_SLOTS:
            return []
        for value in held:
            told = outside and type(value) is SymbolicNumber
            real = placeholder(value) if told else self.real(ordinary(value))
            if real is not value:
                plain[id(value)] = real
        return [Written(*slot) for slot in swapped(container, plain)]

    def program(self, traced: Traced) -> Graph:
        """What was traced, as a program for any length.

        Raises:
            Unclosed: it can be for this length only.
        """
        if not self.standing:
            return traced.graph
        graph, gradients = traced.graph, traced.gradients
        arguments = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        written = [e.source for e in graph.effects if isinstance(e.source, Argument)]
        steps = [step for alias in traced.aliases.values() for step in alias.steps]
        if (
            self.kept
            or self.numbers.asked
            or self.watch.failed
            or gradients.pullbacks
            or gradients.saved
            or traced.ancestors.roots
            or any(arguments[source.index] in self.symbolic.lengths for source in written)
            or any(strides is not None and holds(graph.ends[k].shape) for k, strides in traced.strides)
            or any(holds(params) for _, params in steps)
            or any(hides(value) for e in graph.equations for value in e.params.values())
        ):
            raise Unclosed("a program of it can be for one length of its arguments only")
        read = [v for e in graph.equations for v in e.values]  # in the order in which an ordinary recording meets them
        order = dict.fromkeys([*read, *graph.ends, *[v for v in graph.inputs if not holds(v.shape)]])
        of_any = replace(graph, inputs={v: graph.inputs[v] for v in order if v in graph.inputs})
        decisions = [d for d in self.numbers.recorder.decisions if holds([d.value.shape, d.params, d.steps])]
        traced.decisions = [decision.at(as_length) for decision in decisions]
        return resized(of_any, as_length)

    def real(self, tree: Any) -> Any:
        """A pytree with arguments in the place of what stood for them; its lists and dicts stay the same objects."""
        plain = {key: tensor for key, (_, tensor) in self.standing.items()}
        for part in containers(tree) if plain else ():
            values = parts_of(part)
            tuples = {id(value): new for value in values if is_tuple(value) and (new := self.real(value)) is not value}
            for _ in swapped(part, plain | tuples):
                pass
        if is_tuple(tree) and any(id(leaf) in plain for leaf in flatten(tree)[0]):
            return with_parts(tree, map(self.real, parts_of(tree)))
        return plain.get(id(tree), tree)


def as_length(part: Any) -> Any:
    """What stands for a size, or another part of a program, at any length."""
    return Length(part._text) if type(part) is SymbolicNumber else part


def hides(part: Any) -> bool:
    """Whether a parameter is an object with a symbolic number in it, which nobody would find at another length."""
    waiting, seen = [(part, DEPTH)], set[int]()
    for part, depth in waiting:  # which grows
        if isinstance(part, PLAIN) or id(part) in seen or not depth:
            continue
        seen.add(id(part))
        own = isinstance(part, (tuple, list, dict))
        parts = [*(part.values() if isinstance(part, dict) else part)] if own else values_of(part)
        if not own and any(map(holds, parts)):
            return True
        waiting += [(p, depth if own else depth - 1) for p in parts]
    return False


EMPTY = types.CellType()
ALONE = (SymbolicNumber, Drawer)  # what may be in a container, or in
OF_PARTS = (tuple, frozenset)
WITHOUT_SLOTS = (list, dict, tuple, set, deque, types.CellType, types.SimpleNamespace)
HOLDERS = (list, dict, tuple, set, deque, types.FunctionType, types.CellType, types.SimpleNamespace)
CHANGING = frozenset(
    "data set_ resize_ resize_as_ unsqueeze_ squeeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ __class__ "
    "__dict__ setattr".split()
)
CATCHING = frozenset({"TypeError", "Exception", "BaseException"})  # which may be that of a symbolic number


def is_holder(value: Any) -> bool:
    """Whether a value may hold others: a container, or an object of a user's class."""
    if isinstance(value, (type, types.ModuleType, Tensor, SymbolicNumber)):
        return False
    return isinstance(value, HOLDERS) or (is_plain(type(value)) and not is_ours(file_of(type(value))))


def is_apart(codes: Codes) -> bool:
    """Whether code of the user may make another tensor of one that it was given, by other memory, shape or class, or
    go on where a size is not taken for an int.
    """
    return any(not (CHANGING | CATCHING).isdisjoint(code.co_names) for code in codes.of_users())


def values_of(container: Any) -> list[Any]:
    """What a container, or an object, holds."""
    if type(container) is types.CellType:
        return [] if container == EMPTY else [container.cell_contents]
    if isinstance(container, (list, tuple, deque, set)):
        return [*container]
    if isinstance(container, types.FunctionType):
        return [container.__defaults__, *(container.__defaults__ or ()), *(container.__closure__ or ())]
    held = container if isinstance(container, dict) else attribute_of(container, "__dict__") or {}
    return [*held, *held.values()]


def forget_cached() -> None:
    """Empty this package's caches, in which a symbolic number may be kept as if it were one."""
    for name, module in list(sys.modules.items()):
        for held in list(vars(module).values()) if name.partition(".")[0] == "leafgrad" else ():
            if type(held) is CACHE:
                held.cache_clear()
