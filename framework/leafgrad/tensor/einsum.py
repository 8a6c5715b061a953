"""Sums of products of tensors by index labels: ``einsum`` and ``tensordot``.

An equation becomes a list of terms, each a tensor with one label per dimension. Terms are multiplied two by two:
labels that both have and that are not needed later are contracted by ``matmul``, the others stand for batches,
rows and columns. A dimension of size 1 broadcasts. Gradients are those of the ops in use.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import Any

from leafgrad.ops.diagonals import diagonal
from leafgrad.ops.elementwise import mul
from leafgrad.ops.matmul import matmul
from leafgrad.ops.promotion import result_type
from leafgrad.ops.reduce import sum as sum_over
from leafgrad.ops.shape import permute, reshape
from leafgrad.tensor.arguments import expect_tensor, integer, one_dim
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor

Labels = tuple[Hashable, ...]
Term = tuple[Tensor, Labels]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@public(only="leafgrad")
def einsum(*args: Any) -> Tensor:
    """Sum of products of elements, in Einstein's notation: ``einsum("bij,bjk->bik", x, y)``.

    ``einsum(equation, *operands)``, ``einsum(equation, [operands])`` or, with labels as integers in [0, 52),
    ``einsum(x, [0, 1], y, [1, 2], [0, 2])``. Labels that are not in the output are summed over; a label repeated in
    one operand takes its diagonal; ``...`` stands for dimensions that broadcast. Without ``->`` the output has the
    labels that occur once, in alphabetical order. With three operands and more, the pair that leaves the least is
    multiplied first.

    Raises:
        ValueError: no operands, or an integer label out of range. RuntimeError: the equation does not fit them.
    """
    equation, operands = _arguments(args)
    for i, x in enumerate(operands):
        expect_tensor(x, f"operands[{i}]", "einsum")
    inputs, output = _parse(equation, operands)
    return _multiply([_diagonals(x, labels) for x, labels in zip(operands, inputs, strict=True)], output)


def _spread(args: tuple[Any, ...]) -> tuple[Any, ...]:
    equation, operands = _arguments(args)
    return equation, *operands


vars(einsum)["as_asked"] = _spread


@public(only="leafgrad", out="exact")
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Any] = 2) -> Tensor:
    """Contract dimensions of ``a`` with dimensions of ``b``.

    Args:
        dims: two lists of dimensions, paired in order; or a number n: the last n of ``a`` with the first n of ``b``.

    Returns:
        The remaining dimensions of ``a``, then those of ``b``.

    Raises:
        RuntimeError: sizes or numbers of contracted dimensions differ.
    """
    expect_tensor(a, "a", "tensordot")
    expect_tensor(b, "b", "tensordot")
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2 or not all(isinstance(d, (int, tuple, list)) for d in dims):
            raise RuntimeError(f"tensordot: dims: expected two lists of dimensions, got {dims!r}")
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        n = integer(dims, "dims", "tensordot")
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={n}")
        if n > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={n}")
        first, second = list(range(a.ndim - n, a.ndim)), list(range(n))
    if len(first) != len(second):
        raise RuntimeError(f"tensordot: dims: both dimension lists should have same length, got {first} and {second}")
    a_labels = [("a", i) for i in range(a.ndim)]
    b_labels = [("b", i) for i in range(b.ndim)]
    for i, j in zip(first, second, strict=True):
        i, j = one_dim(a, i, "tensordot"), one_dim(b, j, "tensordot")
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and "
                f"second has size {b.shape[j]} in dim {j}"
            )
        if a_labels[i] != ("a", i) or b_labels[j] != ("b", j):
            raise RuntimeError(f"tensordot: dims: a dimension appears multiple times in {first} or {second}")
        a_labels[i] = b_labels[j] = ("contracted", i)
    output = [label for label in a_labels + b_labels if label[0] != "contracted"]
    return (_product if output else _number)(a, tuple(a_labels), b, tuple(b_labels), tuple(output))


@autocast("lower")
def _product(a: Tensor, a_labels: Labels, b: Tensor, b_labels: Labels, output: Labels) -> Tensor:
    return _multiply([(a, a_labels), (b, b_labels)], output).to(result_type((a, b)))


@autocast("given")  # a sum of products of elements is no product of matrices
def _number(a: Tensor, a_labels: Labels, b: Tensor, b_labels: Labels, output: Labels) -> Tensor:
    return _product(a, a_labels, b, b_labels, output)


# ---- products of terms --------------------------------------------------------------------------------------------


def _multiply(terms: list[Term], output: Labels) -> Tensor:
    while len(terms) > 1:
        i, j = (0, 1) if len(terms) == 2 else _smallest(terms, output)
        y, x = terms.pop(j), terms.pop(i)
        needed = set(output).union(*(labels for _, labels in terms))
        terms.append(_pair(x, y, needed))
    last, labels = _sum_out(terms[0], output)
    return _ordered(last, labels, output)


def _smallest(terms: list[Term], output: Labels) -> tuple[int, int]:
    """The two terms whose product adds the fewest elements to what is held."""
    sizes: dict[Hashable, int] = {}
    for x, labels in terms:
        for label, n in zip(labels, x.shape, strict=True):
            sizes[label] = max(n, sizes.get(label, 1))

    def growth(pair: tuple[int, int]) -> int:
        others = (labels for k, (_, labels) in enumerate(terms) if k not in pair)
        needed = set(output).union(*others)
        (x, a), (y, b) = (terms[k] for k in pair)
        result = math.prod(sizes[label] for label in {*a, *b} & needed)
        return result - math.prod(x.shape) - math.prod(y.shape)

    return min(itertools.combinations(range(len(terms)), 2), key=growth)


def _pair(x: Term, y: Term, needed: set[Hashable]) -> Term:
    """The product of two terms, summed over the labels that nobody needs."""
    sizes = dict(zip(x[1], x[0].shape, strict=True)), dict(zip(y[1], y[0].shape, strict=True))
    contracted = [c for c in x[1] if c not in needed and sizes[0][c] == sizes[1].get(c)]
    t, a = _sum_out(x, needed.union(contracted))
    u, b = _sum_out(y, needed.union(contracted))
    batch = [c for c in a if c in b and c in needed]
    left = [c for c in a if c not in b]
    right = [c for c in b if c not in a]
    t = _ordered(t, a, (*batch, *left, *contracted))
    u = _ordered(u, b, (*batch, *contracted, *right))
    n = len(batch)
    rows, columns = tuple(sizes[0][c] for c in left), tuple(sizes[1][c] for c in right)
    if contracted:
        inner = math.prod(sizes[0][c] for c in contracted)
        t = _shaped(t, (*t.shape[:n], math.prod(rows), inner))
        u = _shaped(u, (*u.shape[:n], inner, math.prod(columns)))
        product = matmul(t, u)
        product = _shaped(product, (*product.shape[:n], *rows, *columns))
    else:
        t = _shaped(t, (*t.shape, *[1] * len(right)))
        product = mul(t, _shaped(u, (*u.shape[:n], *[1] * len(left), *columns)))
    return product, (*batch, *left, *right)


def _sum_out(term: Term, keep: Collection[Hashable]) -> Term:
    x, labels = term
    dim = tuple(i for i, label in enumerate(labels) if label not in keep)
    if not dim:
        return term
    x = x if x.dtype.is_differentiable else x.long()  # as sums of integers are
    return sum_over(x, dim=dim), tuple(label for label in labels if label in keep)


def _ordered(x: Tensor, labels: Labels, wanted: Labels) -> Tensor:
    return x if labels == wanted else permute(x, dims=tuple(labels.index(label) for label in wanted))


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if tuple(x.shape) == shape else reshape(x, shape=shape)


def _diagonals(x: Tensor, labels: Labels) -> Term:
    """The term with each label once: diagonals where one is repeated."""
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = diagonal(x, offset=0, dims=(i, j))  # comes last
            labels = (*labels[:i], *labels[i + 1 : j], *labels[j + 1 :], label)
    return x, labels


# ---- equations ----------------------------------------------------------------------------------------------------


def _arguments(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], str):
        listed = len(args) == 2 and isinstance(args[1], (tuple, list))
        return args[0].replace(" ", ""), list(args[1] if listed else args[1:])
    equation = ",".join(map(_spelt, args[1::2][: len(args) // 2]))
    if len(args) % 2:
        equation += "->" + _spelt(args[-1])
    return equation, list(args[: len(args) - len(args) % 2 : 2])


def _spelt(labels: Sequence[Any]) -> str:
    if not isinstance(labels, (tuple, list)):
        raise ValueError(f"einsum(): expected a list of subscripts after each operand, got {type(labels).__name__}")
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
        elif isinstance(label, int) and 0 <= label < len(LETTERS):
            text += LETTERS[label]
        else:
            raise ValueError(f"einsum(): subscript in subscript list is not within the valid range [0, 52): {label!r}")
    return text


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the output. Those of ``...`` are numbers, counted from the right."""
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        what = "fewer" if len(operands) < len(parts) else "more"
        raise RuntimeError(f"einsum(): {what} operands were provided than specified in the equation {equation!r}")
    inputs: list[Labels] = []
    sizes: dict[Hashable, int] = {}
    for i, (part, x) in enumerate(zip(parts, operands, strict=True)):
        labels = _labels(part, equation, f"operand {i}", x.ndim)
        inputs.append(labels)
        _check_sizes(i, x, labels, sizes)
    dots = [label for label in sizes if isinstance(label, int)]
    count = Counter(itertools.chain.from_iterable(inputs))
    if not arrow:
        once = sorted(str(label) for label, n in count.items() if n == 1 and isinstance(label, str))
        return inputs, (*sorted(dots, reverse=True), *once)
    named = right.replace("...", "", 1)
    output = _labels(right, equation, "the output", len(named) + (len(dots) if named != right else 0))
    for label, n in Counter(output).items():
        if n > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return inputs, output


def _labels(part: str, equation: str, where: str, ndim: int) -> Labels:
    before, dots, after = part.partition("...")
    if "." in before + after:
        raise RuntimeError(f"einsum(): found '.' for {where} that is not part of the one ellipsis it may have")
    for letter in before + after:
        if letter not in LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript {letter!r} given at index {equation.index(letter)} in the equation "
                "string, subscripts must be in [a-zA-Z]"
            )
    named = len(before) + len(after)
    if named > ndim or (named < ndim and not dots):
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
            f"({ndim}) for {where}" + (" and no ellipsis was given" if not dots else "")
        )
    return (*before, *range(ndim - named, 0, -1), *after)


def _check_sizes(i: int, x: Tensor, labels: Labels, sizes: dict[Hashable, int]) -> None:
    own: dict[Hashable, int] = {}
    for label, n in zip(labels, x.shape, strict=True):
        if own.setdefault(label, n) != n:
            raise RuntimeError(
                f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {n} != "
                f"{own[label]}"
            )
        seen = sizes.get(label, 1)
        if 1 not in (n, seen) and n != seen:
            raise RuntimeError(
                f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with previously "
                f"seen size {seen}"
            )
        sizes[label] = max(n, seen) if n and seen else 0
