"""The function written for each op does what the general path does: values, memory, graph, errors, gradients."""

from __future__ import annotations

import enum
import random
import sys
import warnings

import numpy as np
import pytest
from rows import ROWS, outputs

import leafgrad
from leafgrad import backends, modes
from leafgrad.ops.call import operands
from leafgrad.ops.node import GraphNode, TensorBase
from leafgrad.ops.op import Op
from leafgrad.ops.shape import part

TESTS = "ops.dispatch ops.node ops.op ops.promotion"

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
NUMBERS = (0, 1, -2, 3, 0.5, -1.5, 2.0, True, None, 300, 2**40, float("nan"))
OPS = [row for row in ROWS if isinstance(row.op, Op)]
WIDER = 1 << 12  # a flag that nobody knows: whoever asks for plain ones takes the general path


def changed(array, rng):
    """A tensor like an array or unlike it: another dtype, shape, layout, history."""
    if not isinstance(array, np.ndarray):
        return array
    if rng.random() < 0.15:
        return rng.choice(NUMBERS)
    if rng.random() < 0.1 and array.size and array.ndim:
        array = array[:0] if rng.random() < 0.5 else array[(0,) * array.ndim]
    x = leafgrad.tensor(np.array(array))
    if rng.random() < 0.3:
        x = x.to(getattr(leafgrad, rng.choice(DTYPES) if rng.random() < 0.5 else "float32"))
    if rng.random() < 0.3 and x.ndim > 1:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    if rng.random() < 0.2:
        x = leafgrad.stack((x, x))[rng.randrange(2)]
    if rng.random() < 0.1:
        with leafgrad.inference_mode():
            x = x.clone()
    elif rng.random() < 0.6 and x.is_floating_point():
        x = x.detach().requires_grad_()
        if rng.random() < 0.4:
            x = x.unsqueeze(0)[0] if rng.random() < 0.5 else x * 1
    return x


def varied(params, rng):
    """Parameters, of which one may be another."""
    for name, value in params.items():
        if rng.random() < 0.1:
            new = {int: (-1, 0, 1, 7), bool: (True, False), tuple: ((), (0,), (-1, 0), (0, 0), [0], (5,))}
            params = {**params, name: rng.choice(new.get(type(value), (None, 1)))}
    return params


def described(x, known):
    """All that can be told of a result; ``known`` were there before."""
    if isinstance(x, tuple):
        return tuple([described(part, known) for part in x])

    def told(part):
        if part is None or id(part) in known:
            return id(part)
        return part.name() if isinstance(part, GraphNode) else described(part, known)[1:6]

    if not isinstance(x, TensorBase):
        array = np.asarray(x)
        data = repr(array) if array.dtype == object else array.tobytes()
        return type(x), getattr(x, "dtype", None), data, getattr(x, "strides", None)
    node = x._node
    graph = None
    if node is not None:
        source = getattr(node, "source", node)
        kept = (
            () if not hasattr(source, "saved") else tuple([told(s) for s in source.saved if isinstance(s, TensorBase)])
        )
        numbers = [s for s in getattr(source, "saved", ()) if not isinstance(s, TensorBase)]
        shapes = getattr(source, "shapes", None)
        owner = getattr(source, "op", None)
        graph = node.name(), node.shape, tuple(map(told, source.edges)), kept, repr(numbers), shapes, id(owner)
        graph += (repr(sorted(getattr(source, "params", {}).items())), getattr(source, "out", None) is not None)
        graph += (getattr(source, "version", None) is None, x._writes is getattr(source, "version", None))
    view = (
        None
        if x._view is None
        else (id(x._view.base), x._view.origin, repr([(o, sorted(p.items())) for o, p in x._view.steps]), x._view.seen)
    )
    data = x._data
    values = repr(data) if data.dtype == object else data.tobytes()
    return type(x), type(data), data.dtype, data.shape, data.strides, values, graph, view, x._epoch


def attempt(call, args):
    known = {id(a) for a in args} | {id(a._node) for a in args if isinstance(a, TensorBase)}
    leafgrad.manual_seed(0)
    try:
        result = call()
    except Exception as error:
        return None, (type(error), str(error))
    return result, described(result, known)


def gradients(result, args, order):
    """Gradients of order one or two, where there are any."""
    leaves = [a for a in args if isinstance(a, TensorBase) and a.requires_grad]
    found = [o for o in outputs(result) if isinstance(o, TensorBase) and o.requires_grad]
    if not found or not leaves:
        return None
    made = leafgrad.autograd.grad(
        found, leaves, [o.detach() * 0 + 1 for o in found], True, order > 1, allow_unused=True
    )
    if order > 1:
        again = [g for g in made if g is not None and g.requires_grad]
        ones = [g.detach() * 0 + 1 for g in again]
        made = leafgrad.autograd.grad(again, leaves, ones, allow_unused=True) if again else ()
    return tuple([g if g is None else described(g.detach(), ())[:6] for g in made])


