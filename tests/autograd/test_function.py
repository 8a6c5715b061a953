"""``autograd.Function``. The fixture ``t`` is leafgrad, and PyTorch where it is installed."""

from __future__ import annotations

import gc
import weakref

import pytest

import leafgrad
from leafgrad.autograd import Function, forward
from leafgrad.compile.numpy.executor import NumpyProgram
from leafgrad.compile.record.trace import trace_call
from leafgrad.testing import fake

TESTS = "autograd.context"


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def cube(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    return Cube


def scaled_exp(t):
    class ScaledExp(t.autograd.Function):
        @staticmethod
        def forward(x, scale=2.0):
            return x.exp() * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.scale = inputs
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y, None

    return ScaledExp


def product(t, backward):
    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

    Product.backward = staticmethod(backward)
    return Product


# ---- both ways of writing one -----------------------------------------------------------------------------------


def test_forward_with_ctx(t):
    x = leaf(t, 1.0, 2.0)
    y = cube(t).apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_setup_context_with_defaults_and_keywords(t):
    x = leaf(t, 0.0)
    function = scaled_exp(t)
    for y, scale in ((function.apply(x), 2.0), (function.apply(x, 3.0), 3.0), (function.apply(x, scale=4.0), 4.0)):
        assert y.item() == scale
        assert t.autograd.grad(y, x)[0].item() == scale


@pytest.mark.parametrize("make", [cube, scaled_exp])
def test_derivatives_of_any_order(t, make):
    x = leaf(t, 0.5, 2.0)
    assert t.autograd.gradcheck(make(t).apply, x)
    assert t.autograd.gradgradcheck(make(t).apply, x)
    g = make(t).apply(x).sum()
    for _ in range(3):
        (g,) = t.autograd.grad(g.sum(), x, create_graph=True)
    expected = [6.0, 6.0] if make is cube else (2 * x.exp()).tolist()
    assert g.tolist() == pytest.approx(expected)


def test_the_context_is_on_the_node(t):
    x = leaf(t, 0.0)
    node = scaled_exp(t).apply(x, 3.0).grad_fn
    assert node.scale == 3.0
    assert node.saved_tensors[0].tolist() == [3.0]
    assert [n is not None for n, _ in node.next_functions] == [True]
    with pytest.raises(AttributeError):
        _ = node.nothing


def test_attributes_of_the_context_clash_with_nothing(t):
    class Shaped(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape, ctx.edges, ctx.op, ctx.saved, ctx.out, ctx.seq = x.shape, 1, 2, 3, 4, 5
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            assert (ctx.edges, ctx.op, ctx.saved, ctx.out, ctx.seq) == (1, 2, 3, 4, 5)
            return g.expand(ctx.shape)

    x = leaf(t, 1.0, 2.0)
    Shaped.apply(x).backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_forward_is_not_recorded_and_backward_only_under_create_graph(t):
    modes = []

    class Look(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(t.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx, g):
            modes.append(t.is_grad_enabled())
            return g * 2

    x = leaf(t, 1.0)
    y = Look.apply(x)
    t.autograd.grad(y, x, create_graph=True)
    t.autograd.grad(y, x)
    assert modes == [False, True, False]


def test_without_recording_the_result_has_no_history(t):
    x = leaf(t, 1.0)
    with t.no_grad():
        assert not cube(t).apply(x).requires_grad
    assert not cube(t).apply(x.detach()).requires_grad


def test_needs_input_grad_in_backward_is_what_this_pass_asks_for():
    t, seen = leafgrad, []

    def forward(ctx, x, y, n):
        seen.append(ctx.needs_input_grad)
        return x * y * n

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, g, None

    function = type("F", (t.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    t.autograd.grad(function.apply(x, y, 3), x)
    function.apply(x, y.detach(), 3)
    assert seen == [(True, True, False), (True, False, False), (True, False, False)]


# ---- outputs ----------------------------------------------------------------------------------------------------


def pair(t, materialize=True):
    class Pair(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, "text", x.sum() * 3

        @staticmethod
        def backward(ctx, g, text, h):
            Pair.seen = (g, text, h)
            return g * 2 if h is None else g * 2 + h * 3

    return Pair


def test_several_outputs(t):
    x = leaf(t, 1.0, 2.0)
    doubled, text, total = pair(t).apply(x)
    assert text == "text"
    assert doubled.grad_fn is total.grad_fn
    assert (doubled.output_nr, total.output_nr) == (0, 2)
    (doubled.sum() + total).backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_missing_gradients_are_zeros_or_none(t):
    x = leaf(t, 1.0, 2.0)
    function = pair(t)
    function.apply(x)[2].backward()
    assert function.seen[0].tolist() == [0.0, 0.0]
    assert function.seen[1] is None
    function = pair(t, materialize=False)
    function.apply(x)[0].sum().backward()
    assert function.seen[2] is None


def test_non_differentiable_outputs(t):
    class Split(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask, count = (x > 0).to(t.float64), (x > 0).sum()
            ctx.mark_non_differentiable(mask)
            return x * mask, mask, count

        @staticmethod
        def backward(ctx, g, mask, count):
            assert mask.tolist() == [0.0, 0.0]
            return g * 2

    x = leaf(t, 1.0, -2.0)
    y, mask, count = Split.apply(x)
    assert (y.requires_grad, mask.requires_grad, count.requires_grad) == (True, False, False)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_input_returned_unchanged_becomes_an_output(t):
    class Same(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(t, 1.0)
    y = Same.apply(x)
    assert y is not x
    assert x.is_leaf
    y.backward()
    assert x.grad.tolist() == [7.0]
    assert not Same.apply(x.detach()).requires_grad


# ---- writing in place -------------------------------------------------------------------------------------------


def double_(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double


def test_a_dirty_input_carries_the_new_history(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    assert double_(t).apply(y) is y
    assert y.tolist() == [6.0, 12.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [2 * 6.0 * 6, 2 * 12.0 * 6]


def test_a_dirty_view_rewrites_its_base(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    double_(t).apply(y[0:1])
    assert y.tolist() == [6.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 3.0]


def test_a_dirty_leaf_is_refused(t):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place"):
        double_(t).apply(leaf(t, 1.0))
    assert double_(t).apply(t.ones(1)).tolist() == [2.0]


def test_a_dirty_view_of_a_leaf_is_refused(t):
    x = leaf(t, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
        double_(t).apply(x[:1])
    assert x.is_leaf
    with t.no_grad():
        double_(t).apply(x[:1])
    assert x.is_leaf


def test_a_dirty_input_is_returned_without_its_history_where_nothing_is_recorded(t):
    x = leaf(t, 1.0, 2.0)
    for given in (x * 3, (x * 3)[:1], leaf(t, 3.0)):

        def write(given):
            with t.no_grad():
                return double_(t).apply(given)

        y = write(given)
        assert (y.requires_grad, y.is_leaf, given.requires_grad) == (False, True, True)
        assert y.tolist() == given.tolist()
        assert y[0].item() == 6
        if t is leafgrad:
            assert not leafgrad.compile(write)(given).requires_grad
            assert given[0].item() == 12


def test_a_dirty_input_that_is_not_differentiable_is_returned_without_history(t):
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            y.mul_(3)
            ctx.mark_dirty(y)
            ctx.mark_non_differentiable(y)
            return x * 2, y

        @staticmethod
        def backward(ctx, g, _):
            return g * 2, None

    x, y = leaf(t, 1.0), leaf(t, 1.0)
    a, b = Scale.apply(x, y * 1)
    assert (b.item(), b.requires_grad) == (3, False)
    (a + b * b).sum().backward()
    assert (x.grad.item(), y.grad) == (2, None)


@pytest.mark.parametrize("part", [slice(None), slice(1)])
def test_a_dirty_view_that_is_saved_has_its_history_in_backward(t, part):
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(t, 0.0, 0.0)
    (g,) = t.autograd.grad((Exp.apply((x * 1)[part]) ** 2).sum(), x, create_graph=True)
    (again,) = t.autograd.grad(g.sum(), x)
    written = [1.0, 1.0][part] + [0.0] * (2 - len([1.0, 1.0][part]))
    assert g.tolist() == [2 * w for w in written]
    assert again.tolist() == [4 * w for w in written]


def test_a_dirty_input_must_be_returned(t):
    class Lost(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 1

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned"):
        Lost.apply(leaf(t, 1.0) * 1)


# ---- what is saved ----------------------------------------------------------------------------------------------


def test_saved_inputs_and_outputs_are_checked_for_writes(t):
    x = leaf(t, 1.0)
    y = x * 1
    z = cube(t).apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    w = scaled_exp(t).apply(x)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.backward()


def test_saved_tensors_are_freed(t):
    x = leaf(t, 1.0)
    y = cube(t).apply(x)
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_function_that_saved_nothing_runs_again(t):
    x = leaf(t, 1.0)
    y = product(t, lambda ctx, g: (g, None)).apply(x, 1.0)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_intermediate_tensors_and_none_can_be_saved(t):
    class Middle(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.exp(), None)
            return x.exp().exp()

        @staticmethod
        def backward(ctx, g):
            middle, nothing = ctx.saved_tensors
            assert nothing is None
            return g * middle * middle.exp()

    assert t.autograd.gradcheck(Middle.apply, leaf(t, 0.3, -0.5))


def test_only_tensors_can_be_saved(t):
    function = type(
        "F", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: ctx.save_for_backward(x, 3) or x * 1)}
    )
    with pytest.raises(TypeError, match="can only save variables, but argument 1 is of type int"):
        function.apply(leaf(t, 1.0))


def test_saved_outputs_make_no_cycle():
    x = leaf(leafgrad, 1.0)
    gc.collect()
    gc.disable()
    try:
        y = scaled_exp(leafgrad).apply(x)
        refs = [weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y._node.source.ctx)]
        del y
        assert [ref() for ref in refs] == [None] * 3
    finally:
        gc.enable()


# ---- what backward returns --------------------------------------------------------------------------------------

WRONG = {
    "incorrect number of gradients": lambda ctx, g: g,
    "expected Variable or None": lambda ctx, g: (g, 3.0),
    "invalid gradient at index 1": lambda ctx, g: (g, g[:2]),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_gradients(t, words):
    function = product(t, WRONG[words])
    with pytest.raises(RuntimeError, match=words):
        function.apply(leaf(t, 1.0, 2.0, 3.0), leaf(t, 1.0, 2.0, 3.0)).sum().backward()


def test_a_gradient_for_what_is_no_tensor(t):
    function = product(t, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match=r"different .* None at position 2"):
        function.apply(leaf(t, 1.0), 2.0).backward()


def test_surplus_nones_are_cut_off_and_none_is_no_gradient(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    product(t, lambda ctx, g: (g, None, None)).apply(x, y).backward()
    assert x.grad.tolist() == [1.0]
    assert y.grad is None


def test_gradients_are_summed_and_converted_to_their_argument(t):
    x, y = t.ones(1, requires_grad=True), leaf(t, 1.0, 2.0, 3.0)
    product(t, lambda ctx, g: (g.to(t.float64), g)).apply(x, y).sum().backward()
    assert x.grad.dtype is t.float32
    assert x.grad.tolist() == [3.0]


def test_gradients_that_alias_something_are_copied(t):
    kept = t.ones(2, dtype=t.float64)
    x, y = leaf(t, 1.0, 2.0), leaf(t, 1.0, 2.0)
    product(t, lambda ctx, g: (kept, kept)).apply(x, y).sum().backward()
    with t.no_grad():
        x.grad.mul_(0)
    assert kept.tolist() == [1.0, 1.0]
    assert y.grad.tolist() == [1.0, 1.0]


# ---- errors of use ----------------------------------------------------------------------------------------------


def test_an_instance_is_not_called():
    with pytest.raises(RuntimeError, match=r"use Cube\.apply"):
        cube(leafgrad)()(leaf(leafgrad, 1.0))


def test_forward_and_backward_must_be_defined(t):
    empty = type("Empty", (t.autograd.Function,), {})
    with pytest.raises(NotImplementedError, match="forward"):
        empty.apply(leaf(t, 1.0))
    half = type("Half", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 1)})
    with pytest.raises(NotImplementedError, match="backward"):
        half.apply(leaf(t, 1.0)).backward()


def test_keywords_need_setup_context():
    with pytest.raises(TypeError, match="no keyword arguments, got 'x'"):
        cube(leafgrad).apply(x=leaf(leafgrad, 1.0))


def test_an_error_in_backward_reaches_the_caller(t):
    def fail(ctx, g):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        product(t, fail).apply(leaf(t, 1.0), 2.0).backward()
    assert t.is_grad_enabled()


def test_once_differentiable(t):
    def backward(ctx, g):
        assert not t.is_grad_enabled()
        return g * 2, None

    function = product(t, t.autograd.function.once_differentiable(backward))
    x, v = leaf(t, 1.0), leaf(t, 1.0)
    y = function.apply(x, 2.0)
    assert t.autograd.grad(y, x, retain_graph=True)[0].tolist() == [2.0]
    (g,) = t.autograd.grad(y, x, v, create_graph=True)
    with pytest.raises(RuntimeError, match=r"differentiate twice .*once_differentiable"):
        g.backward()


def test_once_differentiable_sees_saved_tensors():
    class Square(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @leafgrad.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(leafgrad, 3.0)
    (g,) = leafgrad.autograd.grad(Square.apply(x), x, create_graph=True)
    assert g.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="differentiate twice"):
        leafgrad.autograd.grad(g, x)


def test_once_differentiable_asks_for_what_backward_reads_alone(t):
    class Scaled(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 3

    kept = leaf(t, 1.0) * 1
    y = Scaled.apply(kept).sum()
    kept.detach().mul_(2)
    for create_graph in (False, True):  # the first frees what was saved
        (g,) = t.autograd.grad(y, kept, create_graph=create_graph)
        assert (g.tolist(), g.requires_grad) == ([3.0], False)


# ---- elsewhere --------------------------------------------------------------------------------------------------


def test_forward_mode_goes_through_functions():
    for make in (cube, scaled_exp):
        assert leafgrad.autograd.gradcheck(make(leafgrad).apply, leaf(leafgrad, 0.3, 0.7), check_forward_ad=True)
    x = leaf(leafgrad, 1.0, 2.0)
    doubled, _, total = pair(leafgrad).apply(x)
    (a, b) = forward.push((doubled, total), (x,), (leafgrad.tensor([1.0, 10.0], dtype=leafgrad.float64),))
    assert a.tolist() == [2.0, 20.0]
    assert b.item() == 33.0


def test_functions_run_on_a_device():
    fake.register()
    x = leafgrad.tensor([0.3, 0.7], dtype=leafgrad.float64, device="fake:0", requires_grad=True)
    for make in (cube, scaled_exp):
        assert leafgrad.autograd.gradcheck(make(leafgrad).apply, x)
        assert leafgrad.autograd.gradgradcheck(make(leafgrad).apply, x)


def second_of_cube(x):
    x = x.detach().requires_grad_()
    (g,) = leafgrad.autograd.grad(cube(leafgrad).apply(x).sum(), x, create_graph=True)
    return leafgrad.autograd.grad((g * g).sum(), x)[0]


def second_of_pair(x):
    x = x.detach().requires_grad_()
    doubled, _, total = pair(leafgrad).apply(x.exp())
    (g,) = leafgrad.autograd.grad((doubled * total).sum(), x, create_graph=True)
    return leafgrad.autograd.grad(g.sum(), x)[0]


def written_view(x):
    x = x.detach().requires_grad_()
    y = x * 3
    double_(leafgrad).apply(y[0:1])
    return leafgrad.autograd.grad((y * y).sum(), x)[0]


def forward_twice(x):
    one = x * 0 + 1

    def once(x):
        return leafgrad.func.jvp(lambda x: cube(leafgrad).apply(x) + x.softmax(0), (x,), (one,))[1]

    return leafgrad.func.jvp(once, (x,), (one,))[1]


@pytest.mark.parametrize("function", [second_of_cube, second_of_pair, written_view, forward_twice])
def test_traced_programs_give_the_same(function):
    x = leafgrad.tensor([0.5, 1.5, 0.2], dtype=leafgrad.float64)
    other = leafgrad.tensor([-0.3, 0.8, 0.1], dtype=leafgrad.float64)
    program = NumpyProgram(trace_call(function, (x,), {}).graph)
    for point in (x, other):
        (result,) = program([point.numpy()])
        assert result.tolist() == pytest.approx(function(point).tolist())


# ---- outputs that are views -----------------------------------------------------------------------------------------


class AsItIs(Function):
    @staticmethod
    def forward(ctx, x, y=None):
        return x

    @staticmethod
    def backward(ctx, g):
        return 3 * g, None


class Reshaped(AsItIs):
    @staticmethod
    def forward(ctx, x, y=None):
        return x.view(-1)


class Halves(AsItIs):
    @staticmethod
    def forward(ctx, x, y=None):
        return x[:1], x[1:]

    @staticmethod
    def backward(ctx, g, h):
        return leafgrad.cat([g, h]), None


@pytest.mark.parametrize("function", [AsItIs, Reshaped, Halves])
def test_a_write_into_an_output_that_shares_memory_is_refused(function):
    """The history of the input could not tell of it, and its gradients would be wrong."""
    w = leafgrad.ones(3, requires_grad=True)
    for x in (w, w.clone()):
        out = function.apply(x)
        out = out[0] if isinstance(out, tuple) else out
        assert out._base is x
        with pytest.raises(RuntimeError, match=f"Output 0 of {function.__name__}Backward is a view .* custom Function"):
            out.mul_(2)
        assert x.tolist() == [1.0, 1.0, 1.0]
        assert out.clone().mul_(2).tolist()[0] == 2.0
        with leafgrad.no_grad():
            out.mul_(2)
        assert x[0] == 2.0
        with leafgrad.no_grad():
            out.div_(2)


def test_an_input_returned_as_it_is_without_a_history_of_its_own():
    class First(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x

        @staticmethod
        def backward(ctx, g):
            return None, g

    x, y = leafgrad.ones(3), leafgrad.ones(3, requires_grad=True)
    out = First.apply(x, y)
    with pytest.raises(RuntimeError, match="Output 0 of FirstBackward is a view"):
        out.mul_(2)
    assert not x.requires_grad
    out.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


WRITES = {
    "the base": lambda base: base.mul_(3),
    "another view": lambda base: base[:1].mul_(3),
    "without recording": lambda base: leafgrad.no_grad()(base.mul_)(3),
}


@pytest.mark.parametrize("function", [AsItIs, Reshaped, Halves])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_output_that_shares_memory_has_lost_its_history_when_its_base_is_written(function, write):
    x = leafgrad.ones(4, requires_grad=True)
    base = x * 2
    out = function.apply(base)
    out = out[0] if isinstance(out, tuple) else out
    part, before = out[:1], (out * 1).sum()
    write(base)
    assert out.requires_grad
    assert "grad_fn=<Invalid>" in repr(out)
    for t, name in ((out, function.__name__), (part, "")):
        with pytest.raises(RuntimeError, match=f"Output 0 of {name}.* its base or another view of its base has been"):
            t.sum()
    with pytest.raises(RuntimeError, match="its base or another view"), leafgrad.no_grad():
        leafgrad.autograd.grad(out, x, leafgrad.ones_like(out))
    with leafgrad.no_grad():
        assert (out * 1).flatten()[0] == 6.0
    assert out.detach().flatten()[0] == 6.0
    assert leafgrad.autograd.grad(before, x)[0][0] != 0


def test_a_compiled_output_that_shares_memory_has_lost_its_history_when_its_base_is_written():
    def both(x):
        base = x * 2
        return base, AsItIs.apply(base)

    def inside(x):
        base, out = both(x)
        base.mul_(3)
        return out.sum()

    x, compiled = leafgrad.ones(2, requires_grad=True), leafgrad.compile(both)
    for _ in range(2):
        base, out = compiled(x)
        assert out._base is base
        base.mul_(3)
        with pytest.raises(RuntimeError, match="its base or another view of its base"):
            out.sum()
    with pytest.raises(RuntimeError, match="its base or another view of its base"):
        leafgrad.compile(inside)(x)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_function_that_no_gradient_comes_to_gets_zeros(t, recorded):
    given = []

    class Stop(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    class Pair(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.sum()

        @staticmethod
        def backward(ctx, g, h):
            given.append((g.tolist(), h.tolist()))
            return g

    x = leaf(t, 1.0, 2.0)
    out = Stop.apply(Pair.apply(x)[0] * 3).sum()
    assert t.autograd.grad(out, x, create_graph=recorded)[0].tolist() == [0.0, 0.0]
    assert given == [([0.0, 0.0], 0.0)]
    other = leaf(t, 1.0, 2.0)
    assert t.autograd.grad((Pair.apply(x)[0] * other).sum(), other)[0].tolist() == [2.0, 4.0]
    assert len(given) == 1  # where nobody asks


def test_a_function_marked_once_differentiable_that_no_gradient_comes_to():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @leafgrad.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    class Stop(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(leafgrad, 1.0, 2.0)
    (g,) = leafgrad.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert leafgrad.autograd.grad((Stop.apply(g) + x).sum(), x)[0].tolist() == [1.0, 1.0]


def test_a_complex_gradient_of_a_real_argument_is_refused(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * (3 + 1j)

    with pytest.raises(RuntimeError):
        Double.apply(leaf(t, 1.0, 2.0)).sum().backward()
    z = t.tensor([1j], requires_grad=True)
    Double.apply(z).abs().sum().backward()
    assert z.grad.is_complex()
