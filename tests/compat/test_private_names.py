"""Names that PyTorch keeps to itself and that published code uses all the same."""

from __future__ import annotations

import importlib

import pytest

import leafgrad

TESTS = "compat.foreach"

MODULES = (
    "_tensor _utils distributions.utils nn._reduction nn.common_types nn.init nn.modules.batchnorm nn.modules.conv "
    "nn.modules.dropout nn.modules.instancenorm nn.modules.loss nn.modules.module nn.modules.pooling "
    "nn.modules.transformer nn.modules.utils optim.lr_scheduler optim.optimizer serialization utils.hooks"
).split()


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_a_module_is_there(torch, name):
    module = importlib.import_module(f"torch.{name}")
    offered = module._sources[0].__all__
    assert offered
    assert all(hasattr(module, n) for n in offered)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("optim.adamw", "AdamW"),
        ("nn.utils.convert_parameters", "parameters_to_vector"),
        ("utils.data._utils.collate", "default_collate"),
        ("utils.data._utils.worker", "get_worker_info"),
    ],
)
def test_modules_whose_contents_are_elsewhere(torch, module, name):
    assert getattr(importlib.import_module(f"torch.{module}"), name).__module__.startswith("leafgrad.")


# ---- an operation on each tensor of a list --------------------------------------------------------------------------


def lists(torch):
    return [torch.full((2,), 1.0), torch.full((3,), 4.0)], [torch.full((2,), 2.0), torch.full((3,), 3.0)]


def firsts(tensors):
    return [tensor[0].item() for tensor in tensors]


def test_foreach(torch):
    a, b = lists(torch)
    assert firsts(torch._foreach_add(a, b, alpha=2)) == [5, 10]
    assert firsts(torch._foreach_mul(a, [2.0, 0.5])) == [2, 2]
    assert firsts(torch._foreach_sub(a, 1)) == [0, 3]
    assert firsts(torch._foreach_div(a, torch.tensor(2.0))) == [0.5, 2]
    assert firsts(torch._foreach_sqrt(a)) == [1, 2]
    assert firsts(torch._foreach_addcmul(a, b, b, 0.5)) == [3, 8.5]
    assert firsts(torch._foreach_addcdiv(a, b, b, value=2)) == [3, 6]
    assert firsts(torch._foreach_addcdiv(a, b, b, scalars=[1.0, 2.0])) == [2, 6]
    assert firsts(torch._foreach_lerp(a, b, 0.5)) == [1.5, 3.5]
    assert firsts(torch._foreach_maximum(a, b)) == [2, 4]
    assert firsts(torch._foreach_minimum(a, 2.0)) == [1, 2]
    assert [n.item() for n in torch._foreach_norm(a, 1)] == [2, 12]
    assert [n.item() for n in torch._foreach_max(b)] == [2, 3]
    assert firsts(a) == [1, 4]


def test_foreach_in_place(torch):
    a, b = lists(torch)
    assert torch._foreach_mul_(a, 2.0) is a
    torch._foreach_add_(a, b, alpha=-1)
    assert firsts(a) == [0, 5]
    torch._foreach_maximum_(a, 1.0)
    torch._foreach_minimum_(a, b)
    assert firsts(a) == [1, 3]
    torch._foreach_copy_(b, a)
    torch._foreach_zero_(a)
    assert (firsts(a), firsts(b)) == ([0, 0], [1, 3])


def test_foreach_has_derivatives(torch):
    x = torch.tensor([3.0], requires_grad=True)
    (squared,) = torch._foreach_pow([x], 2)
    squared.backward()
    assert x.grad.item() == 6
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        torch._foreach_add_([x], 1)


@pytest.mark.parametrize("call", ["([], 1)", "(a, a[:1])", "(a, [1.0])"])
def test_foreach_of_lists_that_do_not_match(torch, call):
    with pytest.raises(RuntimeError, match="_foreach_add: expected lists of the same length, 1 or more, got"):
        eval(f"torch._foreach_add{call}", {"torch": torch, "a": lists(torch)[0]})


# ---- layers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_of_scripts(torch, transposed):
    from torch.nn.modules.conv import _ConvNd
    from torch.nn.modules.utils import _pair, _reverse_repeat_tuple

    class Conv(_ConvNd):
        def __init__(self, inputs, outputs, size, groups=1, bias=True):
            super().__init__(
                *(inputs, outputs, _pair(size), _pair(1), _pair(2), _pair(1)),
                *(transposed, _pair(0), groups, bias, "zeros"),
            )

        def forward(self, x):
            function = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
            return function(x, self.weight, self.bias, self.stride, self.padding, groups=self.groups)

    conv = Conv(4, 6, 3, groups=2, bias=False)
    theirs = (torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d)(4, 6, 3, padding=2, groups=2, bias=False)
    assert conv.weight.shape == theirs.weight.shape
    assert conv.extra_repr() == theirs.extra_repr()
    conv.load_state_dict(theirs.state_dict())
    x = torch.ones(1, 4, 5, 5)
    assert torch.equal(conv(x), theirs(x))
    assert isinstance(theirs, _ConvNd)
    assert isinstance(conv, Conv)
    assert not isinstance(theirs, Conv)
    assert not isinstance(torch.nn.Linear(1, 1), _ConvNd)
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)


