"""What published libraries import, ask and derive from: names and behaviour that PyTorch documents nowhere."""

from __future__ import annotations

import importlib
import importlib.metadata

import numpy as np
import pytest

IMPORTS = """
torch._C _TensorMeta
torch._utils _element_size _flatten_dense_tensors
torch.serialization DEFAULT_PROTOCOL MAP_LOCATION
torch.distributions.transforms _InverseTransform
torch.utils._pytree _get_node_type SUPPORTED_NODES LeafSpec PyTree TreeSpec tree_unflatten
torch.utils.data.dataloader _BaseDataLoaderIter _MultiProcessingDataLoaderIter DataLoader
torch.utils.data._utils.collate np_str_obj_array_pattern default_collate
torch.utils.flop_counter FlopCounterMode
torch._dynamo OptimizedModule
torch._dynamo.eval_frame OptimizedModule
torch.backends __allow_nonbracketed_mutation
torch._subclasses.fake_tensor is_fake FakeTensor
torch.fx.experimental.proxy_tensor get_proxy_mode
torch.fx.node Node
torch.hub HASH_REGEX
torch.jit _overload
torch.futures Future
torch.distributed rpc
torch.distributed.tensor DTensor
torch.autograd.profiler EventList record_function
torch._tensor_str PRINT_OPTS _tensor_str
torch.functional einsum tensordot
torch ScriptModule SymInt PyTorchFileReader sparse_coo sparse_csr complex32 clamp_ relu_ zero_ is_inference
""".strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS)
def test_names_that_libraries_import(torch, line):
    module, *names = line.split()
    found = importlib.import_module(module)
    for name in names:
        getattr(found, name)


def test_the_package_has_a_version(torch):
    assert importlib.metadata.version("torch") == torch.__version__
    assert importlib.metadata.metadata("torch")["Name"] == "torch"
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("torch_of_nobody")


def test_modules_show_their_names_in_their_dict(torch):
    assert vars(torch.distributions)["Normal"] is torch.distributions.Normal
    assert torch.torch is torch
    assert torch._utils._element_size(torch.float16) == 2


def test_layers_are_in_the_dict_of_pytorchs_module_for_them(torch):
    assert vars(torch.nn.modules.activation)["ReLU"] is torch.nn.ReLU
    assert "Linear" not in vars(torch.nn.modules.activation)


def test_distributions_that_libraries_derive_from(torch):
    distributions = torch.distributions

    class LogNormal(distributions.LogNormal):
        def __init__(self, loc, scale):
            normal = distributions.Normal(loc, scale)
            super(distributions.LogNormal, self).__init__(normal, distributions.ExpTransform())

        def log_prob(self, value):
            self._validate_sample(value)
            return super().log_prob(value)

    assert LogNormal(0.5, 2.0).expand((3,)).log_prob(torch.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="within the support"):
        LogNormal(0.5, 2.0).log_prob(torch.tensor(-1.0))

    class Scale(distributions.Transform, torch.nn.Module):
        __hash__ = object.__hash__  # a Transform has none, in PyTorch too

        def __init__(self):
            super().__init__(cache_size=1)
            self.factor = torch.nn.Parameter(torch.tensor(2.0))

        def _call(self, x):
            return x * self.factor

    scale, x = Scale(), torch.ones(2)
    assert [name for name, _ in scale.named_parameters()] == ["factor"]
    assert scale(x).tolist() == [2, 2]
    assert scale._cached_x_y[0] is x
    assert [name for name, _ in scale.with_cache(0).named_parameters()] == ["factor"]


def test_functions_in_place(torch):
    x = torch.tensor([-1.0, 2.0])
    assert torch.clamp_(x, max=1.0) is x
    assert torch.abs_(x).tolist() == [1, 1]
    assert torch.zero_(x).tolist() == [0, 0]
    assert not torch.is_inference(x)
    assert torch.abs_(input=x) is x


def test_functions_in_place_of_what_is_no_tensor(torch):
    from leafgrad.compat.torch import IN_PLACE

    for name in IN_PLACE:
        for value in (np.ones(2), 1.0):
            with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'input' must be Tensor, not \w+; make one"):
                getattr(torch, name)(value)


def test_scripted_functions_are_python_and_say_so(torch):
    def double(x):
        return x * 2

    class Pair:
        pass

    with pytest.warns(UserWarning, match=r"torch\.jit\.script: .* runs functions as the Python that they are"):
        scripted = torch.jit.script(double), torch.jit.script(Pair)
    assert scripted == (double, Pair)
    with pytest.raises(NotImplementedError, match=r"leafgrad\.compile it"):
        torch.jit.script(torch.nn.Linear(1, 1))


def test_operators_can_be_named_and_not_called(torch):
    table = {torch.ops.aten.clone.default: 1}
    assert table[torch.ops.aten.clone.default] == 1
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\.clone\.default: leafgrad"):
        torch.ops.aten.clone.default(torch.ones(1))


def test_distributions_of_others_expand_through_those_they_derive_from(torch):
    class Doubled(torch.distributions.Normal):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Doubled, _instance)
            new.factor = 2
            return super().expand(batch_shape, new)

    wide = Doubled(torch.zeros(1), 1.0).expand((3,))
    assert (type(wide), wide.factor, wide.sample().shape) == (Doubled, 2, (3,))

    class Without(torch.distributions.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom"):
        Without(0.0)._get_checked_instance(torch.distributions.Normal)


def test_optimizers_that_wrap_others_need_no_constructor(torch):
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    Wrapper(torch.optim.SGD([x], lr=0.5)).step()
    assert x.tolist() == [0.5, 0.5]


def test_the_arguments_of_to_as_libraries_parse_them(torch):
    device, dtype, wait, layout = torch._C._nn._parse_to("cpu", torch.float64)
    assert (str(device), dtype, wait, layout) == ("cpu", torch.float64, False, None)


def test_safetensors_loads_its_files(torch, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    kept = {"a": torch.randn(4, 3), "b": torch.arange(5), "c": torch.ones(3).bfloat16(), "d": torch.zeros(0, 2)}
    safetensors.save_file(kept, tmp_path / "x", metadata={"by": "me"})
    found = safetensors.load_file(tmp_path / "x")
    assert all(torch.equal(found[name], kept[name]) for name in kept)
    found["a"].add_(1)  # in memory alone
    with importlib.import_module("safetensors").safe_open(tmp_path / "x", "pt") as file:
        assert file.metadata() == {"by": "me"}
        assert torch.equal(file.get_slice("a")[1:3, :2], kept["a"][1:3, :2])
