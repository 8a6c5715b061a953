"""What a Function may say beside its backward: jvp, vmap, and what it saves for them."""

from __future__ import annotations

import importlib
import sys

import pytest

import leafgrad


def cube(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 30 * x * x * tangent  # not the derivative, so that one sees who ran

        @staticmethod
        def vmap(info, in_dims, x):
            assert (info.batch_size, info.randomness, in_dims) == (2, "error", (0,))
            return Cube.apply(x) * 100, 0

    return Cube


def test_jvp(t):
    function = cube(t).apply
    x = t.tensor([2.0])
    value, tangent = t.func.jvp(function, (x,), (t.ones(1),))
    assert (value.tolist(), tangent.tolist()) == ([8.0], [120.0])
    assert t.func.grad(lambda x: function(x).sum())(x).tolist() == [12.0]


def test_jvp_of_dual_tensors(t):
    forward_ad = importlib.import_module(f"{t.__name__}.autograd.forward_ad")

    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, y):
            ctx.k = k
            ctx.save_for_forward(x, y)
            return x * k * y, x + y

        @staticmethod
        def jvp(ctx, dx, dk, dy):
            assert dk is None
            x, y = ctx.saved_tensors
            return ctx.k * (dx * y + x * dy), dx + dy

    with forward_ad.dual_level():
        x = forward_ad.make_dual(t.tensor([2.0]), t.tensor([1.0]))
        found = [forward_ad.unpack_dual(out).tangent.tolist() for out in Product.apply(x, 5, t.tensor([3.0]))]
    assert found == [[15.0], [1.0]]


def counted(t, calls):
    class Product(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx, dx, dy):
            calls.append("jvp")
            x, y = ctx.saved_tensors
            return (0 if dx is None else dx * y) + (0 if dy is None else dy * x)

    return Product.apply


def test_jvp_runs_once_when_a_function_is_applied_to_dual_tensors(t):
    ad, calls = importlib.import_module(f"{t.__name__}.autograd.forward_ad"), []
    product = counted(t, calls)
    x, v = t.tensor([2.0, 3.0]), t.tensor([1.0, 10.0])
    with ad.dual_level():
        dual = ad.make_dual(x, v)
        once = product(dual, x)
        assert calls == ["jvp"]
        found = [ad.unpack_dual(once).tangent.tolist() for _ in range(2)]
        twice = product(once, once)
        ad.unpack_dual(product(x, x))
        found += [ad.unpack_dual(y).tangent.sum().item() for y in (twice, twice * once, dual)]
    assert calls == ["jvp", "jvp"]
    assert found[:2] == [[2.0, 30.0], [2.0, 30.0]]
    assert found[2:] == [556.0, 7386.0, 11.0]


@pytest.mark.parametrize("transform", ["jvp", "jvp of vmap", "vmap of jvp", "jacfwd"])
def test_jvp_runs_once_in_a_transform(t, transform):
    calls = []
    product, func = counted(t, calls), t.func
    x, v, batch = t.tensor([2.0, 3.0]), t.tensor([1.0, 10.0]), t.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = {
        "jvp": lambda: func.jvp(lambda a: product(a, x), (x,), (v,))[1],
        "jvp of vmap": lambda: func.jvp(func.vmap(lambda a: product(a, x)), (batch,), (batch * v,))[1],
        "vmap of jvp": lambda: func.vmap(lambda a: func.jvp(lambda b: product(b, x), (a,), (a * v,))[1])(batch),
        "jacfwd": lambda: func.jacfwd(lambda a: product(a, x) @ v)(x),
    }[transform]()
    expected = {"jvp": x * v, "jacfwd": x * v}.get(transform, batch * v * x)
    assert calls == ["jvp"]
    assert found.tolist() == expected.tolist()


def test_tangents_of_dual_tensors_are_differentiable(t):
    ad, calls = importlib.import_module(f"{t.__name__}.autograd.forward_ad"), []
    product = counted(t, calls)
    x = t.tensor([2.0, 3.0], requires_grad=True)
    v = t.tensor([1.0, 10.0], requires_grad=True)
    with ad.dual_level():
        y = product(product(ad.make_dual(x, v), x), x)  # the cube, when differentiated twice; x carries v once
        (first,) = t.autograd.grad(y.sum(), x, create_graph=True)
        tangent = ad.unpack_dual(y).tangent
        second = t.autograd.grad(tangent.sum(), (x, v))
    assert calls == ["jvp", "jvp"]
    assert first.tolist() == [12.0, 27.0]
    assert [g.tolist() for g in second] == [[4.0, 60.0], [4.0, 9.0]]


