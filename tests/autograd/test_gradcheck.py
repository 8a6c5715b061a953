"""gradcheck and gradgradcheck: what they pass, what they find, and how they say it."""

from __future__ import annotations

import pytest

import leafgrad
from leafgrad.testing import fake


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def vector(t, *values):
    return t.tensor(list(values), dtype=t.float64)


def mixed(x, y):
    """Two inputs of two sizes, two outputs."""
    return x * y.sum(), (x * x).sum() * y[0]


def wrong(t):
    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    return Wrong.apply


def test_gradcheck_passes_what_is_right(t):
    x, y = leaf(t, 0.3, 0.8), leaf(t, 1.3)
    for fast in (False, True):
        assert t.autograd.gradcheck(mixed, (x, y), fast_mode=fast)
        assert t.autograd.gradgradcheck(mixed, (x, y), fast_mode=fast)
        assert t.autograd.gradcheck(lambda x, n: x * n, (x, 3), fast_mode=fast)


def test_gradcheck_finds_what_is_wrong(t):
    x = leaf(t, 0.3, 0.8)
    for fast in (False, True):
        with pytest.raises(
            RuntimeError, match=r"Jacobian mismatch for output 0 with respect to input 0|random direction"
        ):
            t.autograd.gradcheck(wrong(t), x, fast_mode=fast)
        assert not t.autograd.gradcheck(wrong(t), x, fast_mode=fast, raise_exception=False)


def test_gradcheck_names_the_worst_entry():
    x = leaf(leafgrad, 1.5, 4.0)
    with pytest.raises(leafgrad.autograd.GradcheckError) as caught:
        leafgrad.autograd.gradcheck(wrong(leafgrad), x)
    assert "d output[0].flatten()[1] / d input[0].flatten()[1]: numerical 8, analytical 3." in str(caught.value)
    assert "1 of 4 entries differ" in str(caught.value)


def test_gradgradcheck_finds_a_backward_that_is_not_differentiable(t):
    class Cut(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach()
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.x

    x = leaf(t, 0.3, 0.8)
    assert t.autograd.gradcheck(Cut.apply, x)
    with pytest.raises(RuntimeError, match="mismatch"):
        t.autograd.gradgradcheck(Cut.apply, x)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_finds_an_output_that_should_require_grad(t, fast):
    with pytest.raises(RuntimeError, match=r"expected to be zero|mismatch"):
        t.autograd.gradcheck(lambda x: x.detach() * 2, leaf(t, 1.0), fast_mode=fast)


def test_gradcheck_checks_the_outputs_that_require_grad(t):
    assert t.autograd.gradcheck(lambda x: (x * x, x.detach() * 2), leaf(t, 1.0))


def test_gradcheck_needs_tensors_to_check(t):
    with pytest.raises((TypeError, AttributeError)):
        t.autograd.gradcheck(lambda x: 3, leaf(t, 1.0))


def test_gradcheck_leaves_the_inputs_as_they_were(t):
    x = leaf(t, 0.3, 0.8)
    t.autograd.gradcheck(lambda x: x * x, x)
    assert x.tolist() == [0.3, 0.8]
    assert x.grad is None


def test_gradcheck_sees_inputs_that_the_function_closes_over(t):
    x, w = leaf(t, 0.3), leaf(t, 0.8)
    assert t.autograd.gradcheck(lambda x, _: x * w * w, (x, w))


def test_gradcheck_needs_an_input_that_requires_grad(t):
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        t.autograd.gradcheck(lambda x: x, vector(t, 1.0))


def test_gradcheck_warns_of_single_precision(t):
    with pytest.warns(UserWarning, match="not a double precision floating point"):
        t.autograd.gradcheck(lambda x: x * 2, t.ones(1, requires_grad=True), raise_exception=False)


def test_gradcheck_finds_what_varies_between_passes():
    class Drifting(leafgrad.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            Drifting.calls += 1
            return g * (2 + 1e-9 * Drifting.calls)

    with pytest.raises(RuntimeError, match="not reentrant"):
        leafgrad.autograd.gradcheck(Drifting.apply, leaf(leafgrad, 1.0))
    assert leafgrad.autograd.gradcheck(Drifting.apply, leaf(leafgrad, 1.0), nondet_tol=1e-6)


def test_gradcheck_refuses_expanded_inputs():
    x = leaf(leafgrad, 1.0).expand(3)
    with pytest.raises(RuntimeError, match="0th input is expanded"):
        leafgrad.autograd.gradcheck(lambda x: x * 2, x)


def test_gradcheck_on_a_device():
    fake.register()
    x = leafgrad.tensor([0.3, 0.8], dtype=leafgrad.float64, device="fake:0", requires_grad=True)
    assert leafgrad.autograd.gradcheck(lambda x: x.exp() * x, x, check_forward_ad=True)
    assert leafgrad.autograd.gradgradcheck(lambda x: x.exp() * x, x, check_fwd_over_rev=True, fast_mode=True)


def test_gradgradcheck_with_gaps_in_the_memory_of_gradients():
    seen = []

    class Double(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(g.is_contiguous())
            return g * 2

    x = leafgrad.ones(3, dtype=leafgrad.float64, requires_grad=True)
    for gaps in (False, True):
        seen.clear()
        assert leafgrad.autograd.gradgradcheck(Double.apply, x, gen_non_contig_grad_outputs=gaps)
        assert seen[0] is not gaps


@pytest.mark.parametrize("fast", [False, True])
def test_gradgradcheck_of_a_function_without_gradients(fast):
    class Ones(leafgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return leafgrad.ones_like(x)

        @staticmethod
        def backward(ctx, g):
            return None

    x = leafgrad.ones(2, dtype=leafgrad.float64, requires_grad=True)
    assert leafgrad.autograd.gradgradcheck(Ones.apply, (x,), fast_mode=fast)
    assert leafgrad.autograd.gradcheck(lambda x: (), (x,), fast_mode=fast)