def compare(row, rng):
    """One try: the function, and the general path, of the same arguments."""
    op = row.op
    (arrays, params), *_ = [row.draw(rng.choice(row.dtypes))[0]]
    args, params = tuple([changed(a, rng) for a in arrays]), varied(params, rng)
    if rng.random() < 0.04 and not operands(op):  # whose misfits Python tells itself
        args, params = (args[:-1], params) if rng.random() < 0.5 else (args, {**params, "unknown": 1})
    if rng.random() < 0.15:  # raw arrays
        args = tuple([a._data if isinstance(a, TensorBase) else a for a in args])

    def general():
        token = modes.FLAGS.set(modes.get() | WIDER)
        try:
            bound = op.signature.bind(params)
            return op.general(args, {p: bound[p] for p in op.signature.parameters})
        finally:
            modes.FLAGS.reset(token)

    with modes.set_grad_enabled(rng.random() < 0.9):
        ours, what = attempt(lambda: op(*args, **params), args)
        theirs, wanted = attempt(general, args)
    assert what == wanted, f"{op.name} of {args}, {params}"
    orders = (1, 2) if ours is not None and row.order > 1 else (1,)
    for order in orders:
        one, two = (attempt(lambda r=r, o=order: gradients(r, args, o), ()) for r in (ours, theirs))
        assert one == two, f"{op.name} of {args}, order {order}"