def test_jvp_runs_at_each_call_of_a_compiled_step():
    ad, calls = leafgrad.autograd.forward_ad, []
    product = counted(leafgrad, calls)

    def step(x, v):
        with ad.dual_level():
            return ad.unpack_dual(product(ad.make_dual(x, v), x).sum()).tangent

    compiled = leafgrad.compile(step)
    for n in range(1, 5):
        x, v = leafgrad.tensor([2.0, float(n)]), leafgrad.tensor([1.0, 10.0])
        assert compiled(x, v).item() == 2 + 10 * n
        assert len(calls) == n


def test_outputs_without_gradients_have_no_tangent():
    class Sign(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            positive = x > 0
            ctx.mark_non_differentiable(positive)
            return positive

        @staticmethod
        def jvp(ctx, tangent):
            raise AssertionError("nobody can ask for it")

    ad, x = leafgrad.autograd.forward_ad, leafgrad.ones(2)
    with ad.dual_level():
        assert ad.unpack_dual(Sign.apply(ad.make_dual(x, x))).tangent is None


def test_vmap(t):
    assert t.func.vmap(cube(t).apply)(t.tensor([[1.0], [2.0]])).tolist() == [[100.0], [800.0]]


def test_vmap_of_two_results_and_other_dimensions(t):
    class Pair(t.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x + y, x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, y):
            assert in_dims == (0, None)
            total, product = Pair.apply(x, y)
            return (total.movedim(0, 1), product), (1, 0)

    x, y = t.arange(6.0).reshape(3, 2), t.tensor([10.0, 20.0])
    total, product = t.func.vmap(Pair.apply, in_dims=(0, None))(x, y)
    assert total.tolist() == (x + y).tolist()
    assert product.tolist() == (x * y).tolist()


def test_nested_vmaps_run_the_rule_once(t):
    calls = []

    class Double(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            calls.append(info.batch_size)
            return Double.apply(x), 0

    x = t.arange(6.0).reshape(2, 3)
    assert t.func.vmap(t.func.vmap(Double.apply))(x).tolist() == (x * 2).tolist()
    assert calls == [3, 2]


@pytest.mark.parametrize("out_dims", [0, (0, 0)])
def test_a_vmap_rule_names_the_batch_of_several_outputs_once_or_each(t, out_dims):
    class Both(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x + 1, x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return (x + 1, x * 2), out_dims

    more, twice = t.func.vmap(Both.apply)(t.arange(3.0))
    assert (more.tolist(), twice.tolist()) == ([1, 2, 3], [0, 2, 4])


def test_gradients_through_a_vmap_rule(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 7

        @staticmethod
        def vmap(info, in_dims, x):
            return Double.apply(x), 0

    x = t.ones(3, requires_grad=True)
    t.func.vmap(Double.apply)(x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0, 7.0]


def straight_through(t):
    class Round(t.autograd.Function):
        """Its backward and jvp are not those of the ops that its vmap is made of."""

        @staticmethod
        def forward(x):
            return x.round()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def jvp(ctx, tangent):
            return tangent

        @staticmethod
        def vmap(info, in_dims, x):
            return x.round(), in_dims[0]

    return lambda x: (Round.apply(x) * x.detach()).sum()


def within_vmap(t):
    """Derivatives that are taken within a vmap."""
    func = t.func
    return {
        "grad": func.grad,
        "vjp": lambda f: lambda x: func.vjp(f, x)[1](t.tensor(1.0))[0],
        "jacrev": func.jacrev,
        "jacfwd": func.jacfwd,
        "jvp": lambda f: lambda x: func.jvp(f, (x,), (t.ones(2),))[1] * t.ones(2),
        "hessian": lambda f: func.hessian(lambda x: f(x) ** 2 / 2),
    }


@pytest.mark.parametrize("name", ["grad", "vjp", "jacrev", "jacfwd", "jvp", "hessian"])
def test_a_derivative_within_vmap_is_that_of_backward_and_jvp(t, name):
    f, x = straight_through(t), t.tensor([[2.0, 3.0], [4.0, 5.0]])
    if name == "jvp":
        expected = [[5.0, 5.0], [9.0, 9.0]]
    else:
        expected = [[[a * c for c in row] for a in row] if name == "hessian" else row for row in x.tolist()]
    assert t.func.vmap(within_vmap(t)[name](f))(x).tolist() == expected
    assert t.func.vmap(t.func.vmap(within_vmap(t)[name](f)))(x.unsqueeze(0)).tolist() == [expected]


def test_a_compiled_derivative_within_vmap_is_that_of_backward():
    step = leafgrad.compile(leafgrad.func.vmap(leafgrad.func.grad(straight_through(leafgrad))))
    x = leafgrad.tensor([[2.0, 3.0], [4.0, 5.0]])
    assert step(x).tolist() == x.tolist()


def test_a_derivative_outside_of_vmap_is_that_of_the_ops_of_its_rule(t):
    f, x = straight_through(t), t.tensor([[2.0, 3.0], [4.0, 5.0]])
    assert t.func.grad(lambda x: t.func.vmap(f)(x).sum())(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def scaled(t):
    class Scaled(t.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y.sum(), (g * x).sum() * t.ones_like(y)

        @staticmethod
        def vmap(info, in_dims, x, y):
            x = x if in_dims[0] == 0 else x.unsqueeze(0)
            return x * y.sum(-1, keepdim=in_dims[1] == 0), 0

    return lambda x, y: Scaled.apply(x, y).sum()


@pytest.mark.parametrize(
    ("in_dims", "expected"),
    [
        ((0, None), ([[6.0, 6.0], [6.0, 6.0]], [[5.0, 5.0, 5.0], [9.0, 9.0, 9.0]])),
        ((None, 0), ([[6.0, 6.0], [15.0, 15.0]], [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]])),
    ],
)
def test_an_argument_that_is_the_same_for_all_has_a_gradient_of_each_sample(t, in_dims, expected):
    x, y = t.tensor([[2.0, 3.0], [4.0, 5.0]]), t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    x, y = [v[0] if dim is None else v for v, dim in zip((x, y), in_dims, strict=True)]
    found = t.func.vmap(t.func.grad(scaled(t), argnums=(0, 1)), in_dims=in_dims)(x, y)
    assert tuple(g.tolist() for g in found) == expected


def test_a_rule_that_returns_its_argument(t):
    class Doubled(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vmap(info, in_dims, x):
            return x, in_dims[0]

    x = t.tensor([[2.0, 3.0], [4.0, 5.0]])
    assert t.func.vmap(t.func.grad(lambda x: (Doubled.apply(x) * x).sum()))(x).tolist() == (3 * x).tolist()


def test_a_derivative_within_vmap_asks_for_setup_context(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def vmap(info, in_dims, x):
            return x * x, in_dims[0]

    with pytest.raises(RuntimeError, match="override the setup_context staticmethod"):
        t.func.vmap(t.func.grad(Square.apply))(t.ones(2))


@pytest.mark.parametrize("name", ["saved", "output"])
def test_second_derivatives_by_what_is_the_same_for_all_samples(name):
    """The gradient that comes by a saved tensor, or of an output that is the same for all, is counted once."""

    class Product(leafgrad.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * w, w * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            x, w = ctx.saved_tensors
            return g * w, g * x + 2 * h * w

    func, x, w = leafgrad.func, leafgrad.tensor([[1.0, 2.0], [3.0, 4.0]]), leafgrad.tensor([5.0, 6.0])

    def f(product):
        def of_sample(x, w):
            if name == "saved":
                return func.grad(lambda x: (product(x, w)[0] * x).sum())(x)
            return product(x, w)[1] * x

        return func.grad(lambda w: func.vmap(of_sample, in_dims=(0, None))(x, w).sum())(w).tolist()

    assert f(Product.apply) == f(lambda x, w: (x * w, w * w))


def test_without_a_rule_samples_run_the_forward():
    class Square(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leafgrad.tensor([1.0, 2.0])
    assert leafgrad.func.vmap(leafgrad.func.grad(Square.apply))(x).tolist() == [2.0, 4.0]
    _, tangent = leafgrad.func.jvp(Square.apply, (x,), (leafgrad.ones(2),))
    assert tangent.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("returned", [lambda x: x.repeat(2), lambda x: (x, x)])
def test_a_tangent_that_does_not_fit(returned):
    class Wrong(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def jvp(ctx, tangent):
            return returned(tangent)

    with pytest.raises(RuntimeError, match=r"Wrong\.jvp: expected"):
        leafgrad.func.jvp(Wrong.apply, (leafgrad.ones(2),), (leafgrad.ones(2),))


def test_a_vmap_rule_returns_outputs_and_dimensions():
    class Wrong(leafgrad.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x

    with pytest.raises(RuntimeError, match=r"Expected Wrong\.vmap to have two returns"):
        leafgrad.func.vmap(Wrong.apply)(leafgrad.ones(2))


def test_only_tensors_are_saved_for_forward():
    class Wrong(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_forward can only save variables"):
        Wrong.apply(leafgrad.ones(1, requires_grad=True))


# ---- names ------------------------------------------------------------------------------------------------------


def test_vjp_is_another_name_of_backward(t):
    class Seven(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def vjp(ctx, g):
            return g * 7

    x = t.ones(1, requires_grad=True)
    Seven.apply(x).backward()
    assert x.grad.tolist() == [7.0]


def test_modules_that_have_the_name_of_a_function():
    from leafgrad.compat import as_torch

    if "torch" in sys.modules:
        pytest.skip("PyTorch is imported")
    with as_torch():
        import torch
        import torch.autograd.gradcheck
        from torch.autograd import Variable, set_multithreading_enabled
        from torch.autograd.gradcheck import gradgradcheck
        from torch.nn.modules.module import register_module_forward_hook

        x = Variable(torch.ones(2, dtype=torch.float64), requires_grad=True)
        assert isinstance(x, Variable)
        assert not isinstance(3, Variable)
        assert torch.autograd.gradcheck(torch.sin, (x,))
        assert gradgradcheck(torch.sin, (x,))
        with set_multithreading_enabled(False):
            assert torch.is_grad_enabled()
        assert register_module_forward_hook is leafgrad.nn.module.register_module_forward_hook


# ---- gradcheck --------------------------------------------------------------------------------------------------


def test_gradcheck_of_missing_and_of_batched_gradients(t):
    class Pair(t.autograd.Function):
        wrong_without = False

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            if g is None and h is None:
                return None
            if g is None or h is None:
                return (2 * g if h is None else 3 * h) + Pair.wrong_without
            return 2 * g + 3 * h

    x = t.ones(2, dtype=t.float64, requires_grad=True)
    assert t.autograd.gradcheck(lambda x: (x.sin() * x, x.exp()), (x,), check_batched_grad=True)
    forward = {"check_forward_ad": True, "check_batched_forward_grad": True}
    assert t.autograd.gradcheck(lambda x: (x.sin() * x, x.exp()), (x,), **forward)
    assert t.autograd.gradgradcheck(lambda x: (x.sin() * x, x.exp()), (x,), check_batched_grad=True)
    assert accepts(t, Pair, x)
    Pair.wrong_without = True
    assert not accepts(t, Pair, x)


def accepts(t, function, x):
    return t.autograd.gradcheck(lambda x: function.apply(x), (x,), raise_exception=False)


def test_gradcheck_of_a_gradient_that_batches_wrongly():
    class Odd(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if leafgrad.autograd.function.modes.get() & 16 == 0 else g * 3

    x = leafgrad.ones(2, dtype=leafgrad.float64, requires_grad=True)
    assert leafgrad.autograd.gradcheck(Odd.apply, (x,))
    with pytest.raises(leafgrad.autograd.GradcheckError, match="is_grads_batched=True"):
        leafgrad.autograd.gradcheck(Odd.apply, (x,), check_batched_grad=True)


def test_gradcheck_of_a_direction_that_batches_wrongly():
    class Odd(leafgrad.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * (2 if leafgrad.autograd.function.modes.get() & 16 == 0 else 3)

    x = leafgrad.ones(2, dtype=leafgrad.float64, requires_grad=True)
    assert leafgrad.autograd.gradcheck(Odd.apply, (x,), check_forward_ad=True)
    with pytest.raises(leafgrad.autograd.GradcheckError, match="several directions"):
        leafgrad.autograd.gradcheck(Odd.apply, (x,), check_batched_forward_grad=True)
