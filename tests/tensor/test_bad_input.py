"""Bad input: every public callable, given wrong things, gives a result or an error that leafgrad raised on purpose.

Not an error from inside: no AttributeError, no words of Python's or an array library's operations on what they got.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import re
import types
import warnings
import zlib

import numpy as np
import pytest

import leafgrad
from leafgrad import devices, dtypes, modes, nn, optim
from leafgrad.compat.stand_in import lent
from leafgrad.nn import functional as F
from leafgrad.ops.tracebacks import raised
from leafgrad.tensor import printing
from leafgrad.testing import fake

TESTS = "ops.messages"

SHARE = 3  # of so many wrong calls one is tried; all of them in the slow set
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
ALLOWED = (
    TypeError,
    ValueError,
    RuntimeError,
    IndexError,
    NotImplementedError,
    FileNotFoundError,
    AssertionError,
    BufferError,
)
ARITY = re.compile(
    r"unexpected keyword|positional argument|multiple values for|keyword-only argument|takes no arguments"
)
INSIDE = re.compile(
    r"<locals>|<lambda>|__call__|\b_(data|node|leaf)\b|NoneType' object|could not be broadcast together"
)


ROWS = np.float32([[2.0, 0.5, 0.1], [0.3, 3.0, 0.2], [0.1, 0.4, 4.0]])


def matrix():
    return leafgrad.tensor(ROWS)


def weights():
    return [leafgrad.ones(3, requires_grad=True)]


def nothing(*args):
    return None


class Anything:
    def __init__(self, *args, **kwargs):
        pass


def square(x):
    return x * x


def energy(x):
    return (x * x).sum()


def one(epoch):
    return 1.0


WRONG = {
    "str": lambda: "0",
    "None": lambda: None,
    "list": lambda: [1.0, "a"],
    "ragged list": lambda: [[1, 2], [3]],
    "NumPy array": lambda: np.ones((3, 3)),
    "object": object,
    "0-d": lambda: leafgrad.tensor(1.0),
    "1-d": lambda: leafgrad.ones(3),
    "4-d": lambda: leafgrad.ones(2, 3, 4, 5),
    "another shape": lambda: leafgrad.ones(7, 5),
    "bool tensor": lambda: leafgrad.ones(3, 3, dtype=leafgrad.bool),
    "int tensor": lambda: leafgrad.ones(3, 3, dtype=leafgrad.int64),
    "float16": lambda: leafgrad.ones(3, 3, dtype=leafgrad.float16),
    "float64": lambda: leafgrad.ones(3, 3, dtype=leafgrad.float64),
    "uint8 vector": lambda: leafgrad.ones(3, dtype=leafgrad.uint8),
    "another device": lambda: leafgrad.ones(3, 3, device="fake:0"),
    "empty": lambda: leafgrad.ones(0),
    "no rows": lambda: leafgrad.ones(0, 3),
    "leaf": lambda: leafgrad.ones(3, 3, requires_grad=True),
    "99": lambda: 99,
    "-99": lambda: -99,
    "1.5": lambda: 1.5,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "nan": lambda: float("nan"),
    "1j": lambda: 1j,
    "(0, 0)": lambda: (0, 0),
    "(5,)": lambda: (5,),
    "()": lambda: (),
    "dict": dict,
    "class": lambda: Anything,
    "function": lambda: nothing,
    "tensor and str": lambda: [leafgrad.ones(3), "x"],
    "two tensors": lambda: [leafgrad.ones(2), leafgrad.ones(3, 3)],
    "device": lambda: leafgrad.device("cpu"),
    "dtype": lambda: leafgrad.int64,
    "slice": lambda: slice(1, 2),
}
WRONG_SELF = "0-d,1-d,4-d,another shape,bool tensor,int tensor,float16,another device,empty,no rows,leaf".split(",")

# What a parameter of this name is given while another one is wrong; any other is a matrix.
GOOD = {
    "unflattened_size": lambda: (3, 1),
    **dict.fromkeys("dim dim0 start diagonal offset shifts low mean min".split(), lambda: 0),
    **dict.fromkeys("dim1 length max num_heads nhead num_layers".split(), lambda: 1),
    **dict.fromkeys("in_channels out_channels kernel_size padding groups upscale_factor".split(), lambda: 2),
    **dict.fromkeys("k repeats chunks out_features embedding_dim num_samples step_size".split(), lambda: 2),
    **dict.fromkeys(
        (
            "n sections steps end high in_features in1_features in2_features num_features normalized_shape "
            "num_channels num_classes T_max T_0 num_groups n_classes "
            "input_size hidden_size num_chunks embed_dim embed_dim_to_check d_model sz"
        ).split(),
        lambda: 3,
    ),
    **dict.fromkeys("lr gamma p max_lr base_lr value std max_norm".split(), lambda: 0.5),
    **dict.fromkeys("shape size".split(), lambda: (3, 3)),
    **dict.fromkeys("tensors primals tangents".split(), lambda: (matrix(), matrix())),
    **dict.fromkeys("vec vec1 vec2 tensor boundaries sorted_sequence".split(), lambda: leafgrad.ones(3)),
    **dict.fromkeys("mask condition".split(), lambda: leafgrad.ones(3, 3, dtype=leafgrad.bool)),
    **dict.fromkeys("batch1 batch2".split(), lambda: leafgrad.ones(2, 3, 3)),
    **dict.fromkeys("params parameters".split(), weights),
    "cutoffs": lambda: [1, 2],
    "data": lambda: [1.0, 2.0],
    "device": lambda: "cpu",
    "dims": lambda: (0,),
    "dtype": lambda: leafgrad.float32,
    "encoder_layer": lambda: nn.TransformerEncoderLayer(3, 1),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(3, 1),
    "equation": lambda: "ij,jk->ik",
    "f": lambda: "checkpoint",
    "fn": lambda: square,
    "func": lambda: energy,
    "generator": lambda: None,
    "index": lambda: leafgrad.zeros(3, 3, dtype=leafgrad.int64),
    "indices": lambda: leafgrad.zeros(3, dtype=leafgrad.int64),
    "lr_lambda": lambda: one,
    "milestones": lambda: [2],
    "module": lambda: nn.Linear(3, 3),
    "modules": lambda: [nn.Linear(3, 3)],
    "ndarray": lambda: np.ones(3),
    "num_embeddings": lambda: 4,
    "optimizer": lambda: optim.SGD(weights(), lr=0.1),
    "outputs": lambda: (weights()[0] * 2).sum(),
    "schedulers": list,
    "total_steps": lambda: 10,
}
GOOD_SELF = {"dot": lambda: leafgrad.ones(3), "bmm": lambda: leafgrad.ones(2, 3, 3), "item": lambda: leafgrad.ones(1)}
SPACES = {
    "": leafgrad,
    "linalg.": leafgrad.linalg,
    "nn.functional.": F,
    "nn.": nn,
    "nn.init.": nn.init,
    "nn.utils.": nn.utils,
    "nn.utils.rnn.": nn.utils.rnn,
    "autograd.": leafgrad.autograd,
    "autograd.functional.": leafgrad.autograd.functional,
    "func.": leafgrad.func,
    "optim.": optim,
    "optim.lr_scheduler.": optim.lr_scheduler,
}
# The function that `trace` and its like are given is called with what comes after it; errors are for `except`.
LEFT_OUT = {"Size", "Tensor", "trace", "func.linearize", "func.vjp", "linalg.LinAlgError", "autograd.GradcheckError"}
OPERATORS = "__getitem__ __setitem__ __add__ __matmul__ __pow__ __and__ __lt__ __eq__ __iadd__".split()


def targets():
    """Name, callable, whether its first argument is the tensor whose method it is."""
    for prefix, space in SPACES.items():
        for name in sorted(set(getattr(space, "__all__", None) or dir(space)) - lent(space.__name__)):
            value = getattr(space, name)
            if callable(value) and not name.startswith("_") and module_of(value) == "leafgrad":
                yield prefix + name, value, False
    for name in sorted({n for n in dir(leafgrad.Tensor) if not n.startswith("_")} | set(OPERATORS)):
        method = getattr(leafgrad.Tensor, name)
        if callable(method) and not module_of(method).startswith("leafgrad_"):  # as those of plugins are
            yield "Tensor." + name, method, True


def module_of(value):
    """The package of something that may be called."""
    return (getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]


TARGETS = [t for t in targets() if t[0] not in LEFT_OUT]
BASES = {"RNNBase", "RNNCellBase"}  # of layers; not called themselves
MODULES = {n: m for n, m in vars(nn).items() if isinstance(m, type) and issubclass(m, nn.Module) and n not in BASES}


def usual(parameter):
    """What a parameter is given while another one is wrong."""
    if parameter.name in GOOD:
        return GOOD[parameter.name]()
    return matrix() if parameter.default is parameter.empty else parameter.default


def calls(name, function, bound):
    """What is wrong with a call, and a function that gives its arguments and keyword arguments."""
    parameters = list(inspect.signature(function).parameters.values())
    plain = [p for p in parameters if p.kind in POSITIONAL]
    required = [p for p in plain if p.default is p.empty]
    keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]

    def start(count):
        args = [usual(p) for p in plain[: max(count, len(required))]]
        if bound:
            args[:1] = [GOOD_SELF.get(name.rpartition(".")[2], matrix)()]
        return args, {p.name: usual(p) for p in keyword if p.default is p.empty}

    def placed(i, make):
        args, kwargs = start(i + 1)
        args[i] = make()
        return args, kwargs

    def named(key, make):
        args, kwargs = start(0)
        return args, {**kwargs, key: make()}

    def longer(count, *makes):
        args, kwargs = start(count)
        return args + [make() for make in makes], kwargs

    for i, p in enumerate(plain):
        for what in WRONG_SELF if bound and not i else WRONG:
            yield f"{p.name}: {what}", functools.partial(placed, i, WRONG[what])
    for what, make in WRONG.items():
        for p in keyword:
            yield f"{p.name}: {what}", functools.partial(named, p.name, make)
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            for makes in ((make,), (make, make), (int, make)):
                yield f"*: {what}", functools.partial(longer, 0, *makes)
    yield "too many arguments", functools.partial(longer, len(plain), matrix, matrix, matrix)
    yield "no argument", lambda: ([matrix()] if bound else [], {})
    yield "an unknown keyword", functools.partial(named, "no_such_name", lambda: 1)


def fault(error):
    """What is wrong with an error, or None."""
    text = str(error)
    if isinstance(error, (AttributeError, KeyError)):  # of names that are looked up, as get_parameter does
        return None if raised(error) or text.startswith("'0'") else "a look-up inside"
    if not isinstance(error, ALLOWED) and not (isinstance(error, ImportError) and "CuPy" in text):
        return f"a {type(error).__name__} from inside"
    if INSIDE.search(text):
        return "speaks of what is inside"
    if ARITY.search(text) or "CuPy" in text or isinstance(error, FileNotFoundError):
        return None
    if not raised(error):
        return "raised by an operation inside"
    cause = error.__cause__ or error.__context__
    while cause is not None:
        if not raised(cause) and len(str(cause)) > 4 and str(cause) in text:
            return f"repeats the words of an operation inside, {cause}"
        cause = cause.__cause__ or cause.__context__
    return None


def attempt(function, args, kwargs):
    """The fault of a call, or None."""
    before = modes.FLAGS.get(), dtypes.get_default_dtype(), devices.DEFAULTS.get(), printing._options
    try:
        result = function(*args, **kwargs)
        if isinstance(result, leafgrad.Tensor):
            repr(result)
    except Exception as error:
        found = fault(error)
        return found and f"{found}: {type(error).__name__}: {error}"
    finally:
        modes.FLAGS.set(before[0])
        dtypes.set_default_dtype(before[1])
        devices.DEFAULTS.set(before[2])
        printing._options = before[3]
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bad_input")


@pytest.fixture(autouse=True)
def elsewhere(folder, monkeypatch):
    fake.register()
    monkeypatch.chdir(folder)
    state, threads = leafgrad.get_rng_state(), leafgrad.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    leafgrad.set_rng_state(state)
    leafgrad.set_num_threads(threads)  # which one of the calls sets to 99, for all tests that follow


def faults(name, function, given, share=1):
    """What is wrong with the calls of a function. Of ``share`` calls one is tried, with each function another."""
    for what, make in itertools.islice(given, zlib.crc32(name.encode()) % share, None, share):
        if found := attempt(function, *make()):
            yield f"{name}({what}): {found}"


@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("space", [*SPACES, "Tensor."])
def test_wrong_arguments(space, share):
    own = [target for target in TARGETS if target[0].rpartition(".")[0] == space[:-1]]
    assert own
    assert not [fault for name, f, bound in own for fault in faults(name, f, calls(name, f, bound), share)]


def inputs(names):
    """Arguments of a module's forward, one of them wrong."""
    for i in range(len(names)):
        for what, make in WRONG.items():
            makes = [matrix] * i + [make] + [matrix] * (len(names) - i - 1)
            yield f"{names[i].name}: {what}", lambda makes=makes: ([make() for make in makes], {})


