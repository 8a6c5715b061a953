"""Taylor mode: power series pushed through the recorded graph, from the inputs to the outputs.

Where x moves along x(t) = x0 + x1 t + x2 t**2 + ..., y = f(x(t)) is such a series, too. Its derivative by t is
y' = J x', and J is what the op's vjp rule says: the rule is recorded as a graph of its own, once, and its coefficient
k - 1 is k times the coefficient k of y. A rule that reads ``out`` finds the coefficients of y that are known by then,
so that exp, sigmoid and their like need no more than the recurrences of the textbook (Griewank and Walther, "Evaluating
Derivatives", chapter 13). Ops for which this is slow declare a rule of their own beside their vjp: ``Op.jet``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from leafgrad import modes
from leafgrad.autograd import api, engine, forward
from leafgrad.autograd.local import Local, close, local
from leafgrad.batching.batched import Batch
from leafgrad.batching.boundary import each_sample, total
from leafgrad.ops import dispatch
from leafgrad.ops.node import SEQ, GraphNode, Leaf, Node, Output, transparent
from leafgrad.ops.op import Op
from leafgrad.ops.series import added, product
from leafgrad.ops.shape import expand
from leafgrad.tensor.tensor import Tensor

Term = Any  # a coefficient: a Tensor, one for each of several outputs, or None for zero
Rule = Callable[[int], Term]


class Unkept:
    """In place of a value that no vjp rule in use reads, and that was not kept for it: no arithmetic takes it."""


class Expansion:
    """The series of all nodes between some inputs and outputs, coefficient by coefficient.

    Args:
        order: of the last coefficient.
        recorded: record the coefficients, so that they can be differentiated.
        batch: of directions to move in. The last coefficient is then summed over them on the way: it enters linearly,
            so one sum goes through each op, not one coefficient for each direction ("collapsed" Taylor mode; Dangel,
            Siebert, Zeinhofer, Walther, 2025).
    """

    def __init__(self, order: int, recorded: bool, batch: Batch | None = None) -> None:
        self.order, self.recorded, self.batch = order, recorded, batch
        self.sums: forward.Flow = {}  # with a batch, the sum over it of each node's last coefficient
        self.born = next(SEQ)
        self.terms: dict[GraphNode, list[Term]] = {}  # from the first order on
        self.rules: dict[GraphNode, Rule | None] = {}  # the next term of a node; None if it does not move

    def seed(self, x: Tensor, terms: list[Tensor | None]) -> None:
        """Let an input move along a series."""
        node = api.node_of(x, "primals", 0)
        before = self.terms.get(node, [None] * self.order)
        self.terms[node] = [added(a, b) for a, b in zip(before, terms, strict=True)]
        self.rules[node] = lambda k: None
        self.collapse(node)

    def sweep(self, outputs: Iterable[Tensor]) -> None:
        """Expand the nodes that lead from the inputs to the outputs, in the order of their birth."""
        roots = dict.fromkeys([n for o in outputs if (n := dispatch.inside(o)._node) is not None])
        order, seeds = engine.reachable(roots), set(self.terms)
        _, passing = engine.leading_to(order, seeds)
        for node in reversed(order):
            if node in passing and node not in seeds:
                if node not in self.rules:
                    self.rules[node] = self.rule(node)
                for k in range(1, self.order + 1):
                    self.term(node, k)
                self.collapse(node)

    def collapse(self, node: GraphNode) -> None:
        """With a batch: sum the last coefficient, found without those of the arguments, and add what these make."""
        if self.batch is None or not self.order:
            return
        terms = self.terms.get(node, [])
        last = terms[-1] if terms else None
        found = each(lambda x: total(x, batch=self.batch), last)
        if self.sums and isinstance(node, (Node, Output, Local)) and node.edges:
            found = each(added, found, forward.tangent(node, self.sums, self.recorded))
        if found is not None:
            self.sums[node] = found
        if terms:
            terms[-1] = None

    def of(self, output: Tensor, k: int) -> Tensor | None:
        """Coefficient k >= 1 of an output."""
        node = dispatch.inside(output)._node
        last = self.batch is not None and k == self.order
        found: Tensor | None = self.sums.get(node) if last else self.term(node, k)
        return found

    def term(self, node: GraphNode | None, k: int) -> Term:
        """Coefficient k >= 1 of what a node computed."""
        if node is None or not self.moves(node):
            return None
        rule, terms = self.rules[node], self.terms.setdefault(node, [])
        assert rule is not None
        while len(terms) < k:
            terms.append(rule(len(terms) + 1))
        return terms[k - 1]

    def moves(self, node: GraphNode) -> bool:
        """Whether a node depends on the inputs.

        Nodes of the program have been asked, but for outputs of the one that is being asked, which its rules may read;
        younger ones belong to rules.
        """
        if node not in self.rules:
            unknown = node.seq > self.born or (isinstance(node, Output) and node.source in self.rules)
            self.rules[node] = self.rule(node) if unknown else None
        return self.rules[node] is not None

    # ---- how the series of a node goes on -------------------------------------------------------------------------

    def rule(self, node: Any) -> Rule | None:
        given = [e for e in dict.fromkeys(node.edges) if e is not None and self.moves(e)]
        if not given:
            return None
        if isinstance(node, Output):
            return lambda k: None if (terms := self.term(node.source, k)) is None else terms[node.index]
        if isinstance(node, Leaf) or transparent(node):
            return lambda k: self.term(given[0], k)
        op = getattr(node.op, "unconjugated", node.op)
        if isinstance(op, Op) and not hasattr(node, "ends"):
            if op.expanding is not None:
                declared, reads, names = op.expanding
                params = {name: node.params[name] for name in names}
                return lambda k: spread(declared(*self.series(node, reads, k), **params), tuple(node.shape))
            if "elementwise" not in op.traits and "linear" in op.traits and len(node.edges) == 1:
                return lambda k: each(lambda x: op(x, **node.params), self.term(given[0], k))
            if "bilinear" in op.traits and not any(f is None for f in self.factors(node)):
                return lambda k: self.product(node, k)
            if "elementwise" in op.traits and self.symmetric(node, op, given):
                return self.affine(node, given) if is_affine(node, given) else self.diagonal(node, given)
        return self.transposed(node, given)

    def symmetric(self, node: Node, op: Op, given: list[GraphNode]) -> bool:
        """As ``forward.symmetric``; the first coefficients are asked for only where it matters."""
        return forward.symmetric(node, op, ()) and (
            (op.ours and ("complex" not in op.traits or "linear" in op.traits))
            or forward.symmetric(node, op, [t for e in given if (t := self.term(e, 1)) is not None])
        )

    def factors(self, node: Node) -> list[Any]:
        """The arguments of a call, None for those that were not kept."""
        saved = node.op.checked(node) or (None,) * len(node.edges)
        pairs = zip(saved, node.edges, strict=True)
        return [dispatch.connect(s, e) if isinstance(s, Tensor) else s for s, e in pairs]

    def series(self, node: Node, reads: tuple[int, ...], k: int) -> list[list[Term]]:
        """The series of arguments up to order k, or of the output, which is argument -1, up to order k - 1."""
        found, required = [], node.op.signature.required
        for i in reads:
            source, last = (node, k - 1) if i < 0 else (node.edges[i], k)
            first = dispatch.reconnect_output(node) if i < 0 else self.factors(node)[i]
            if first is None and i < required:
                first = Unkept()
            found.append([first, *[self.term(source, j) for j in range(1, last + 1)]])
        return found

    def product(self, node: Node, k: int) -> Term:
        """A bilinear op: the sum of the products of coefficients."""
        x, y = self.series(node, (0, 1), k)
        return product(node.op, x, y, k, **node.params)

    def affine(self, node: Any, given: list[GraphNode]) -> Rule:
        """An elementwise op whose rules read nothing that moves: each term by itself."""

        def rule(k: int) -> Term:
            flow = {e: t for e in given if (t := self.term(e, k)) is not None}
            return forward.tangent_of(node, flow, tuple(node.shape), lambda t: t) if flow else None

        return rule

    def diagonal(self, node: Any, given: list[GraphNode]) -> Rule:
        """An elementwise op: its vjp rules applied to x' are y'."""
        slopes: list[Tensor] | None = None

        def rule(k: int) -> Term:
            nonlocal slopes
            if slopes is None:
                slopes = self.slopes(node, given)
            terms = slopes if k == 1 else [self.term(dispatch.inside(s)._node, k - 1) for s in slopes]
            found = spread(summed(terms), tuple(node.shape))
            return found if found is None or k == 1 else found / k

        return rule

    def slopes(self, node: Any, given: list[GraphNode]) -> list[Tensor]:
        """What the rules make of the derivative of each argument, recorded as the expansion goes on through it."""
        found = []
        for edge in given:
            first = self.term(edge, 1)
            if first is None:
                continue
            g = self.moving(spread(first, tuple(node.shape)), edge, tuple(node.shape))
            with modes.enable_grad():
                found += [s for _, s in node.op.unconjugated.pull_recorded(node, g, {edge}) if s is not None]
        return found

    def moving(self, first: Tensor, edge: GraphNode, shape: tuple[int, ...]) -> Tensor:
        """The derivative by t of an argument as a tensor that moves in its turn."""
        g = local(first, True)
        close([g])
        node = g._node
        self.rules[node] = lambda k: (
            None if (t := self.term(edge, k + 1)) is None else spread(t, shape) * (k + 1)
        )  # fmt: skip
        return g

    def transposed(self, node: Any, given: list[GraphNode]) -> Rule:
        """Any op: u -> vjp(u) is a matrix that moves, and its transpose times x' is y'."""
        started: Any = None

        def rule(k: int) -> Term:
            nonlocal started
            first = {e: t for e in given if (t := self.term(e, 1)) is not None}
            if not first:
                return None
            if started is None:
                started = self.pulled(node, first)
            us, several, pulled = started
            work = None
            with modes.enable_grad():
                for edge, row in pulled:
                    for j in range(k):
                        m = row if j == 0 else self.term(dispatch.inside(row)._node, j)
                        t = self.term(edge, k - j)
                        if m is not None and t is not None and m.requires_grad:
                            work = added(work, forward.inner(m, t) * (k - j))
            if work is None or not work.requires_grad:
                return None
            with each_sample():
                wanted = [u for u in us if u is not None]
                found = iter(api.grad(work, wanted, retain_graph=True, create_graph=True, allow_unused=True))
            terms = tuple([None if u is None else each(lambda y: y / k if k > 1 else y, next(found)) for u in us])
            return terms if several else terms[0]

        return rule

    def pulled(self, node: Any, first: dict[GraphNode, Tensor]) -> Any:
        """Variables for the gradient of each output, and what the rules make of them."""
        some = next(iter(first.values()))
        several = hasattr(node, "ends")
        us = forward.variables(node, some)
        close([u for u in us if u is not None])
        with modes.enable_grad():
            rows = node.op.pull_recorded(node, tuple(us) if several else us[0], set(first))
        return us, several, [(e, row) for e, row in rows if row is not None and row.requires_grad]


def is_affine(node: Any, given: list[GraphNode]) -> bool:
    """Whether the rules by the arguments that move read nothing that moves."""
    op, names = node.op, node.op.signature.arguments
    slots = [op.signature.slot(i) for i, e in enumerate(node.edges) if e in given]
    moving = {names[i] for i in slots} | {"out"}
    return all(not op.uses[i] & moving for i in slots)


def spread(t: Any, shape: tuple[int, ...]) -> Any:
    return t if t is None or tuple(t._data.shape) == shape else expand(t, shape=shape)


def each(function: Callable[..., Any], *terms: Term) -> Term:
    """A function of terms that are not all zero; of those of each output, where there are several."""
    if all(t is None for t in terms):
        return None
    several = next((t for t in terms if isinstance(t, tuple)), None)
    if several is None:
        return function(*terms)
    rows = [(None,) * len(several) if t is None else t for t in terms]
    return tuple([each(function, *row) for row in zip(*rows, strict=True)])


def summed(terms: Iterable[Term]) -> Term:
    found = None
    for term in terms:
        found = added(found, term)
    return found
