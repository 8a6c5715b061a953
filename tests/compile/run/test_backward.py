"""The backward pass of compiled functions, and what it is handed."""

from __future__ import annotations

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad.autograd.graph import get_gradient_edge
from leafgrad.errors import MissingGradientError


@pytest.mark.parametrize("executor", ["numpy", "replay"])
def test_the_backward_program_is_given_arrays(executor):
    x = leafgrad.ones(3, dtype=leafgrad.float64, requires_grad=True)
    compiled = leafgrad.compile(lambda x: (x * x).sum(), executor=executor)
    compiled(x)
    y = compiled(x)
    op = y._node.op
    (program, *rest), given = op.program((True,)), []
    op.runs[(True,)] = lambda arrays: given.extend(arrays) or program(arrays), *rest
    (y * 2 + y.exp()).backward()  # gradients without dimensions add up to a scalar of NumPy's
    assert [type(a) for a in given] == [np.ndarray] * len(given)
    np.testing.assert_allclose(x.grad.numpy(), 2 * (2 + np.exp(3)) * np.ones(3))


def test_only_results_that_are_differentiated_have_gradients():
    w, v = (leafgrad.ones(2, requires_grad=True) for _ in range(2))
    f = leafgrad.compile(lambda x: ((w * x).sum(), (v / x).sum(), (w * v).sum()))
    for _ in range(4):
        for chosen, expected in (((0,), ([0, 2], None)), ((1,), (None, [np.inf, 0.5])), ((0, 2), ([1, 3], [1, 1]))):
            w.grad = v.grad = None
            results = f(leafgrad.tensor([0.0, 2.0]))
            sum(results[i] for i in chosen).backward()
            for leaf, values in zip((w, v), expected, strict=True):
                assert (None if leaf.grad is None else leaf.grad.tolist()) == values


def test_a_leaf_that_is_gone_at_the_end_of_the_pass():
    weight = leafgrad.ones(3, requires_grad=True)

    def squares(x):
        return (x.detach().requires_grad_() * weight).square()

    @leafgrad.compile
    def step(x):
        weight.grad = None
        squares(x).sum().backward()
        return weight.grad * 1

    for scale in range(1, 6):
        assert step(leafgrad.ones(3) * scale).tolist() == [2.0 * scale**2] * 3


def in_steps(x):
    hidden = x.sin()
    return hidden, hidden.tanh() * 2, hidden.t()


RESULTS_OF_RESULTS = {
    "gradients of results": lambda x, found: [*leafgrad.autograd.grad(total(found), found)],
    "gradients of both": lambda x, found: [*leafgrad.autograd.grad(total(found), [x, *found])],
    "one of another": lambda x, found: [*leafgrad.autograd.grad(found[1].sum(), found[0])],
    "a hook": lambda x, found: [found[0].register_hook(lambda g: 3 * g), total(found).backward(), x.grad],
    "retained": lambda x, found: [*[t.retain_grad() for t in found], total(found).backward(), *[t.grad for t in found]],
    "second": lambda x, found: [
        *leafgrad.autograd.grad(
            leafgrad.autograd.grad(total(found), found[0], create_graph=True)[0].square().sum(), [x, *found]
        )
    ],
}


def total(found):
    return sum((k * t * t).sum() for k, t in enumerate(found, 1))


@pytest.mark.parametrize("use", RESULTS_OF_RESULTS.values(), ids=RESULTS_OF_RESULTS)
def test_gradients_arrive_at_results_of_which_others_are_made(use):
    compiled = leafgrad.compile(in_steps)
    for i in range(4):
        values = []
        for f in (compiled, in_steps):
            x = leafgrad.linspace(0.1, 1 + i, 4, dtype=leafgrad.float64).reshape(2, 2).requires_grad_()
            values.append([g.tolist() for g in use(x, f(x)) if isinstance(g, leafgrad.Tensor)])
        assert len(values[0]) == len(values[1]) > 0
        np.testing.assert_allclose(np.array(values[0]), np.array(values[1]), rtol=1e-12)


