"""In-place writes in functions that are differentiated: refused before anything is written, or seen outside."""

import pytest

import leafgrad
from leafgrad import Tensor, tensor
from leafgrad.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

CAPTURED = "would mutate a captured Tensor"
TRANSFORMS = {
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
    "vjp": vjp,
    "jvp": lambda f, x: jvp(f, (x,), (leafgrad.ones_like(x),)),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(f)(x),
    "linearize": linearize,
    "grad of vmap": lambda f, x: grad(lambda x: vmap(lambda _: f(x))(leafgrad.ones(2)).sum())(x),
    "vmap of grad": lambda f, x: vmap(lambda x: grad(lambda x: f(x).sum())(x))(x.expand(2, 2)),
}
WRITES = {
    "mul_": lambda c, x: c.mul_(2),
    "copy_": lambda c, x: c.copy_(x),
    "index": lambda c, x: c.__setitem__(0, x[1]),
    "view": lambda c, x: c[:1].add_(1),
    "detach": lambda c, x: c.detach().add_(1),
    "fill_": lambda c, x: c.fill_(3),
    "normal_": lambda c, x: c.normal_(),
    "unsqueeze_": lambda c, x: c.unsqueeze_(0),
    "no_grad": lambda c, x: leafgrad.no_grad(c.mul_)(2),
    "out": lambda c, x: leafgrad.mul(c, 2, out=c),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_captured_tensor_is_not_written(transform, write):
    c = tensor([1.0, 2.0])

    def f(x):
        write(c, x)
        return c * x

    with pytest.raises(RuntimeError, match=CAPTURED):
        transform(f, tensor([3.0, 4.0]))
    assert c.tolist() == [1.0, 2.0]
    assert c._version == 0
    assert not c.requires_grad


def test_a_tensor_of_the_outer_function_is_captured_by_the_inner_one():
    def outer(x):
        c = x * 1
        return grad(lambda y: (c.mul_(y) * y).sum())(x).sum()

    with pytest.raises(RuntimeError, match=CAPTURED):
        grad(outer)(tensor([1.0, 2.0]))


def test_what_the_function_makes_it_may_write():
    def f(x):
        y = leafgrad.zeros(2)
        y[0] = x[1] ** 2
        y[1:] = x[0]
        return y.mul_(x).sum()

    assert grad(f)(tensor([3.0, 4.0])).tolist() == [20.0, 27.0]  # d(3 x1² + x0 x1)


def test_a_parameter_is_not_stepped_inside():
    w = tensor([1.0, 2.0], requires_grad=True)
    w.grad = leafgrad.ones(2)
    optimizer = leafgrad.optim.SGD([w], 0.1)

    def f(x):
        optimizer.step()
        return (x * w).sum()

    with pytest.raises(RuntimeError, match=CAPTURED):
        grad(f)(tensor([1.0, 1.0]))
    assert w.tolist() == [1.0, 2.0]


def test_a_compiled_function_does_not_write_what_it_captured():
    c = leafgrad.ones(2)

    @leafgrad.compile
    def step(x):
        c.add_(1)
        return c * x

    step(leafgrad.ones(2))
    with pytest.raises(RuntimeError, match=CAPTURED):
        grad(lambda x: step(x).sum())(leafgrad.ones(2))
    assert c.tolist() == [2.0, 2.0]


# ---- what is given may be written ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["position", "keyword"])
def test_another_argument_may_be_written(by):
    def f(x, y):
        y.mul_(x)
        return (y * x).sum()

    x, y = tensor([3.0, 4.0]), tensor([1.0, 2.0])
    found = grad(f)(x, y) if by == "position" else grad(f)(x, y=y)
    assert found.tolist() == [6.0, 16.0]  # d(y x²)
    assert y.tolist() == [3.0, 8.0]
    assert not y.requires_grad


def test_what_was_written_is_connected_outside():
    x, y = tensor([3.0, 4.0], requires_grad=True), tensor([1.0, 2.0])
    grad(lambda x, y: y.mul_(x).sum())(x, y)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_under_no_grad_what_was_written_keeps_its_history():
    x, w = tensor([3.0, 4.0]), tensor([1.0, 2.0], requires_grad=True)
    y = w * 2
    before = y.grad_fn
    with leafgrad.no_grad():
        grad(lambda x, y: y.mul_(x).sum())(x, y)
    assert y.tolist() == [6.0, 16.0]
    assert y.grad_fn is before


def test_a_view_that_is_given_may_be_written():
    x, y = tensor([3.0, 4.0], requires_grad=True), leafgrad.zeros(2, 2)

    def f(x, row):
        row[:] = x * x
        return row.sum()

    assert grad(f)(x, y[1]).tolist() == [6.0, 8.0]
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]


