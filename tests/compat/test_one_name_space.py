"""``import leafgrad as torch`` gives what ``import torch`` gives on the stand-in."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import leafgrad
from leafgrad import lazy
from leafgrad.compat.stand_in import ELSEWHERE, modules, shows, sources

# What PyTorch 2.13 reaches by attributes after `import torch`, of what leafgrad has anything for.
REACHABLE = """
accelerator amp amp.autocast_mode amp.grad_scaler autograd autograd.anomaly_mode autograd.forward_ad autograd.function
autograd.functional autograd.grad_mode autograd.graph autograd.profiler backends backends.cuda backends.cudnn
backends.mkl backends.mkldnn backends.mps backends.openmp compiler cpu cuda cuda.amp cuda.amp.autocast_mode
cuda.amp.grad_scaler cuda.memory cuda.random cuda.streams distributed distributed.distributed_c10d distributions
distributions.bernoulli distributions.beta distributions.categorical distributions.cauchy distributions.chi2
distributions.constraints distributions.dirichlet distributions.distribution distributions.exponential
distributions.gamma distributions.geometric distributions.gumbel distributions.half_cauchy distributions.half_normal
distributions.independent distributions.kl distributions.laplace distributions.log_normal
distributions.mixture_same_family distributions.multivariate_normal distributions.negative_binomial
distributions.normal distributions.one_hot_categorical distributions.pareto distributions.poisson
distributions.studentT distributions.transformed_distribution distributions.transforms distributions.uniform
distributions.utils distributions.weibull export func functional fx hub jit linalg masked mps multiprocessing nn
nn.attention nn.common_types nn.functional nn.init nn.modules nn.modules.activation nn.modules.adaptive
nn.modules.batchnorm
nn.modules.channelshuffle nn.modules.container nn.modules.conv nn.modules.distance nn.modules.dropout
nn.modules.flatten nn.modules.fold nn.modules.instancenorm nn.modules.lazy nn.modules.linear nn.modules.loss
nn.modules.module nn.modules.normalization nn.modules.padding nn.modules.pixelshuffle nn.modules.pooling
nn.modules.rnn nn.modules.sparse nn.modules.transformer nn.modules.upsampling nn.modules.utils nn.parallel
nn.parallel.distributed nn.parameter nn.utils nn.utils.clip_grad nn.utils.convert_parameters nn.utils.parametrizations
nn.utils.parametrize nn.utils.rnn nn.utils.stateless optim optim.lr_scheduler optim.swa_utils overrides profiler
profiler.profiler random return_types serialization signal signal.windows signal.windows.windows special storage
testing torch_version types utils utils.checkpoint utils.data utils.data.dataloader utils.data.dataset
utils.data.distributed utils.data.sampler utils.dlpack utils.hooks version xpu
""".split()
OWN = {"ops", "compile", "load", "save", "trace", "typename"}  # leafgrad's are something else


def reached(package, name):
    for part in name.split("."):
        package = getattr(package, part)
    return package


def all_modules(name):
    """The public modules that the stand-in lists, at any depth."""
    for child in sorted(modules(name)):
        yield f"{name}.{child}"
        yield from all_modules(f"{name}.{child}")


@pytest.mark.parametrize("name", REACHABLE)
def test_what_import_torch_makes_reachable(torch, name):
    for package in (torch, leafgrad):
        assert isinstance(reached(package, name), ModuleType)
        import_module(f"{package.__name__}.{name}")


def test_a_new_process_needs_no_import_but_leafgrads():
    code = f"import leafgrad as torch\nfor name in {REACHABLE!r}: eval('torch.' + name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_is_the_same_in_both(torch):
    walked = ["torch", *all_modules("torch"), *(f"torch.{name}" for name in REACHABLE)]
    assert len(walked) > 150
    lacking, others = [], []
    for module in walked:
        theirs, ours = import_module(module), import_module(f"leafgrad{module.removeprefix('torch')}")
        for name in dir(theirs):
            value = getattr(theirs, name)
            if name.startswith("_") or isinstance(value, ModuleType) or name in OWN:
                continue
            if not hasattr(ours, name):
                lacking += [f"{module}.{name}"] * (module.removeprefix("torch.") not in ELSEWHERE)
            elif inspect.unwrap(value) is not inspect.unwrap(getattr(ours, name)):
                others.append(f"{module}.{name}")
    assert (lacking, others) == ([], [])


def test_from_imports_of_modules_that_have_no_file():
    from leafgrad.cuda.amp import GradScaler
    from leafgrad.utils.data.dataloader import default_collate

    from leafgrad.nn.parallel import DataParallel, DistributedDataParallel

    assert leafgrad.cuda.amp.GradScaler is GradScaler
    assert default_collate is leafgrad.utils.data.default_collate
    assert leafgrad.nn.DataParallel is DataParallel
    assert DistributedDataParallel.__name__ in dir(leafgrad.nn.parallel)
    with pytest.raises(ModuleNotFoundError, match=r"leafgrad\.cuda\.nothing"):
        import_module("leafgrad.cuda.nothing")


def test_layers_are_in_the_modules_where_pytorch_has_them():
    places = {
        "activation": "MultiheadAttention", "batchnorm": "LazyBatchNorm1d", "container": "ParameterList ModuleList",
        "conv": "LazyConv2d Conv2d", "linear": "LazyLinear Bilinear", "loss": "TripletMarginLoss L1Loss",
        "rnn": "LSTMCell LSTM", "distance": "PairwiseDistance", "flatten": "Unflatten",
    }  # fmt: skip
    for place, names in places.items():
        module = import_module(f"leafgrad.nn.modules.{place}")
        assert getattr(leafgrad.nn.modules, place) is module
        for name in names.split():
            assert getattr(module, name) is getattr(leafgrad.nn, name)


@pytest.mark.parametrize("name", ["leafgrad", "torch", "leafgrad.utils", "torch.nn", "leafgrad.cuda"])
def test_a_misspelt_name_is_told_what_was_meant(torch, name):
    module = import_module(name)
    meant, written = {
        "leafgrad": ("softmax", "sofmax"),
        "torch": ("softmax", "sofmax"),
        "leafgrad.utils": ("checkpoint", "checkpiont"),
        "torch.nn": ("Linear", "Liner"),
        "leafgrad.cuda": ("is_available", "is_availible"),
    }[name]
    with pytest.raises(AttributeError, match=rf"{written}'?\. Did you mean: '{meant}'\?$"):
        getattr(module, written)


@pytest.mark.parametrize("name", ["leafgrad", "leafgrad.utils", "leafgrad.autograd", "leafgrad.nn", "leafgrad.plugins"])
def test_what_dir_lists_is_there(name):
    module = import_module(name)
    listed = dir(module)
    assert {"TYPE_CHECKING", "import_module", "attach"}.isdisjoint(listed)
    assert all(hasattr(module, n) for n in listed)
    known = {"leafgrad": "cuda", "leafgrad.utils": "data", "leafgrad.nn": "parallel"}
    assert known.get(name, "__name__") in listed


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise AttributeError('half imported')", "half imported"),
        ("", "has no attribute 'wanted'"),
        ("import surely_not_there", "surely_not_there"),
    ],
)
def test_what_goes_wrong_while_a_name_is_found_is_no_missing_name(tmp_path, monkeypatch, body, message):
    (tmp_path / "holding_it.py").write_text(body)
    (tmp_path / "lazy_one.py").write_text(
        "from leafgrad.lazy import attach\n__getattr__, __dir__ = attach(__name__, {'wanted': 'holding_it'})"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_one", "holding_it"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=message):
        hasattr(import_module("lazy_one"), "wanted")


def test_what_pytorch_keeps_private_stays_out():
    assert not hasattr(leafgrad, "_foreach_add")
    assert not sources("leafgrad.surely_not_there")
    assert shows(leafgrad, "ones")
    assert "data" in lazy.own("leafgrad.utils")