SINGLE, SEVERAL = (lambda x: (x * 2).sin()), (lambda x: (x.sin(), x.argmax(), x.exp() * 2))
DERIVATIVES = {
    "jvp": lambda f, x: leafgrad.func.jvp(lambda x: tensors(f(x)), (x,), (x,)),
    "jvp of autograd": lambda f, x: leafgrad.autograd.functional.jvp(lambda x: tensors(f(x)), x, x),
    "jacfwd": lambda f, x: leafgrad.func.jacfwd(lambda x: tensors(f(x)))(x),
    "forward over forward": lambda f, x: leafgrad.func.jacfwd(leafgrad.func.jacfwd(lambda x: tensors(f(x))[0]))(x),
    "reverse over forward": lambda f, x: leafgrad.func.jacrev(leafgrad.func.jacfwd(lambda x: tensors(f(x))[0]))(x),
    "forward over reverse": lambda f, x: leafgrad.func.hessian(lambda x: tensors(f(x))[0].sum())(x),
    "jet": lambda f, x: leafgrad.func.jet(
        lambda x: tensors(f(x)), (x,), ([leafgrad.ones(2), leafgrad.zeros(2), leafgrad.zeros(2)],)
    ),
}


def tensors(result):
    """Those that have a gradient."""
    return (result[0], result[2]) if isinstance(result, tuple) else (result,)


def leaves(results):
    return [results] if isinstance(results, leafgrad.Tensor) else [t for r in results for t in leaves(r)]


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("function", [SINGLE, SEVERAL])
def test_forward_mode_goes_through_a_compiled_call(name, function):
    compiled = leafgrad.compile(function)
    for k in (1.0, 2.0, 3.0):
        x = leafgrad.tensor([k, -0.5])
        expected, found = (leaves(DERIVATIVES[name](f, x)) for f in (function, compiled))
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [SINGLE, SEVERAL])
def test_an_edge_of_a_compiled_call_takes_gradients(function):
    compiled = leafgrad.compile(function)
    for _ in range(4):
        *_, y = tensors(compiled(leafgrad.ones(3, requires_grad=True)))
        edge, total = get_gradient_edge(y), (y * leafgrad.arange(3.0)).sum()
        assert leafgrad.autograd.grad(total, edge, retain_graph=True)[0].tolist() == [0, 1, 2]
        del y, total
        assert edge.recorded().shape == (3,)


# ---- histories that the ops of a call do not tell -----------------------------------------------------------------


def under_no_grad(a, b):
    with leafgrad.no_grad():
        t = a * 2
    return (t * t * b).sum() * a.sum()


def detached(a, b):
    return (a.detach() * b * b).sum() + (a * b).sum()


def detached_view(a, b):
    return (a.detach()[0] * b * b).sum() * a.sum()


def detached_in_vmap(a, b):
    return leafgrad.vmap(lambda x, y: x.detach() * y * y)(a, b).sum() * a.sum()


def new_leaf(a, b):
    return (leafgrad.nn.Parameter(a.detach()) * b * b).sum() * a.sum()


def written_without_history(a, b):
    b = b * 1
    with leafgrad.no_grad():
        b[0] = a[1]
    return (b * b).sum()


def copied_without_history(a, b):
    b = b * 1
    with leafgrad.no_grad():
        b.copy_(a)
    return (b * b).sum() + a.sum() * b.sum()


def copied_through_detach(a, b):
    b = b * 1
    b.detach().copy_(a.detach())
    return (b * b).sum() + a.sum() * b.sum()


def copied_into_a_constant(a, b):
    c = leafgrad.zeros(2)
    c.copy_(a.detach())
    return (c * b * b).sum() + a.sum() * b.sum()


def gradient_without_graph(a, b):
    (g,) = leafgrad.autograd.grad((a**3).sum(), a)
    return (g * b * b).sum() * a.sum()


def other_ops_than_detached(a, b):
    return (leafgrad.where(a.detach() > b.detach(), a, b) ** 3).sum()


def detached_for_a_buffer(a, b):
    mean, var = leafgrad.zeros(1), leafgrad.ones(1)
    return (leafgrad.nn.functional.batch_norm((a * b)[:, None], mean, var, training=True) ** 3).sum()


def gradient_with_graph(a, b):
    return leafgrad.func.grad(lambda y: (y**3 * a).sum())(b).sum()


def dropped(a, b):
    return (leafgrad.nn.functional.dropout(a * b, 0.5) ** 3).sum()


def rounded_and_drawn(a, b):
    noise = leafgrad.rand(2)
    return ((a.detach() * noise + b.floor()) * b * b * a).sum()


def both_ways(a, b):
    return (a.detach() * a * b * b + a.detach() ** 2 * (a * b).detach() * b**3).sum()


def views_written(a, b):
    c = a * b
    c[0].mul_(b[1])
    with leafgrad.no_grad():
        c[1:].add_(a[:1])
    return (c * c * b).sum()


def several_outputs(a, b):
    q, r = leafgrad.linalg.qr(leafgrad.outer(a, b) + leafgrad.eye(2))
    values, _ = (a * b * b).sort()
    return (q * q.detach() * r).sum() + (values * a).prod()