@pytest.mark.parametrize("name", MODULES)
def test_modules_given_wrong_input(name):
    parameters = inspect.signature(MODULES[name]).parameters.values()
    required = [usual(p) for p in parameters if p.kind in POSITIONAL and p.default is p.empty]
    module = MODULES[name](*required, **({"output_size": 1} if name.startswith("Fractional") else {}))
    names = [p for p in inspect.signature(module.forward).parameters.values() if p.kind in POSITIONAL]
    assert not list(faults(f"{name}()", module, inputs(names)))


OBJECTS = {
    "Module": lambda: nn.Linear(3, 3),
    "Sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
    "ModuleList": lambda: nn.ModuleList([nn.Linear(3, 3)]),
    "ModuleDict": lambda: nn.ModuleDict({"a": nn.Linear(3, 3)}),
    "ParameterList": lambda: nn.ParameterList(weights()),
    "SGD": lambda: optim.SGD(weights(), lr=0.1, momentum=0.9),
    "Adam": lambda: optim.Adam(weights()),
    "LBFGS": lambda: optim.LBFGS(weights()),
    "StepLR": lambda: optim.lr_scheduler.StepLR(optim.SGD(weights()), 2),
    "LambdaLR": lambda: optim.lr_scheduler.LambdaLR(optim.SGD(weights()), one),
    "ReduceLROnPlateau": lambda: optim.lr_scheduler.ReduceLROnPlateau(optim.SGD(weights())),
    "Generator": leafgrad.Generator,
    "device": lambda: leafgrad.device("cpu"),
    "Size": lambda: leafgrad.Size((2, 3)),
}


