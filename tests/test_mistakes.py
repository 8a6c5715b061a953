"""Mistakes of the first hour: each is told what was expected and what to do, in a traceback that a reader can read."""

from __future__ import annotations

import io
import traceback
from pathlib import Path

import numpy as np
import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.nn import functional as F
from leafgrad.utils import Training
from leafgrad.utils.data import DataLoader, TensorDataset

TESTS = "errors nn.place ops.tracebacks"

PACKAGE = str(Path(leafgrad.__file__).parent)
FRAMES = 10  # of leafgrad's in what Python prints, at most, of first calls too, which write functions

x = leafgrad.ones(4, 3)
image = leafgrad.ones(2, 1, 8, 8)


def compiled(step, *args, others=()):
    """A compiled step, called with ``others`` until it is closed, and then with ``args``."""
    step = leafgrad.compile(step)
    for _ in range(3 if others else 0):
        step(*others)
    return step(*args)


def train(model, inputs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(inputs):
        loss = model(inputs).sum()
        loss.backward()
        optimizer.step()
        return loss

    return compiled(step, inputs)


def deep(depth):
    return nn.Sequential(deep(depth - 1) if depth else nn.Linear(10, 5))


def net():
    return nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 2))


MISTAKES = {
    "in_features": (lambda: net()(x), "expected a last dimension of 10", "give the layer as many in_features"),
    "no Flatten": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Linear(144, 2))(image), "nn.Flatten()"),
    "channels": (lambda: nn.Conv2d(3, 4, 3)(image), "to have 3 channels, but got 1"),
    "uncalled parameters": (lambda: optim.Adam(net().parameters), "call it: parameters()"),
    "a module's parameters": (lambda: optim.Adam(nn.Linear(1, 1)), "but got a Linear; pass its .parameters()"),
    "a module to Adam": (lambda: optim.Adam(net()), "one of the params is Linear; pass model.parameters()"),
    "no parameters": (lambda: optim.SGD([]), "empty parameter list"),
    "a module to clip": (lambda: nn.utils.clip_grad_norm_(net(), 1.0), "got a Sequential; pass model.parameters()"),
    "class too large": (lambda: F.cross_entropy(x, leafgrad.tensor([0, 1, 5, 2])), "Target 5 is out", "0 to 2"),
    "class negative": (lambda: F.nll_loss(x, leafgrad.tensor([0, -3, 1, 2])), "Target -3 is out of bounds"),
    "float classes": (lambda: F.cross_entropy(x, leafgrad.ones(4)), "class numbers of dtype int64", ".long()"),
    "no such row": (lambda: nn.Embedding(5, 3)(leafgrad.tensor([1, 7])), "index 7 out of range in self", "from 0 to 4"),
    "bool - bool": (lambda: (x > 0) - (x > 1), "with a bool tensor is not supported", "logical_xor()"),
    "bool - int": (lambda: (x > 0) - 1, "Subtraction, the `-` operator, with a bool tensor is not supported"),
    "1 - bool": (lambda: 1 - (x > 0), "Subtraction, the `-` operator, with a bool tensor is not supported"),
    "bool - float": (lambda: (x > 0) - x, "Subtraction, the `-` operator, with a bool tensor is not supported"),
    "-bool": (lambda: -(x > 0), "Negation, the `-` operator, on a bool tensor is not supported", "`~`"),
    "index of a number": (lambda: leafgrad.tensor(1.0)[0], "invalid index of a 0-dim tensor. Use tensor.item()"),
    "too many indices": (lambda: x[0, 0, 0], "too many indices for tensor of dimension 2"),
    "row 7": (lambda: x[7], "index 7 is out of bounds for dimension 0 with size 4"),
    "shapes": (lambda: x + leafgrad.ones(5), "size of tensor a (3) must match the size of tensor b (5)"),
    "matrices": (lambda: x @ x, "cannot be multiplied (4x3 and 4x3)", ".mT"),
    "integers into a layer": (lambda: nn.Linear(3, 2)(x.long()), "to have the same dtype", "int64 != float32"),
    "doubles into a layer": (lambda: nn.Linear(3, 2)(x.double()), "the same dtype", ".float()"),
    "arrays into a layer": (lambda: nn.Linear(3, 2)(np.ones((2, 3))), "argument 'input' must be Tensor, not ndarray"),
    "lists into a layer": (lambda: nn.Linear(3, 2)([1.0]), "'input' must be Tensor, not list", "leafgrad.tensor(...)"),
    "a string as size": (lambda: nn.Linear("3", 2), "Linear(): argument 'in_features'", "must be int, not str"),
    "no loss": (lambda: (leafgrad.ones(3, requires_grad=True) * 2).backward(), "only for scalar outputs", "sum()"),
    "a constant loss": (lambda: x.sum().backward(), "does not require grad", "explain(tensor) tells why"),
    "a leaf in place": (lambda: leafgrad.ones(2, requires_grad=True).add_(1), "leafgrad.no_grad()"),
    "a row of one": (lambda: nn.BatchNorm1d(3)(leafgrad.ones(1, 3)), "Expected more than 1 value per channel"),
    "no super().__init__": (lambda: type("N", (nn.Module,), {"__init__": lambda s: setattr(s, "l", nn.ReLU())})(),
                            "before Module.__init__() call"),
    "a forgotten size": (lambda: nn.Conv2d(3, 8), "Conv2d.__init__() missing 1 required positional argument"),
    "another name": (lambda: optim.SGD([x], learning_rate=0.1), "argument 'learning_rate'; it takes params, lr,"),
    "a capital": (lambda: optim.Adamw, "Did you mean: 'AdamW'?"),
    "no return": (lambda: F.mse_loss(None, x), "not NoneType; a function that ends without return gives None"),
    "exchanged": (lambda: F.cross_entropy(leafgrad.tensor([1, 0, 1, 0]), x), "the input, scores of each class, comes"),
    "classes as scores": (lambda: F.cross_entropy(x.argmax(1), x.argmax(1)), "where scores belong"),
    "a list of modules": (lambda: nn.Sequential([nn.ReLU()]), "list is not a Module subclass; pass modules one by one"),
    "a module by name": (lambda: nn.Sequential(nn.ReLU())["relu"], "expected an int or a slice, got 'relu'"),
    "no_grad of a tensor": (lambda: leafgrad.no_grad(x), "got Tensor; write `with no_grad():`"),
    "parameters to a schedule": (lambda: optim.lr_scheduler.StepLR(net().parameters(), 3), "pass the optimizer"),
    "a module as its state": (lambda: net().load_state_dict(net()), "pass what state_dict() gives"),
    "ragged": (lambda: leafgrad.tensor([[1, 2], [3]]), "ragged"),
    "tensors in a list": (lambda: leafgrad.tensor([x, x]), "leafgrad.stack"),
    "one of many": (lambda: x.item(), "12 elements cannot be converted to Scalar"),
    "if of many": (lambda: bool(x > 0), ".any() or .all()"),
    "numpy with grad": (lambda: leafgrad.ones(2, requires_grad=True).numpy(), "detach().numpy()"),
    "integers with grad": (lambda: leafgrad.arange(3).requires_grad_(), ".float()"),
    "samples of sizes": (lambda: next(iter(DataLoader([x, x[:2]], batch_size=2))), "each tensor to be equal size"),
    "datasets of sizes": (lambda: TensorDataset(x, x[:2]), "got lengths [4, 2]"),
    "batches of 0": (lambda: DataLoader(TensorDataset(x), batch_size=0), "should be a positive integer value"),
    "gather": (lambda: x.gather(1, leafgrad.tensor([[9]])), "index 9 is out of bounds for dimension 1 with size 3"),
    "singular": (lambda: leafgrad.linalg.inv(leafgrad.zeros(2, 2)), "the input matrix is singular", "pinv"),
    "a list to cat": (lambda: leafgrad.cat(x, x), "cat(): argument 'tensors' (position 1) must be tuple of Tensors"),
    "a dtype by name": (lambda: leafgrad.zeros(3, dtype="float32"), "expected a leafgrad dtype"),
    "a device": (lambda: x.to("gpu"), "unknown device type 'gpu'", "did you mean 'cuda'?"),
    "classes to Sequential": (lambda: nn.Sequential(nn.Linear, nn.ReLU), "a class: make one of it, Linear(...)"),
    "a misspelt function": (lambda: leafgrad.sofmax(x), "Did you mean: 'softmax'?"),
    "deep": (lambda: deep(9)(x), "expected a last dimension of 10"),
    "shapes, compiled": (lambda: compiled(lambda t: t + leafgrad.ones(5), x), "must match the size of tensor b (5)"),
    "shapes, later": (lambda: compiled(lambda t, u: t @ u, x, x, others=(x, x.T)), "(4x3 and 4x3)"),
    "in_features, compiled": (lambda: train(net(), x), "expected a last dimension of 10"),
    "classes, later": (lambda: compiled(F.nll_loss, x, leafgrad.tensor([0, 1, 5, 2]),
                                        others=(x, leafgrad.tensor([0, 1, 1, 2]))), "Target 5 is out of bounds"),
    "a user's, compiled": (lambda: compiled(lambda t: int("a"), x), "invalid literal for int()"),
    "compiled in compiled": (lambda: compiled(lambda t: compiled(lambda u: u @ u, t), x), "(4x3 and 4x3)"),
    "in vmap": (lambda: leafgrad.vmap(lambda row: row @ leafgrad.ones(5))(x), "(4x3 and 5)"),
    "in vmap, compiled": (lambda: compiled(leafgrad.vmap(lambda row: row @ leafgrad.ones(5)), x), "(4x3 and 5)"),
    "in grad": (lambda: leafgrad.func.grad(lambda t: t @ leafgrad.ones(5))(x[0]), "(3 and 5)"),
    "in a closure": (lambda: optim.LBFGS([leafgrad.ones(3, requires_grad=True)]).step(lambda: x @ x), "(4x3 and 4x3)"),
    "functional_call": (lambda: leafgrad.func.functional_call(net(), {"lost": x}, (x,)), "a last dimension of 10"),
    "a list to ModuleDict": (lambda: nn.ModuleDict({"a": 3}), "int is not a Module subclass"),
    "a misspelt keyword": (lambda: x.sum().backward(create_grap=True), "backward() got an unexpected keyword argument"),
    "a number to float()": (lambda: x.float(3), "float(): argument 'memory_format' (position 1)"),
    "batchmeen": (lambda: nn.KLDivLoss(reduction="batchmeen")(x, x), "expected 'batchmean', 'mean', 'sum' or 'none'"),
    "init by apply": (lambda: net().apply(nn.init.xavier_uniform_), "must be Tensor, not Linear; pass its .weight"),
    "init of a layer": (lambda: nn.init.zeros_(nn.Linear(3, 2)), "must be Tensor, not Linear; pass its .weight"),
    "a decay to average": (lambda: optim.swa_utils.AveragedModel(net(), multi_avg_fn=0.9), "get_ema_multi_avg_fn(0.9)"),
    "another to average": (lambda: optim.swa_utils.AveragedModel(net()).update_parameters(nn.Linear(10, 2)),
                           "of shape (5, 10), got (2, 10)"),
    "fewer to average": (lambda: optim.swa_utils.AveragedModel(net()).update_parameters(net()[:1]), "got none"),
    "a number to train": (lambda: Training("none", every=1, model=3), "expected a part with state_dict", "got int"),
    "no samples": (lambda: DataLoader([], shuffle=True), "num_samples=0: the dataset is empty"),
    "layers in a list": (lambda: optim.SGD([]), "layers in a plain list or dict are not found", "nn.ModuleList"),
    "a text file": (lambda: leafgrad.load(io.BytesIO(b"hello, hello")), "files of safetensors and of torch.save"),
    "an int to compile": (lambda: leafgrad.compile(3), "got int"),
    "an array plus": (lambda: np.ones(3) + x, "got ndarray; convert it with leafgrad.from_numpy(...)"),
    "an array times": (lambda: np.ones(3) * x, "got ndarray; convert it with leafgrad.from_numpy(...)"),
    "an array above": (lambda: np.ones(3) > x, "got ndarray; convert it with leafgrad.from_numpy(...)"),
    "below an array": (lambda: x < np.ones(3), "got ndarray; convert it with leafgrad.from_numpy(...)"),
    "an array and": (lambda: np.ones(3, bool) & (x > 0), "got ndarray; convert it with leafgrad.from_numpy(...)"),
    "a misspelt layer": (lambda: nn.Liner(1, 2), "Did you mean: 'Linear'?"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    mistake, *said = MISTAKES[name]
    for _ in ("the first call, if it is", "a later one"):
        try:
            mistake()
        except Exception as error:
            text, printed = str(error), "".join(traceback.format_exception(error))
        else:
            raise AssertionError("nothing was said")
        assert all(words in text for words in said), text
        assert printed.count(f'File "{PACKAGE}') <= FRAMES, printed


parameter = nn.Parameter(leafgrad.ones(3))
WARNINGS = {
    "a schedule first": lambda: optim.lr_scheduler.StepLR(optim.SGD([parameter]), 3).step(),
    "an epoch": lambda: optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([parameter])).step(1.0, epoch=3),
    "a parameter twice": lambda: optim.SGD([parameter, parameter]),
    "clip_grad_norm": lambda: nn.utils.clip_grad_norm([parameter], 1.0),
    "weight_norm": lambda: nn.utils.weight_norm(nn.Linear(3, 2)),
    "dropout of one layer": lambda: nn.LSTM(3, 2, dropout=0.5),
    "masks of two dtypes": lambda: nn.MultiheadAttention(3, 1)(
        x, x, x, key_padding_mask=leafgrad.zeros(4).bool(), attn_mask=leafgrad.zeros(4, 4)
    ),
    "anomalies": leafgrad.autograd.detect_anomaly,
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings_point_at_the_users_line(name):
    with pytest.warns((UserWarning, FutureWarning)) as caught:
        WARNINGS[name]()
    assert {warning.filename for warning in caught} == {__file__}


def test_cuda_without_cupy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ImportError, match=r'device "cuda" needs CuPy.*pip install "leafgrad\[cuda12\]"'):
        x.to("cuda")


