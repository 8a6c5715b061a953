"""Derivatives of functions: functional, forward mode, gradcheck, anomaly detection."""

from __future__ import annotations

import warnings

import pytest

import leafgrad
from leafgrad.autograd import forward
from leafgrad.testing import fake


def leaf(t, *values):
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


def vector(t, *values):
    return t.tensor(list(values), dtype=t.float64)


def mixed(x, y):
    """Two inputs of two sizes, two outputs."""
    return x * y.sum(), (x * x).sum() * y[0]


# ---- functional -------------------------------------------------------------------------------------------------


def test_vjp_and_jvp(t):
    functional, x, v = t.autograd.functional, vector(t, 1.0, 2.0), vector(t, 1.0, 10.0)
    for product in (functional.vjp, functional.jvp):
        out, result = product(lambda x: x * x, x, v)
        assert (out.tolist(), result.tolist()) == ([1.0, 4.0], [2.0, 40.0])
        assert not out.requires_grad
        assert not result.requires_grad


def test_vjp_and_jvp_of_several(t):
    functional, x, y = t.autograd.functional, vector(t, 1.0, 2.0), vector(t, 3.0, 4.0, 5.0)
    _, (gx, gy) = functional.vjp(mixed, (x, y), (vector(t, 1.0, 0.0), t.tensor(1.0, dtype=t.float64)))
    assert (gx.tolist(), gy.tolist()) == ([18.0, 12.0], [6.0, 1.0, 1.0])
    _, (dx, dy) = functional.jvp(mixed, (x, y), (vector(t, 1.0, 0.0), vector(t, 0.0, 1.0, 0.0)))
    assert (dx.tolist(), dy.tolist()) == ([13.0, 2.0], 6.0)


def test_v_may_be_left_out_for_one_element(t):
    functional, x = t.autograd.functional, vector(t, 1.0, 2.0)
    assert functional.vjp(lambda x: (x * x).sum(), x)[1].tolist() == [2.0, 4.0]
    assert functional.jvp(lambda x: x * x, vector(t, 3.0))[1].tolist() == [6.0]
    with pytest.raises(RuntimeError, match="v can only be None if the user-provided function returns"):
        functional.vjp(lambda x: x * x, x)
    with pytest.raises(RuntimeError, match="v can only be None if the input"):
        functional.jvp(lambda x: x * x, x)


def test_v_must_fit(t):
    with pytest.raises(RuntimeError, match="v has invalid size"):
        t.autograd.functional.vjp(lambda x: x * x, vector(t, 1.0, 2.0), t.ones(3, dtype=t.float64))
    with pytest.raises(RuntimeError, match="invalid length"):
        t.autograd.functional.jvp(lambda x, y: x * y, (vector(t, 1.0), vector(t, 1.0)), vector(t, 1.0))


def test_inputs_and_outputs_must_be_tensors(t):
    with pytest.raises(TypeError, match=r"inputs given to vjp must be either a Tensor or a tuple of Tensors"):
        t.autograd.functional.vjp(lambda x: x, 3.0)
    with pytest.raises(TypeError, match=r"outputs of the user-provided function given to jacobian must be"):
        t.autograd.functional.jacobian(lambda x: 3.0, t.ones(1))


