"""leafgrad in place of PyTorch: what ``import torch`` gives, what it refuses, and how it is undone."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
import textwrap
import types
import warnings

import pytest

import leafgrad
from leafgrad.compat import as_torch, install_as_torch, uninstall
from leafgrad.compat.stand_in import StandIn

TESTS = "compat.settings"

REAL = importlib.util.find_spec("torch") is not None


def run(code):
    """Run code with leafgrad as torch in a process of its own; what it prints."""
    script = "from leafgrad.compat import install_as_torch\ninstall_as_torch()\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- what is there --------------------------------------------------------------------------------------------------


def test_names_are_leafgrads(torch):
    import torch.nn.functional as F
    from torch import nn, optim
    from torch.autograd import Function, grad
    from torch.nn.modules.loss import MSELoss
    from torch.nn.parameter import Parameter
    from torch.optim.lr_scheduler import StepLR
    from torch.utils.data import DataLoader
    from torch.utils.data.dataset import TensorDataset

    pairs = [
        (torch.Tensor, leafgrad.Tensor),
        (torch.zeros, leafgrad.zeros),
        (torch.float32, leafgrad.float32),
        (torch.float, leafgrad.float32),
        (nn.Linear, leafgrad.nn.Linear),
        (F.relu, leafgrad.nn.functional.relu),
        (optim.Adam, leafgrad.optim.Adam),
        (StepLR, leafgrad.optim.lr_scheduler.StepLR),
        (Function, leafgrad.autograd.Function),
        (grad, leafgrad.autograd.grad),
        (MSELoss, leafgrad.nn.MSELoss),
        (Parameter, leafgrad.nn.Parameter),
        (DataLoader, leafgrad.utils.data.DataLoader),
        (TensorDataset, leafgrad.utils.data.TensorDataset),
        (torch.func.grad, leafgrad.func.grad),
        (torch.linalg.norm, leafgrad.linalg.norm),
        (torch.distributions.Normal, leafgrad.distributions.Normal),
        (torch.random.manual_seed, leafgrad.manual_seed),
        (torch.utils.dlpack.from_dlpack, leafgrad.from_dlpack),
    ]
    for theirs, ours in pairs:
        assert getattr(theirs, "__wrapped__", theirs) is getattr(ours, "__wrapped__", ours)


def test_every_module_of_leafgrad_that_pytorch_has(torch):
    names = (
        "autograd autograd.functional distributions func linalg nn nn.functional nn.init nn.utils optim random utils"
    )
    for name in names.split():
        module = importlib.import_module(f"torch.{name}")
        assert isinstance(module, StandIn)
        assert isinstance(eval(f"torch.{name}"), StandIn)


def test_star_import_and_dir(torch):
    namespace = {}
    exec("from torch.nn import *", namespace)
    assert namespace["Linear"] is leafgrad.nn.Linear
    assert {"zeros", "nn", "cuda", "compile", "Tensor"} <= set(dir(torch))
    assert {"dtypes", "plugins", "op", "bool_"}.isdisjoint(dir(torch))


def test_names_print_as_pytorchs(torch):
    x = torch.ones(2, 3, dtype=torch.float64)
    assert str(x.dtype) == "torch.float64"
    assert "dtype=torch.float64" in str(x)
    assert str(x.shape) == "torch.Size([2, 3])"
    assert (x.type(), x.type("torch.FloatTensor").type()) == ("torch.DoubleTensor", "torch.FloatTensor")
    uninstall()
    assert str(x.dtype) == "leafgrad.float64"


def test_version(torch):
    assert torch.__version__ == torch.version.__version__ == f"2.13.0+leafgrad.{leafgrad.__version__}"
    assert torch.version.cuda is None


def test_switches(torch):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cudnn.benchmark
    assert not torch.backends.mps.is_available()
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("high")
    torch.set_default_device("cpu")
    torch.set_default_device(None)
    with pytest.raises(RuntimeError, match="'highest', 'high' or 'medium'"):
        torch.set_float32_matmul_precision("low")
    with pytest.raises(RuntimeError, match="unknown device type"):
        torch.set_default_device("mps")
    torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.tensor(1.0).dtype is torch.float64
    torch.set_default_tensor_type("torch.FloatTensor")


def test_cuda(torch):
    assert torch.cuda.is_available() is (torch.cuda.device_count() > 0)
    torch.cuda.manual_seed_all(0)
    torch.cuda.empty_cache()
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, ImportError), match="cuda"):
            torch.cuda.synchronize()


def test_mixed_precision_switched_off(torch):
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    w = torch.nn.Parameter(torch.ones(2))
    sgd = torch.optim.SGD([w], lr=1.0)
    with torch.autocast("cpu", enabled=False):
        loss = (w * w).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(sgd)
    scaler.step(sgd)
    scaler.update()
    assert w.tolist() == [-1, -1]
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'mps'"):
        torch.autocast("mps")
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available. Disabling."):
            assert not torch.cuda.amp.GradScaler().is_enabled()


def test_old_names(torch):
    from torch.autograd import Variable
    from torch.nn.modules.utils import _pair
    from torch.optim.lr_scheduler import _LRScheduler

    x = Variable(torch.ones(2), requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert (_pair(3), _pair([1, 2])) == ((3, 3), (1, 2))
    assert _LRScheduler is torch.optim.lr_scheduler.LRScheduler
    assert torch.trace(torch.eye(3)).item() == 3


# ---- compile --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"mode": "max-autotune", "fullgraph": True, "dynamic": False}, {"backend": "replay"}]
)
def test_compile(torch, options):
    @torch.compile(**options)
    def f(x):
        return x.sin() + 1

    net = torch.compile(torch.nn.Linear(2, 3), **options)
    for _ in range(3):
        assert f(torch.zeros(2)).tolist() == [1, 1]
        assert net(torch.zeros(4, 2)).shape == (4, 3)
    assert len(list(net.parameters())) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fast"}, "Unrecognized mode=fast, should be one of: default"),
        ({"options": {"a": 1}}, "options are inductor's, and leafgrad has none of them"),
        ({"mode": "default", "options": {"a": 1}}, "Either mode or options"),
        ({"backend": "tvm"}, "'tvm'.*known are .*numpy"),
        ({"backend": print}, "backend"),
    ],
)
def test_compile_refuses(torch, options, message):
    with pytest.raises(RuntimeError, match=f"(?s){message}"):
        torch.compile(len, **options)


def test_compile_that_does_not(torch):
    assert torch.compile(len, disable=True) is torch.compile(len, backend="eager") is len
    with pytest.warns(UserWarning, match="each shape gets a program of its own"):
        torch.compile(len, dynamic=True)


STEPS = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def losses(compiled, forward):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
    adam = torch.optim.Adam(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)

    def step(x):
        adam.zero_grad()
        loss = forward(net, x).float().pow(2).sum()
        scaler.scale(loss).backward()
        scaler.step(adam)
        scaler.update()
        return loss

    run = torch.compile(step) if compiled else step
    found = [run(torch.ones(5, 3)).item() for _ in range(5)]
    if compiled:
        assert "open" not in run.explain(), run.explain()
    return found


def lowered(net, x):
    with torch.autocast("cpu"):
        return net(x)


for forward in (lambda net, x: net(x), lowered, lambda net, x: torch.utils.checkpoint.checkpoint(net, x)):
    for a, b in zip(losses(True, forward), losses(False, forward)):
        assert abs(a - b) <= 0.02 * (1 + abs(b)), (a, b)
"""


