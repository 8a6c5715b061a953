"""Complex numbers in compiled steps: pairs of real ones in C."""

import numpy as np
import pytest

import leafgrad
from leafgrad import nn
from leafgrad_native.executor import NativeExecutor

RNG = np.random.default_rng(0)


def numbers(*shape, dtype="complex128"):
    return leafgrad.tensor((RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype))


def same(step, *args, digits=1e-10):
    """The compiled step, after comparing what it gives at three calls."""
    compiled = leafgrad.compile(step, executor="native")
    for _ in range(3):
        for got, want in zip(compiled(*args), step(*args), strict=True):
            assert got.dtype is want.dtype
            np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=digits, atol=digits)
    return compiled


@pytest.mark.parametrize(("dtype", "digits"), [("complex64", 1e-4), ("complex128", 1e-11)])
@pytest.mark.parametrize("rows", [5, 300])
def test_a_network_and_its_gradients_are_one_function(rows, dtype, digits):
    weight, bias = (numbers(*s, dtype=dtype).mul(0.3).requires_grad_() for s in ((6, 6), (6,)))

    def step(x):
        out = leafgrad.tanh(leafgrad.tanh(x @ weight + bias) @ weight + bias)
        loss = (out * out.conj()).real.mean() + out.abs().mean()
        return loss, *leafgrad.autograd.grad(loss, (weight, bias))

    compiled = same(step, numbers(rows, 6, dtype=dtype), digits=digits)
    report = str(compiled.explain())
    assert "C: " in report
    assert "NumPy" not in report


def test_second_derivatives():
    def step(z):
        slope = leafgrad.autograd.grad((leafgrad.sin(z) * z).real.sum(), z, create_graph=True)[0]
        return slope, leafgrad.autograd.grad((slope.abs() ** 2).sum(), z)[0]

    same(step, numbers(70, 3).requires_grad_())


def test_what_c_does_not_know_is_given_complex_numbers():
    compiled = same(
        lambda z: (leafgrad.linalg.inv(z * z + 5), leafgrad.linalg.eigvals(z.exp()).conj() * z), numbers(4, 4)
    )
    assert "NumPy: inv" in str(compiled.explain())


def test_inputs_in_any_order_and_results_without_elements():
    same(lambda z: (z * 2j, z.real * 1.0), numbers(6, 4).mT)
    same(lambda z: (z[:0] * 2j, z.sum()), numbers(3, 3))
    same(lambda z: (z, z, z.mT), numbers(2, 3))


def test_a_parameter_is_updated_in_its_memory():
    def trained(executor):
        leafgrad.manual_seed(0)
        model = nn.Linear(3, 2, dtype=leafgrad.complex128)
        optimizer = leafgrad.optim.Adam(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(x) - y).abs() ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        step = step if executor is None else leafgrad.compile(step, executor=executor)
        x = leafgrad.randn(80, 3, dtype=leafgrad.complex128)
        return [float(step(x, x[:, :2] * 1j)) for _ in range(12)], model.weight.detach().numpy()

    losses, weight = trained("native")
    expected, wanted = trained(None)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    np.testing.assert_allclose(weight, wanted, rtol=1e-9)
    assert losses[-1] < losses[0]


def test_a_step_of_complex_numbers_gains():
    weight = numbers(8, 8)

    def step(z):
        for _ in range(3):
            z = leafgrad.tanh(z @ weight * 0.1) + z
        return (z.abs() ** 2).sum()

    executor = NativeExecutor()
    assert executor.gains(leafgrad.trace(step, numbers(200, 8)))
    assert not executor.gains(leafgrad.trace(leafgrad.linalg.eigvals, weight))


def test_numbers_that_are_not_finite():
    values = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
    z = leafgrad.tensor(np.array([complex(a, b) for a in values for b in values]))
    functions = [leafgrad.exp, leafgrad.sqrt, leafgrad.log, leafgrad.reciprocal, leafgrad.sgn, leafgrad.tanh]
    for function in (*functions, lambda z: z * z, lambda z: (z + 1) / (z - 1.5)):
        compiled = leafgrad.compile(function, executor="native")
        for _ in range(2):
            got, want = compiled(z).numpy(), function(z).numpy()
            known = np.isfinite(want)
            np.testing.assert_array_equal(np.isfinite(got), known)
            np.testing.assert_allclose(got[known], want[known], rtol=1e-12)