def test_weights_of_convolutions_that_are_derived(torch):
    class Standardized(torch.nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.weight * 2, None)

    conv = Standardized(1, 1, 3, padding=1, padding_mode="reflect")
    x = torch.rand(1, 1, 4, 4)
    torch.testing.assert_close(conv(x), 2 * (torch.nn.Conv2d.forward(conv, x) - conv.bias))


def test_names_of_recurrent_weights(torch):
    lstm = torch.nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    for names in lstm._all_weights:
        for name in filter(lambda n: "bias_ih" in n, names):
            getattr(lstm, name).data[3:6].fill_(1.0)
    assert lstm._all_weights[-1] == [f"{kind}_l1_reverse" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    assert lstm.bias_ih_l1_reverse[3:6].tolist() == [1, 1, 1]
    assert lstm.all_weights[0][0] is lstm.weight_ih_l0


def test_copies_and_activations_of_transformers(torch):
    from torch.nn.modules.transformer import _get_activation_fn, _get_clones

    clones = _get_clones(torch.nn.Linear(2, 2), 2)
    assert clones[0].weight is not clones[1].weight
    assert torch.equal(clones[0].weight, clones[1].weight)
    assert _get_activation_fn("gelu") is torch.nn.functional.gelu


def test_what_loading_passed_over(torch):
    from torch.nn.modules.module import _IncompatibleKeys

    keys = torch.nn.Linear(1, 1).load_state_dict({"foo": torch.ones(1)}, strict=False)
    assert isinstance(keys, _IncompatibleKeys)
    assert repr(keys) == "_IncompatibleKeys(missing_keys=['weight', 'bias'], unexpected_keys=['foo'])"


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_many_tensors_as_one(torch):
    from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    tensors = [torch.ones(2), torch.zeros(1, 2)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [1, 1, 0, 0]
    parts = _unflatten_dense_tensors(flat + 1, tensors)
    assert [part.tolist() for part in parts] == [[2, 2], [[1, 1]]]


def test_helpers_of_distributions(torch):
    from torch.distributions import utils

    loc, scale = utils.broadcast_all(torch.zeros(2, dtype=torch.float64), 1)
    assert (scale.dtype, scale.tolist()) == (torch.float64, [1, 1])
    assert utils.broadcast_all(1, 2.0)[0].dtype is torch.float32
    with pytest.raises(ValueError, match=r"instances of Number or torch\.Tensor"):
        utils.broadcast_all("a")
    p = torch.tensor([0.25, 0.75])
    for binary in (False, True):
        torch.testing.assert_close(utils.logits_to_probs(utils.probs_to_logits(p, binary), binary), p)
    assert utils.probs_to_logits(torch.tensor([0.0, 1.0])).isfinite().all()
    assert utils._sum_rightmost(torch.ones(2, 3, 4), 2).tolist() == [12, 12]
    assert utils._sum_rightmost(p, 0) is p
    assert utils._standard_normal(loc.shape, loc.dtype, loc.device).dtype is torch.float64


def test_safe_globals(torch, tmp_path):
    class Own:
        pass

    torch.serialization.add_safe_globals([Own])
    torch.serialization.clear_safe_globals()
    assert torch.serialization.get_safe_globals() == []
    with torch.serialization.safe_globals([Own]):
        torch.serialization.save({"a": torch.ones(1)}, tmp_path / "a.pt")
        assert torch.serialization.load(tmp_path / "a.pt")["a"].item() == 1


def test_small_questions(torch):
    torch._assert(torch.tensor(True), "fine")
    with pytest.raises(AssertionError, match="too small"):
        torch._assert(False, "too small")
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor"
    assert torch.typename(3) == torch.typename(int) == "int"
    assert torch.typename(torch.nn.Linear(1, 1)).endswith(".Linear")
    assert torch.nn._reduction.get_enum("sum") == 2
    with pytest.raises(ValueError, match="expected 'none', 'mean' or 'sum'"):
        torch.nn._reduction.get_enum("max")


def test_names_stay_out_of_leafgrad():
    assert not hasattr(leafgrad, "_foreach_add")


def test_whether_a_transform_is_at_work(torch):
    seen = []

    def f(x):
        seen.append(torch._C._are_functorch_transforms_active())
        return x.sum()

    f(leafgrad.ones(2))
    leafgrad.vmap(f)(leafgrad.ones(2, 2))
    leafgrad.func.grad(f)(leafgrad.ones(2))
    f(leafgrad.ones(2))
    assert seen == [False, True, True, False]