def test_ordinary_steps_close_in_a_fresh_process(tmp_path):
    (tmp_path / "train.py").write_text(STEPS)
    command = [sys.executable, "-m", "leafgrad", "run", "--as-torch", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- what is not there ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "torch.foo",
        "torch.op",
        "torch.dtypes",
        "torch.nn.Foo",
        "torch.package",
        "torch.backends.numpy",
        "torch.utils.foo",
    ],
)
def test_missing_names(torch, name):
    with pytest.raises(
        AttributeError, match=f"leafgrad, which stands in for PyTorch here, does not provide {name}(?![.]?\\w)"
    ):
        eval(name)
    parent, _, child = name.rpartition(".")
    with pytest.raises(ImportError, match=f"cannot import name {child!r}"):
        exec(f"from {parent} import {child}")


@pytest.mark.parametrize(
    "name", ["torch.package", "torch.ao", "torch.nn.modules.foo", "torch._D", "torch.quantization"]
)
def test_missing_modules(torch, name):
    with pytest.raises(ModuleNotFoundError, match=f"does not provide {name}(?![.]?\\w)") as caught:
        importlib.import_module(name)
    assert caught.value.name == name


def test_missing_dtypes_can_only_be_compared(torch):
    assert torch.ones(2).dtype not in (torch.uint16, torch.complex32)
    assert torch.complex64.is_complex
    with pytest.raises(TypeError, match=r"got torch\.uint16 \(which leafgrad does not provide\)"):
        torch.zeros(2, dtype=torch.uint16)