def test_forward_mode_may_write_its_primals():
    x = tensor([1.0, 2.0])
    value, tangent = jvp(lambda x: x.mul_(3) * x, (x,), (leafgrad.ones(2),))
    assert value.tolist() == [9.0, 36.0]
    assert tangent.tolist() == [18.0, 36.0]  # d(3x)²
    assert x.tolist() == [3.0, 6.0]
    assert not x.requires_grad
    assert jacfwd(lambda x: x.add_(1).square())(leafgrad.ones(2)).tolist() == [[4.0, 0.0], [0.0, 4.0]]


def test_a_written_primal_is_connected_outside():
    def outer(x):
        y = x * 1
        _, tangent = jvp(lambda y: y.mul_(3).square(), (y,), (leafgrad.ones(2),))
        return (tangent * y).sum()  # 18x · 3x

    assert grad(outer)(tensor([1.0, 2.0])).tolist() == [108.0, 216.0]


def test_a_primal_that_is_a_leaf_outside_is_not_written():
    x = tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        jvp(lambda x: x.mul_(3), (x,), (leafgrad.ones(2),))
    assert x.tolist() == [1.0, 2.0]


def test_a_captured_primal_is_not_written():
    c = tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match=CAPTURED):
        grad(lambda x: (x * jvp(lambda c: c.mul_(3), (c,), (leafgrad.ones(2),))[1]).sum())(leafgrad.ones(2))
    assert c.tolist() == [1.0, 2.0]


# ---- vmap ---------------------------------------------------------------------------------------------------------

BATCHED = {
    "mul_": lambda c, x: c.mul_(x),
    "copy_": lambda c, x: c.copy_(x),
    "fill_": lambda c, x: c.fill_(x.sum()),
    "index": lambda c, x: c.__setitem__(0, x[0]),
    "view": lambda c, x: c[:1].add_(x[0]),
    "out": lambda c, x: leafgrad.add(x, 1, out=c),
    "out of another shape": lambda c, x: leafgrad.add(x[0], 1, out=c),
}


@pytest.mark.parametrize("write", BATCHED.values(), ids=BATCHED)
def test_samples_are_not_written_into_what_all_share(write):
    c = tensor([1.0, 2.0])

    def f(x: Tensor) -> Tensor:
        write(c, x)
        return x

    with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
        vmap(f)(leafgrad.ones(3, 2))
    assert c.tolist() == [1.0, 2.0]


# ---- leaves of one's own ------------------------------------------------------------------------------------------

INSIDE = {
    "grad": lambda f: grad(f)(leafgrad.ones(2)),
    "jvp": lambda f: jvp(f, (leafgrad.ones(2),), (leafgrad.ones(2),)),
    "jacrev": lambda f: jacrev(f)(leafgrad.ones(2)),
    "vmap": lambda f: vmap(f)(leafgrad.ones(3, 2)),
}


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("what", ["requires_grad_", "retain_grad", "backward"])
def test_what_makes_leaves_is_refused(inside, what):
    w = tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        y = (x * w).sum()
        getattr(y, what)()
        return y

    with pytest.raises(RuntimeError, match=rf"call (Tensor\.)?{what}\(\) inside of a function"):
        inside(f)
    assert w.grad is None


@pytest.mark.parametrize("inside", INSIDE.values(), ids=INSIDE)
def test_tensors_that_require_grad_may_be_made(inside):
    inside(lambda x: (x * leafgrad.ones(2, requires_grad=True)).sum())
    inside(lambda x: (x * leafgrad.nn.Parameter(leafgrad.ones(2))).sum())


def test_an_escaped_sample_is_no_output():
    kept = []
    vmap(lambda x: kept.append(x * 2) or x)(leafgrad.ones(3, 2))
    with pytest.raises(RuntimeError, match="vmap"):
        kept[0].sum().item()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: leafgrad.no_grad(x.mul_)(2),
        lambda x: x.detach().copy_(leafgrad.ones(2) * 3),
        lambda x: x.detach().__setitem__(0, 7.0),
        lambda x: leafgrad.no_grad(x.view(2, 1)[1:].add_)(1),
    ],
    ids=["no_grad", "detach", "item", "view"],
)
@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "jacrev", "hessian"])
def test_a_compiled_step_writes_what_it_differentiates_by(name, write):
    def after(compiled):
        x = tensor([0.0, 1.0, 2.0])[1:]

        def f(x):
            write(x)
            return x * x

        def step():
            found = TRANSFORMS[name](f, x)
            return found[0] if isinstance(found, tuple) else found, x * 1

        run = leafgrad.compile(step) if compiled else step
        return [(g.tolist(), y.tolist(), x.tolist()) for g, y in (run() for _ in range(4))]

    assert after(True) == after(False)


