"""Every op against its row in the op table: values, dtypes, derivatives, carriers, errors, on every device."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from rows import ELSEWHERE, HERE, ROWS, outputs, tensors

import leafgrad
from leafgrad import backends
from leafgrad.autograd import gradcheck
from leafgrad.ops.op import Op
from leafgrad.plugins import builtin

TOLERANCE = {"float32": 2e-5, "float16": 1e-2}


CASES = [(row, dtype) for row in ROWS for dtype in row.dtypes]
DIFFERENTIABLE = [row for row in ROWS if row.order]
ERRORS = [(row, *error) for row in ROWS for error in row.errors]
INTEGERS = [row for row in ROWS if row.integers and "elementwise" in getattr(row.op, "traits", ())]


def host(t):
    return backends.backend_of(t._data).to_host(t._data)


def close(actual, expected, dtype, rtol):
    rtol = TOLERANCE.get(dtype, rtol)
    np.testing.assert_allclose(actual.astype("float64"), np.asarray(expected, "float64"), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("row", "dtype"), CASES, ids=[f"{row}-{dtype}" for row, dtype in CASES])
def test_values_dtypes_and_carriers(row, dtype, device):
    for args, params in row.draw(dtype):
        before = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        inputs = tensors(args, device)
        result = outputs(row.op(*inputs, **params))
        wide = [a.astype("float64") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]
        with np.errstate(all="ignore"):
            expected = outputs(row.reference(*wide, **params))
        for t, want in zip(result, expected, strict=True):
            want = np.asarray(want)
            assert t.shape == want.shape
            assert t.device == device
            # The reference computes in float64; integers and bools come back as they are.
            assert t.dtype.name == (dtype if want.dtype == "float64" and dtype != "int64" else want.dtype.name)
            close(host(t), want, dtype, row.rtol)
        for t, a in zip(inputs, before, strict=True):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(host(t), a, err_msg="the op changed its input")
        if isinstance(row.op, Op):
            raw = outputs(row.op(*[getattr(t, "_data", t) for t in inputs], **params))
            for t, r in zip(result, raw, strict=True):
                backend = backends.backend_of(r)
                np.testing.assert_array_equal(host(t), backend.to_host(backend.wrap(r)))


def seeds(found, seed):
    """A gradient for each output, not constant: the sum of a softmax has none."""
    rng = np.random.default_rng(seed)
    return [leafgrad.tensor(rng.uniform(0.5, 1.5, o.shape), dtype=o.dtype, device=o.device) for o in found]


def derivative(function, seed):
    """The gradients of ``function`` at its floating arguments, for a fixed gradient of its outputs."""

    def derived(*args):
        found = [o for o in outputs(function(*args)) if o.requires_grad]
        inputs = [a for a in args if getattr(a, "requires_grad", False)]
        grads = leafgrad.autograd.grad(found, inputs, seeds(found, seed), create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return derived


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=str)
def test_derivatives_of_each_order(row):
    for args, params in row.draw("float64"):
        inputs = tensors(args, "cpu", requires_grad=True)

        def function(*xs, params=params):
            return row.op(*xs, **params)

        for order in range(row.order):
            assert gradcheck(function, inputs, fast_mode=True, atol=1e-5 * 10**order, rtol=1e-4)
            function = derivative(function, order)
            if not any(o.requires_grad for o in outputs(function(*inputs))):
                break


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=str)
def test_raw_and_recorded_gradients_agree_in_value_dtype_and_device(row, device):
    for dtype in row.dtypes:
        for args, params in row.draw(dtype):
            inputs = tensors(args, device, requires_grad=True)
            wanted = [t for t in inputs if getattr(t, "requires_grad", False)]
            raw, recorded = (gradients(row, inputs, params, wanted, create_graph=c) for c in (False, True))
            for t, g, h in zip(wanted, raw, recorded, strict=True):
                assert (g is None) == (h is None)
                if g is not None:
                    assert (g.dtype, g.device, g.shape) == (t.dtype, device, t.shape)
                    assert (h.dtype, h.device, h.shape) == (t.dtype, device, t.shape)
                    close(host(h), host(g), dtype, row.rtol)


def gradients(row, inputs, params, wanted, create_graph):
    found = [o for o in outputs(row.op(*inputs, **params)) if o.requires_grad]
    return leafgrad.autograd.grad(found, wanted, seeds(found, 0), create_graph=create_graph, allow_unused=True)


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


@pytest.mark.parametrize(("op", "file"), ELSEWHERE.items(), ids=lambda v: getattr(v, "name", None))
def test_what_has_no_row_is_checked_elsewhere(op, file):
    assert op.name in (HERE / file).read_text(encoding="utf-8")


def test_to_device_copies_and_carries_gradients_back(device):
    x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    y = x.to(device) * 2
    assert y.device == device
    y.sum().backward()
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2, 2]


NAMES = sorted({op.name for op in builtin.leafgrad_ops()})


def test_names_of_our_ops_are_taken_from_the_start():
    """Executors know ops by their names: another op that has one would be computed as ours."""
    program = f"import leafgrad; from leafgrad.ops import define; print(set({NAMES!r}) - define._own)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", ["linear", "sum", "attention"])
def test_an_op_cannot_take_the_name_of_one_of_ours(name):
    with pytest.raises(leafgrad.errors.OpDefinitionError, match=f"op '{name}': leafgrad has an op of this name"):
        leafgrad.op(name=name)(lambda xp, x: x)