@pytest.mark.skipif(not REAL, reason="asks PyTorch")
@pytest.mark.parametrize("name", ["torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils.data"])
def test_nothing_is_offered_that_pytorch_has_not(torch, name):
    module = importlib.import_module(name)
    ours = {n for n in dir(module) if n[0] != "_" and not isinstance(getattr(module, n), types.ModuleType)}
    code = f"import {name}; print(*dir({name}))"
    theirs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert ours - set(theirs.split()) <= {"LazyModuleMixin"}


# ---- installing and undoing -----------------------------------------------------------------------------------------


def test_install_and_uninstall():
    out = run(
        """
        from leafgrad.compat import uninstall
        import sys, torch, torch.nn.functional
        install_as_torch()
        first = torch
        import torch
        print(torch is first, "torch.nn" in sys.modules)
        torch.extra = 3
        from torch import extra
        uninstall()
        uninstall()
        print([name for name in sys.modules if name.partition(".")[0] == "torch"])
        install_as_torch()
        import torch
        print(torch is first, hasattr(torch, "extra"))
        """
    )
    assert out.splitlines() == ["True True", "[]", "False False"]


def test_the_context_may_be_nested(torch):
    with as_torch():
        pass
    assert sys.modules["torch"] is torch
    assert str(torch.float32) == "torch.float32"


def test_not_beside_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(RuntimeError, match="PyTorch is imported already"):
        install_as_torch()


def test_stand_ins_come_before_an_installed_pytorch():
    assert run("import torch; print(type(torch).__name__)") == "StandIn\n"


def test_leafgrad_itself_is_as_before(torch):
    assert leafgrad.trace is not torch.trace
    assert leafgrad.compile is not torch.compile
    assert leafgrad.__spec__.name == "leafgrad"
    assert leafgrad.nn.__name__ == "leafgrad.nn"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leafgrad.ones(2)


def test_testing_and_special_functions(torch):
    torch.testing.assert_close(torch.ones(2), torch.testing.make_tensor(2, dtype=torch.float32, low=1, high=1 + 1e-7))
    assert torch.special.expit(torch.zeros(1)).item() == 0.5


def test_the_tensor_is_shown_as_pytorchs_and_its_pickles_name_neither(torch):
    x = torch.ones(2, requires_grad=True)
    assert (torch.Tensor.__module__, str(type(x))) == ("torch", "<class 'torch.Tensor'>")
    kept = pickle.dumps(x)
    assert b"torch" not in kept
    with as_torch():
        assert pickle.loads(kept).requires_grad