def test_jacobian(t):
    jacobian, x, y = t.autograd.functional.jacobian, vector(t, 1.0, 2.0), vector(t, 3.0, 4.0, 5.0)
    assert jacobian(lambda x: x * x, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    (xx, xy), (sx, sy) = jacobian(mixed, (x, y))
    assert xx.tolist() == [[12.0, 0.0], [0.0, 12.0]]
    assert xy.tolist() == [[1.0] * 3, [2.0] * 3]
    assert (sx.tolist(), sy.tolist()) == ([6.0, 12.0], [5.0, 0.0, 0.0])


def test_jacobian_of_matrices_and_of_nothing(t):
    jacobian, x = t.autograd.functional.jacobian, t.ones(2, 3, dtype=t.float64)
    block = jacobian(lambda x: x.sum(dim=0) * 2, x)
    assert tuple(block.shape) == (3, 2, 3)
    assert block.sum(dim=(1, 2)).tolist() == [4.0] * 3
    assert jacobian(lambda x: t.ones(2), vector(t, 1.0, 2.0)).tolist() == [[0.0, 0.0]] * 2


def test_jacobian_by_forward_mode():
    t, x, y = leafgrad, vector(leafgrad, 1.0, 2.0), vector(leafgrad, 3.0, 4.0, 5.0)
    reverse = t.autograd.functional.jacobian(mixed, (x, y))
    ahead = t.autograd.functional.jacobian(mixed, (x, y), strategy="forward-mode")
    assert [[b.tolist() for b in row] for row in reverse] == [[b.tolist() for b in row] for row in ahead]


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized(t, strategy):
    jacobian, hessian = t.autograd.functional.jacobian, t.autograd.functional.hessian
    x, y = vector(t, 1.0, 2.0), vector(t, 3.0, 4.0, 5.0)
    one_by_one = jacobian(mixed, (x, y))
    for row, other in zip(one_by_one, jacobian(mixed, (x, y), vectorize=True, strategy=strategy), strict=True):
        assert [b.tolist() for b in row] == [b.tolist() for b in other]
    assert jacobian(lambda x: t.ones(2), x, vectorize=True, strategy=strategy).tolist() == [[0.0, 0.0]] * 2
    table = hessian(lambda x: (x * x * x).sum() * x[0], x, vectorize=True, outer_jacobian_strategy=strategy)
    assert table.tolist() == hessian(lambda x: (x * x * x).sum() * x[0], x).tolist()
    leaf = vector(t, 1.0, 2.0).requires_grad_()
    block = jacobian(lambda x: x**3, leaf, create_graph=True, vectorize=True)
    assert t.autograd.grad(block.sum(), leaf)[0].tolist() == [6.0, 12.0]
    with pytest.raises(RuntimeError, match=r"`strict=True` and `vectorized?=True` are not supported together"):
        jacobian(lambda x: x, x, strict=True, vectorize=True)


def test_jacobian_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="'reverse-mode' or 'forward-mode', got 'sideways'"):
        leafgrad.autograd.functional.jacobian(leafgrad.exp, leafgrad.ones(1), strategy="sideways")


def test_strict(t):
    functional, x = t.autograd.functional, vector(t, 1.0, 2.0)
    for call in (functional.jacobian, lambda f, x, strict: functional.vjp(f, x, x, strict=strict)):
        with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
            call(lambda x: t.ones(2, dtype=t.float64), x, strict=True)
        with pytest.raises(RuntimeError, match="independent of input 1"):
            functional.jacobian(lambda x, y: x * 2, (x, x), strict=True)
    with pytest.raises(RuntimeError, match=r"jacobian of the user-provided function .*is independent of"):
        functional.hessian(lambda x: x.sum(), x, strict=True)