def test_zero_probabilities_are_no_reason_to_warn(recwarn):
    for _ in range(20):
        drawn = leafgrad.multinomial(leafgrad.tensor([0.0, 0.5, 0.5]), 2)
        assert sorted(drawn.tolist()) == [1, 2]
    assert not recwarn.list


def test_what_notebooks_show():
    html = x._repr_html_()
    assert html.count("font-family: monospace") == 2
    program = leafgrad.trace(lambda t: t * 2, x)
    assert repr(program) == str(program)
    assert "mul(t, 2)" in repr(program)


def test_faults_and_users_frames_stay_in_tracebacks(monkeypatch):
    def hook(module, args):
        raise ValueError("a user's")

    layer = nn.Sequential(nn.Linear(3, 2))
    layer[0].register_forward_pre_hook(hook)
    with pytest.raises(ValueError, match="a user's") as caught:
        layer(x)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "hook"

    within = compile("def fault(n): return 1 // n if n == 0 else fault(n - 1)", f"{PACKAGE}/some.py", "exec")
    exec(within, scope := {})
    with pytest.raises(ZeroDivisionError) as caught:
        nn.Sequential.__call__(type("Faulty", (nn.Module,), {"forward": lambda self: scope["fault"](20)})())
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 20
    with pytest.raises(RuntimeError) as caught:
        deep(9)(leafgrad.ones(4, 3))
    short = len(traceback.extract_tb(caught.value.__traceback__))
    monkeypatch.setenv("LEAFGRAD_TRACEBACKS", "full")
    with pytest.raises(RuntimeError) as caught:
        deep(9)(leafgrad.ones(4, 3))
    assert len(traceback.extract_tb(caught.value.__traceback__)) > short