@pytest.fixture(autouse=True)
def generous():
    """Whatever a warning is about, both ways give it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


X = leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
ONES = leafgrad.ones(2, 2)
FRAMES = {
    "add": (2, lambda: X + X),
    "exp": (2, lambda: X.exp()),
    "clamp": (4, lambda: X.clamp(0.0, 1.0)),
    "sum": (11, lambda: X.sum()),
    "softmax": (8, lambda: X.softmax(1)),
    "slice": (9, lambda: X[:, :1]),
    "reshape": (9, lambda: X.reshape(4)),
    "backward": (25, lambda: (X + X).backward(ONES)),
}


@pytest.mark.parametrize("name", FRAMES)
def test_few_python_functions_are_entered(name, monkeypatch):
    monkeypatch.setattr(backends, "several_devices", lambda: False)  # whatever other tests have loaded
    most, call = FRAMES[name]
    for _ in range(2):  # functions are written at the first call
        X.grad = None
        call()
    X.grad, entered = None, []
    sys.setprofile(lambda frame, event, argument: entered.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert len(entered) - 1 <= most, entered


def test_an_op_is_written_anew_when_it_gets_a_rule():
    @leafgrad.op
    def tripled(xp, x):
        return 3 * x

    x = leafgrad.ones(2, requires_grad=True)
    assert tripled(x).tolist() == [3, 3]
    tripled.vjp(x=lambda g, out: g * out)
    tripled(x).backward(leafgrad.ones(2))
    assert x.grad.tolist() == [3, 3]


def test_parameters_may_have_any_names():
    @leafgrad.op
    def named(xp, x, *, step, type=0, _r=0):
        return x * step + type + _r

    @leafgrad.op
    def stepped(xp, x, *, step, dtype=0, out_=1):
        return x * step + dtype

    x = leafgrad.ones(2)
    assert named(x, step=2, type=3, _r=4).tolist() == [9, 9]
    assert stepped(x, step=2, dtype=3).tolist() == [5, 5]


class Real(float):
    """As those of a library that gives units, say."""


FLOATS = {
    "leaky_relu": lambda F, x, v: F.leaky_relu(x, v),
    "elu": lambda F, x, v: F.elu(x, v),
    "celu": lambda F, x, v: F.celu(x, v),
    "hardtanh": lambda F, x, v: F.hardtanh(x, -v, v),
    "softplus": lambda F, x, v: F.softplus(x, v, v),
    "huber_loss": lambda F, x, v: F.huber_loss(x, x * 2, delta=v),
    "smooth_l1_loss": lambda F, x, v: F.smooth_l1_loss(x, x * 2, beta=v),
    "layer_norm": lambda F, x, v: F.layer_norm(x, (2,), eps=v),
    "rms_norm": lambda F, x, v: F.rms_norm(x, (2,), eps=v),
    "a user's": lambda F, x, v: hardened(x, beta=v),
}


@leafgrad.op
def hardened(xp, x, *, beta=1.0):
    return xp.tanh(x * beta)


hardened.vjp(x=lambda g, out, *, beta: g * beta * (1 - out * out))


@pytest.mark.parametrize("kind", [np.float64, np.int64, Real])
@pytest.mark.parametrize("name", FLOATS)
def test_no_dtype_follows_that_of_a_parameter(name, kind):
    for wrap in (lambda function: function, leafgrad.compile):
        x = leafgrad.tensor([-1.0, 2.0], requires_grad=True)
        function = wrap(lambda x, v: FLOATS[name](leafgrad.nn.functional, x, v))
        for _ in range(3):
            found = [function(x, kind(1)).sum()]
            for _ in range(2):
                found += leafgrad.autograd.grad((found[-1] ** 2).sum(), x, create_graph=True)
            assert {t.dtype for t in found} == {leafgrad.float32}


class Mode(enum.IntEnum):
    DOUBLE = 1
    TRIPLE = 2


def test_an_enumeration_stays_a_parameter():
    @leafgrad.op
    def times(xp, x, *, mode):
        return x * 2 if mode is Mode.DOUBLE else x * 3

    times.vjp(x=lambda g, *, mode: g * 2 if mode is Mode.DOUBLE else g * 3)
    step, x = leafgrad.compile(lambda x: times(x, mode=Mode.DOUBLE)), leafgrad.ones(2, requires_grad=True)
    for _ in range(3):
        result = step(x)
        assert result.tolist() == leafgrad.vmap(step.function)(x).tolist() == [2, 2]
        assert leafgrad.autograd.grad(result.sum(), x)[0].tolist() == [2, 2]


def test_a_tensor_is_no_parameter():
    with pytest.raises(TypeError, match="softplus: beta: expected a number, got a Tensor"):
        leafgrad.nn.functional.softplus(leafgrad.ones(2), beta=leafgrad.tensor(1.0))


def test_a_rejected_slice_leaves_no_trace():
    x = leafgrad.arange(29)
    with pytest.raises(RuntimeError, match="cannot be interpreted as an integer"):
        part(x, at=((0, 27.0, 1),))
    assert x[:27].shape == (27,)


def test_wrong_calls_are_explained():
    x = leafgrad.ones(2)
    op = next(row.op for row in OPS if row.op.name == "softmax")
    with pytest.raises(TypeError, match="softmax: missing the parameter 'dim'"):
        op(x)
    with pytest.raises(TypeError, match="softmax: unexpected parameter 'axis'"):
        op(x, axis=0)
    with pytest.raises(TypeError, match=r"expected 1 tensors .*, got 2; give dim.* by name"):
        op(x, x, dim=0)


def test_a_random_op_that_fails_draws_once():
    @leafgrad.op("random", "any_dtype")
    def failing(xp, x, *, generator):
        calls.append(1)
        raise ValueError("no")

    calls = []
    with pytest.raises(RuntimeError, match="failing"):
        failing(leafgrad.ones(2), generator=None)
    failing_again = len(calls)
    with pytest.raises(RuntimeError, match="failing"):
        failing(leafgrad.ones(2), generator=None)
    assert len(calls) - failing_again == 1


@pytest.mark.parametrize("row", OPS, ids=str)
def test_function_and_general_path_agree(row):
    rng = random.Random(str(row))
    for _ in range(8):
        compare(row, rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("row", OPS, ids=str)
def test_function_and_general_path_agree_in_many_tries(row, seed):
    rng = random.Random(f"{row} {seed}")
    for _ in range(40):
        compare(row, rng)


# ---- arrays in place of tensors -------------------------------------------------------------------------------------

ONE_OP = ["sin", "exp", "neg", "relu", "square", "trunc", "isnan", "abs"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", ONE_OP)
def test_one_op_of_arrays_gives_a_new_array(name, dtype):
    x = np.array([0.5, -1.5, 2.0], dtype)
    found = getattr(leafgrad, name)(x)
    assert type(found) is np.ndarray
    assert found.dtype == ("bool" if name == "isnan" else dtype)
    assert not np.shares_memory(found, x)
    np.testing.assert_array_equal(found, getattr(leafgrad, name)(leafgrad.tensor(x)).numpy())


ARRAY = np.ones((2, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: leafgrad.add(x, ARRAY),
        lambda x: leafgrad.where(x > 0, x, ARRAY),
        lambda x: leafgrad.sum(ARRAY),
        lambda x: leafgrad.softmax(ARRAY, 0),
        lambda x: leafgrad.matmul(ARRAY, x),
        lambda x: leafgrad.cat([x, ARRAY]),
        lambda x: leafgrad.cartesian_prod(ARRAY),
        lambda x: leafgrad.nn.functional.mse_loss(x, ARRAY),
        lambda x: x.mul_(ARRAY),
    ],
)
def test_arrays_beside_tensors_and_in_functions_of_several_ops_are_errors(call):
    with pytest.raises(TypeError, match="ndarray"):
        call(leafgrad.ones(2, 2, dtype=leafgrad.float64))
