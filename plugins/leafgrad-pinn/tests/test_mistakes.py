"""Mistakes are errors before the first step, in words that say what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leafgrad as lg
import leafgrad_pinn as pinn

X = pinn.Interval("x", 0, 1)
RING = pinn.Interval("x", 0, 1, periodic=True)
T = pinn.Time("t", 0, 1)
NET = pinn.MLP(4, 1)
K = pinn.Unknown("k", 1.0)
FAMILY = pinn.Box(x=(0, 1), y=(0, 2)) * pinn.GaussianField("f", length=0.4, sensors=6)


def field(domain=X * T, net=NET, **hard):
    return pinn.Field("u", domain, net, **hard)


def inside(equation=lambda u: u.t - u.xx, **options):
    return pinn.Interior(equation, **{"n": 8, **options})


def problem(*conditions, unknowns=(), domain=X * T, **hard):
    return pinn.Problem(field(domain, **hard), list(conditions), unknowns)


def beside(u):
    """Second differences, which are zero at both ends."""
    return lg.nn.functional.pad(u[2:] - 2 * u[1:-1] + u[:-2], (1, 1)) if len(u) > 2 else 0 * u


def beside_time(equation, *conditions):
    """A problem of a field of space and time, and one of time alone."""
    return pinn.Problem([field(), pinn.Field("a", T, NET)], [inside(equation), *conditions])


def data(x, u=None, **options):
    return pinn.Data({"x": x, "t": np.zeros(len(x))}, {"u": np.zeros(len(x)) if u is None else u}, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: field(boundary=0), r"boundary: expected Hard\(...\) or nothing, got 0"),
        (lambda: field(initial=lambda x: x), r"initial: expected Hard\(...\)"),
        (lambda: field(initial=pinn.Hard(np.sin)), None),
        (lambda: field(initial=pinn.Hard(lambda x: np.sin(x))), "expected functions of tensors, as lg.sin"),
        (lambda: field(boundary=pinn.Hard(lambda x: K * x)), r"Hard\(...\) takes none: say it by Dirichlet\(...\) or"),
        (lambda: problem(inside(lambda u, x: u.xx + math.sin(x))), "expected functions of tensors, as lg.sin"),
        (lambda: field(boundary=pinn.Hard(0, on=[3])), "Hard: on: expected names in one string"),
        (lambda: problem(pinn.Dirichlet(0, {"x_min"})), "on: expected names in one string"),
        (lambda: problem(pinn.Dirichlet(0, "")), "on: expected at least one name"),
        (lambda: problem(pinn.Dirichlet(None)), "expected a number or a function, got NoneType"),
        (lambda: problem(pinn.Dirichlet(math.nan)), "expected a finite number, got nan"),
        (lambda: field(boundary=pinn.Hard(math.inf)), "expected a finite number, got inf"),
        (lambda: pinn.Robin(1, a=0, b=0.0), "robin: expected a or b other than 0, got a=0, b=0.0"),
        (lambda: pinn.Robin(1, "x_max", a=K, b=1), r"robin x_max: a: .* got Unknown.*; for others there is Boundary\("),
        (lambda: pinn.Robin(1, "x_max", a=1, b=lambda x: x), r"robin x_max: b: expected a number, .* Boundary\("),
        (lambda: pinn.Adam(2, lr="1e-3"), "Adam: lr: expected a number, got '1e-3'"),
        (lambda: pinn.Unknown(3, 1.0), "Unknown: name: expected a string, got 3"),
        (lambda: pinn.Unknown("a b", 1.0), "Unknown: name: expected one that a parameter of a function can have"),
        (lambda: problem(inside(lambda u: (u * u).x)), r"interior: fields have derivatives .* pinn.d\(u \* u, x\): 'T"),
        (
            lambda: pinn.Field("u", FAMILY * T, pinn.DeepONet(4, 1), initial=pinn.Hard(lambda f: f.x)),
            r"Field 'u': initial: fields have derivatives as attributes, and input functions but in Hard\(...\)",
        ),
        (lambda: problem(inside(lambda u: u - u.at(x="0"))), "u.at: x: expected a number, got '0'"),
        (lambda: problem(inside(lambda u: u - u.at(x=np.zeros(2)))), "u.at: x: expected a number, got array"),
        (lambda: pinn.references.exact(X, u=lambda x: np.ones(3)), r"exact: u: .* shape \(101,\), got \(3,\)"),
        (lambda: pinn.references.exact(X, u=lambda x: np.exp(1j * x)), "exact: u: expected real numbers, got complex"),
        (lambda: pinn.Fourier(scale=-1), "Fourier: scale: expected a positive number, got -1"),
        (lambda: pinn.Fourier(4.0), "Fourier: features: expected a whole number, got 4.0"),
        (lambda: pinn.SIREN(frequency="a"), "SIREN: frequency: expected a number, got 'a'"),
        (lambda: pinn.SIREN(frequency={"x": 0}), "SIREN: frequency: expected positive numbers, got {'x': 0}"),
        (lambda: field(part=pinn.Interval("x", 2, 3)), "part: expected a shape within Interval.*, got Interval"),
        (lambda: pinn.fields(3, X, NET), "fields: names: expected names in one string"),
        (
            lambda: problem(inside(lambda u: u - np.random.default_rng().random())),
            "interior: expected an equation that is the same each time, got one whose residuals are others",
        ),
        (lambda: problem(inside(lambda u: u == 0)), "got leafgrad.bool, shape"),
        (lambda: problem(inside(lambda u: ())), r"or a tuple of such, got \(\)"),
        (lambda: problem(inside(lambda u: [u.x, u.t])), "got list"),
        (lambda: problem(inside(lambda u, x: u.t + (x - 5).log())), "expected finite residuals at the start, got nan"),
        (lambda: problem(pinn.Interior(3.0)), "expected a function, as lambda u"),
        (lambda: problem(inside(lambda u: u.t - u.mean())), "one whose value at a point depends on the others"),
        (lambda: problem(inside(lambda u: u.t - lg.cumsum(u, 0))), "one whose value at a point depends on"),
        (lambda: problem(inside(lambda u: u.t - beside(u))), "one whose value at a point depends on the others"),
        (lambda: field(initial=pinn.Hard(lambda x: (x - 0.9).sqrt())), "expected finite exact values, got nan or inf"),
        (lambda: field(X, boundary=pinn.Hard(lambda x: x.log())), "expected finite exact values, got nan or inf"),
        (lambda: problem(inside(name="loss")), "loss: expected a condition's name other than"),
        (lambda: problem(inside(lambda u: u.t * lg.exp(K)), unknowns=K), r"got an Unknown; .* \+name, as lg.exp"),
        *((lambda f=f: problem(inside(lambda u: u.t * f(K)), unknowns=K),
           r"interior: expected functions of tensors, got an Unknown; .* \+name, as lg.exp\(\+lam\)")
          for f in (math.sin, float, np.sin, int)),
        (lambda: beside_time(lambda u, a: u.t + a.lap), "u.lap: the field depends on t alone, not on space"),
        (lambda: beside_time(lambda u, a: u.t + a, pinn.Neumann(0, field="a")), "u.n: the field depends on t alone"),
        (lambda: pinn.Problem(field(net=pinn.MLP(4, 1, embed=(pinn.Fourier(4), pinn.Fourier(6)))), inside()),
         r"embed: expected Fourier\(...\) once, got 2"),
        (lambda: pinn.Periodic(x=2.5), "Periodic: x: expected a whole number, got 2.5"),
        (lambda: problem(lambda u: u.xx), r"conditions: expected Interior\(...\), or a list of such, got one with fun"),
        (lambda: pinn.Problem("u", [inside()]), r"fields: expected Field\(...\), or a list of such, got str"),
        (lambda: inside(n=10.5), "Interior: n: expected a whole number, got 10.5"),
        (lambda: inside(n="10"), "Interior: n: expected a whole number, got '10'"),
        (lambda: inside(weight="1"), "weight: expected a number, got '1'"),
        (lambda: pinn.Robin(0, "x_min", a="1", b=2), "robin x_min: a: expected a number"),
        (lambda: pinn.MLP("64", 3), "MLP: width: expected a whole number, got '64'"),
        (lambda: pinn.MLP(6.5, 3), "MLP: width: expected a whole number, got 6.5"),
        (lambda: pinn.Unknown("k", "1"), "Unknown 'k': value: expected a number"),
        (lambda: problem(inside(), unknowns=K), "unknowns: k: expected in some condition, found in none"),
        (lambda: problem(inside(), unknowns=[1.0]), r"unknowns: expected Unknown\(...\)"),
        (lambda: pinn.Data(np.zeros(2), np.zeros(2)), "data: expected arrays by name"),
        (lambda: pinn.Data({"x": np.zeros(2)}, {}), "data: expected coordinates and fields"),
        (lambda: pinn.Data({"x": [0]}, {"u": [0]}, noise=0), "data: noise of u: expected a positive number, got 0"),
        (lambda: pinn.Data({"x": [0]}, {"u": [0]}, noise={"v": 1}), "data: noise: expected fields among u, got v"),
        (lambda: pinn.Data({"x": np.array(["a"])}, {"u": np.zeros(1)}), "data: x: expected numbers"),
        (lambda: pinn.Data({"x": np.zeros(2) * 1j}, {"u": np.zeros(2)}), "expected real coordinates, got complex x"),
        (lambda: problem(pinn.Data({"x": np.zeros(2)}, {"u": np.zeros(2)})), "expected the coordinates x, t, got x"),
        (lambda: pinn.At({"x": 1}, lambda u: u), r"at data: expected Data\(...\), got dict"),
        (lambda: problem(inside(), pinn.Initial(1), initial=pinn.Hard(0)), r"and initial=Hard\(...\) of u"),
        (lambda: problem(inside(), pinn.Dirichlet(1), boundary=pinn.Hard(0)), r"dirichlet and boundary=Hard"),
        (lambda: problem(inside(), pinn.Initial(1), boundary=pinn.Hard(0)), r"initial and boundary=Hard"),
        (lambda: problem(inside(), pinn.Dirichlet(0), initial=pinn.Hard(lambda x: x + 1)), "and initial=Hard"),
        (lambda: problem(inside(), pinn.Dirichlet(0, "x_min"), pinn.Dirichlet(1)), "x_min and dirichlet of u"),
        (lambda: field(RING * T, pinn.MLP(4, 1, embed=pinn.Periodic(x=2)), initial=pinn.Hard(lambda x: x)),
         "exact values that are periodic in x, got ones whose ends differ by 1"),
        (lambda: field(RING * T, boundary=pinn.Hard(0)), "no edges, since it is periodic"),
        (lambda: pinn.Time("t", 0, 1) * X, "time comes last"),
        (lambda: X * T * T, "one Time"),
        (lambda: X + T, "union: expected two shapes, got Time"),
        (lambda: pinn.Disk(1, x=0, y=0) * X, "of shapes, only intervals and boxes have products"),
        (lambda: pinn.Box(x="01"), r"x: expected two numbers, as x=\(0, 1\), got '01'"),
        (lambda: pinn.Box(x=1), "x: expected two numbers"),
        (lambda: pinn.Interval(0, 1, "x"), "name: expected a string"),
        (lambda: pinn.Disk("1", x=0, y=0), "radius: expected a number"),
        (lambda: pinn.Time("t", "0", 1), "Time: t: start: expected a number"),
        (lambda: pinn.Problem([field(X), pinn.Field("v", pinn.Interval("x", 0, 2), NET)], inside(lambda u: u.x)),
         "Field 'v': expected x from 0.0 to 1.0, as other fields have it, got 0.0 to 2.0"),
        (lambda: pinn.fields("u v", X, NET, boundary=pinn.Hard(0)), "expected conditions by field"),
        (lambda: pinn.ComplexField("p", X, NET, boundary=[pinn.Hard(0)]), "or a pair of them"),
    ],
)  # fmt: skip
def test_mistakes_are_errors(make, message):
    if message is None:
        with pytest.raises((TypeError, ValueError)):
            make()
        return
    with pytest.raises((TypeError, ValueError, AttributeError, RuntimeError), match=message):
        make()


def test_values_that_agree_are_none():
    pinn.Problem(
        field(initial=pinn.Hard(lambda x: x)), [inside(), pinn.Dirichlet(lambda x: x), pinn.Initial(lambda x: x)]
    )
    square = pinn.Box(x=(0, 1), y=(0, 1))  # values that jump at corners are common: a lid that moves
    lid = [pinn.Dirichlet(1, "y_max"), pinn.Dirichlet(0, "x_min x_max y_min")]
    pinn.Problem(field(square), [inside(lambda u: u.lap), *lid])


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"u": 1}, r"expected Reference\(...\), as references.exact gives, got dict"),
        (
            pinn.references.exact(pinn.Interval("x", 0, 5) * T, u=lambda x, t: x),
            "expected x from 0 to 1, as the domain has it, got 0 to 5",
        ),
        (pinn.references.exact(X * T), "expected coordinates x, t and fields among u, got x, t and none"),
        (
            pinn.references.exact(X * T, u=lambda x, t: np.where(x < 0.5, x, math.inf)),
            "reference: u: expected finite numbers, or nan where it is not known, got inf",
        ),
        (pinn.references.exact(X * T, u=lambda x, t: 0), "u: expected numbers other than zero, which errors are rel"),
    ],
)
def test_wrong_references(reference, message):
    with pytest.raises((TypeError, ValueError), match=message):
        problem(inside()).solve(pinn.Adam(1), reference=reference)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: inside(samplr="grid"), r"Interior.__init__\(\) got .* 'samplr'.*; it takes n, sampler, weight"),
        (lambda: pinn.Interval(0, 1), r"Interval\(\) missing .*; write Interval\('x', 0, 1\)"),
        (lambda: pinn.Box((0, 1), (0, 1)), r"Box.__init__\(\) takes .*; write Box\(x=\(0, 1\), y=\(0, 1\)\)"),
        (lambda: pinn.Disk(0, 0, 1), r"Disk\(\) takes .*; write Disk\(1.0, x=0, y=0\)"),
        (lambda: pinn.Adam(9, learning_rate=1), r"Adam.__init__\(\) got .* 'learning_rate'; it takes steps, lr"),
        (lambda: problem(inside()).solve(pinn.Adam(1), seed=3), r"solve\(\) got .* 'seed'.*; it takes .*, seeds, out"),
    ],
)
def test_misspelt_arguments(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_misspelt_names():
    with pytest.raises(AttributeError, match="Did you mean: 'LevenbergMarquardt'"):
        _ = pinn.LevenbergMarquard


@pytest.mark.parametrize("dtype", [lg.float16, lg.int64, lg.complex128, "float32", np.float64])
def test_wrong_dtypes(dtype):
    with pytest.raises(TypeError, match=r"dtype: expected leafgrad.float64 or leafgrad.float32, got"):
        problem(inside()).solve(pinn.Adam(1), dtype=dtype)


@pytest.mark.parametrize("seeds", ["3", [1, 1], 0, -1, [0.5], [-1], 2.0, True])
def test_wrong_seeds(seeds):
    with pytest.raises(ValueError, match="seeds: expected at least one, or different whole numbers"):
        problem(inside()).solve(pinn.Adam(1), seeds=seeds)


def test_wrong_files(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "one.npy", np.zeros(3))
    np.savez(tmp_path / "empty.npz", x=np.zeros(2), u=np.zeros(3))
    for name, message in (
        ("text.npz", "expected an npz file"),
        ("one.npy", "got a single array"),
        ("empty.npz", r"arrays of one shape, .*got .*'x': \(2,\), 'u': \(3,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            pinn.Data.from_npz(tmp_path / name, "x", u="u")
    with pytest.raises(FileNotFoundError):
        pinn.Data.from_npz(tmp_path / "none.npz", "x", u="u")


def test_unknowns_stand_on_either_side():
    k = pinn.Unknown("k", 2.0, positive=True)
    first, second = (
        problem(inside(equation), unknowns=k).system()(0, {"points": lg.tensor(np.full((3, 2), 0.4))})
        for equation in (lambda u: u.t + k * u * u.x - k * u.xx, lambda u: u.t + u * k * u.x - u.xx * k)
    )
    assert lg.equal(first, second)


COMPLEX = np.exp(1j * np.linspace(0, 1, 5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pinn.Table({"x": COMPLEX.real[::-1]}, COMPLEX),
            r"Table: values: expected real .* re\(x\) \+ 1j \* im",
        ),
        (lambda: pinn.Table({"x": [0, 1]}, [1 + 1j, 2]), "Table: values: expected real numbers, got complex ones"),
        (lambda: pinn.Table({"x": COMPLEX}, COMPLEX.real), "Table: x: expected real numbers, got complex128"),
        (lambda: inside(points={"x": COMPLEX, "t": COMPLEX}), "points: x: expected real numbers, got complex128"),
        (lambda: inside(points={"x": ["a"], "t": [1]}), "points: x: expected real numbers, got <U1"),
        (lambda: inside(points={"x": [1], "t": [1]}, weights=[1j]), "weights: expected real numbers, got complex128"),
        (lambda: FAMILY.functions[0].values(np.ones((6, 6)) * 1j), "or real numbers at its sensors, got complex128"),
        (lambda: FAMILY.functions[0].values(lambda x, y: np.exp(1j * x)), "f: expected real numbers, got complex128"),
        (lambda: FAMILY.functions[0].values(np.sin), "f: expected a function of x, y, got <ufunc 'sin'>, of 1"),
    ],
)
def test_numbers_are_real(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_points_of_solutions_are_real():
    assert FAMILY.functions[0].values(np.add)[0][-1] == 3
    sol = problem(inside()).solve(pinn.Adam(1))
    for ask in (sol, lambda *points: sol.evaluate(lambda u: u, *points), lambda x, t: sol.integral(1, x=x)):
        for value, kind in ((COMPLEX, "complex128"), ("a", "<U1")):
            with pytest.raises(TypeError, match=f": x: expected real numbers, got {kind}"):
                ask(value, 0.5)


def test_defaults_do_not_hide_fields_and_coordinates():
    for equation, name in ((lambda u, x=0.0: u.t - x, "x"), (lambda t, u=None: t, "u")):
        with pytest.raises(ValueError, match=f"interior: {name}: expected no default, which would hide {name} itself"):
            problem(inside(equation))
    with pytest.raises(ValueError, match="x: expected no default"):
        problem(inside(), pinn.Initial(lambda x=1.0: x))
    k = pinn.Unknown("k", 2.0)
    problem(inside(lambda u, s=3.0, k=k: u.t - s * k * u), unknowns=k)


@pytest.mark.parametrize("choose", [lambda k: k == 1, lambda k: k != 1, lambda k: k > 0, lambda k: k >= 0])
def test_unknowns_are_not_compared(choose):
    k = pinn.Unknown("k", 1.0)
    with pytest.raises(TypeError, match=r"Unknown 'k': .* got a comparison; take lg.where\(\+k > 0, a, b\)"):
        problem(inside(lambda u: u.t + (5 if choose(k) else k) * u), unknowns=k)
    chosen = inside(lambda u: u.t + lg.where(+k > 0, u, 2 * u))
    assert k in problem(chosen, unknowns=k).unknowns


def test_what_requires_grad_and_is_not_trained_is_told():
    k, factor = lg.nn.Parameter(lg.tensor(1.0, dtype=lg.float64)), lg.nn.Linear(1, 1).double()
    for equation in (lambda u: u.t + k * u, lambda u, x: u.t - factor(x[:, None])[:, 0]):
        with pytest.raises(ValueError, match="inside: expected fields, numbers and unknowns, got a tensor of shape"):
            problem(inside(equation, name="inside"))
    with pytest.raises(ValueError, match=r"shape \(\) that requires grad, which .* take Unknown\(...\)"):
        problem(inside(), pinn.Initial(lambda x: k * x))
    with pytest.raises(ValueError, match="that requires grad"):
        problem(inside(), initial=pinn.Hard(lambda x: k * x**3))
    factor.requires_grad_(False)
    problem(inside(lambda u, x: u.t - k.detach() * factor(x[:, None])[:, 0]))


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (lambda u, x: u.xx + (1 if x > 0.5 else 2), r"got an if .* on their values; take lg.where\(x > 0.5, a, b\)"),
        (
            lambda u, x: u.xx + u(x),
            r"interior: a field is its values at the condition's points: write u, u.x, not u\(x\)",
        ),
    ],
)
def test_python_that_equations_cannot_have(equation, message):
    with pytest.raises(TypeError, match=message):
        problem(inside(equation))


@pytest.mark.parametrize(
    "equation",
    [
        lambda u, x: u.t - pinn.d(u, x / 2),
        lambda u, x: u.t - pinn.d(-u.x, 1.0 * x),
        lambda u, x: u.t - pinn.d(x, u),
        lambda u, x: u.t - pinn.d(u.detach() ** 2, u),
        lambda u, x: u.t - pinn.d(u, x, lg.ones_like(x)),
    ],
)
def test_derivatives_by_what_the_value_is_not_made_of(equation):
    with pytest.raises(ValueError, match=r"d: expected a coordinate .* got one that it is not made of; by xi = x / L"):
        problem(inside(equation))


def test_derivatives_of_and_by_no_tensors():
    with pytest.raises(TypeError, match=r"d: expected an expression of fields and coordinates, .* got 1\.0"):
        problem(inside(lambda u, x: u.t - pinn.d(1.0, x)))
    with pytest.raises(ValueError, match=r"d: expected a coordinate of the equation, .* got 'x'"):
        problem(inside(lambda u: u.t - pinn.d(u, "x")))


def test_derivatives_that_are_zero_are_no_mistake():
    def equation(u, x, t):
        xi = 2 * x
        return u.t, pinn.d(t, x), pinn.d(lg.ones_like(x), x), pinn.d(u * u, u) - 2 * u, pinn.d(xi * u, xi) - u

    system = problem(inside(equation)).system()
    assert not system(0, {"points": lg.tensor(np.full((3, 2), 0.4))})[:, 1:].any()


def written(choose, read):
    """An equation that writes a value in place and then asks for another."""

    def equation(u):
        r = choose(u)
        r *= 2
        return r - read(u, r)

    return inside(equation)


@pytest.mark.parametrize(
    ("choose", "read", "name"),
    [
        (lambda u: u.xx, lambda u, r: u.xx, "u.xx"),
        (lambda u: u.lap, lambda u, r: u.lap, "u.lap"),
        (lambda u: u.x, lambda u, r: u.xx, "u.x"),
        (lambda u: u.x, lambda u, r: r.t, "u.x"),
        (lambda u: u.x, lambda u, r: r.lap, "u.x"),
        (lambda u: u, lambda u, r: u.t, "u"),
        (lambda u: u, lambda u, r: u.at(x=0), "u"),
    ],
)
def test_values_that_were_written_in_place_are_not_read_again(choose, read, name):
    with pytest.raises(ValueError, match=f"^{name}: expected the field and its derivatives .* got {name} written"):
        problem(written(choose, read))
    sol = problem(inside()).solve(pinn.Adam(1))
    with pytest.raises(ValueError, match=f"^{name}: expected the field and its derivatives"):
        sol.evaluate(written(choose, read).equation, 0.5, 0.5)


@pytest.mark.parametrize("derivatives", ["reverse", "forward", "jet"])
def test_values_may_be_written_in_place_once_they_were_read(derivatives):
    equations = [written(lambda u: u.xx, lambda u, r: u.t), inside(lambda u: 2 * u.xx - u.t)]
    batch = {"points": lg.tensor(np.full((3, 2), 0.4))}
    first, second = (
        pinn.Problem(field(), [equation], derivatives=derivatives).system()(0, batch) for equation in equations
    )
    assert lg.allclose(first, second)


def test_a_stage_that_was_not_made():
    with pytest.raises(TypeError, match=r"expected stages, such as LBFGS.*, got the class Adam"):
        problem(inside()).solve(pinn.Adam)


def test_values_that_conflict_at_first_are_told_there():
    with pytest.raises(ValueError, match=r"where they meet, at \{.*'t': 0.0\}"):
        pinn.Field("u", X * T, pinn.MLP(4, 1), initial=pinn.Hard(1), boundary=pinn.Hard(0))