def nested_vmaps(a, b):
    return leafgrad.vmap(lambda x: leafgrad.vmap(lambda y: (x * y * y.detach()).sin() * x.detach())(b))(a).sum()


def summed_in_vmap(a, b):
    grads = leafgrad.vmap(leafgrad.func.grad(lambda w, x: (w * x).sum() ** 3), (None, 0))(a, leafgrad.stack([a, b]))
    return (grads * b).sum()


FUNCTIONS = [
    under_no_grad, detached, detached_view, detached_in_vmap, new_leaf, written_without_history,
    copied_without_history, copied_through_detach, copied_into_a_constant, gradient_without_graph,
    other_ops_than_detached, detached_for_a_buffer, gradient_with_graph, dropped, rounded_and_drawn, both_ways,
    views_written, several_outputs, nested_vmaps, summed_in_vmap,
]  # fmt: skip


def twice(function):
    """The gradient of the gradient by b, by both arguments, None where there is none."""
    a = leafgrad.tensor([1.0, 2.0], requires_grad=True)
    b = leafgrad.tensor([3.0, 5.0], requires_grad=True)
    (g,) = leafgrad.autograd.grad(function(a, b), b, create_graph=True)
    found = leafgrad.autograd.grad(g.sum(), [a, b], allow_unused=True)
    return [g.tolist(), *(None if h is None else h.tolist() for h in found)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives_of_derivatives_know_what_each_tensor_came_from(function):
    compiled = leafgrad.compile(function)
    for seed in range(4):
        leafgrad.manual_seed(seed)
        expected = twice(function)
        leafgrad.manual_seed(seed)
        for ours, theirs in zip(twice(compiled), expected, strict=True):
            assert ours == (None if theirs is None else pytest.approx(theirs, rel=1e-5))


LAYERS = {
    "attention": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True),
        lambda m, x: m(x, x, x, need_weights=False)[0],
    ),
    "LSTM": (lambda: nn.LSTM(4, 3, batch_first=True, bidirectional=True), lambda m, x: m(x)[0]),
    "GRU": (lambda: nn.GRU(4, 3, batch_first=True), lambda m, x: m(x)[0]),
    "RNN": (lambda: nn.RNN(4, 3, batch_first=True, bias=False), lambda m, x: m(x)[0]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_with_gradients_of_their_own(name):
    """They are Functions of this package, of which the program knows all that their gradients need."""
    leafgrad.manual_seed(0)
    make, call = LAYERS[name]
    layer = make().double()
    compiled = leafgrad.compile(lambda x: call(layer, x), closed=True)

    def derivatives(f):
        x = (leafgrad.arange(24.0, dtype=leafgrad.float64).reshape(2, 3, 4) / 24).requires_grad_()
        found, inputs = [f(x)], [x, *layer.parameters()]
        for _ in range(2):
            total = sum((t**2).sum() for t in found if t is not None and t.requires_grad)
            found = leafgrad.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
        return [None if t is None else t.detach().numpy() for t in found]

    for _ in range(3):
        for ours, theirs in zip(derivatives(compiled), derivatives(lambda x: call(layer, x)), strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9 * abs(theirs).max())


def test_what_comes_from_a_leaf_of_the_call_requires_grad():
    def function(x):
        p = leafgrad.nn.Parameter(leafgrad.full((2,), 3.0))
        return p * x, p * 2

    compiled = leafgrad.compile(function)
    for f in (function, compiled, compiled, compiled):
        x = leafgrad.ones(2, requires_grad=True)
        y, z = f(x)
        (g,) = leafgrad.autograd.grad(y.sum(), x, create_graph=True)
        assert (g.tolist(), g.requires_grad, z.requires_grad) == ([3, 3], True, True)
        g.sum().backward()
        assert x.grad is None


def test_an_input_that_was_written_before_the_third_derivative():
    compiled = leafgrad.compile(lambda x: (x**4).sum())
    for function in (lambda x: (x**4).sum(), compiled, compiled, compiled):
        x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
        h = x * 1
        (g,) = leafgrad.autograd.grad(function(h), h, create_graph=True)
        (g2,) = leafgrad.autograd.grad(g.sum(), h, create_graph=True)
        with leafgrad.no_grad():
            h.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            leafgrad.autograd.grad(g2.sum(), h)


def test_a_vmap_over_the_gradient_of_a_compiled_call():
    compiled = leafgrad.compile(lambda x: x**3)
    for function in (lambda x: x**3, compiled, compiled, compiled):
        x = leafgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = function(x)
        found = leafgrad.vmap(lambda g, y=y, x=x: leafgrad.autograd.grad(y, x, g, retain_graph=True)[0])(
            leafgrad.eye(3)
        )
        assert found.tolist() == leafgrad.diag(3 * x.detach() ** 2).tolist()


def kept_then_written():
    """Functions of one argument, and what is written between their call and a backward pass of the result."""
    v, w = leafgrad.ones(3), leafgrad.ones(6)
    a, b = w[:3], w[3:]
    p, q = w[:3].detach(), w[3:].detach()
    results = []

    def writes_first(x):
        a.mul_(0.5)
        return x * a

    def writes_another_part(x):
        y = x * p
        q.mul_(0.5)
        return y

    def writes_data_first(x):
        v.data.mul_(0.5)
        return x * v

    def writes_data_then(x):
        y = x * v
        v.data.mul_(0.5)
        return y

    def gives_memory_first(x):
        v.data = v.data * 0.5
        return x * v

    def gives_memory_then(x):
        y = x * v
        v.data = v.data * 0.5
        return y

    def gives_two(x):
        y = x.exp()
        return y * y, y

    return {
        "result": (lambda x: x.exp(), lambda y: y.mul_(2)),
        "result with a history": (lambda x: (x * 2).exp(), lambda y: y.mul_(2)),
        "other result": (gives_two, lambda y: results[1].mul_(2)),
        "slice": (lambda x: x * w[:3], lambda y: w.mul_(2)),
        "other slice": (lambda x: x * w[:3], lambda y: b.mul_(2)),
        "other view": (lambda x: x * a, lambda y: q.mul_(2)),
        "transposed": (lambda x: x * w.reshape(3, 2).t()[0], lambda y: w.mul_(2)),
        "expanded": (lambda x: x * w[:1].expand(3), lambda y: w.mul_(2)),
        "converted": (lambda x: x * a.double(), lambda y: w.mul_(2)),
        "written before": (writes_first, lambda y: w.mul_(2)),
        "written before alone": (writes_first, lambda y: None),
        "another part written": (writes_another_part, lambda y: None),
        "data": (lambda x: x * v, lambda y: v.data.mul_(2)),
        "data written before": (writes_data_first, lambda y: v.data.mul_(2)),
        "data written then": (writes_data_then, lambda y: None),
        "other memory": (gives_memory_first, lambda y: None),
        "other memory written": (gives_memory_first, lambda y: v.mul_(2)),
        "other memory then": (gives_memory_then, lambda y: None),
    }, results


@pytest.mark.parametrize("name", kept_then_written()[0])
def test_what_gradients_need_is_written_before_they_are_computed(name):
    outcomes = []
    for compiled in (leafgrad.compile, lambda f: f):
        functions, results = kept_then_written()
        (function, write), outcome = functions[name], []
        function = compiled(function)
        for _ in range(4):
            x = leafgrad.tensor([0.25, 0.5, 1.0], requires_grad=True)
            made = function(x)
            results[:] = made if isinstance(made, tuple) else [made]
            with leafgrad.no_grad():
                write(results[0])
            try:
                results[0].sum().backward()
                outcome.append(x.grad.tolist())
            except RuntimeError as error:
                outcome.append(str(error).partition(":")[0])
        outcomes.append(outcome)
    for got, expected in zip(*outcomes, strict=True):
        assert got == (pytest.approx(expected) if isinstance(expected, list) else expected)


@pytest.mark.parametrize("create_graph", [False, True])
def test_another_result_is_written(create_graph):
    """Its gradient is refused, no other one's."""
    compiled = leafgrad.compile(lambda x: (x.exp(), x.sin(), (x * 2)[1:]))
    for _ in range(4):
        x = leafgrad.ones(2, requires_grad=True)
        a, b, c = compiled(x)
        with leafgrad.no_grad():
            a.mul_(2)
            c.mul_(2)
        for result in (b, c):
            leafgrad.autograd.grad(result.sum(), x, create_graph=create_graph, retain_graph=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            leafgrad.autograd.grad(a.sum(), x, create_graph=create_graph)


def test_an_op_without_a_gradient_for_what_nobody_asks_for():
    w = leafgrad.tensor([0.5, 1.5], requires_grad=True)
    step = leafgrad.compile(lambda x: (leafgrad.heaviside(x, leafgrad.ones(())) + x) * w)
    for _ in range(5):
        x = leafgrad.tensor([1.0, 2.0], requires_grad=True)
        assert leafgrad.autograd.grad(step(x).sum(), [w])[0].tolist() == [2.0, 3.0]
        with pytest.raises(MissingGradientError, match="heaviside"):
            step(x).sum().backward()