@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OBJECTS)
def test_methods_of_other_objects(name, share):
    for method in sorted(m for m in dir(OBJECTS[name]()) if not m.startswith("_")):
        if method == "forward" or not inspect.ismethod(getattr(OBJECTS[name](), method)):
            continue

        def call(*args, method=method, **kwargs):
            return getattr(OBJECTS[name](), method)(*args, **kwargs)

        given = calls(method, getattr(OBJECTS[name](), method), False)
        assert not list(faults(f"{name}.{method}", call, given, share))


def test_the_search_is_wide():
    assert len(TARGETS) > 800
    assert isinstance(leafgrad.sum, types.FunctionType)


# ---- nothing half-written stays behind ----------------------------------------------------------------------------


def net():
    leafgrad.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def values(state):
    """A state dict with lists in the place of tensors, to compare."""
    if isinstance(state, leafgrad.Tensor):
        return state.tolist()
    if isinstance(state, dict):
        return {key: values(value) for key, value in state.items()}
    return [values(value) for value in state] if isinstance(state, (list, tuple)) else state


BAD_STATES = {
    "a key is missing": lambda d: d.pop("2.bias"),
    "a key too many": lambda d: d.update({"3.bias": leafgrad.ones(2)}),
    "a shape": lambda d: d.update({"2.weight": leafgrad.ones(3, 3)}),
    "no tensor": lambda d: d.update({"2.bias": [0.0, 0.0]}),
}


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("spoil", BAD_STATES)
def test_a_failed_load_leaves_the_module(spoil, assign):
    model = net()
    before, parameters = values(model.state_dict()), list(model.parameters())
    state = {key: value + 1 for key, value in model.state_dict().items()}
    BAD_STATES[spoil](state)
    with pytest.raises(RuntimeError, match="load"):
        model.load_state_dict(state, assign=assign)
    assert values(model.state_dict()) == before
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))


