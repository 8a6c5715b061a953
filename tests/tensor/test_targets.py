"""What is written into: every ``out=``, every method in place and every random fill, whatever the target's layout.

The functions are those of the public tables, so that a new one is tested too; the first arguments that it takes are
its arguments here.
"""

from __future__ import annotations

import functools
import warnings

import pytest

import leafgrad
from leafgrad import Tensor
from leafgrad.tensor.public import FUNCTIONS
from leafgrad.testing.stubs import declare_all

declare_all()
TAKING = sorted(name for name, found in FUNCTIONS.items() if found.out)

X = leafgrad.tensor([[0.5, 0.25, 0.75], [0.125, 0.625, 0.375], [0.875, 0.1875, 0.3125]])
SPD = X @ X.t() + 3 * leafgrad.eye(3)
N = leafgrad.tensor([[3, 1, 2], [5, 4, 7], [6, 8, 9]])
ROW, AT = X[0], leafgrad.tensor([2, 0, 1])
TRUE = X > 0.4
PIVOTS = leafgrad.tensor([1, 2, 3], dtype=leafgrad.int32)
ATS = leafgrad.tensor([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
GIVEN = [
    (X,), (SPD,), (N,), (ROW,), (X, X), (N, N), (X, 1), (N, 2), (X, 2.0), (X, ROW), (ROW, X), (ROW, ROW),
    (X, AT), (X, TRUE), (TRUE, X), (X, 0.3), (X, 0, 1), (X, 2, 0, 1.0), (X, 0.2, 0.6), (X, X, X), (X, 0, AT),
    (X, 0, AT, X), (X, 0, AT, 1.5), (X, 0, ATS, X), (X, 0, AT, X, "sum"), (X, 0, ATS, X, "sum"), (X, ATS), (X, TRUE, X),
    (X, TRUE, 1.5), (X, TRUE, ROW.repeat(3)), (ROW, X, X), (ROW, X, ROW), (X, ROW, ROW),
    (X, X.expand(2, 3, 3), X.expand(2, 3, 3)), (X, ATS, ROW, False), (X, 1, ATS), (X, ATS.flatten(), X.flatten()),
    (X, 0, AT, X, "prod"), (X, 0, AT, X, "mean"), (X, 0, AT, X, "amax"),
    (X.expand(2, 3, 3), X.expand(2, 3, 3)), (X.expand(2, 3, 3),) * 3, ((X, X),), (X, ATS, X), (X, (AT,), ROW),
    (3, 3), (3,), (0, 1, 9), ((3, 3), 0.5), (5, (3, 3)), (3, 3, (3, 3)), (0.0, 1.0, (3, 3)), (X, lambda v: v + 1),
    (X, X, lambda v, w: v * w), (X, X, X, lambda a, b, c: a + b * c), (leafgrad.eye(4).reshape(4, 2, 2),),
    (leafgrad.eye(4).reshape(2, 2, 4), X.new_ones(2, 2)), (X, SPD, PIVOTS), (SPD, PIVOTS, X), (X, ROW, SPD),
    (X, 0, 1, 2),
]  # fmt: skip
KEYWORDS = {"linalg.solve_triangular": {"upper": True}}
# What only changes how a tensor sees memory, or says something about it: what is not written has no target.
VIEWS = {
    "as_strided_", "conj_physical_", "detach_", "requires_grad_", "resize_", "resize_as_", "set_", "share_memory_",
    "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
}  # fmt: skip


def strided(shape, dtype):
    return memory(2 * size(shape) + 1, dtype)[1::2].view(shape) if len(shape) == 1 else memory_of(shape, dtype)


def memory_of(shape, dtype):
    wide = memory(1 + size(shape) * 2 ** len(shape), dtype)[1:].view([2 * n for n in shape])
    return wide[tuple([slice(None, None, 2)] * len(shape))] if shape else wide[()]


def size(shape):
    return leafgrad.Size(shape).numel()


def memory(count, dtype):
    return leafgrad.ones(count, dtype=dtype)


LAYOUTS = {
    "strided": strided,
    "transposed": lambda shape, dtype: memory(size(shape), dtype).view(shape[::-1]).permute(*range(len(shape))[::-1]),
    "narrowed": lambda shape, dtype: memory(size(shape) + 5, dtype)[3 : 3 + size(shape)].view(shape),
    "columns": lambda shape, dtype: memory(3 * size(shape), dtype).view(*shape, 3)[..., 1],
}


def values(result):
    return [t.tolist() for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, Tensor)]


def named(name):
    found = leafgrad
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def quiet(function):
    """``function`` without the warning that it is deprecated."""

    def called(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* is deprecated")
            return function(*args, **kwargs)

    return called


def taken(call):
    """The first of GIVEN with which ``call`` works, and its result."""
    for args in GIVEN:
        leafgrad.manual_seed(0)
        try:
            return args, call(*args)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError):
            continue
    pytest.fail("takes none of these arguments: add some to GIVEN")


def outside(target):
    """The memory of a target with its elements zero: what must not be written stays one."""
    base = target if target._base is None else target._base
    before = target.clone()
    target.zero_()
    found = base.clone()
    target.copy_(before)
    return base, found


def unwritten(target):
    base, before = outside(target)
    return bool((base[before != 0] == 1).all())


@functools.cache
def function_of(name):
    """A function, arguments that it takes, and its result."""
    function = quiet(functools.partial(named(name), **KEYWORDS.get(name, {})))
    return function, *taken(function)


@pytest.mark.parametrize("name", TAKING)
def test_out_takes_any_layout(name):
    function, args, made = function_of(name)
    several = isinstance(made, tuple)
    results = made if several else (made,)
    for layout in LAYOUTS.values():
        targets = [layout(tuple(r.shape), r.dtype) for r in results]
        where = [t.data_ptr() for t in targets]
        leafgrad.manual_seed(0)
        assert function(*args, out=tuple(targets) if several else targets[0]) is not None
        if name != "empty":
            assert str(values(tuple(targets))) == str(values(made))
        assert [t.data_ptr() for t in targets] == where
        assert all(map(unwritten, targets))


@pytest.mark.parametrize("name", TAKING)
def test_out_that_overlaps_is_refused_or_right(name):
    function, args, made = function_of(name)
    results = made if isinstance(made, tuple) else (made,)
    targets = [leafgrad.zeros((), dtype=r.dtype).expand(r.shape) for r in results]
    if any(t.numel() > 1 for t in targets):
        with pytest.raises(RuntimeError, match="single memory location"):
            function(*args, out=tuple(targets) if isinstance(made, tuple) else targets[0])


WRITING = sorted(n for n in dir(Tensor) if n[-1] == "_" and n[0] != "_" and n not in VIEWS)


@functools.cache
def method_of(name):
    """Arguments that a method takes, and its result on a copy of the first."""
    return taken(quiet(lambda *args: getattr(args[0].clone(), name)(*args[1:])))


@pytest.mark.parametrize("name", WRITING)
def test_methods_in_place_write_any_layout(name):
    args, made = method_of(name)
    for layout in LAYOUTS.values():
        target = layout(tuple(made.shape), made.dtype)
        target.copy_(args[0])
        leafgrad.manual_seed(0)
        assert quiet(getattr(target, name))(*args[1:]) is target
        assert str(values(target)) == str(values(made))
        assert unwritten(target)


@pytest.mark.parametrize("name", WRITING)
def test_methods_in_place_on_what_overlaps_are_refused_or_right(name):
    args, made = method_of(name)
    target = leafgrad.full((), 0.5, dtype=made.dtype).expand(made.shape)
    before = target.tolist()
    if target.numel() == 1 or name in {"fill_", "fill_diagonal_", "zero_"}:  # PyTorch writes one number there
        getattr(target, name)(*args[1:])
        return
    with pytest.raises(RuntimeError, match="single memory location"):
        quiet(getattr(target, name))(*args[1:])
    assert target.tolist() == before


@pytest.mark.parametrize("name", ["arange", "linspace", "logspace"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ranges_number_the_elements_of_as_many(name, layout):
    args = (8,) if name == "arange" else (0, 7, 8)
    target = LAYOUTS[layout]((4, 2), leafgrad.float32)
    assert getattr(leafgrad, name)(*args, out=target) is target
    assert target.tolist() == getattr(leafgrad, name)(*args, dtype=leafgrad.float32).view(4, 2).tolist()
    assert unwritten(target)