def test_hessian(t):
    hessian, x, y = t.autograd.functional.hessian, vector(t, 1.0, 2.0), vector(t, 3.0)
    assert hessian(lambda x: (x * x * x).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert hessian(lambda x: x.sum(), x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    table = hessian(lambda x, y: (x * x).sum() * y.sum(), (x, y))
    assert [[b.tolist() for b in row] for row in table] == [
        [[[6.0, 0.0], [0.0, 6.0]], [[2.0], [4.0]]],
        [[[2.0, 4.0]], [[0.0]]],
    ]
    with pytest.raises(RuntimeError, match="should contain a single element"):
        hessian(lambda x: x, x)


def test_hessian_forward_over_reverse():
    x = vector(leafgrad, 0.5, 2.0)

    def f(x):
        return (x.exp() * x[0]).sum()

    reverse = leafgrad.autograd.functional.hessian(f, x)
    ahead = leafgrad.autograd.functional.hessian(f, x, outer_jacobian_strategy="forward-mode")
    assert reverse.flatten().tolist() == pytest.approx(ahead.flatten().tolist())


def test_products_with_the_hessian(t):
    functional, x, v = t.autograd.functional, vector(t, 1.0, 2.0), vector(t, 1.0, 10.0)
    for product in (functional.vhp, functional.hvp):
        out, result = product(lambda x: (x * x * x).sum() + x[0] * x[1], x, v)
        assert (out.item(), result.tolist()) == (11.0, [16.0, 121.0])
        with pytest.raises(RuntimeError, match="should contain a single element"):
            product(lambda x: x, x, v)


def test_results_are_differentiable_with_create_graph(t):
    functional, x = t.autograd.functional, leaf(t, 1.0, 2.0)
    v = vector(t, 1.0, 1.0)
    for result in (
        functional.vjp(lambda x: x**4, x, v, create_graph=True)[1],
        functional.jvp(lambda x: x**4, x, v, create_graph=True)[1],
        functional.jacobian(lambda x: x**4, x, create_graph=True).sum(dim=0),
    ):
        assert result.tolist() == [4.0, 32.0]
        assert t.autograd.grad(result.sum(), x)[0].tolist() == [12.0, 48.0]
    third = functional.hvp(lambda x: (x**4).sum(), x, v, create_graph=True)[1]
    assert t.autograd.grad(third.sum(), x)[0].tolist() == [24.0, 48.0]


def test_functions_may_write_into_their_inputs_copies():
    x = vector(leafgrad, 1.0, 2.0)
    _, g = leafgrad.autograd.functional.vjp(lambda x: (x * 1).mul_(3), x, x)
    assert g.tolist() == [3.0, 6.0]
    assert x.tolist() == [1.0, 2.0]


# PyTorch's own forward mode uses what PyTorch deprecates.
quiet = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


# ---- forward mode -----------------------------------------------------------------------------------------------


@quiet
def test_func_jvp(t):
    x, v = vector(t, 0.5, 1.0), vector(t, 1.0, 10.0)
    out, tangent = t.func.jvp(t.sin, (x,), (v,))
    assert out.tolist() == pytest.approx(t.sin(x).tolist())
    assert tangent.tolist() == pytest.approx((t.cos(x) * v).tolist())
    out, tangent, aux = t.func.jvp(lambda x: ((x, x * 2), x + 1), (x,), (v,), has_aux=True)
    assert tangent[1].tolist() == [2.0, 20.0]
    assert aux.tolist() == [1.5, 2.0]


@quiet
def test_func_jvp_can_be_nested_and_differentiated(t):
    x, one = leaf(t, 0.5), vector(t, 1.0)

    def ahead(f):
        return lambda x: t.func.jvp(f, (x,), (one,))[1]

    assert ahead(ahead(ahead(t.sin)))(x.detach()).tolist() == pytest.approx((-t.cos(x)).tolist())
    assert t.autograd.grad(ahead(ahead(t.sin))(x), x)[0].tolist() == pytest.approx((-t.cos(x)).tolist())


@quiet
def test_the_direction_can_be_differentiated(t):
    x, v = vector(t, 2.0), leaf(t, 3.0)
    _, tangent = t.func.jvp(lambda x: x * x, (x,), (v,))
    assert t.autograd.grad(tangent, v)[0].tolist() == [4.0]


@quiet
def test_func_jvp_checks_its_arguments(t):
    x = t.ones(2)
    with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
        t.func.jvp(t.sin, x, x)
    with pytest.raises(RuntimeError, match="same python structure"):
        t.func.jvp(t.sin, (x,), (x, x))
    with pytest.raises(
        RuntimeError, match=r"different size than that of the original|different size than the original"
    ):
        t.func.jvp(t.sin, (x,), (t.ones(1),))


def test_without_history_nothing_requires_grad():
    out, tangent = leafgrad.func.jvp(leafgrad.sin, (leafgrad.ones(2),), (leafgrad.ones(2),))
    assert not out.requires_grad
    assert not tangent.requires_grad


def test_an_independent_output_has_no_tangent():
    x = leafgrad.ones(2)
    assert leafgrad.func.jvp(lambda x: leafgrad.ones(3), (x,), (x,))[1].tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="output 0 is independent"):
        leafgrad.func.jvp(lambda x: leafgrad.ones(3), (x,), (x,), strict=True)


def test_push_along_a_graph_as_often_as_you_like():
    x, y = leaf(leafgrad, 1.0, 2.0), leaf(leafgrad, 3.0, 4.0)
    z = x * y + x.sum()
    for scale in (1.0, 2.0):
        (t,) = forward.push((z,), (x, y), (vector(leafgrad, scale, 0.0), vector(leafgrad, 0.0, scale)))
        assert t.tolist() == [4.0 * scale, 3.0 * scale]


PIECES = {
    "elementwise": lambda x: (x * x / (1 + x.exp())).tanh() - x,
    "broadcast": lambda x: x.reshape(-1, 1) * x + x[0],
    "linear": lambda x: (x * x).reshape(2, 2).t().sum(dim=0, keepdim=True).expand(3, 2),
    "bilinear": lambda x: x.reshape(2, 2) @ (x * x).reshape(2, 2),
    "constant factor": lambda x: leafgrad.ones(3, 2, dtype=leafgrad.float64) @ (x * x).reshape(2, 2),
    "reductions": lambda x: (x * x).mean() + x.max() + x.prod() + x.logsumexp(0) + (x * x).softmax(0),
    "several outputs": lambda x: leafgrad.stack(
        [p * q for p, q in zip((x * x).split(2), x.exp().split(2), strict=True)]
    ),
    "max and index": lambda x: leafgrad.max((x * x).reshape(2, 2), dim=1)[0],
    "cat and cumsum": lambda x: leafgrad.cat([x * x, x.exp()]).cumsum(0),
    "where and clamp": lambda x: leafgrad.where(x > 0.5, x * x, x.exp()) + x.clamp(0.2, 0.6),
    "in place": lambda x: (x * 1).mul_(x).add_(x.exp()),
    "written view": lambda x: write(x * x, x),
    "conversion": lambda x: (x.to(leafgrad.float32) * 2).to(leafgrad.float64) * 0 + x,
    "gradient": lambda x: leafgrad.autograd.grad((x.exp() * x).sum(), x, create_graph=True)[0],
}


def write(y, x):
    y[1:3] = x[0:2].exp()
    return y


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("place", ["cpu", "fake:0"])
def test_forward_mode_agrees_with_differences(piece, place):
    fake.register()
    if place != "cpu" and piece == "constant factor":
        return
    x = leafgrad.tensor([0.3, 0.9, 0.45, 0.7], dtype=leafgrad.float64, device=place, requires_grad=True)
    atol = 1e-2 if piece == "conversion" else 1e-5
    leafgrad.autograd.gradcheck(PIECES[piece], x, check_forward_ad=True, atol=atol)


# ---- gradcheck --------------------------------------------------------------------------------------------------


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


def test_gradcheck_finds_an_output_that_should_require_grad(t):
    with pytest.raises(RuntimeError, match=r"expected to be zero|mismatch"):
        t.autograd.gradcheck(lambda x: x.detach() * 2, leaf(t, 1.0))


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


# ---- anomaly detection ------------------------------------------------------------------------------------------


def test_anomaly_detection_names_the_function(t):
    x = leaf(t, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with t.autograd.detect_anomaly():
            y = t.sqrt(x)
            with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."):
                y.backward()
    assert not t.is_anomaly_enabled()


def test_anomaly_detection_names_the_line():
    x = leaf(leafgrad, 0.0)
    with leafgrad.autograd.set_detect_anomaly(True):
        y = x / x  # the culprit
    with leafgrad.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="y = x / x  # the culprit"):
        y.backward()


def test_anomaly_detection_warns_that_it_is_slow(t):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        detector = t.autograd.detect_anomaly()
    with detector:
        assert t.is_anomaly_enabled()
        assert t.is_anomaly_check_nan_enabled()


def test_anomaly_detection_without_the_search_for_nan(t):
    x = leaf(t, 0.0)
    with t.autograd.set_detect_anomaly(True, check_nan=False):
        assert not t.is_anomaly_check_nan_enabled()
        (x / x).backward()
    assert x.grad.isnan().tolist() == [True]
    assert not t.is_anomaly_enabled()


def test_anomaly_detection_as_a_switch(t):
    t.autograd.set_detect_anomaly(True)
    assert t.is_anomaly_enabled()
    t.autograd.set_detect_anomaly(False)
    assert not t.is_anomaly_enabled()


def test_a_write_in_place_is_reported_with_its_line():
    with leafgrad.autograd.set_detect_anomaly(True):
        y = leaf(leafgrad, 1.0).exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match=r"leaf\(leafgrad, 1\.0\)\.exp\(\)"):
            y.backward()


