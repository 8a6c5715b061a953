"""Write a sum of products with fewer products: a w + b w is (a + b) w, elementwise and for matrices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from leafgrad.compile.ir.graph import Equation, Graph, Value
from leafgrad.compile.passes.rewrite import Rewriter, rewrite, size
from leafgrad.compile.passes.rules.arithmetic import plain_number, regroups
from leafgrad.ops.abstract import broadcast_shape
from leafgrad.ops.elementwise import add, mul, neg, sub
from leafgrad.ops.matmul import contract, matmul
from leafgrad.ops.op import Op

Shape = tuple[int, ...]
PASS = 8  # what an element costs in a pass of an elementwise op, where a term of a product costs 1


@dataclass(frozen=True)
class Product:
    """``op(left, right)``."""

    op: Op
    left: Factor
    right: Factor

    @property
    def shape(self) -> Shape:
        if self.op is mul:
            return broadcast_shape((self.left.shape, self.right.shape))
        return (*(self.left.shape[-1:] if self.op is contract else self.left.shape[:-1]), self.right.shape[-1])

    def cost(self) -> int:
        work = PASS if self.op is mul else product_work(size(self.left.shape) // max(1, size(self.shape[:-1])))
        return size(self.shape) * work + expression_cost(self.left) + expression_cost(self.right)


@dataclass(frozen=True)
class Sum:
    """The terms, each times its coefficient, and a number."""

    terms: tuple[tuple[float, Factor], ...]
    constant: float = 0.0

    @property
    def shape(self) -> Shape:
        return broadcast_shape(t.shape for _, t in self.terms)

    def cost(self) -> int:
        passes = len(self.terms) - 1 + bool(self.constant)
        passes += len({abs(c) for c, _ in self.terms} - {1.0})
        if all(c == -1 for c, _ in self.terms) and not self.constant:
            passes += 1
        return PASS * size(self.shape) * passes + sum(expression_cost(t) for _, t in self.terms)


Factor = Value | Product | Sum


def expression_cost(x: Factor) -> int:
    return 0 if isinstance(x, Value) else x.cost()


def product_work(terms: int) -> int:
    """What an element of a matrix product costs that is a sum of so many."""
    return PASS + terms


def factor_sums(graph: Graph) -> Graph:
    """The graph with sums collected, equal terms counted, and shared factors taken out, where that costs less.

    Only terms that nothing else reads are taken apart. The order of additions changes, which costs a few ulp of
    the largest term.
    """
    plans = Planner(graph).plans()
    if not plans:
        return graph

    def planned(r: Rewriter, e: Equation) -> Value | None:
        plan = plans.get(e.out)
        return None if plan is None else build(r, plan)

    return rewrite(graph, general=(planned,))


class Planner:
    """Finds the sums of a graph that are worth writing anew."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = graph.makers()
        self.readers = graph.uses()
        self.kept = graph.kept

    def plans(self) -> dict[Value, Factor]:
        """For the result of each such sum, the expression to compute instead."""
        found: dict[Value, Factor] = {}
        for equation in self.graph.equations:
            if self.is_root(equation):
                total, before = self.collect(equation)
                plan = factored(total)
                if size(equation.out.shape) and expression_cost(plan) < before:
                    found[equation.out] = plan
        return found

    def once(self, value: Value) -> bool:
        return value not in self.kept and len(self.readers.get(value, ())) == 1

    def is_root(self, e: Equation) -> bool:
        """Whether the equation is a sum that is not part of a larger one."""
        if not is_sum(e):
            return False
        if not self.once(e.out):
            return True
        (reader,) = self.readers[e.out]
        return not is_sum(reader) or reader.out.shape != e.out.shape

    def collect(self, root: Equation) -> tuple[Sum, int]:
        """The sum that ends in ``root`` and what it costs now."""
        found: dict[tuple[Value, bool], float] = {}  # by sign: x - x may be nan
        constant, cost = 0.0, 0
        stack: list[tuple[float, Value]] = [(1.0, root.out)]
        while stack:
            c, v = stack.pop()
            e = self.makers.get(v)
            if e is None or not is_sum(e) or (e is not root and not (self.once(v) and v.shape == root.out.shape)):
                found[v, c > 0] = found.get((v, c > 0), 0.0) + c
                continue
            cost += PASS * size(v.shape)
            for weight, part in reversed(list(parts(e))):
                if isinstance(part, Value):
                    stack.append((c * weight, part))
                else:
                    constant += c * weight * part
        terms = []
        for (v, _), c in found.items():
            product = self.product(v)
            if product is not None:
                cost += product.cost()
            terms.append((c, v if product is None else product))
        return Sum(tuple(terms), constant), cost

    def product(self, v: Value) -> Product | None:
        """The product that makes ``v``, if nothing else reads it."""
        e = self.makers.get(v)
        if e is None or e.op not in (mul, matmul, contract) or not e.line.derived or not self.once(v):
            return None
        a, b = e.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or (e.op is matmul and (a.ndim < 2 or b.ndim != 2)):
            return None
        return Product(e.op, a, b)