def test_a_compiled_step_shortens_embeddings_that_it_differentiates_by():
    at = tensor([0, 1, 1])

    def after(compiled):
        w = leafgrad.arange(6.0).reshape(3, 2)

        def step(at):
            g = grad(lambda w: (leafgrad.nn.functional.embedding(at, w, max_norm=1.0) ** 2 * at[:, None]).sum())(w)
            w.add_(g)
            return g

        run = leafgrad.compile(step, closed=True) if compiled else step
        return [run(at).tolist() for _ in range(4)], w.tolist()

    for a, b in zip(after(True), after(False), strict=True):
        assert leafgrad.allclose(tensor(a), tensor(b))


# ---- a result that was given ---------------------------------------------------------------------------------------

RETURNS = {
    "itself": lambda x, y: y.mul_(x),
    "a view": lambda x, y: y.mul_(x)[:],
    "the base of what was written": lambda x, y: (y[0].copy_(x[0] * x[1]), y)[1],
    "nested": lambda x, y: (y.add_(x * x),)[0],
    "by out": lambda x, y: (y.copy_(x.sin()), y)[1],
    "not written": lambda x, y: y,
    "an integer index": lambda x, y: (y.__setitem__(1, x[0] ** 2), y)[1],
}
DERIVED = {
    "jacrev": lambda f, x, y: jacrev(f)(x, y()),
    "jacfwd": lambda f, x, y: jacfwd(f)(x, y()),
    "jacrev by keyword": lambda f, x, y: jacrev(f)(x, y=y()),
    "jacrev in chunks": lambda f, x, y: jacrev(f, chunk_size=1)(x, y()),
    "jacrev of a pair": lambda f, x, y: jacrev(lambda x, y: (f(x, y), x))(x, y())[0],
    "jacrev with aux": lambda f, x, y: jacrev(lambda x, y: (f(x, y), y), has_aux=True)(x, y())[0],
    "jacrev of the other argument": lambda f, x, y: jacrev(lambda y, x: f(x, y), argnums=1)(y(), x),
    "grad": lambda f, x, y: leafgrad.stack([grad(lambda x, y, i=i: f(x, y)[i])(x, y()) for i in range(2)]),
    "jvp": lambda f, x, y: leafgrad.stack([jvp(f, (x, y()), (e, leafgrad.zeros(2)))[1] for e in leafgrad.eye(2)], 1),
    "vmap of jacrev": lambda f, x, y: vmap(jacrev(f))(x.expand(3, 2).clone(), y().expand(3, 2).clone())[1],
    "jacrev of vmap": lambda f, x, y: jacrev(lambda x, y: vmap(f)(x[None], y))(x, y()[None])[0],
}


@pytest.mark.parametrize("f", RETURNS.values(), ids=RETURNS)
@pytest.mark.parametrize("derived", DERIVED.values(), ids=DERIVED)
def test_a_given_argument_that_is_returned_has_its_derivative(derived, f):
    x = tensor([3.0, 4.0])
    expected = jacrev(lambda x: f(x, leafgrad.ones(2) * 1.5))(x)
    assert derived(f, x, lambda: leafgrad.full((2,), 1.5)).tolist() == expected.tolist()


@pytest.mark.parametrize("f", RETURNS.values(), ids=RETURNS)
def test_a_given_argument_that_is_returned_has_its_second_derivative(f):
    x = tensor([3.0, 4.0])
    expected = hessian(lambda x: f(x, leafgrad.ones(2) * 1.5))(x)
    assert hessian(f)(x, leafgrad.full((2,), 1.5)).tolist() == expected.tolist()


def test_the_gradient_of_a_given_number_that_is_returned():
    y = tensor(2.0)
    assert leafgrad.func.grad_and_value(lambda x, y: y.mul_(x))(tensor(3.0), y) == (2.0, 6.0)
    assert (y.item(), y.requires_grad) == (6.0, False)