# ---- dual tensors -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_dual_tensors(t):
    ad, x, v = t.autograd.forward_ad, vector(t, 1.0, 2.0), vector(t, 3.0, 4.0)
    with ad.dual_level():
        dual = ad.make_dual(x, v)
        primal, tangent = ad.unpack_dual(dual * dual.sum())
        assert primal.tolist() == [3.0, 6.0]
        assert tangent.tolist() == [16.0, 26.0]
        assert not primal.requires_grad
        assert not tangent.requires_grad
        assert ad.unpack_dual(dual).tangent.tolist() == [3.0, 4.0]
        assert ad.unpack_dual(x).tangent is None
        w = vector(t, 5.0, 6.0).requires_grad_()
        tangent = ad.unpack_dual(w * w * dual).tangent
        assert t.autograd.grad(tangent.sum(), w)[0].tolist() == [30.0, 48.0]
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="forward gradient that has a different size"):
            ad.make_dual(x, t.ones(3, dtype=t.float64))
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            ad.make_dual(dual * 2, v)
        with pytest.raises(ValueError, match="Expected tangent to be floating point"):
            ad.make_dual(x, t.ones(2, dtype=t.int64))
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            ad.make_dual(t.ones(2, dtype=t.int64), x)
    assert ad.unpack_dual(x).tangent is None
    with pytest.raises(RuntimeError, match="but no level exists"):
        ad.make_dual(x, v)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_the_primal_of_a_dual_tensor_moves_with_nothing(t):
    ad, x, v = t.autograd.forward_ad, vector(t, 1.0, 2.0).requires_grad_(), vector(t, 3.0, 4.0)
    with ad.dual_level():
        primal, tangent = ad.unpack_dual(ad.make_dual(x, v) * x)
        assert ad.unpack_dual(primal * 2).tangent is None
        again = ad.make_dual(primal, tangent)
        assert ad.unpack_dual(again).tangent.tolist() == [3.0, 8.0]
        assert t.autograd.grad(again.sum(), x)[0].tolist() == [2.0, 4.0]


def test_dual_tensors_need_recording():
    ad, x = leafgrad.autograd.forward_ad, vector(leafgrad, 1.0)
    with pytest.raises(RuntimeError, match="that was not entered"):
        ad.exit_dual_level()
    with ad.dual_level(), leafgrad.no_grad(), pytest.raises(RuntimeError, match="recording is off"):
        ad.make_dual(x, x)


def test_strict_names_the_output_that_does_not_depend_on_an_input():
    def second_is_constant(x):
        return x * 2, leafgrad.ones(2, requires_grad=True) * 1

    with pytest.raises(RuntimeError, match="Output 1 of the user-provided function is independent of input 0"):
        leafgrad.autograd.functional.jacobian(second_is_constant, leafgrad.ones(3), strict=True)


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
