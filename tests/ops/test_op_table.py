"""Every op against its row in the op table, by the kit; dtypes of integers and errors, on every device."""

from __future__ import annotations

import numpy as np
import pytest
from rows import ELSEWHERE, ROWS, tensors

import leafgrad
from leafgrad.ops.op import Op
from leafgrad.plugins import builtin
from leafgrad.testing import CHECKS, check_op

ERRORS = [(row, *error) for row in ROWS for error in row.errors]
INTEGERS = [row for row in ROWS if row.integers and "elementwise" in getattr(row.op, "traits", ())]

IN_EACH_DTYPE = ("forward", "values", "inputs", "backward")
PHASED = {"eigh", "svd"}  # rows of their own take the phases of complex vectors out
COMPLEX = [
    row for row in ROWS if getattr(row.op, "takes_complex", False) and str(row) not in {"to_dtype float64", *PHASED}
]

# By batching/test_op_table.py, compile/test_op_table.py, and for the stand-in by the test of values.
ELSEWHERE_CHECKED = {"vmap", "shapes", "compile", "chunks", "edges", "stand-in"}
# Their Taylor series follow from other rules; func/test_op_table.py has them along lines.
FOLLOWING = [row for row in ROWS if getattr(row.op, "expanding", None) is None]
HANDS_ON = {"overwrite"}  # gives its argument itself: in-place writing copies where it has to


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_values_and_gradients_in_each_dtype(row, device):
    """On the stand-in, which computes as the CPU does and asks the same of all dtypes, in one; the slow set has all."""
    free = device.type == "cuda" and str(row) in PHASED  # libraries choose signs
    in_dtypes(row, device, row.dtypes[:1] if device.type == "fake" else row.dtypes, None if free else row.reference)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if len(row.dtypes) > 1], ids=str)
def test_values_and_gradients_in_the_other_dtypes_on_the_stand_in(row):
    in_dtypes(row, "fake:0", row.dtypes[1:], row.reference)


def in_dtypes(row, device, dtypes, reference):
    for dtype in dtypes:
        check_op(
            row.op, row.draw(dtype), reference, row.order,
            device=device, dtypes=(), rtol=row.rtol, checks=IN_EACH_DTYPE,
        )  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_memory_gradients_of_each_order_and_traits(row):
    left_out = {*IN_EACH_DTYPE, *ELSEWHERE_CHECKED, "complex", *(["aliases"] if str(row) in HANDS_ON else [])}
    others(row, [name for name in CHECKS if name not in left_out and (name != "jets" or row not in FOLLOWING)])


@pytest.mark.slow
@pytest.mark.parametrize("row", FOLLOWING, ids=str)
def test_series_that_follow_from_other_rules_along_curves(row):
    others(row, "jets")


def others(row, checks):
    check_op(row.op, row.draw(row.dtypes[0]), None, row.order, dtypes=(), rtol=row.rtol, checks=checks)


@pytest.mark.slow
@pytest.mark.parametrize("row", COMPLEX, ids=str)
def test_real_numbers_turned_in_the_complex_plane(row):
    checks, executors = ["forward", "complex"], ["numpy"]
    check_op(row.op, row.draw(row.dtypes[0]), None, row.order, rtol=row.rtol, executors=executors, checks=checks)


@pytest.mark.parametrize("row", INTEGERS, ids=str)
def test_integers_are_promoted_as_the_traits_say(row, device):
    count = row.op.signature.required
    args = tensors([np.array([1, 2, 3]), np.array([2, 1, 2])][:count], device)
    params = row.draw("float64")[0][1] if row.dtypes[0] == "float64" else {}
    result = row.op(*args, **params)
    traits = row.op.traits
    want = "bool" if "comparison" in traits else "float32" if "float" in traits else "int64"
    assert result.dtype.name == want


@pytest.mark.parametrize(
    ("row", "args", "params", "exception", "pattern"), ERRORS, ids=[f"{e[0]}-{e[3].__name__}" for e in ERRORS]
)
def test_errors(row, args, params, exception, pattern, device):
    with pytest.raises(exception, match=pattern):
        row.op(*tensors(args, device), **params)


def test_every_op_has_a_row():
    covered = {id(row.op) for row in ROWS} | {id(op) for op in ELSEWHERE}
    missing = sorted(op.name for op in builtin.leafgrad_ops() if id(op) not in covered)
    assert not missing, f"no row in tests/ops/*_rows.py for: {', '.join(missing)}"


def test_each_floating_argument_has_a_rule():
    """The kit differentiates by those that have one."""
    missing = set()
    for row in ROWS:
        if isinstance(row.op, Op) and row.order and row.op.differentiable:
            for args, _ in row.few(row.dtypes[0]):
                places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind in "fc"]
                names = {row.op.signature.arguments[row.op.signature.slot(i)] for i in places}
                missing |= {f"{row.op.name}: {name}" for name in names - row.op.calls.keys()}
    assert not missing


@pytest.mark.parametrize(("op", "of_x"), [("maximum", 0.5), ("minimum", 0.5), ("fmax", 1), ("fmin", 1)])
def test_where_both_are_equal_gradients_are_as_documented(op, of_x):
    x, y = (leafgrad.ones(2, dtype=leafgrad.float64, requires_grad=True) for _ in range(2))
    gradients = leafgrad.autograd.grad(getattr(leafgrad, op)(x, y).sum(), (x, y))
    assert [g.tolist() for g in gradients] == [[of_x] * 2, [1 - of_x] * 2]


def test_to_device_copies_and_carries_gradients_back(device):
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    y = x.to(device) * 2
    assert y.device == device
    y.sum().backward()
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("executor", ["numpy", "replay"])
@pytest.mark.parametrize("name", ["sum", "linear", "matmul", "add", "tanh", "slice", "to_dtype", "full"])
def test_an_op_may_have_the_name_of_one_of_ours(name, executor):
    """Nothing knows an op by its name: another one of that name is computed as what it is."""

    @leafgrad.op("elementwise", name=name)
    def mine(xp, x, y):
        return 2 * x - y

    mine.vjp(x=lambda g: 2 * g, y=lambda g: -g)
    x, y = leafgrad.randn(200, 3, requires_grad=True), leafgrad.randn(3)

    def step(x, y):
        out = mine(x.tanh() + 1, y).sum(1) @ leafgrad.ones(200)
        return out, leafgrad.autograd.grad(out, x)[0]

    compiled = leafgrad.compile(step, executor=executor)
    for _ in range(3):
        for got, expected in zip(compiled(x, y), step(x, y), strict=True):
            np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