BAD_OPTIMIZER_STATES = {
    "another number of groups": lambda d: d["param_groups"].append(d["param_groups"][0]),
    "another number of parameters": lambda d: d["param_groups"][0]["params"].pop(),
    "a shape": lambda d: d["state"][5].update(exp_avg=leafgrad.ones(7)),
    "no groups": lambda d: d.pop("param_groups"),
    "no state": lambda d: d.pop("state"),
}


@pytest.mark.parametrize("spoil", BAD_OPTIMIZER_STATES)
def test_a_failed_load_leaves_the_optimizer(spoil):
    model = net()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    for _ in range(2):
        model(leafgrad.randn(5, 3)).square().sum().backward()
        optimizer.step()
    before, groups = values(optimizer.state_dict()), optimizer.param_groups
    state = copy.deepcopy(optimizer.state_dict())
    for entry in state["state"].values():
        entry.update({name: value + 1 for name, value in entry.items()})
    state["param_groups"][0]["lr"] = 0.5
    BAD_OPTIMIZER_STATES[spoil](state)
    with pytest.raises((ValueError, KeyError)):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups is groups
    assert groups[0]["lr"] == 0.1
    assert values(optimizer.state_dict())["state"] == before["state"]


def test_a_failed_save_leaves_the_former_file(tmp_path):
    path = tmp_path / "checkpoint"
    leafgrad.save({"x": matrix()}, path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="y"):
        leafgrad.save({"x": matrix() + 1, "y": object()}, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


WRITES = {
    "add_": lambda x: x.add_(leafgrad.ones(2, 3, 3)),
    "mul_ of another device": lambda x: x.mul_(leafgrad.ones(3, 3, device="fake:0")),
    "integer add_": lambda x: x.add_(leafgrad.ones(4)),
    "copy_": lambda x: x.copy_(leafgrad.ones(4, 3)),
    "clamp_": lambda x: x.clamp_("0"),
    "fill_": lambda x: x.fill_(leafgrad.ones(2)),
    "masked_fill_": lambda x: x.masked_fill_(leafgrad.ones(3, 3), 0),
    "index_add_": lambda x: x.index_add_(0, leafgrad.tensor([0, 5]), leafgrad.ones(2, 3)),
    "scatter_": lambda x: x.scatter_(0, leafgrad.tensor([[0, 5]]), leafgrad.ones(1, 2)),
    "index_put_": lambda x: x.index_put_((leafgrad.tensor([0, 7]),), leafgrad.ones(3)),
    "x[...] = ": lambda x: x.__setitem__(slice(0, 2), leafgrad.ones(3, 3)),
    "x[mask] = ": lambda x: x.__setitem__(x > 1, leafgrad.ones(7)),
    "normal_": lambda x: x.normal_(0, -1),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_a_failed_write_leaves_the_tensor(name, requires_grad):
    x = matrix().requires_grad_(requires_grad) * 1
    before, node, version = x.tolist(), x.grad_fn, x._version
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
        WRITES[name](x)
    assert x.tolist() == before
    assert x.grad_fn is node
    assert x._version in (version, 0)


# ---- exception types are PyTorch's, and messages say what was expected, what came, and what to do ------------------


def vector(t):
    return t.tensor([1.0, 2.0, 3.0])


def table(t, *shape):
    return t.ones(*(shape or (2, 3)))


def linear(t):
    return t.nn.Linear(3, 2)


# The call, PyTorch's exception, and parts of leafgrad's message in their order.
CASES = [
    (lambda t: vector(t) + t.ones(4), RuntimeError, "tensor a (3)", "tensor b (4)", "dimension 0", "reshape"),
    (lambda t: vector(t) * "2", TypeError, "y: expected a Tensor or a number", "got str", "leafgrad.tensor"),
    (lambda t: t.exp("1"), TypeError, "exp", "got str", "leafgrad.tensor"),
    (lambda t: t.exp(vector(t), zzz=1), TypeError, "exp() got an unexpected keyword argument 'zzz'"),
    (lambda t: vector(t).mul(1, 2), TypeError, "mul() takes 2 positional arguments but 3 were given"),
    (lambda t: t.tensor([True]) - t.tensor([True]), RuntimeError, "is not supported", "logical", ".to(dtype)"),
    (lambda t: vector(t) @ 2.0, TypeError, "matmul", "expected a Tensor", "got float", "leafgrad.tensor"),
    (lambda t: 2.0 @ vector(t), TypeError, "matmul", "expected a Tensor", "got float", "leafgrad.tensor"),
    (lambda t: table(t) @ table(t), RuntimeError, "cannot be multiplied (2x3 and 2x3)", "expected", ".mT"),
    (lambda t: table(t) @ t.tensor(1.0), RuntimeError, "at least 1D", "2D and 0D"),
    (lambda t: table(t) @ table(t, 3, 2).double(), RuntimeError, "m1 and m2 to have the same dtype", "float64", ".to("),
    (lambda t: t.mm(vector(t), table(t)), RuntimeError, "mm: input must be a matrix", "got 1D"),
    (lambda t: t.bmm(table(t), table(t)), RuntimeError, "bmm: input must be a 3D tensor", "got 2D"),
    (lambda t: t.dot(vector(t), table(t)), RuntimeError, "1D tensors expected", "got 1D and 2D"),
    (lambda t: t.matmul(vector(t), [1]), TypeError, "'other' must be Tensor, not list", "leafgrad.tensor"),
    (lambda t: t.einsum("ij,jk->ik", table(t), table(t)), RuntimeError, "einsum"),
    (lambda t: t.sum(vector(t), 5), IndexError, "[-1, 0]", "got 5"),
    (lambda t: vector(t).sum("0"), TypeError, "sum(): argument 'dim'", "int", "not str"),
    (lambda t: vector(t).sum(1.5), TypeError, "sum(): argument 'dim'", "int", "not float"),
    (lambda t: table(t).sum((0, 0)), RuntimeError, "dim 0 appears multiple times"),
    (lambda t: t.ones(3, dtype=t.int64).mean(), RuntimeError, "mean", "floating", "int64", ".float()"),
    (lambda t: t.ones(0).max(), RuntimeError, "max", "numel() == 0", "dim"),
    (lambda t: vector(t).argmax(3), IndexError, "[-1, 0]", "got 3"),
    (lambda t: t.softmax(vector(t), 2), IndexError, "[-1, 0]", "got 2"),
    (lambda t: t.cumsum(vector(t), None), TypeError, "cumsum(): argument 'dim'", "int", "not NoneType"),
    (lambda t: vector(t).reshape(2, 2), RuntimeError, "[2, 2]", "input of size 3"),
    (lambda t: vector(t).reshape("3"), TypeError, "reshape", "tuple of ints", "str"),
    (lambda t: vector(t).view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda t: vector(t).expand(2, 4), RuntimeError, "expanded size", "(4)", "existing size (3)"),
    (lambda t: table(t).permute(0), RuntimeError, "permute"),
    (lambda t: table(t).transpose(0, 2), IndexError, "[-2, 1]", "got 2"),
    (
        lambda t: t.cat([table(t), table(t, 2, 2)]),
        RuntimeError,
        "Sizes of tensors must match",
        "Expected size 3",
        "got size 2",
    ),
    (lambda t: t.stack([]), RuntimeError, "non-empty"),
    (lambda t: t.stack([vector(t), table(t)]), RuntimeError, "equal size", "[3]", "[2, 3]"),
    (lambda t: vector(t).split(-1), RuntimeError, "split", "non-negative", "-1"),
    (lambda t: vector(t)[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda t: vector(t)[0, 0], IndexError, "too many indices", "1"),
    (lambda t: vector(t)["a"], (IndexError, TypeError), "only integers, slices", "got str"),
    (lambda t: vector(t)[t.tensor([1.0])], IndexError, "int", "float32"),
    (lambda t: vector(t)[t.tensor([True])], IndexError, "mask", "[1]", "[3]"),
    (
        lambda t: t.gather(vector(t), 0, vector(t)),
        RuntimeError,
        "gather(): Expected dtype int32/int64 for index",
        "float32",
    ),
    (lambda t: t.gather(vector(t), 0, t.tensor([3])), RuntimeError, "index 3 is out of bounds for dimension 0", "3"),
    (lambda t: t.index_select(vector(t), 0, t.tensor([7])), (IndexError, RuntimeError), "index", "7", "3"),
    (lambda t: vector(t).masked_fill(vector(t), 0), RuntimeError, "BoolTensor", "float32", ".bool()"),
    (lambda t: t.where(vector(t), 1.0, 0.0), RuntimeError, "boolean tensor", "float32", "!= 0"),
    (lambda t: t.where(vector(t) > 1, vector(t), t.ones(4)), RuntimeError, "(3)", "(4)", "dimension 0"),
    (lambda t: t.clamp(vector(t)), RuntimeError, "At least one of 'min' or 'max'"),
    (lambda t: t.topk(vector(t), 5), RuntimeError, "k", "out of range"),
    (lambda t: t.zeros(-1), RuntimeError, "non-negative", "got [-1]"),
    (lambda t: t.zeros("3"), TypeError, "zeros", "tuple of ints", "'3'"),
    (
        lambda t: t.tensor([[1], [2, 3]]),
        ValueError,
        "expected nested sequences of equal lengths",
        "got ragged",
        "pad or split",
    ),
    (lambda t: t.arange(0, 1, 0), RuntimeError, "step must be nonzero"),
    (lambda t: t.linspace(0, 1, -1), RuntimeError, "steps", "non-negative"),
    (lambda t: t.linalg.inv(table(t)), RuntimeError, "inv", "square", "2 by 3"),
    (lambda t: t.linalg.inv(t.zeros(2, 2)), RuntimeError, "singular"),
    (lambda t: t.linalg.cholesky(-t.eye(2)), RuntimeError, "not positive-definite"),
    (lambda t: t.linalg.solve(t.eye(3), t.ones(2)), RuntimeError, "solve"),
    (lambda t: linear(t)(t.ones(5, 4)), RuntimeError, "cannot be multiplied (5x4 and 3x2)", "expected"),
    (lambda t: t.nn.functional.mse_loss(vector(t), None), (TypeError, AttributeError), "'target' must be Tensor"),
    (lambda t: t.nn.functional.cross_entropy(table(t), t.tensor([0])), ValueError, "batch_size (2)", "(1)"),
    (lambda t: t.nn.Dropout(2), ValueError, "between 0 and 1", "got 2"),
    (lambda t: linear(t).load_state_dict({"bias": t.ones(2)}), RuntimeError, 'Missing key(s) in state_dict: "weight"'),
    (lambda t: t.optim.SGD(linear(t).parameters(), lr=-1), ValueError, "Invalid learning rate: -1", "at least 0"),
    (lambda t: t.optim.SGD([]), ValueError, "empty parameter list", "model.parameters()"),
    (lambda t: t.optim.Adam([1.0]), TypeError, "can only optimize Tensors", "float"),
    (lambda t: vector(t).backward(), RuntimeError, "does not require grad"),
    (lambda t: vector(t).requires_grad_().backward(), RuntimeError, "grad can be implicitly created only for scalar"),
    (lambda t: t.ones(2, dtype=t.int64).requires_grad_(), RuntimeError, "floating point", "int64", ".float()"),
    (lambda t: t.autograd.grad(vector(t).sum(), "x"), (TypeError, RuntimeError), "expected a Tensor", "str"),
    (
        lambda t: vector(t).add_(table(t)),
        RuntimeError,
        "output with shape [3]",
        "broadcast shape [2, 3]",
        "out-of-place",
    ),
    (lambda t: vector(t).item(), RuntimeError, "3 elements cannot be converted to Scalar"),
    (lambda t: float(vector(t)), ValueError, "only one element tensors can be converted to Python scalars"),
    (lambda t: int(t.ones(0)), ValueError, "only one element tensors can be converted to Python scalars"),
    (lambda t: complex(vector(t)), ValueError, "only one element tensors can be converted to Python scalars"),
    (lambda t: bool(vector(t)), RuntimeError, "ambiguous", ".any() or .all()"),
    (lambda t: vector(t).to("gpu"), RuntimeError, "gpu"),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_exceptions_are_those_of_pytorch(t, case):
    call, exception, *parts = case
    with pytest.raises(exception) as caught:
        call(t)
    if t is leafgrad:
        assert re.search(".*".join(map(re.escape, parts)), str(caught.value), re.DOTALL), str(caught.value)


def test_too_large_a_result_says_so_with_the_op():
    with pytest.raises(MemoryError, match=r"^add\(x: .*: Unable to allocate"):
        leafgrad.zeros(1, 1).expand(2**44, 2**8) + leafgrad.ones(1)