def is_sum(e: Equation) -> bool:
    """Whether an equation adds, subtracts, negates or scales, in floating point and without broadcasting.

    It does not add zero, which may change the sign of one, nor True; and a derivative asked for it.
    """
    if e.op not in (add, sub, neg, mul) or e.out.dtype not in ("float32", "float64") or not e.line.derived:
        return False
    if e.op is mul and (isinstance(e.inputs[1], Value) or not regroups(plain_number(e.inputs[1]) or 0, e)):
        return False
    if not all(isinstance(x, Value) or plain_number(x) for x in e.inputs):
        return False
    return all(v.shape == e.out.shape for v in e.values)


def parts(e: Equation) -> Iterator[tuple[float, Value | float]]:
    """What a sum adds up, with coefficients."""
    if e.op is mul:
        yield plain_number(e.inputs[1]) or 0, e.values[0]
        return
    signs = (-1.0,) if e.op is neg else (1.0, -1.0 if e.op is sub else 1.0)
    for sign, x in zip(signs, e.inputs, strict=True):
        yield sign, x if isinstance(x, Value) else plain_number(x) or 0


def factored(total: Sum) -> Factor:
    """The sum with the factors that most of its terms share taken out, one after the other."""
    terms = list(total.terms)
    while True:
        sharing = shared(terms)
        if sharing is None:
            break
        chosen, key = sharing
        scale = Counter(abs(terms[i][0]) for i in chosen).most_common(1)[0][0]
        scale = math.copysign(scale, terms[chosen[0]][0])
        inner = factored(Sum(tuple((terms[i][0] / scale, other(terms[i][1], key)) for i in chosen)))
        op, side, value = key
        product = Product(op, inner, value) if side == "right" else Product(op, value, inner)
        terms[chosen[0]] = (scale, product)
        terms = [t for i, t in enumerate(terms) if i not in chosen[1:]]
    if len(terms) == 1 and terms[0][0] == 1 and not total.constant:
        return terms[0][1]
    return Sum(tuple(terms), total.constant)


Key = tuple[Op, str, Value]


def keys(x: Factor) -> Iterator[Key]:
    """The factors of a product, and where they stand; elementwise ones stand anywhere."""
    if isinstance(x, Product):
        if isinstance(x.right, Value):
            yield x.op, "right", x.right
        if isinstance(x.left, Value) and x.left is not x.right:
            yield x.op, "right" if x.op is mul else "left", x.left


def other(x: Factor, key: Key) -> Factor:
    assert isinstance(x, Product)
    op, side, value = key
    if op is mul:
        return x.left if x.right is value else x.right
    return x.left if side == "right" else x.right


def shared(terms: list[tuple[float, Factor]]) -> tuple[list[int], Key] | None:
    """The factor that most terms share, and their positions."""
    found: dict[tuple[Key, Shape], list[int]] = {}
    for i, (_, term) in enumerate(terms):
        for key in keys(term):
            found.setdefault((key, other(term, key).shape), []).append(i)
    if not found:
        return None
    (key, _), chosen = max(found.items(), key=lambda item: (len(item[1]), item[0][0][0] is not mul))
    return (chosen, key) if len(chosen) > 1 else None


# ---- construction ---------------------------------------------------------------------------------------------------


def build(r: Rewriter, x: Factor) -> Value:
    """The value of an expression."""
    if isinstance(x, Value):
        return r.same.get(x, x)
    if isinstance(x, Product):
        return r.emit(x.op, build(r, x.left), build(r, x.right))
    groups: dict[float, list[tuple[bool, Factor]]] = {}
    for c, term in x.terms:
        groups.setdefault(abs(c), []).append((c > 0, term))
    signed = []
    for c, members in groups.items():
        positive, value = added(r, [(sign, build(r, term)) for sign, term in members])
        signed.append((positive, value if c == 1 else r.emit(mul, value, c)))
    positive, value = added(r, signed)
    if x.constant:
        return r.emit(add, value, x.constant) if positive else r.emit(sub, x.constant, value)
    return value if positive else r.emit(neg, value)


def added(r: Rewriter, terms: list[tuple[bool, Value]]) -> tuple[bool, Value]:
    """The sum of terms with signs, and its sign: negative only if all theirs are."""
    first = next((i for i, (positive, _) in enumerate(terms) if positive), 0)
    sign, value = terms[first]
    for i, (positive, term) in enumerate(terms):
        if i != first:
            value = r.emit(add if positive == sign else sub, value, term)
    return sign, value
