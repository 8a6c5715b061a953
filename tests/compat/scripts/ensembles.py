"""Many models at once, pytrees, and containers of tensors."""

import copy
from collections import OrderedDict, namedtuple

import torch
from fixed import fill, show, wave
from torch.func import functional_call, stack_module_state
from torch.utils import _pytree as pytree
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten


class TensorDict(dict):
    """Tensors with a common batch."""

    def __init__(self, source, batch_size):
        super().__init__(source)
        self.batch_size = torch.Size(batch_size)

    def apply(self, fn):
        return TensorDict(tree_map(fn, dict(self)), self.batch_size)

    def __getitem__(self, i):
        if isinstance(i, str):
            return super().__getitem__(i)
        value = {k: v[i] for k, v in self.items()}
        return TensorDict(value, next(iter(value.values())).shape[: len(self.batch_size)])


pytree.register_pytree_node(
    TensorDict, lambda d: (list(d.values()), (list(d), d.batch_size)), lambda v, c: TensorDict(zip(c[0], v), c[1])
)
models = [
    fill(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)), 0.1 * (i + 1))
    for i in range(3)
]
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("cpu")
x = wave(5, 3)


def call(params, buffers, x):
    return functional_call(base, (params, buffers), (x,))


out = torch.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
print(out.shape, torch.allclose(out, torch.stack([m(x) for m in models]), atol=1e-6))
minibatches = wave(3, 5, 3)
print(torch.vmap(call)(params, buffers, minibatches).shape)
show("params", params["0.weight"])
norms = tree_map(lambda p: p.detach().flatten(1).norm(dim=1), params)
show("norms", norms["2.weight"])

Point = namedtuple("Point", "x y")
tree = OrderedDict(a=[torch.ones(2), 3], b=(None, Point(torch.zeros(1), "s")))
leaves, spec = tree_flatten(tree)
print(len(leaves), spec.num_leaves, spec)
again = tree_unflatten(leaves, spec)
print(type(again).__name__, again["b"][1].y, tree_map_only(int, lambda v: v + 1, again)["a"][1])
print(pytree.tree_all(lambda v: v is not None, tree), pytree.tree_any(torch.is_tensor, tree))
data = TensorDict({"obs": wave(4, 2), "reward": torch.arange(4.0)}, [4])
doubled = tree_map(lambda v: v * 2, data)
print(type(doubled).__name__, doubled["reward"], doubled.batch_size, data[1:3].batch_size)
show("mean", data.apply(lambda v: v.mean(0))["obs"])
grads = torch.vmap(torch.func.grad(lambda p, v: call(p, {}, v).pow(2).sum()), in_dims=(None, 0))(
    {k: v.detach() for k, v in base.named_parameters()}, x
)
print({k: tuple(v.shape) for k, v in grads.items()})
show("grads", grads["0.bias"])
