"""The guard of the autograd graph behind a call's tensors: code that goes along it, and collects what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from leafgrad.compile.guard.environment import SCALARS
from leafgrad.compile.ir.keys import key_of
from leafgrad.compile.record.ancestors import Ancestors, is_array, kept_by
from leafgrad.ops.node import FREED, Leaf, Node, Output

# From the leaves of a call's arguments: the arrays that the nodes keep, and the nodes that the call frees; None where
# another graph is there.
Walk = Callable[[Sequence[Any]], tuple[list[Any], list[Any]] | None]


def walk_of(ancestors: Ancestors, guards: Any, leaves: Sequence[Any]) -> Walk:
    """A `Walk` for the graph behind a recorded call's roots, of which the ``guards`` have a condition then.

    Args:
        leaves: of the arguments of the recorded call.
    """
    roots = [guards.node_of(guards.name_of(root)) for root in ancestors.roots]
    arguments = {id(leaves[i]): f"a{i}" for i in guards.given}
    freed = ancestors.freed
    with ancestors.restored():
        owners = {id(t): guards.name(t) for t in ancestors.leaves} | arguments
        lines = AncestryWriter(ancestors, guards, owners).lines(roots, freed)
    walk: Walk = guards.function("leaves", lines)
    test = f"{guards.name(walk)}(leaves) is not None"
    guards.add(test, "grad_fn of its tensors", "one graph", lambda _: "another", "graph")
    return walk


def collected(walk: Walk, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """What a `Walk` gives where the guards hold."""
    found = walk(leaves)
    assert found is not None
    return found


class AncestryWriter:
    """Writes the code for one graph.

    Args:
        ancestors: the graph, of which nothing is freed.
        guards: whose code it is.
        owners: the expressions of tensors, by identity.
    """

    def __init__(self, ancestors: Ancestors, guards: Any, owners: dict[int, str]) -> None:
        self.ancestors, self.guards, self.owners = ancestors, guards, owners
        self.name, self.array = guards.name, guards.array
        self.numbers = ancestors.numbers
        self.bound: set[int] = set()
        self.arrays: dict[int, str] = {}  # the name of each array, by identity
        self.collected: list[str] = []

    def lines(self, roots: Sequence[str], freed: Sequence[Any]) -> list[str]:
        """The body of a `Walk` that starts at ``roots``."""
        lines = []
        for at, node in zip(roots, self.ancestors.starts, strict=True):
            lines += [f"r = {at}", *self.leads("r", node)]
        for node in self.numbers:
            lines += self.node(node)
        nodes = [f"n{i}" for i in self.numbers.values()]
        lines.append(f"if len({{{', '.join(nodes)}}}) != {len(nodes)}: return None")
        gone = ", ".join(f"n{self.numbers[node]}" for node in freed)
        return [*lines, f"return [{', '.join(self.collected)}], [{gone}]"]

    def leads(self, at: str, node: Any) -> Iterator[str]:
        """That ``at`` is the node that ``node`` stands for."""
        i = self.numbers[node]
        yield f"if {at} is not n{i}: return None" if i in self.bound else f"n{i} = {at}"
        self.bound.add(i)

    def node(self, node: Any) -> Iterator[str]:
        at = f"n{self.numbers[node]}"
        tests = [f"type({at}) is {self.name(type(node))}"]
        if type(node) is Leaf:
            owner = node.owner()
            if owner is not None and owner._node is node:
                tests.append(f"{at} is {self.owners[id(owner)]}._node")
            else:
                tests += [f"{at} is {self.name(node)}"]
                tests += [] if owner is None else [f"{self.name(owner)}._node is not {at}"]  # frozen since
        else:
            tests += [f"{at}.hooks is None", f"{at}.shape == {self.name(node.shape)}"]
        if type(node) is Output:
            tests.append(f"{at}.index == {node.index}")
        elif type(node) is Node:
            tests += [f"{at}.op is {self.name(node.op)}", f"{at}.shapes == {self.name(node.shapes)}"]
            tests += [self.same(f"{at}.params", node.params) if node.params else f"not {at}.params"]
            tests += [f"getattr({at}, 'dtypes', None) == {self.name(getattr(node, 'dtypes', None))}"]
            tests += [f"({at}.version is None or {at}.version.seq <= {at}.seq)"]
        yield f"if not ({' and '.join(tests)}): return None"
        edges = [f"e{i}" for i in range(len(node.edges))]
        yield f"{''.join(f'{e}, ' for e in edges)}= {at}.edges" if edges else f"if {at}.edges: return None"
        for e, edge in zip(edges, node.edges, strict=True):
            yield from [f"if {e} is not None: return None"] if edge is None else self.leads(e, edge)
        if type(node) is Node:
            yield from self.saved(at, node)

    def saved(self, at: str, node: Any) -> Iterator[str]:
        """That a node keeps the like."""
        if node.saved is FREED:
            yield f"if {at}.saved is not {self.name(FREED)}: return None"
            return
        several = type(node.out) is tuple
        outs = "".join(f"o{i}, " for i in range(len(node.out))) if several else "o0"
        yield f"{outs} = {at}.out"
        entries = [f"s{i}" for i in range(len(node.saved))]
        yield f"{''.join(f'{s}, ' for s in entries)}= {at}.saved" if entries else f"if {at}.saved != (): return None"
        names = [*entries, *(f"o{i}" for i in range(len(node.out) if several else 1))]
        forms = [*node.saved, *(node.out if several else (node.out,))]
        for s, form, (kept, tensor) in zip(names, forms, kept_by(node), strict=True):
            if tensor is not None:
                yield f"x, t = {s}" if type(form) is tuple else f"x, t = {s}._data, {s}"
                yield f"if not (t._writes is None or t._writes.seq <= {at}.seq): return None"
                leaf = self.ancestors.leaf_of(kept, tensor)
                if leaf is not None:
                    yield f"if x is not {self.owners[id(leaf)]}._data: return None"
            elif type(form) is tuple:
                yield f"x, t = {s}"
                yield "if t is not None: return None"
            else:
                yield f"x = {s}"
            yield from self.value(kept)

    def same(self, at: str, kept: Any) -> str:
        """That ``at`` is the same to an op as what was kept."""
        if type(kept) in SCALARS and kept == kept and not self.guards.by_identity:
            return str(self.guards.same(at, kept))
        return f"({at} is {self.name(kept)} or {self.name(key_of)}({at}) == {self.name(key_of(kept))})"

    def value(self, kept: Any) -> Iterator[str]:
        """That ``x`` is the like of what was kept."""
        if not is_array(kept):
            yield f"if not {self.same('x', kept)}: return None"
            return
        known = self.arrays.get(id(kept))
        found = f"x{len(self.collected)}"
        self.arrays.setdefault(id(kept), found)
        self.collected.append(found)
        yield f"if x is not {known}: return None" if known else f"d = x\n    if not ({self.array(kept)}): return None"
        yield f"{found} = x"
