"""vmap: dimensions, nesting, randomness, chunks, writes, what it refuses. Most tests run on PyTorch, too."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import leafgrad

TESTS = "batching.batched batching.boundary batching.pytree batching.random"

RNG = np.random.default_rng(0)
X, Y, V = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=4)


def close(actual, expected):
    np.testing.assert_allclose(actual.detach().numpy(), np.asarray(expected), rtol=1e-12, atol=1e-14)


# ---- dimensions ---------------------------------------------------------------------------------------------------


def test_in_dims_and_out_dims(t):
    x, v = t.tensor(X), t.tensor(V)
    close(t.func.vmap(lambda a: a.sum())(x), X.sum(1))
    close(t.vmap(lambda a: a.sum(), in_dims=1)(x), X.sum(0))
    close(t.vmap(lambda a: a.sum(), in_dims=-1)(x), X.sum(0))
    close(t.vmap(lambda a, b: a * b, in_dims=(0, None))(x, v), X * V)
    close(t.vmap(lambda a, b: a * b, in_dims=(1, 0), out_dims=1)(x, v), X * V)
    close(t.vmap(lambda a: t.stack([a, a]), out_dims=-1)(x), np.stack([X, X]).transpose(0, 2, 1))
    close(t.vmap(lambda a: a, out_dims=(1,))(x), X.T)
    close(t.vmap(lambda a, k: a * k, in_dims=(0, None))(x, 3), 3 * X)
    close(t.vmap(lambda a, *, k: a * k)(x, k=v), X * V)


def test_nested_arguments_and_results(t):
    x, v = t.tensor(X), t.tensor(V)

    def function(d, pair):
        return {"sum": d["x"] + pair[0], "rest": (pair[1] * d["v"], pair[1])}

    dims = ({"x": 0, "v": None}, (1, None))
    out = t.vmap(function, in_dims=dims, out_dims={"sum": 1, "rest": 0})({"x": x, "v": v}, (x.T, v))
    close(out["sum"], 2 * X.T)
    close(out["rest"][0], np.stack([V * V] * 3))
    close(out["rest"][1], np.stack([V] * 3))
    close(t.vmap(lambda pair: pair[0] + pair[1])((x, x)), 2 * X)
    close(t.vmap(lambda pair: pair[0] + pair[1], in_dims=([0, 0],))([x, x]), 2 * X)


def test_a_list_of_dimensions_serves_a_tuple_of_results():
    same, turned = leafgrad.vmap(lambda a: (a, a * 2), out_dims=[0, 1])(leafgrad.tensor(X))
    close(same, X)
    close(turned, 2 * X.T)
    with pytest.raises(ValueError, match=r"structure \(\*, \*\) but outputs has structure \[\*, \(\*,\)\]"):
        leafgrad.vmap(lambda a: [a, (a,)], out_dims=(0, 0))(leafgrad.tensor(X))


def test_results_that_are_no_batch(t):
    x, v = t.tensor(X), t.tensor(V)
    close(t.vmap(lambda a: v)(x), np.stack([V] * 3))
    out, five, same = t.vmap(lambda a: (a, 5, v), out_dims=(0, None, None))(x)
    assert five == 5
    assert tuple(out.shape) == (3, 4)
    assert tuple(same.shape) == (4,)


def test_nested(t):
    x, y = t.tensor(X), t.tensor(Y)
    distances = t.vmap(lambda a: t.vmap(lambda b: ((a - b) ** 2).sum())(y))(x)
    close(distances, ((X[:, None] - Y) ** 2).sum(-1))
    close(t.vmap(t.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))(x[0], x[1]), np.outer(X[1], X[0]))
    close(t.vmap(t.vmap(t.sin), in_dims=1, out_dims=1)(x), np.sin(X))
    triple = t.vmap(lambda a: t.vmap(lambda b: t.vmap(lambda c: a * b @ c * c.sum())(y))(y))(x)
    close(triple, np.einsum("ik,jk,lk->ijl", X, Y, Y)[..., None].squeeze(-1) * Y.sum(1))


def test_an_empty_batch():
    assert leafgrad.vmap(lambda a: leafgrad.tanh(a @ a) * a[1:])(leafgrad.zeros(0, 4)).shape == (0, 3)


def test_chunks(t):
    x = t.tensor(X)
    for size in (1, 2, 3, 7):
        total, turned = t.vmap(lambda a: (a.sum(), a * 2), out_dims=(0, 1), chunk_size=size)(x)
        close(total, X.sum(1))
        close(turned, 2 * X.T)
    sizes = []
    leafgrad.vmap(lambda a: (sizes.append(a._data.batch.size), a)[1], chunk_size=2)(leafgrad.tensor(X))
    assert sizes == [2, 1]


def test_the_name_stays(t):
    def scale(a):
        """Twice."""
        return a * 2

    assert t.vmap(scale).__name__ == "scale"
    assert t.vmap(scale).__doc__ == "Twice."


# ---- gradients ----------------------------------------------------------------------------------------------------


def test_gradients_flow_through(t):
    x, v = (t.tensor(a, requires_grad=True) for a in (X, V))
    y = t.vmap(lambda a: (t.sin(a) * v).sum())(x)
    assert y.requires_grad
    (y**2).sum().backward()
    outer = 2 * (np.sin(X) @ V)[:, None]
    close(x.grad, outer * np.cos(X) * V)
    close(v.grad, (outer * np.sin(X)).sum(0))


def test_the_gradient_of_a_tensor_from_outside_is_summed_outside_and_single_inside():
    t, v = leafgrad, leafgrad.tensor(V, requires_grad=True)
    x = t.tensor(X)

    def loss(a):
        return (t.sin(a) * v * v).sum()

    each = t.vmap(lambda a: t.autograd.grad(loss(a), v)[0])(x)
    close(each, 2 * np.sin(X) * V)
    assert not each.requires_grad
    (whole,) = t.autograd.grad(t.vmap(loss)(x).sum(), v)
    close(whole, 2 * (np.sin(X) * V).sum(0))


def test_a_graph_from_outside_is_walked_with_a_batch_of_gradients(t):
    x = t.tensor(V, requires_grad=True)
    y = t.sin(x) * x.sum()
    (rows,) = t.autograd.grad(y, x, t.eye(4, dtype=t.float64), is_grads_batched=True, create_graph=True)
    close(rows, np.diag(np.cos(V) * V.sum()) + np.sin(V)[:, None])
    (again,) = t.autograd.grad((rows**2).sum(), x)
    assert again.shape == x.shape
    unused = t.ones(2, requires_grad=True)
    found = t.autograd.grad(t.sin(x), (x, unused), t.tensor(X), is_grads_batched=True, allow_unused=True)
    close(found[0], X * np.cos(V))
    assert found[1] is None
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        t.autograd.grad(t.sin(x), x, t.tensor(V), is_grads_batched=True)


def test_second_derivatives_of_shared_tensors():
    """A saved tensor from outside may later meet a value that is no batch; its gradient must not be summed twice."""
    t, w = leafgrad, leafgrad.tensor(V, requires_grad=True)
    x = t.tensor(X, requires_grad=True)

    def loss(many):
        u = many(lambda a: (t.tanh(a * w) * w).sum())
        (first,) = t.autograd.grad(u.sum(), x, create_graph=True)
        return (first**2).sum() + (first * w).sum()

    ours = t.autograd.grad(loss(lambda f: t.vmap(f)(x)), (x, w))
    alone = t.autograd.grad(loss(lambda f: t.stack([f(row) for row in x])), (x, w))
    for a, b in zip(ours, alone, strict=True):
        close(a, b.numpy())


def test_custom_functions():
    class Cube(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x**3 * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * 3 * x**2 * w, g * x**3

    x, w = (leafgrad.tensor(a, requires_grad=True) for a in (X, V))
    y = leafgrad.vmap(lambda a: Cube.apply(a, w))(x)
    close(y, X**3 * V)
    first = leafgrad.autograd.grad(y.sum(), (x, w), create_graph=True)
    close(first[0], 3 * X**2 * V)
    close(first[1], (X**3).sum(0))
    close(leafgrad.autograd.grad((first[1] ** 2).sum(), x)[0], 6 * X**2 * (X**3).sum(0))


def test_backward_inside_is_refused():
    v = leafgrad.tensor(V, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"attempting to call backward\(\) inside"):
        leafgrad.vmap(lambda a: (a * v).sum().backward())(leafgrad.tensor(X))
    assert v.grad is None


def test_nothing_is_kept_alive():
    x = leafgrad.tensor(X, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        out = leafgrad.vmap(leafgrad.func.grad(lambda a: leafgrad.tanh(a).sum()))(x)
        node = out.grad_fn
        assert node is not None
        del out, node
        assert gc.collect() == 0
    finally:
        gc.enable()


# ---- random numbers -----------------------------------------------------------------------------------------------


def test_randomness(t):
    x = t.zeros(5, 3)

    def noise(a):
        return a + t.rand(3)

    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        t.vmap(noise)(x)
    same = t.vmap(noise, randomness="same")(x)
    assert (same == same[0]).all()
    different = t.vmap(noise, randomness="different")(x)
    assert len({row[0].item() for row in different}) == 5
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are"):
        t.vmap(noise, randomness="some")


def test_random_functions_of_tensors(t):
    p = t.full((4, 1000), 0.5)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        t.vmap(t.bernoulli)(p)
    with pytest.raises(RuntimeError, match="not currently support same randomness with a batched tensor"):
        t.vmap(t.bernoulli, randomness="same")(p)
    drawn = t.vmap(t.bernoulli, randomness="different")(p)
    assert not (drawn[0] == drawn[1]).all()
    assert 0.4 < drawn.mean().item() < 0.6
    drawn = t.vmap(lambda a: t.bernoulli(p[0]), randomness="different")(p)
    assert not (drawn[0] == drawn[1]).all()
    drawn = t.vmap(lambda a: t.bernoulli(p[0]), randomness="same")(p)
    assert (drawn[0] == drawn[1]).all()
    order = t.vmap(lambda a: t.randperm(50), randomness="different")(p)
    assert tuple(order.shape) == (4, 50)
    assert not (order[0] == order[1]).all()
    dropped = t.vmap(lambda a: t.nn.functional.dropout(a, 0.5), randomness="different")(p)
    assert not (dropped[0] == dropped[1]).all()


def test_randomness_of_nested_vmaps(t):
    x = t.zeros(3, 4)
    rows = t.vmap(t.vmap(lambda a: a + t.rand(()), randomness="same"), randomness="different")(x)
    assert (rows == rows[:, :1]).all()
    assert len({row[0].item() for row in rows}) == 3
    columns = t.vmap(t.vmap(lambda a: a + t.rand(()), randomness="different"), randomness="same")(x)
    assert (columns == columns[:1]).all()
    assert len({c.item() for c in columns[0]}) == 4


# ---- writes -------------------------------------------------------------------------------------------------------


def test_writes(t):
    x, y = t.tensor(X), t.tensor(Y)
    close(t.vmap(lambda a, b: a.clone().add_(b).mul_(2))(x, y), (X + Y) * 2)

    def first_is_sum(a, made):
        made[0] = a.sum()
        return made

    expected = X.copy()
    expected[:, 0] = X.sum(1)
    close(t.vmap(lambda a: first_is_sum(a, a.clone()))(x), expected)
    close(t.vmap(lambda a: first_is_sum(a, t.zeros_like(a)))(x)[:, 0], X.sum(1))
    close(t.vmap(lambda a: first_is_sum(a, a.new_zeros(4)))(x)[:, 0], X.sum(1))
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        t.vmap(lambda a: first_is_sum(a, t.zeros(4, dtype=t.float64)))(x)
    t.vmap(lambda a: a.add_(1))(x)
    close(x, X + 1)  # an argument shares memory with its samples


def test_gradients_of_writes(t):
    x = t.tensor(X, requires_grad=True)

    def function(a):
        b = a.clone()
        b[1:] *= a[0]
        b[0].mul_(b.sum())
        return b

    whole = t.vmap(function)(x)
    single = t.stack([function(row) for row in x])
    close(whole, single.detach().numpy())
    seed = t.tensor(Y)
    close(t.autograd.grad(whole, x, seed)[0], t.autograd.grad(single, x, seed)[0].numpy())


def test_a_write_into_an_argument_has_a_gradient():
    x = leafgrad.tensor(X, requires_grad=True)
    y = x * 1
    leafgrad.vmap(lambda a: a.mul_(a.sum()))(y)
    close(y, X * X.sum(1, keepdims=True))
    close(leafgrad.autograd.grad(y.sum(), x)[0], 2 * X.sum(1, keepdims=True) + 0 * X)


def test_results_are_views_where_they_share_memory():
    x = leafgrad.tensor(X)
    y = leafgrad.vmap(lambda a: a[1:])(x)
    y.zero_()
    assert x[:, 1:].abs().sum() == 0
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        leafgrad.vmap(lambda a: x[0])(x).add_(1)


# ---- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "pattern"),
    [
        (lambda t, a: a if a.sum() > 0 else -a, "attempting to use a Tensor in some data-dependent control flow"),
        (lambda t, a: a * a.sum().item(), r"calling \.item\(\) on a Tensor"),
        (lambda t, a: a[a > 0], "We do not support batching operators that can"),
        (lambda t, a: t.nonzero(a), "We do not support batching operators that can output dynamic shape"),
    ],
)
def test_values_are_not_known_inside(t, function, pattern):
    with pytest.raises(RuntimeError, match=pattern):
        t.vmap(lambda a: function(t, a))(t.tensor(X))


@pytest.mark.parametrize("use", [float, int, bool, range, lambda a: a.tolist(), lambda a: a.numpy()])
def test_errors_name_the_line_and_the_remedy(use):
    with pytest.raises(RuntimeError, match=r"vmap: It looks like .*test_vmap\.py.*stands for 3 samples"):
        leafgrad.vmap(lambda a: use(a[0]))(leafgrad.ones(3, 2, dtype=leafgrad.int64))


@pytest.mark.parametrize(
    ("options", "args", "error", "pattern"),
    [
        ({}, (), ValueError, "got no inputs"),
        ({}, (X, V), ValueError, r"the same size in the mapped dimension, got sizes \[3, 4\]"),
        ({}, (X, 3), ValueError, "the input is of type <class 'int'>. We cannot vmap over non-Tensor arguments"),
        (
            {"in_dims": 2},
            (X,),
            ValueError,
            "Got in_dim=2 for some input, but that input is a Tensor of dimensionality 2",
        ),
        ({"in_dims": -3}, (X,), ValueError, "expected in_dim to satisfy -2 <= in_dim < 2"),
        ({"in_dims": None}, (X,), ValueError, "expected `in_dims` to be int or a"),
        ({"in_dims": "rows"}, (X,), ValueError, "expected `in_dims` to be int or a"),
        ({"in_dims": (None,)}, (X,), ValueError, "Expected at least one Tensor to vmap over"),
        ({"in_dims": ("rows",)}, (X,), ValueError, "in_dim must be either an integer dimension or None"),
        ({"in_dims": (0, 0)}, (X,), ValueError, "in_dims is not compatible with the structure of `inputs`"),
        ({"out_dims": (0, 0)}, (X,), ValueError, "out_dims is not compatible with the structure of `outputs`"),
        ({"out_dims": "rows"}, (X,), ValueError, "`out_dims` must be an int, None or a python collection"),
        ({"out_dims": 3}, (X,), IndexError, "Dimension out of range"),
        ({"out_dims": None}, (X,), ValueError, "can not return a BatchedTensor when out_dim is None"),
        ({"chunk_size": 0}, (X,), ValueError, "chunk_size should be None or greater than 0"),
    ],
)
def test_errors(t, options, args, error, pattern):
    args = [t.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(error, match=pattern):
        t.vmap(lambda *a: a[0], **options)(*args)
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'int'>"):
        t.vmap(lambda a: 3)(t.tensor(X))


def test_an_error_inside_leaves_no_trace():
    with pytest.raises(ZeroDivisionError):
        leafgrad.vmap(lambda a: 1 / 0)(leafgrad.tensor(X))
    close(leafgrad.vmap(lambda a: a + leafgrad.ones(4))(leafgrad.tensor(X)), X + 1)


def test_printing(t, capsys):
    t.vmap(lambda a: (print(a), a)[1])(t.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert (
        capsys.readouterr().out.split() == "BatchedTensor(lvl=1, bdim=0, value= tensor([[1., 2.], [3., 4.]]) )".split()
    )


# ---- with others --------------------------------------------------------------------------------------------------


def test_modes_inside(t):
    x = t.tensor(X, requires_grad=True)

    def function(a):
        with t.no_grad():
            factor = (a * a).sum()
        return a * factor

    y = t.vmap(function)(x)
    close(t.autograd.grad(y.sum(), x)[0], (X * X).sum(1, keepdims=True) + 0 * X)
    with t.no_grad():
        assert not t.vmap(function)(x).requires_grad


def test_promotion_looks_at_one_sample(t):
    whole = t.tensor([1, 2, 3])  # of single numbers: they give way to tensors with dimensions
    assert t.vmap(lambda a: t.ones(2, dtype=t.float32) * a)(whole).dtype == t.float32
    assert t.vmap(lambda a: t.ones(2, dtype=t.float32) * a)(whole.double()).dtype == t.float32
    assert t.vmap(lambda a: t.ones((), dtype=t.float32) * a)(whole.double()).dtype == t.float64


def test_devices(device):
    x = leafgrad.tensor(X, device=device, requires_grad=True)
    w = leafgrad.tensor(V, device=device, requires_grad=True)
    at = leafgrad.tensor([0, 1, 2], device=device)
    y = leafgrad.vmap(lambda a, i: (leafgrad.tanh(a * w).sum() + a[i]) * leafgrad.zeros_like(a).add_(1))(x, at)
    assert y.device == device
    close(y.cpu(), (np.tanh(X * V).sum(1) + X[range(3), range(3)])[:, None] + np.zeros(4))
    y.sum().backward()
    assert w.grad.device == device


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_compiled(executor):
    w = leafgrad.tensor(V, requires_grad=True)

    def step(x, y):
        def one(a, b):
            c = leafgrad.zeros_like(a * b)
            c[0] = (a * b).sum()
            return leafgrad.tanh(a * w) @ b + c

        out = leafgrad.vmap(leafgrad.vmap(one, in_dims=(None, 0)), in_dims=(0, None))(x, y)
        (g,) = leafgrad.autograd.grad((out**2).sum(), w)
        return out, g

    args = leafgrad.tensor(X), leafgrad.tensor(Y)
    expected = step(*args)
    compiled = leafgrad.compile(step, executor=executor)
    for _ in range(3):
        for got, want in zip(compiled(*args), expected, strict=True):
            close(got, want.detach().numpy())


def test_a_compiled_function_inside_runs_uncompiled_and_says_so():
    compiled = leafgrad.compile(lambda a: (a * a).sum())
    x = leafgrad.tensor(X)
    with pytest.warns(UserWarning, match=r"runs uncompiled inside vmap; leafgrad.compile\(leafgrad.vmap\(f\)\)"):
        got = leafgrad.vmap(compiled)(x)
    close(got, (X * X).sum(1))
    close(leafgrad.vmap(leafgrad.func.grad(compiled))(x), 2 * X)  # said once
    close(compiled(x), (X * X).sum())


def test_a_closed_function_inside_is_refused():
    compiled = leafgrad.compile(lambda a: a * 2, closed=True)
    with pytest.raises(leafgrad.errors.CompileError, match=r"closed=True: .* runs uncompiled inside vmap"):
        leafgrad.vmap(compiled)(leafgrad.tensor(X))


def test_what_is_the_same_for_all_samples_is_written_into_a_batch_when_compiled():
    def function(x, y):
        a, b = x.clone(), x.clone()
        a.fill_(3.0)
        a.unsqueeze(0).add_(x)
        b.copy_(y.mean())
        return a * b.mul_(x)

    x, y = leafgrad.arange(3.0), leafgrad.arange(2.0)
    step = leafgrad.compile(lambda x, y: leafgrad.vmap(function, (0, None))(x, y))
    for _ in range(3):
        assert step(x, y).tolist() == [0.0, 2.0, 5.0]


WRITES = {
    "add_": lambda a, b: a.add_(b),
    "copy_": lambda a, b: a.copy_(b),
    "exp_": lambda a, b: a.exp_(),
    "masked_fill_": lambda a, b: a.masked_fill_(b > 3, 1.0),
    "index": lambda a, b: a.__setitem__(slice(0, 2), b[0]),
    "part": lambda a, b: a[:2].add_(b[:2]),
    "index_add_": lambda a, b: a.index_add_(0, leafgrad.tensor([0]), b[:1]),
    "clamp_": lambda a, b: a.clamp_(1.0),
}
SHARED = {
    "samples": (lambda: leafgrad.zeros(1, 3).expand(4, 3), 0),
    "samples by another dimension": (lambda: leafgrad.zeros(3, 1).expand(3, 4), 1),
    "elements": (lambda: leafgrad.zeros(4, 1).expand(4, 3), 0),
    "windows": (lambda: leafgrad.zeros(6).unfold(0, 3, 1), 0),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("shared", SHARED)
def test_writes_into_memory_that_samples_share_are_refused(shared, write):
    make, dim = SHARED[shared]
    x, y = make(), leafgrad.arange(12.0).reshape(4, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        leafgrad.vmap(lambda a, b: (WRITES[write](a, b), b)[1], in_dims=(dim, 0))(x, y)
    assert not x.any()
    clones = make().clone()
    leafgrad.vmap(lambda a, b: (WRITES[write](a, b), b)[1], in_dims=(dim, 0))(clones, y)
    assert clones.any()


def test_memory_that_samples_share_may_be_filled():
    x = leafgrad.zeros(1, 3).expand(4, 3)
    leafgrad.vmap(lambda a: a.fill_(2.0))(x)
    assert x.tolist() == [[2.0] * 3] * 4


def test_writes_into_what_is_expanded_within_are_refused():
    x = leafgrad.ones(4, 1)
    for function in (lambda a: a.expand(3).add_(1.0), lambda a: a.expand(2, 1).mul_(2.0)):
        with pytest.raises(RuntimeError, match="more than one element"):
            leafgrad.vmap(function)(x)
        with pytest.raises(RuntimeError, match="more than one element"):
            leafgrad.vmap(leafgrad.vmap(function))(x[None])
        with pytest.raises(RuntimeError, match="more than one element"):
            leafgrad.compile(lambda x, function=function: leafgrad.vmap(function)(x))(x)
    assert x.tolist() == [[1.0]] * 4


EXPANDED = {
    "as it was": lambda b: b.expand_as(b),
    "more dimensions": lambda b: b.expand(1, 1, 3),
    "a part of a part": lambda b: b[1:].expand(1, 2)[:, 0],
    "one of what repeats": lambda b: b[:1].expand(4)[2:3],
    "transposed": lambda b: b.expand(1, 3).mT.expand(1, 3, 1),
}


@pytest.mark.parametrize("view", EXPANDED.values(), ids=EXPANDED)
def test_writes_through_what_expands_and_repeats_nothing_have_gradients(t, view):
    def f(x, y):
        b = x * y
        view(b).mul_(y[0]).add_(x[1])
        return (b * b).sum()

    x, y = t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), t.tensor([[7.0, 8.0, 9.0], [1.0, 2.0, 3.0]])
    for i in (0, 1):
        grad = t.func.grad(f, argnums=i)
        assert t.func.vmap(grad)(x, y).tolist() == [grad(*each).tolist() for each in zip(x, y, strict=True)]
        assert t.func.vmap(grad, in_dims=(0, None))(x, y[0]).tolist() == [grad(each, y[0]).tolist() for each in x]
    hessian = t.func.jacrev(t.func.grad(f))
    assert t.func.vmap(hessian)(x, y)[1].tolist() == hessian(x[1], y[1]).tolist()


@pytest.mark.parametrize("write", [lambda x, v: x.copy_(v), lambda x, v: x.__setitem__(..., v), lambda x, v: x.add_(v)])
def test_gradients_of_what_is_written_into_each_sample(write):
    def f(x, v):
        y = x.clone()
        write(y, v * 2)
        return y

    x, v = leafgrad.ones(3, 2), leafgrad.tensor([1.0, 2.0], requires_grad=True)
    (leafgrad.func.vmap(f, in_dims=(0, None))(x, v) ** 2).sum().backward()
    own = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    (leafgrad.stack([f(row, own) for row in x]) ** 2).sum().backward()
    assert v.grad.tolist() == own.grad.tolist()


@pytest.mark.parametrize("outer", range(3))
@pytest.mark.parametrize("inner", range(2))
def test_batches_within_batches_come_out_anywhere(t, outer, inner):
    x = np.arange(24.0).reshape(2, 3, 4)
    out = t.vmap(t.vmap(lambda a: a * 2, out_dims=inner), out_dims=outer)(t.tensor(x))
    close(out, np.moveaxis(2 * np.moveaxis(x, 1, 1 + inner), 0, outer))


@pytest.mark.parametrize("outer", range(3))
def test_what_an_inner_batch_lacks_comes_out_anywhere(t, outer):
    x, y = np.arange(12.0).reshape(3, 4), np.arange(2.0)
    out = t.vmap(lambda a: t.vmap(lambda b: a * b, out_dims=1)(t.tensor(y)), out_dims=outer)(t.tensor(x))
    close(out, np.moveaxis(x[:, :, None] * y, 0, outer))


def test_a_structure_of_dicts_is_told_in_words():
    with pytest.raises(ValueError, match=r"in_dims.*\{'b': \*\}.*\{'a': \*\}"):
        leafgrad.vmap(lambda d: d["a"], in_dims=({"b": 0},))({"a": leafgrad.ones(2)})


def test_chunk_size_may_be_an_integer_of_numpy(t):
    x = t.arange(6.0)
    assert t.func.vmap(lambda a: a * 2, chunk_size=np.int64(4))(x).tolist() == (x * 2).tolist()
    assert t.func.jacrev(lambda a: a * 2, chunk_size=np.int64(4))(x).shape == (6, 6)
